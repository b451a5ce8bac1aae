"""Sessions as a person knows them: by their first words, their age and their cost; and the end of one, shown
again when it is resumed.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import cast

from sevenfold.agent.loop.rewind import AGENT_TAG, TASK_TAG, extract_typed_text
from sevenfold.agent.subagents.messaging import read_started_agents
from sevenfold.agent.tui.choice_menu import Choice
from sevenfold.agent.tui.cost_text import CacheState, CutBill, read_cache_state, read_cut_bill
from sevenfold.agent.tui.event_text import RESUMED_CAUSE
from sevenfold.agent.tui.render.markdown_stream import MarkdownStream, render_spaced
from sevenfold.agent.tui.text_renderer import TextRenderer, TextTone
from sevenfold.core import events
from sevenfold.core.errors import StoreError, WireError
from sevenfold.core.events import CacheMissed, CutRegistered, Event
from sevenfold.core.fields import read_fields
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.prices import Catalog
from sevenfold.core.usage import NO_USAGE, Usage, read_stored_usage
from sevenfold.layers.compaction.summary import is_summary_head
from sevenfold.layers.forks.policy import MAIL_MARK
from sevenfold.layers.memory.extraction.policy import extract_user_words
from sevenfold.session.budget import MAIN_KIND
from sevenfold.session.cache.monitor import SpendSummary, UsageLedger
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    MessageRecord,
    ParentRecord,
    SentRecord,
    UsageRecord,
)
from sevenfold.store.transcript.transcript import SessionEntry, read_events

PREVIEW_LENGTH = 200
TITLE_LENGTH = 60
"""Characters of the first prompt: enough to know a session again, in a line of eighty."""
SHOWN_TURNS = 3
"""Of a session that is resumed: what was said last is what a person goes on from."""
SHOWN_ROUNDS = 6
"""Of each of these turns: one may have had a thousand."""
SHOWN_ANSWER_LINES = 40

MAX_LISTED_SESSIONS = 1_000
"""That are listed and searched: years of work, whose beginnings are read in a second or two. Older ones are
named by their id."""
MAX_PRICED_SESSIONS = 20
"""Of them, the newest: their whole files are read."""

NO_TITLE, UNREADABLE_TITLE = "(nothing said yet)", "(cannot be read)"


MAX_ACTS = 500
"""Events that commands such as `/why` look through."""


@dataclass(frozen=True, slots=True)
class LayerAct:
    """An event of the session, and when it came."""

    at: datetime
    event: Event
    prompt: str = ""
    """What the person had said last; the beginning of it."""
    model: str = ""
    """That was asked then, by its name in the catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastUsage:
    """What a session was billed, and left behind, before it was opened here."""

    spent: Sequence[SpendSummary] = ()
    """Of its agents too."""
    context_tokens: int = 0
    """After the last answer; 0: there was none, or the context was cut since."""
    model: str = ""
    """That gave the last answer."""
    caches: Mapping[str, CacheState] = field(default_factory=dict[str, CacheState])
    """What each model may have of it in its cache."""
    acts: Sequence[LayerAct] = ()
    """What layers did, the oldest first."""
    bill_after_cut: CutBill | None = None
    """Of the first request after the last cut."""
    unbilled: int = 0
    """Requests whose bill never came."""


NO_PAST_USAGE = PastUsage()


def find_past_miss(past: PastUsage, model: str, usage: Usage, started: datetime) -> CacheMissed | None:
    """What the cache did not give back to the first request after a session was resumed. The session's own
    monitor knows of no request before this one."""
    state, run = past.caches.get(past.model), usage.last_run
    if state is None or state.ttl is None or run is None or run.read >= state.tokens:
        return None
    idle = started - state.since
    cause = "model" if past.model != model else "idle" if idle > state.ttl else RESUMED_CAUSE
    return CacheMissed(
        who=MAIN_KIND,
        expected_tokens=state.tokens,
        read_tokens=run.read,
        idle_seconds=int(idle.total_seconds()),
        cause=cause,
        told="",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCard:
    """One session in a list."""

    entry: SessionEntry
    title: str
    spent_usd: float | None = None
    """What its calls were billed; None where a price is not known."""
    is_priced: bool = True
    """What it was billed was read, which takes as long as all of it."""
    branch: str = ""
    """That was checked out when it began; empty where that is not known."""

    @property
    def cost(self) -> str:
        if not self.is_priced:
            return ""
        return "unpriced" if self.spent_usd is None else f"${self.spent_usd:.2f}"


def read_session_cards(
    sessions: Folder, entries: Sequence[SessionEntry], catalog: Catalog
) -> list[SessionCard]:
    """Of the newest with what they cost."""
    return [
        _read_card(sessions, entry, catalog, is_priced=at < MAX_PRICED_SESSIONS)
        for at, entry in enumerate(entries[:MAX_LISTED_SESSIONS])
    ]


def _read_card(sessions: Folder, entry: SessionEntry, catalog: Catalog, *, is_priced: bool) -> SessionCard:
    return SessionCard(
        entry=entry,
        title=read_title(sessions, entry.id),
        spent_usd=_read_spent(sessions, entry.id, catalog) if is_priced else None,
        is_priced=is_priced,
        branch=read_start_branch(sessions, entry.id),
    )


def _read_spent(sessions: Folder, session: str, catalog: Catalog) -> float | None:
    cost = _read_bill(sessions, session, catalog).total().cost
    return None if cost is None else float(cost.total)


def read_session_preview(sessions: Folder, card: SessionCard, catalog: Catalog) -> str:
    """How it ended, and what it cost where the list does not say that."""
    priced = replace(card, is_priced=True, spent_usd=_read_spent(sessions, card.entry.id, catalog))
    parts = ("" if card.is_priced else priced.cost, read_last_answer(sessions, card.entry.id))
    return "  ".join(part for part in parts if part)


def read_title(sessions: Folder, session: str) -> str:
    """The first words that a person said in it."""
    try:
        for line in scan_transcript(sessions, session, kinds=("message",)):
            if isinstance(line, StoredRecord) and isinstance(line.record.body, MessageRecord):
                words = " ".join(_read_prompt(line.record.body.message).split())
                if words:
                    return words if len(words) <= TITLE_LENGTH else f"{words[: TITLE_LENGTH - 1]}…"
    except StoreError:
        return UNREADABLE_TITLE
    return NO_TITLE


def _read_prompt(message: Message) -> str:
    """What a person said: in their own words, or what they pasted where that is all."""
    if is_summary_head(message):
        return ""
    return extract_user_words(message).strip() or extract_typed_text(message).strip()


_BRANCH = re.compile(r"^Git branch: (\S+)$", re.MULTILINE)
MAX_START_MESSAGES = 6
"""The model is told where it works beside the first prompt."""


def read_start_branch(sessions: Folder, session: str) -> str:
    """The branch that the model was told of when the session began."""
    try:
        lines = islice(scan_transcript(sessions, session, kinds=("message",)), MAX_START_MESSAGES)
        for line in lines:
            if isinstance(line, StoredRecord) and isinstance(line.record.body, MessageRecord):
                for block in line.record.body.message.blocks:
                    if isinstance(block, Text) and (found := _BRANCH.search(block.text)):
                        return found[1]
    except StoreError:
        pass  # the title says that it cannot be read
    return ""


def read_messages(sessions: Folder, session: str) -> Sequence[Message]:
    """All that was ever said in a session that was compacted, each message once; of another one the history
    has it. Blocks on the disk."""
    found: dict[RecordId, Message] = {}
    is_compacted = False
    try:
        for line in scan_transcript(sessions, session, kinds=("message", "boundary")):
            match line.record.body if isinstance(line, StoredRecord) else None:
                case MessageRecord(message=message) if isinstance(line, StoredRecord):
                    found.setdefault(line.record.id, message)
                case BoundaryRecord():
                    is_compacted = True
                case _:
                    pass
    except StoreError:
        return ()  # nothing is written yet
    return tuple(found.values()) if is_compacted else ()


_MARKUP = re.compile(r"\*\*(\S[^*\n]*)\*\*|^#+ ", re.MULTILINE)
"""Of markdown, what a line of plain text is easier to read without."""


def read_last_answer(sessions: Folder, session: str) -> str:
    """What was said last, in one line."""
    last = ""
    try:
        for line in scan_transcript(sessions, session, kinds=("message",)):
            if isinstance(line, StoredRecord) and isinstance(line.record.body, MessageRecord):
                message = line.record.body.message
                texts = (block.text for block in message.blocks if isinstance(block, Text))
                if message.role == "assistant":
                    last = " ".join(_MARKUP.sub(r"\1", "\n".join(texts)).split()) or last
    except StoreError:
        return UNREADABLE_TITLE
    return last if len(last) <= PREVIEW_LENGTH else f"{last[: PREVIEW_LENGTH - 1]}…"


def read_ledger(sessions: Folder, session: str, catalog: Catalog) -> UsageLedger:
    """What the session's calls were billed, in every process that had it open. Calls from before it branched
    off another session are that one's."""
    ledger = UsageLedger(catalog)
    try:
        for line in scan_transcript(sessions, session, kinds=("usage", "parent")):
            if not isinstance(line, StoredRecord):
                continue
            match line.record.body:
                case ParentRecord():
                    ledger = UsageLedger(catalog)
                case UsageRecord() as body:
                    _add(ledger, body, line.record.at)
                case _:
                    pass
    except StoreError:
        pass  # nothing is written yet
    return ledger


def _add(ledger: UsageLedger, body: UsageRecord, at: datetime) -> None:
    ledger.add_usage(body.who, body.model, _read_usage(body), at.date())


def _read_usage(body: UsageRecord) -> Usage:
    try:
        return read_stored_usage(body.wire, body.dialect)
    except WireError:
        return NO_USAGE  # it has no price, and so has the sum


def _read_bill(sessions: Folder, session: str, catalog: Catalog) -> UsageLedger:
    """The session's calls, and those of the agents that it started: what a person paid for it."""
    ledger = read_ledger(sessions, session, catalog)
    add_agent_costs(ledger, sessions, session, catalog)
    return ledger


def add_agent_costs(ledger: UsageLedger, sessions: Folder, session: str, catalog: Catalog) -> None:
    """Each agent keeps a transcript of its own, and is paid by whoever started it."""
    for started in read_started_agents(sessions, session):
        for one in read_ledger(sessions, started.session, catalog).spent():
            ledger.add_summary(replace(one, who=started.who))


def read_past_usage(sessions: Folder, session: str, catalog: Catalog) -> PastUsage:
    """For a session that goes on. Blocks on the disk."""
    acts = tuple(_read_acts(sessions, session))
    cuts = (act.at for act in reversed(acts) if isinstance(act.event, CutRegistered))
    cut_at, bill = next(cuts, None), None
    context_tokens, last, sent = 0, "", datetime.min.replace(tzinfo=UTC)
    unbilled = Counter[str]()
    caches: dict[str, CacheState] = {}
    try:
        for line in scan_transcript(sessions, session, kinds=("usage", "request", "boundary")):
            record = line.record if isinstance(line, StoredRecord) else None
            match record.body if record else None:
                case SentRecord() as body if record:
                    sent = record.at if body.who == MAIN_KIND else sent
                    unbilled[body.who] += -1 if body.is_refused else 1
                case UsageRecord(who="main") as body if record:
                    usage, last = _read_usage(body), catalog.find(body.model).name
                    started = max(sent, record.at - MAX_ANSWER_TIME)
                    state = read_cache_state(usage, started, caches.get(last), dialect=body.dialect)
                    caches |= {last: state} if state else {}
                    context_tokens = usage.context_tokens or 0
                    if bill is None and cut_at is not None and record.at >= cut_at:
                        bill = read_cut_bill(usage, last)
                    unbilled[MAIN_KIND] -= 1
                case UsageRecord() as body:
                    unbilled[body.who] -= 1
                case BoundaryRecord():
                    # What follows it was not sent yet, so that nobody has counted it.
                    context_tokens, caches = 0, {}
                case _:
                    pass
    except StoreError:
        return NO_PAST_USAGE  # nothing is written yet
    return PastUsage(
        spent=_read_bill(sessions, session, catalog).spent(),
        context_tokens=context_tokens,
        model=last,
        caches=caches,
        acts=acts,
        bill_after_cut=bill,
        unbilled=sum(count for count in unbilled.values() if count > 0),
    )


MAX_ANSWER_TIME = timedelta(minutes=15)
"""From a request to its answer: a request that is older was another one."""


def _read_acts(sessions: Folder, session: str) -> Iterator[LayerAct]:
    """The events that were written down. One of another version, or that cannot be read, is passed over."""
    try:
        with sessions.subfolder(session, create=False) as folder:
            for logged in deque(read_events(folder), MAX_ACTS):
                kind = getattr(events, logged.name, None)
                if isinstance(kind, type) and is_dataclass(kind):
                    with suppress(WireError):
                        yield LayerAct(logged.at, cast("Event", read_fields(kind, logged.fields)))
    except StoreError:
        return


def list_session_choices(
    cards: Sequence[SessionCard], now: datetime, here: str, renderer: TextRenderer
) -> list[Choice]:
    """Sessions in a menu: title, age, cost and branch below each other. Whatever of title and branch has no
    room is in the remark, and found by the filter all the same."""
    ages = [render_age(now - card.entry.modified) for card in cards]
    costs = [card.cost for card in cards]
    notes = [" ".join((card.branch, "(this one)" if card.entry.id == here else "")).strip() for card in cards]
    age_size, cost_size = max(map(len, ages), default=0), max(map(len, costs), default=0)
    room = renderer.columns - age_size - cost_size - _ROW_GAPS
    note_size = max(0, min(max(map(len, notes), default=0), renderer.columns // 4, room - _LEAST_TITLE))
    room = max(room - note_size, _LEAST_TITLE)
    titles = [renderer.fit(card.title, room) for card in cards]
    labels = [
        f"{title}  {age:>{age_size}}  {cost:>{cost_size}}  {renderer.fit(note, note_size)}".rstrip()
        for title, age, cost, note in zip(titles, ages, costs, notes, strict=True)
    ]
    wholes = (
        "  ".join(part for part in (card.title, note) if part)
        for card, note in zip(cards, notes, strict=True)
    )
    return [Choice(label=label, remark=whole) for label, whole in zip(labels, wholes, strict=True)]


_ROW_GAPS = 9
"""Columns between the parts of a row, before the first and after the last."""
_LEAST_TITLE = 12


def render_session_cards(cards: Sequence[SessionCard], now: datetime, here: str = "") -> list[str]:
    """One line each of the newest: number, title, age, cost and how its id begins."""
    hidden, cards = len(cards) - MAX_PRICED_SESSIONS, cards[:MAX_PRICED_SESSIONS]
    width = max((len(card.title) for card in cards), default=0)
    lines: list[str] = []
    for number, card in enumerate(cards, 1):
        age = render_age(now - card.entry.modified)
        mark = "  (this one)" if card.entry.id == here else ""
        branch = f"  {card.branch}" if card.branch else ""
        lines.append(
            f"{number:>3}  {card.title:{width}}  {age:>8}  {card.cost:>8}  {card.entry.id[:8]}{branch}{mark}"
        )
    if hidden > 0:
        lines.append(f"     and {hidden:,} older ones, found by words of their titles")
    return lines


def find_session_card(cards: Sequence[SessionCard], wanted: str) -> SessionCard | str:
    """The session of that number in the list, or whose id begins so; a sentence where that is not one."""
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= len(cards):
        return cards[int(wanted) - 1]
    found = [card for card in cards if card.entry.id.startswith(wanted)]
    words = wanted.lower().split()
    found = found or [card for card in cards if all(word in card.title.lower() for word in words)]
    return (
        found[0]
        if len(found) == 1
        else f"{len(found) or 'no'} sessions begin with {wanted!r} or have it in the title"
    )


def render_age(age: timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "just now"


_MAIL_MARKS = (MAIL_MARK, f"<{TASK_TAG} ", f"<{AGENT_TAG} ")
_MAX_MAIL_CHARS = 160


def describe_mail(message: Message | None) -> str:
    """How a message begins that starts a turn, after the tags that say whose it is."""
    texts = [block.text for block in message.blocks if isinstance(block, Text)] if message else []
    lines = (line for text in texts for line in text.split("\n") if not line.lstrip().startswith("<"))
    first = " ".join(next((line for line in lines if line.strip()), "").split())
    cut = first if len(first) <= _MAX_MAIL_CHARS else f"{first[:_MAX_MAIL_CHARS]}…"
    return f": {cut}" if cut else ""


def _is_mail(message: Message) -> bool:
    texts = (block.text for block in message.blocks if isinstance(block, Text))
    return message.role == "user" and any(text.startswith(_MAIL_MARKS) for text in texts)


def render_history_tail(
    history: Sequence[Message], renderer: TextRenderer, *, is_running: bool = False
) -> str:
    """The last turns as they were shown: what was asked, which tools ran, what was answered. Of a turn of
    many rounds, the last ones. `is_running`: a call that has no result yet runs; else it was interrupted."""
    starts = [at for at, message in enumerate(history) if _read_prompt(message)]
    if not starts:
        return ""
    shown, hidden = starts[-SHOWN_TURNS:], len(starts) - SHOWN_TURNS
    parts = [renderer.line(f"… {hidden} earlier turns", "faint")] if hidden > 0 else []
    for start, end in zip(shown, [*shown[1:], len(history)], strict=True):
        parts += _render_turn(history[start:end], renderer, "running" if is_running else "interrupted")
    return "\n".join(parts)


def _render_turn(turn: Sequence[Message], renderer: TextRenderer, unfinished: str) -> list[str]:
    answers = [message for message in turn if message.role == "assistant" or _is_mail(message)]
    ends = {
        block.id: unfinished for message in turn for block in message.blocks if isinstance(block, ToolUse)
    }
    results = [block for message in turn for block in message.blocks if isinstance(block, ToolResult)]
    ends |= {item.tool_use_id: "failed" if item.is_error else "" for item in results}
    parts = ["", renderer.prompt(_read_prompt(turn[0]))]
    if hidden := len(answers[:-SHOWN_ROUNDS]):
        parts += ["", renderer.line(f"… {hidden:,} earlier rounds", "faint")]
    for message in answers[-SHOWN_ROUNDS:]:
        if message.role == "assistant":
            parts += _render_answer(message, ends, renderer)
        else:
            parts += ["", renderer.line(f"a message came in{describe_mail(message)}", "accent")]
    return parts


def _render_answer(message: Message, ends: Mapping[ToolUseId, str], renderer: TextRenderer) -> list[str]:
    parts: list[str] = []
    for block in message.blocks:
        if isinstance(block, Text) and block.text.strip():
            stream = MarkdownStream()
            blocks = (*stream.feed(block.text.strip()), *stream.end())
            lines = "\n".join(render_spaced(renderer, each) for each in blocks).split("\n")
            hidden = len(lines) - SHOWN_ANSWER_LINES
            parts += lines[:SHOWN_ANSWER_LINES]
            parts += [renderer.line(f"… {hidden} more lines", "faint")] if hidden > 0 else []
        elif isinstance(block, ToolUse):
            title = f"{block.name} {_first_argument(block)}".rstrip()
            end = ends[block.id]
            mark, tone = _CALL_ENDS.get(end, ("✗", "error"))
            parts.append(renderer.line(f"{mark} {title}  {end}".rstrip(), tone, hang=2))
    return parts


_CALL_ENDS: dict[str, tuple[str, TextTone]] = {"": ("●", "faint"), "running": ("○", "accent")}


def _first_argument(use: ToolUse) -> str:
    value = next((value for value in use.input.values() if isinstance(value, str)), "").split("\n")[0]
    return value if len(value) <= TITLE_LENGTH else f"{value[: TITLE_LENGTH - 1]}…"
