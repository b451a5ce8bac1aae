"""Slash commands that show what a session has and did: cost, cache, layers, memories, permissions, servers.

Also the menus of models and modes, `/init` and `/export`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.mcp.client import ServerSummary, ToolSearchTool
from sevenfold.agent.permissions.guard import Guard
from sevenfold.agent.tools.planning import SkillTool
from sevenfold.agent.tui.choice_menu import Choice, FilterMenu, choose_filtered
from sevenfold.agent.tui.cost_text import (
    compute_saved,
    describe_unbilled,
    list_cost_sums,
    list_layer_costs,
    price_first_prompt,
    render_cache_state,
    render_cost,
    render_dollars,
    render_prices,
    render_saved,
)
from sevenfold.agent.tui.layer_commands import InspectedChat, explain_break, show_acts, show_recalled
from sevenfold.agent.tui.render.markdown_export import SecretMask, render_markdown_export
from sevenfold.agent.tui.render.wrapped_text import LabelledText
from sevenfold.core import __version__
from sevenfold.core.cache.prompt_blocks import FIVE_MINUTES
from sevenfold.core.errors import InputError
from sevenfold.core.messages import Message
from sevenfold.core.models import Model
from sevenfold.core.prices import sum_costs
from sevenfold.core.secrets import describe_refusal
from sevenfold.core.settings.sections import PERMISSION_MODES, PermissionMode
from sevenfold.core.tokens import convert_tokens
from sevenfold.store.project.git import read_branch


async def show_status(chat: InspectedChat, _: str) -> None:
    """`/status`"""
    agent, view, now = chat.agent, chat.view, datetime.now(UTC)
    model = chat.services.catalog.find(agent.frame.model)
    saved = compute_saved(chat.spent)
    cache = render_cache_state(view.cache, model, now, is_exact=True).removeprefix("cache ")
    rows = {
        "version": __version__,
        "model": f"{agent.frame.model}, {render_prices(model, now.date())}, {model.window_tokens:,} tokens",
        "key": f"from {chat.services.key_variable}" if chat.services.key_variable else "none is set",
        "mode": f"{agent.mode}: {_MODES[agent.mode]}",
        "folder": str(agent.place.cwd),
        "branch": read_branch(agent.place.root),
        "session": f"{agent.session.id}, {len(agent.session.history)} messages",
        "context": f"{view.status.context_tokens:,} of {agent.session.limit_tokens:,} tokens",
        "cache": cache or "nothing is cached yet",
        "spent": render_cost(sum_costs(one.cost for one in chat.spent)),
        "saved": "" if saved is None else render_saved(saved),
        "hooks": f"{len(agent.hooks.hooks) or 'none'}",
        "MCP servers": f"{len(_list_servers(agent)) or 'none'}",
    }
    chat.put(chat.renderer().rows(LabelledText(name, value) for name, value in rows.items() if value))


async def show_cost(chat: InspectedChat, _: str) -> None:
    """`/cost`"""
    if asked := describe_unbilled(chat.unbilled):
        chat.say(f"in no sum below: {asked}", "warning")
    if not chat.spent:
        chat.say("no model was asked yet", "faint")
        return
    renderer, layers, sums = chat.renderer(), list_layer_costs(chat.spent), list_cost_sums(chat.spent)
    chat.put(renderer.rows(layers))
    chat.put("\n" + renderer.rows(sums, "strong"))


async def show_permissions(chat: InspectedChat, _: str) -> None:
    """`/permissions`"""
    guard = chat.agent.toolbox.guard
    chat.say(f"mode {chat.agent.mode}: {_MODES[chat.agent.mode]}; /mode changes it", "strong")
    if not isinstance(guard, Guard):
        chat.say("this agent has nobody to ask: everything that needs leave is denied", "faint")
        return
    kinds = (("deny", guard.rules.deny), ("ask", guard.rules.ask), ("allow", guard.rules.allow))
    rows = [LabelledText(name, str(rule)) for name, rules in kinds for rule in rules]
    if rows:
        chat.put(chat.renderer().rows(rows))
    else:
        chat.say("there are no rules; [permissions] in settings has them, and `always` adds one", "faint")


def _list_servers(agent: Agent) -> Sequence[ServerSummary]:
    search = next((tool for tool in agent.toolbox.tools if isinstance(tool, ToolSearchTool)), None)
    return search.list_servers() if search else ()


async def show_servers(chat: InspectedChat, _: str) -> None:
    """`/mcp`"""
    servers = _list_servers(chat.agent)
    rows = [LabelledText(server.name, _describe_server(server)) for server in servers]
    if rows:
        chat.put(chat.renderer().rows(rows))
    else:
        chat.say("no MCP server is in use; [mcp] in settings and .mcp.json name them", "faint")


def _describe_server(server: ServerSummary) -> str:
    count = f"{len(server.tools)} tool{'' if len(server.tools) == 1 else 's'}"
    tools = f"{count}: {', '.join(server.tools)}" if server.tools else ""
    if not server.failure:
        return tools or "connected, without tools"
    return f"not connected: {server.failure}" + (f"; before it had {tools}" if tools else "")


def _shorten_path(path: str, agent: Agent) -> str:
    root, home = f"{agent.place.root}/", f"{Path.home()}/"
    return path.removeprefix(root) if path.startswith(root) else path.replace(home, "~/", 1)


async def show_hooks(chat: InspectedChat, _: str) -> None:
    """`/hooks`"""
    rows = [
        LabelledText(
            hook.event,
            (f"for {hook.matcher}: " if hook.matcher else "")
            + f"{hook.command}  (from {_shorten_path(hook.source, chat.agent) or 'settings'})",
        )
        for hook in chat.agent.hooks.hooks
    ]
    if rows:
        chat.put(chat.renderer().rows(rows))
    else:
        chat.say("no hooks are in use; ~/.sevenfold/hooks.json and .sevenfold/hooks.json name them", "faint")


async def show_skills(chat: InspectedChat, _: str) -> None:
    """`/skills`"""
    found = [tool for tool in chat.agent.toolbox.tools if isinstance(tool, SkillTool)]
    rows = [LabelledText(skill.name, skill.description) for tool in found for skill in tool.skills]
    if rows:
        chat.put(chat.renderer().rows(rows))
    else:
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
    mask, session = SecretMask(chat.agent.place.environ), chat.agent.session
    kept = await asyncio.to_thread(chat.services.read_messages, session.id)
    text = await asyncio.to_thread(render_markdown_export, _join_messages(kept, session.history), mask)
    if not text:
        raise InputError("nothing was said yet: there is nothing to export")
    try:
        await asyncio.to_thread(_write_new, path, text)
    except FileExistsError as error:
        raise InputError(f"{path} is there already; /export NAME writes another file") from error
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    chat.say(f"written to {path}", "good")
    if mask.hidden:
        chat.say(f"left out, as likely secrets: {mask.hidden:,}; each place says so", "faint")
    if not mask.is_complete:
        chat.say(f"only values of variables were looked for: {describe_refusal('no engine')}", "warning")


def _join_messages(kept: Sequence[Message], history: Sequence[Message]) -> Sequence[Message]:
    """What the transcript has, and what was said since. A session that was compacted and resumed has the rest
    of what was said in its transcript alone."""
    if not kept:
        return history
    since = next((at for at in reversed(range(len(history))) if history[at] == kept[-1]), len(history))
    return (*kept, *history[since + 1 :])


def _find_export_path(cwd: Path, typed: str) -> Path:
    return cwd / os.path.expanduser(typed)


def _write_new(path: Path, text: str) -> None:
    # For the person alone, as the transcript is.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


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
    now, tokens = datetime.now(UTC), chat.view.status.context_tokens
    catalog, before = chat.services.catalog, chat.agent.frame.model
    day = now.date()

    def explain(model: Model) -> str:
        return _explain_switch(chat, model, now)

    if not name:
        models = [model for model in catalog.models if model.prices_at(day) is not None]
        rows = [
            Choice(
                label=f"{model.name}{'  (now)' if model.name == before else ''}  "
                f"{render_prices(model, day)}  {model.window_tokens // 1000:,}k tokens",
                remark=explain(model) if model.name != before else "",
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
    if tokens and name != before:
        chat.say(explain(catalog.find(name)), "warning")
    model = chat.agent.use_model(name)
    chat.refresh_status()
    if not model.is_known:
        chat.say(
            f"no table knows {name}: should the provider not know it either, /model {before} goes back",
            "warning",
        )
    chat.say(f"the model is {chat.agent.frame.model}")


def _explain_switch(chat: InspectedChat, model: Model, now: datetime) -> str:
    """What the next prompt bills, because another model has a cache of its own."""
    tokens, here = chat.view.status.context_tokens, chat.view.cache
    if not tokens:
        return "nothing is cached yet: a switch costs nothing"
    tokens = convert_tokens(tokens, chat.services.catalog.find(chat.agent.frame.model), model)
    price = price_first_prompt(tokens, model, now.date(), here.ttl if here else FIVE_MINUTES)
    cost = "at a price that is not known" if price is None else f"for about {render_dollars(price)}"
    there = chat.view.caches.get(model.name)
    kept = there.left(now) if there and not there.is_cut else timedelta()
    if kept <= timedelta():
        return f"a switch bills the {tokens:,} tokens of the context again, {cost}"
    minutes = max(1, round(kept.total_seconds() / 60))
    return (
        f"a switch bills at most the {tokens:,} tokens of the context again, {cost}; {model.name} still has "
        f"some of them in its cache, for {minutes} min"
    )


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
