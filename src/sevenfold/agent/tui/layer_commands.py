"""`/why`, `/layers` and `/recalled`: the last break or cut, what layers did, and which memories came.

`InspectedChat` is as much of a chat as these and the other commands that show something need.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.tui.background_view import render_elapsed
from sevenfold.agent.tui.choice_menu import Choice, ChoiceMenu, FilterMenu, choose_filtered
from sevenfold.agent.tui.cost_text import CutBill, price_cold_prompt, render_dollars
from sevenfold.agent.tui.event_text import (
    COMPACTION_CAUSES,
    PREFIX_CAUSES,
    RESUMED_CAUSE,
    find_undo,
    render_event_text,
)
from sevenfold.agent.tui.render.wrapped_text import LabelledText
from sevenfold.agent.tui.session_list import LayerAct
from sevenfold.agent.tui.text_renderer import TextRenderer, TextTone
from sevenfold.agent.tui.turn_view import TurnView
from sevenfold.core import events
from sevenfold.core.cache.prompt_blocks import FIVE_MINUTES
from sevenfold.core.events import Event
from sevenfold.core.messages import Message
from sevenfold.core.prices import Catalog
from sevenfold.layers.compaction.policy import STRATEGY_TEXTS
from sevenfold.session.cache.monitor import SpendSummary

SHOWN_ACTS = 20
"""Of what layers did: a screen of them."""


class _Services(Protocol):
    @property
    def catalog(self) -> Catalog: ...

    @property
    def memories(self) -> Callable[[str], Sequence[str]]: ...

    @property
    def key_variable(self) -> str: ...

    @property
    def read_messages(self) -> Callable[[str], Sequence[Message]]: ...


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

    @property
    def unbilled(self) -> int: ...

    def say(self, text: str, tone: TextTone = "plain") -> None: ...

    def put(self, text: str) -> None:
        """Print what is painted already."""
        ...

    def renderer(self) -> TextRenderer: ...

    def refresh_status(self) -> None: ...

    async def choose(self, menu: ChoiceMenu) -> int | None: ...

    def send(self, text: str, shown: str = "") -> None:
        """Say something to the agent, as if it had been typed; `shown` is what a person sees of it."""
        ...


OWN_CACHES = "the model changed, and each model has a cache of its own"
_BREAKS = (
    events.PrefixBroken,
    events.CacheMissed,
    events.PromptTrimmed,
    events.HistoryCompacted,
    events.ResultsCleared,
    events.CutRegistered,
)
_CAUSES = PREFIX_CAUSES | {
    "model": OWN_CACHES,
    "idle": "the pause was longer than the cache lives",
    "unexplained": "the request was the same as before: the provider dropped its entry",
    RESUMED_CAUSE: "settings or tools have changed since, or the provider dropped its entry",
}


async def explain_break(chat: InspectedChat, _: str) -> None:
    """`/why`: the last break of the cached prefix, or the last cut."""
    acts = chat.view.acts
    at = next((at for at in reversed(range(len(acts))) if isinstance(acts[at].event, _BREAKS)), None)
    if at is None:
        chat.say("the cache was neither broken nor cut in this session", "good")
        return
    found = acts[at]
    event, bill = found.event, chat.view.bill_after_cut
    shown = render_event_text(event)
    title = shown.text if shown else ""
    rows = list(_list_facts(event, chat.agent))
    if isinstance(event, events.CutRegistered):
        title = f"layer {event.layer} cut the prompt: {event.reason}" if event.layer else event.reason
        before = next(
            (act.event for act in reversed(list(acts)[:at]) if isinstance(act.event, _BREAKS)), None
        )
        if event.layer == COMPACTION_LAYER and isinstance(before, events.HistoryCompacted):
            # The cut is announced with the request after it; what was done stands in the event before.
            done = render_event_text(before)
            title = done.text if done else title
            rows = [*_list_facts(before, chat.agent), *rows]
    if cost := _describe_cost(found, chat.services.catalog, bill, chat.agent.frame.model):
        rows.append(LabelledText("cost", cost))
    rows.append(LabelledText("to do", _ADVICE[type(event)]))
    chat.say(f"{_render_time(found.at)}  {title}", "strong")
    chat.put(chat.renderer().rows(rows))


COMPACTION_LAYER = 4


def _render_time(at: datetime) -> str:
    """With the day, where that was another one."""
    local = at.astimezone()
    is_today = local.date() == datetime.now(UTC).astimezone().date()
    return f"{local:%H:%M:%S}" if is_today else f"{local:%Y-%m-%d %H:%M}"


def _describe_cost(act: LayerAct, catalog: Catalog, bill: CutBill | None, model: str) -> str:
    """What a break or a cut cost, or will; empty where nothing is known of it."""
    event, ttl, when = act.event, FIVE_MINUTES, "written to the cache again"
    lost, name = count_lost_tokens(event), act.model or model
    if isinstance(event, events.CutRegistered):
        if bill is None:
            return ""
        lost, name, ttl = bill.tokens, bill.model, bill.ttl
        when = when if bill.is_cached else "sent again, too few for the cache"
    if not lost:
        return ""
    price = price_cold_prompt(lost, catalog.find(name), act.at.date(), ttl)
    if isinstance(event, events.HistoryCompacted):
        most = f": up to {render_dollars(price)} more" if price is not None else ""
        return f"the next prompt writes up to {lost:,} tokens to the cache again{most}"
    cost = f"about {render_dollars(price)} more" if price is not None else "at a price that is not known"
    return f"{lost:,} tokens {when}: {cost}"


def _list_facts(event: Event, agent: Agent) -> Iterator[LabelledText]:
    """What happened to the prompt, in words."""
    match event:
        case events.PrefixBroken():
            yield LabelledText("differs", _name_block(event.path, agent))
            yield LabelledText("cause", _CAUSES.get(event.cause, event.cause))
        case events.CacheMissed():
            yield LabelledText("cause", _CAUSES.get(event.cause, event.cause))
            if event.cause == "idle":
                yield LabelledText("pause", render_elapsed(timedelta(seconds=event.idle_seconds)))
            if event.told:
                yield LabelledText("provider", f"says {event.told}")
        case events.PromptTrimmed():
            yield LabelledText("differs", _name_block(event.path, agent))
            yield LabelledText("cause", "the provider leaves out earlier thinking, or what was for one turn")
        case events.HistoryCompacted():
            yield LabelledText("method", STRATEGY_TEXTS.get(event.rung, event.rung))
            yield LabelledText("cause", COMPACTION_CAUSES.get(event.trigger, event.trigger))
        case events.CutRegistered():
            if event.reason.startswith(MODEL_CHANGED):
                yield LabelledText("cause", OWN_CACHES)
            else:
                place = f"message {event.first + 1}" if event.first > 0 else "the first message"
                yield LabelledText("changed", f"from {place} on")
        case _:
            pass


MODEL_CHANGED = "the model changed"
"""How the reason of such a cut begins."""
_BLOCK = re.compile(r"(tools|system|messages)\.(\d+)(?:\.(\d+))?")


def _name_block(path: str, agent: Agent) -> str:
    """The place of a block in a request, for a person."""
    found = _BLOCK.fullmatch(path)
    if found is None:
        return path
    number = int(found[2]) + 1
    if found[1] == "tools":
        tools = agent.frame.tools
        name = tools[number - 1].get("name") if number <= len(tools) else None
        return f"tool {number}" + (f", {name}" if isinstance(name, str) else "")
    if found[1] == "system":
        return f"part {number} of the system prompt"
    return f"message {number}" + (f", part {int(found[3]) + 1}" if found[3] else "")


_ADVICE: dict[type[Event], str] = {
    events.PrefixBroken: "keep model, tools and settings as they are; /clear begins a new session",
    events.CacheMissed: "nothing; the prompt after it is read from the cache again",
    events.PromptTrimmed: "nothing; the prompt after it is read from the cache again",
    events.HistoryCompacted: "nothing; the transcript keeps all of it, and /expand shows the summary",
    events.ResultsCleared: "nothing; the results stay in the transcript, and /export writes them out",
    events.CutRegistered: "nothing; what is sent from now on is read from the cache again",
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


_STEPS = (events.CompactionStarted, events.FileRestored, events.ExtraRestored)
"""Of a compaction, which has a line of its own."""


async def show_acts(chat: InspectedChat, _: str) -> None:
    """`/layers`: what layers did last, and how to look at it or take it back."""
    acts = [
        act
        for act in chat.view.acts
        if not isinstance(act.event, _STEPS) and (shown := render_event_text(act.event)) and shown.layer
    ]
    if not acts:
        chat.say("no layer has done anything in this session yet", "faint")
    renderer = chat.renderer()
    for act in acts[-SHOWN_ACTS:]:
        shown = render_event_text(act.event)
        assert shown is not None
        chat.say(f"{_render_time(act.at)}  layer {shown.layer}: {shown.text}")
        if undo := find_undo(act.event):
            chat.put(renderer.line(undo, "faint", indent=2))


async def show_recalled(chat: InspectedChat, _: str) -> None:
    """`/recalled`: which memories came with prompts and why; a chosen one is forgotten."""
    found = {
        act.event.key: (act.event, act.prompt)
        for act in chat.view.acts
        if isinstance(act.event, events.MemoryRecalled)
    }
    if not found:
        chat.say("no memory was recalled in this session", "faint")
        return
    rows = [
        Choice(
            label=f"{one.key.removesuffix('.md')}  {one.percent}% sure",
            remark=f"found {_BY.get(one.ranked_by, f'by {one.ranked_by}')}"
            + (", and came late, with a later request" if one.is_late else "")
            + (f", for: {asked}" if asked else ""),
        )
        for one, asked in found.values()
    ]
    keys = list(found)
    texts = {key: await asyncio.to_thread(_read_memory, chat, key) for key in keys[:MAX_READ_MEMORIES]}
    menu = FilterMenu(
        title="recalled in this session; Enter forgets one",
        choices=rows,
        preview=lambda at: "\n".join(part for part in (texts.get(keys[at], ""), rows[at].remark) if part),
    )
    at = await choose_filtered(chat, menu)
    if at is None:
        chat.say("nothing is forgotten", "faint")
        return
    lines = await asyncio.to_thread(lambda: chat.services.memories(f"rm {keys[at]}"))
    for line in lines:
        chat.say(line.partition(" (")[0])
    change = _CHANGE.search("\n".join(lines))
    # By its name, because a writer may have changed another memory by then.
    back = f"/memory revert {change[1]}" if change else "/memory undo"
    chat.say(f"it stays in this conversation, and comes with no other; {back} brings it back", "faint")


_BY = {"words": "by the words that it shares with the prompt", "words and meanings": "by words and meaning"}
_CHANGE = re.compile(r"\(change (\w+);")
MAX_READ_MEMORIES = 20
"""Whose text is read for the menu."""
_MAX_PREVIEW_CHARS = 300


def _read_memory(chat: InspectedChat, key: str) -> str:
    """What a memory says, in a few lines."""
    lines = chat.services.memories(f"show {key}")
    # What is known of it stands before its file, which begins with a head between two rules.
    heads = [at for at, line in enumerate(lines) if line.strip() == "---"]
    body = " ".join(" ".join(lines[heads[1] + 1 :] if len(heads) > 1 else lines).split())
    return body if len(body) <= _MAX_PREVIEW_CHARS else f"{body[:_MAX_PREVIEW_CHARS]}…"
