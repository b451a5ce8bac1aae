"""Slash commands that show what a session has and did: cost, cache, layers, memories, permissions, servers.

Also the menus of models and modes, `/init` and `/export`. `InspectedChat` is as much of a chat as they need.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.mcp.client import ToolSearchTool
from sevenfold.agent.permissions.guard import Guard
from sevenfold.agent.tools.planning import SkillTool
from sevenfold.agent.tui.choice_menu import Choice, ChoiceMenu, FilterMenu, choose_filtered
from sevenfold.agent.tui.cost_text import (
    compute_saved,
    price_cold_prompt,
    price_first_prompt,
    render_cache_state,
    render_cost,
    render_cost_lines,
    render_dollars,
    render_prices,
)
from sevenfold.agent.tui.event_text import find_undo, render_event_text
from sevenfold.agent.tui.text_renderer import TextTone
from sevenfold.agent.tui.turn_view import TurnView
from sevenfold.core import __version__, events
from sevenfold.core.errors import InputError
from sevenfold.core.events import Event, describe_event
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse
from sevenfold.core.prices import Catalog, sum_costs
from sevenfold.core.settings.sections import PERMISSION_MODES, PermissionMode
from sevenfold.session.cache.monitor import SpendSummary
from sevenfold.store.project.git import read_branch

SHOWN_ACTS = 20
"""Of what layers did: a screen of them."""


class _Services(Protocol):
    @property
    def catalog(self) -> Catalog: ...

    @property
    def memories(self) -> Callable[[str], Sequence[str]]: ...

    @property
    def key_variable(self) -> str: ...


class InspectedChat(Protocol):
    """A chat as these commands see it."""

    @property
    def agent(self) -> Agent: ...

    @property
    def services(self) -> _Services: ...

    @property
    def view(self) -> TurnView: ...

    @property
    def spent(self) -> Sequence[SpendSummary]: ...

    def say(self, text: str, tone: TextTone = "plain") -> None: ...

    def refresh_status(self) -> None: ...

    async def choose(self, menu: ChoiceMenu) -> int | None: ...

    def send(self, text: str) -> None:
        """Say something to the agent, as if it had been typed."""
        ...


async def show_status(chat: InspectedChat, _: str) -> None:
    """`/status`"""
    agent, view, now = chat.agent, chat.view, datetime.now(UTC)
    model = chat.services.catalog.find(agent.frame.model)
    saved = compute_saved(chat.spent)
    rows = {
        "version": __version__,
        "model": f"{agent.frame.model}, {render_prices(model, now.date())}, {model.window_tokens:,} tokens",
        "key": chat.services.key_variable or "none is set",
        "mode": agent.mode,
        "folder": str(agent.place.cwd),
        "branch": read_branch(agent.place.root),
        "session": f"{agent.session.id}, {len(agent.session.history)} messages",
        "context": f"{view.status.context_tokens:,} of {agent.session.limit_tokens:,} tokens",
        "cache": render_cache_state(view.cache, model, now) or "nothing is cached yet",
        "spent": render_cost(sum_costs(one.cost for one in chat.spent)),
        "saved": "" if saved is None else render_dollars(saved),
        "hooks": str(len(agent.hooks.hooks)),
        "MCP servers": str(len(_list_servers(agent))),
    }
    for name, value in rows.items():
        if value:
            chat.say(f"{name:12} {value}")


async def show_cost(chat: InspectedChat, _: str) -> None:
    """`/cost`"""
    unbilled = chat.agent.session.unbilled_requests
    if unbilled:
        chat.say(f"{unbilled} requests without a bill: what they cost is in no sum below", "warning")
    if not chat.spent:
        chat.say("no model was asked yet", "faint")
        return
    *rows, last = render_cost_lines(chat.spent)
    for line in rows:
        chat.say(line)
    chat.say(last, "strong")


_BREAKS = (
    events.PrefixBroken,
    events.CacheMissed,
    events.PromptTrimmed,
    events.HistoryCompacted,
    events.ResultsCleared,
    events.CutRegistered,
)
_CAUSES = {
    "model": "the model changed, and each model has a cache of its own",
    "tools": "the list of tools changed",
    "system": "the system prompt changed",
    "message": "an earlier message changed",
    "params": "a setting of the request changed",
    "idle": "the pause was longer than the cache lives",
    "unexplained": "the request was the same as before: the provider dropped its entry",
}


async def explain_break(chat: InspectedChat, _: str) -> None:
    """`/why`: the last break of the cached prefix, or the last cut."""
    found = next((act for act in reversed(chat.view.acts) if isinstance(act.event, _BREAKS)), None)
    if found is None:
        chat.say("the cache was neither broken nor cut in this session", "good")
        return
    event, model = found.event, chat.services.catalog.find(chat.agent.frame.model)
    shown, lost = render_event_text(event), count_lost_tokens(event)
    facts = {name: value for name, value in describe_event(event).items() if name != "event"}
    title = shown.text if shown else ""
    if isinstance(event, events.CutRegistered):
        title = f"layer {event.layer} cut the prompt: {event.reason}" if event.layer else event.reason
        facts = {"from": f"message {event.first + 1} on" if event.first > 0 else "the beginning on"}
        lost = chat.view.written_after_cut
    chat.say(f"{found.at.astimezone():%H:%M:%S}  {title}", "strong")
    for name, value in facts.items():
        if value not in ("", None):
            chat.say(f"  {name.replace('_', ' '):16} {value}")
    if isinstance(event, events.PrefixBroken | events.CacheMissed):
        chat.say(f"  {'why':16} {_CAUSES.get(event.cause, event.cause)}")
    price = price_cold_prompt(lost, model, found.at.date()) if lost else None
    if lost:
        cost = (
            "at a price that is not known"
            if price is None
            else f"about {render_dollars(price)} more than from the cache"
        )
        chat.say(f"  {'what it cost':16} {lost:,} tokens were written again, {cost}")
    chat.say(
        _ADVICE.get(type(event), "nothing to do: a cut is announced, and pays for itself later"), "faint"
    )


_ADVICE: dict[type[Event], str] = {
    events.PrefixBroken: "keep model, tools and settings as they are, or /clear begins a new session",
    events.CacheMissed: "a long pause is the usual cause; the next prompt writes the cache again",
    events.HistoryCompacted: "the whole conversation is still in the transcript; /expand shows the summary",
}


def count_lost_tokens(event: Event) -> int:
    """Tokens that had to be written to the cache again."""
    match event:
        case events.PrefixBroken() | events.PromptTrimmed():
            return event.lost_tokens
        case events.CacheMissed():
            return max(0, event.expected_tokens - event.read_tokens)
        case events.HistoryCompacted():
            return event.tokens_after
        case _:
            return 0


async def show_acts(chat: InspectedChat, _: str) -> None:
    """`/layers`: what layers did last, and how to look at it or take it back."""
    acts = [act for act in chat.view.acts if (shown := render_event_text(act.event)) and shown.layer]
    if not acts:
        chat.say("no layer has done anything in this session yet", "faint")
    for act in acts[-SHOWN_ACTS:]:
        shown = render_event_text(act.event)
        assert shown is not None
        chat.say(f"{act.at.astimezone():%H:%M:%S}  layer {shown.layer}: {shown.text}")
        if undo := find_undo(act.event):
            chat.say(undo, "faint")


async def show_recalled(chat: InspectedChat, _: str) -> None:
    """`/recalled`: which memories came with prompts and why; a chosen one is forgotten."""
    found = {
        act.event.key: act.event for act in chat.view.acts if isinstance(act.event, events.MemoryRecalled)
    }
    if not found:
        chat.say("no memory was recalled in this session", "faint")
        return
    rows = [
        Choice(
            label=f"{one.key}  {one.percent}% sure",
            remark=f"found by {one.ranked_by}; {one.size_bytes:,} bytes"
            + ("; it came late, with a later request" if one.is_late else ""),
        )
        for one in found.values()
    ]
    title = "recalled in this session; Enter forgets one (/memory undo brings it back)"
    at = await choose_filtered(chat, FilterMenu(title=title, choices=rows))
    if at is None:
        return
    key = list(found)[at]
    for line in await asyncio.to_thread(lambda: chat.services.memories(f"rm {key}")):
        chat.say(line)
    chat.say(
        "it stays in what was said so far; from the next session on it is gone. /memory undo brings it back",
        "faint",
    )


async def show_permissions(chat: InspectedChat, _: str) -> None:
    """`/permissions`"""
    guard = chat.agent.toolbox.guard
    chat.say(f"mode {chat.agent.mode}; /mode changes it", "strong")
    if not isinstance(guard, Guard):
        chat.say("this agent has nobody to ask: everything that needs leave is denied", "faint")
        return
    for name, rules in (("deny", guard.rules.deny), ("ask", guard.rules.ask), ("allow", guard.rules.allow)):
        for rule in rules:
            chat.say(f"{name:6} {rule}")
    if not (guard.rules.deny or guard.rules.ask or guard.rules.allow):
        chat.say("there are no rules; [permissions] in settings has them, and `always` adds one", "faint")


def _list_servers(agent: Agent) -> list[str]:
    search = next((tool for tool in agent.toolbox.tools if isinstance(tool, ToolSearchTool)), None)
    return search.list_servers() if search else []


async def show_servers(chat: InspectedChat, _: str) -> None:
    """`/mcp`"""
    servers = _list_servers(chat.agent)
    for line in servers or ("no MCP server is in use; [mcp] in settings and .mcp.json name them",):
        chat.say(line)


async def show_hooks(chat: InspectedChat, _: str) -> None:
    """`/hooks`"""
    for hook in chat.agent.hooks.hooks:
        matcher = f" {hook.matcher}" if hook.matcher else ""
        chat.say(f"{hook.event}{matcher}: {hook.command}  ({hook.source or 'settings'})")
    if not chat.agent.hooks.hooks:
        chat.say("no hooks are in use; see `sevenfold settings`", "faint")


async def show_skills(chat: InspectedChat, _: str) -> None:
    """`/skills`"""
    found = [tool for tool in chat.agent.toolbox.tools if isinstance(tool, SkillTool)]
    skills = [skill for tool in found for skill in tool.skills]
    for skill in skills:
        chat.say(f"{skill.name}: {skill.description}")
    if not skills:
        chat.say("there are no skills; .sevenfold/skills and .claude/skills hold them", "faint")


async def toggle_verbose(chat: InspectedChat, _: str) -> None:
    """`/verbose`"""
    chat.view.is_verbose = not chat.view.is_verbose
    chat.say("output is shown whole from now on" if chat.view.is_verbose else "long output is folded again")


INIT_PROMPT = (
    "Look at this project and write an AGENTS.md for it, or improve the one that is there. Say what a new "
    "colleague needs: how to set up, build, test and check, where things are, and which conventions hold. "
    "Take it from the files; invent nothing. Keep it under a page."
)


async def start_init(chat: InspectedChat, focus: str) -> None:
    """`/init`"""
    chat.send(f"{INIT_PROMPT}\n\n{focus}" if focus else INIT_PROMPT)


async def export_chat(chat: InspectedChat, name: str) -> None:
    """`/export`: the conversation as markdown, in a new file."""
    typed = name or f"sevenfold-{chat.agent.session.id[:8]}.md"
    path = _find_export_path(chat.agent.place.cwd, typed)
    text = render_markdown_export(chat.agent.session.history)
    if not text:
        raise InputError("nothing was said yet: there is nothing to export")
    try:
        await asyncio.to_thread(_write_new, path, text)
    except FileExistsError as error:
        raise InputError(f"{path} is there already; /export NAME writes another file") from error
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    chat.say(f"written to {path}", "good")


def _find_export_path(cwd: Path, typed: str) -> Path:
    return cwd / os.path.expanduser(typed)


def _write_new(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def render_markdown_export(history: Sequence[Message]) -> str:
    """What was said and done, for a person to read."""
    parts: list[str] = []
    for message in history:
        for block in message.blocks:
            match block:
                case Text() if block.text.strip():
                    heading = {"user": "You", "assistant": "Agent"}.get(message.role, "Note")
                    parts.append(f"## {heading}\n\n{block.text.strip()}")
                case ToolUse():
                    parts.append(f"### Tool {block.name}\n\n{_fence(str(dict(block.input)))}")
                case ToolResult():
                    content = block.content if isinstance(block.content, str) else ""
                    parts.append(_fence(content.strip()) if content.strip() else "")
                case _:
                    pass
    return "\n\n".join(part for part in parts if part) + ("\n" if parts else "")


def _fence(text: str) -> str:
    marks = "```"
    while marks in text:
        marks += "`"
    return f"{marks}\n{text}\n{marks}"


async def choose_mode(chat: InspectedChat, argument: str) -> None:
    """`/mode`"""
    modes: list[PermissionMode] = list(PERMISSION_MODES)
    if argument and argument not in modes:
        chat.say(f"there is no mode {argument!r}; expected one of {', '.join(modes)}", "warning")
        return
    if not argument:
        rows = [Choice(label=f"{mode}: {_MODES[mode]}") for mode in modes]
        menu = FilterMenu(title="what may be done unasked", choices=rows)
        menu.selected = modes.index(chat.agent.mode)
        at = await choose_filtered(chat, menu)
        argument = chat.agent.mode if at is None else modes[at]
    chat.agent.mode = next(mode for mode in modes if mode == argument)
    chat.refresh_status()
    chat.say(f"the mode is {chat.agent.mode}")


_MODES: dict[PermissionMode, str] = {
    "ask": "asks before it changes anything",
    "accept-edits": "edits files of the project unasked",
    "plan": "looks and plans, and changes nothing until you agree",
    "read-only": "changes nothing",
    "bypass": "asks nothing at all",
}


async def choose_model(chat: InspectedChat, name: str) -> None:
    """`/model`: says what a switch bills before it happens."""
    day, tokens = datetime.now(UTC).date(), chat.view.status.context_tokens
    catalog, before = chat.services.catalog, chat.agent.frame.model
    if not name:
        models = [model for model in catalog.models if model.prices_at(day) is not None]
        rows = [
            Choice(
                label=f"{model.name}{'  (now)' if model.name == before else ''}  "
                f"{render_prices(model, day)}  {model.window_tokens // 1000:,}k tokens",
                remark=_render_switch(price_first_prompt(tokens, model, day), tokens)
                if model.name != before
                else "",
            )
            for model in models
        ]
        menu = FilterMenu(title="models, in dollars a million tokens", choices=rows)
        menu.selected = next((at for at, model in enumerate(models) if model.name == before), 0)
        at = await choose_filtered(chat, menu)
        if at is None:
            chat.say(f"the model is {before}")
            return
        name = models[at].name
    elif tokens and name != before:
        chat.say(_render_switch(price_first_prompt(tokens, catalog.find(name), day), tokens), "warning")
    model = chat.agent.use_model(name)
    chat.refresh_status()
    if not model.is_known:
        chat.say(
            f"no table knows {name}: should the provider not know it either, /model {before} goes back",
            "warning",
        )
    chat.say(f"the model is {chat.agent.frame.model}")


def _render_switch(price: Decimal | None, tokens: int) -> str:
    """What the next prompt bills, because another model has a cache of its own."""
    if not tokens:
        return "nothing is cached yet: a switch costs nothing"
    cost = "at a price that is not known" if price is None else f"for {render_dollars(price)}"
    return f"a switch bills the {tokens:,} tokens of the context again, {cost}"


InspectHandler = Callable[[InspectedChat, str], Awaitable[None]]
INSPECT_COMMANDS: dict[str, InspectHandler] = {
    "status": show_status,
    "cost": show_cost,
    "why": explain_break,
    "layers": show_acts,
    "recalled": show_recalled,
    "permissions": show_permissions,
    "mcp": show_servers,
    "hooks": show_hooks,
    "skills": show_skills,
    "verbose": toggle_verbose,
    "init": start_init,
    "export": export_chat,
    "mode": choose_mode,
    "model": choose_model,
}
