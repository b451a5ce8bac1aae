"""Sessions as a person knows them: by their first words, their age and their cost; and the end of one, shown
again when it is resumed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from sevenfold.agent.tui.choice_menu import Choice
from sevenfold.agent.tui.render.markdown_stream import ProseBlock
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.core.errors import StoreError, WireError
from sevenfold.core.messages import Message, Text, ToolUse
from sevenfold.core.prices import Catalog
from sevenfold.core.usage import NO_USAGE, read_stored_usage
from sevenfold.layers.memory.extraction.policy import extract_user_words
from sevenfold.session.cache.monitor import SpendSummary, UsageLedger
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import MessageRecord, ParentRecord, UsageRecord
from sevenfold.store.transcript.transcript import SessionEntry

PREVIEW_LENGTH = 200
TITLE_LENGTH = 60
"""Characters of the first prompt: enough to know a session again, in a line of eighty."""
SHOWN_TURNS = 3
"""Of a session that is resumed: what was said last is what a person goes on from."""
SHOWN_ANSWER_LINES = 40

NO_TITLE, UNREADABLE_TITLE = "(nothing said yet)", "(cannot be read)"


@dataclass(frozen=True, slots=True)
class SessionCard:
    """One session in a list."""

    entry: SessionEntry
    title: str
    spent_usd: float | None
    """What its calls were billed; None where a price is not known."""
    branch: str = ""
    """That was checked out when it began; empty where that is not known."""


def read_session_card(sessions: Folder, entry: SessionEntry, catalog: Catalog) -> SessionCard:
    total = read_ledger(sessions, entry.id, catalog).total()
    title, branch = read_title(sessions, entry.id), read_start_branch(sessions, entry.id)
    return SessionCard(entry, title, None if total.cost is None else float(total.cost.total), branch)


def read_title(sessions: Folder, session: str) -> str:
    """The first words that a person said in it."""
    try:
        for line in scan_transcript(sessions, session, kinds=("message",)):
            if isinstance(line, StoredRecord) and isinstance(line.record.body, MessageRecord):
                words = " ".join(extract_user_words(line.record.body.message).split())
                if words:
                    return words if len(words) <= TITLE_LENGTH else f"{words[: TITLE_LENGTH - 1]}…"
    except StoreError:
        return UNREADABLE_TITLE
    return NO_TITLE


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


def read_last_answer(sessions: Folder, session: str) -> str:
    """What was said last, in one line."""
    last = ""
    try:
        for line in scan_transcript(sessions, session, kinds=("message",)):
            if isinstance(line, StoredRecord) and isinstance(line.record.body, MessageRecord):
                message = line.record.body.message
                texts = (block.text for block in message.blocks if isinstance(block, Text))
                if message.role == "assistant":
                    last = " ".join(" ".join(texts).split()) or last
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
    try:
        usage = read_stored_usage(body.wire, body.dialect)
    except WireError:
        usage = NO_USAGE  # it has no price, and so has the sum
    ledger.add_usage(body.who, body.model, usage, at.date())


def merge_spent(earlier: Sequence[SpendSummary], now: Sequence[SpendSummary]) -> tuple[SpendSummary, ...]:
    """Both, by whose calls they were."""
    merged = {one.who: one for one in earlier}
    for one in now:
        merged[one.who] = merged[one.who] + one if one.who in merged else one
    return tuple(merged.values())


def list_session_choices(
    cards: Sequence[SessionCard], now: datetime, here: str, renderer: TextRenderer
) -> list[Choice]:
    """Sessions in a menu: title, age, cost and branch below each other. Whatever of a title has no room is
    found by the filter all the same."""
    ages = [render_age(now - card.entry.modified) for card in cards]
    costs = ["unpriced" if card.spent_usd is None else f"${card.spent_usd:.2f}" for card in cards]
    notes = [" ".join((card.branch, "(this one)" if card.entry.id == here else "")).strip() for card in cards]
    age_size, cost_size = max(map(len, ages), default=0), max(map(len, costs), default=0)
    note_size = min(max(map(len, notes), default=0), renderer.columns // 4)
    room = max(renderer.columns - age_size - cost_size - note_size - _ROW_GAPS, _LEAST_TITLE)
    titles = [renderer.fit(card.title, room) for card in cards]
    labels = [
        f"{title}  {age:>{age_size}}  {cost:>{cost_size}}  {note}".rstrip()
        for title, age, cost, note in zip(titles, ages, costs, notes, strict=True)
    ]
    return [Choice(label=label, remark=card.title) for label, card in zip(labels, cards, strict=True)]


_ROW_GAPS = 13
"""Columns between the parts of a row, before the first and after the last."""
_LEAST_TITLE = 12


def render_session_cards(cards: Sequence[SessionCard], now: datetime, here: str = "") -> list[str]:
    """One line each: number, title, age, cost and how its id begins."""
    width = max((len(card.title) for card in cards), default=0)
    lines: list[str] = []
    for number, card in enumerate(cards, 1):
        cost = "unpriced" if card.spent_usd is None else f"${card.spent_usd:.2f}"
        age = render_age(now - card.entry.modified)
        mark = "  (this one)" if card.entry.id == here else ""
        branch = f"  {card.branch}" if card.branch else ""
        lines.append(
            f"{number:>3}  {card.title:{width}}  {age:>8}  {cost:>8}  {card.entry.id[:8]}{branch}{mark}"
        )
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


def render_history_tail(history: Sequence[Message], renderer: TextRenderer) -> str:
    """The last turns as they were shown: what was asked, which tools ran, what was answered."""
    starts = [at for at, message in enumerate(history) if extract_user_words(message).strip()]
    if not starts:
        return ""
    first = starts[-SHOWN_TURNS:][0]
    parts = (
        [renderer.line(f"… {len(starts) - SHOWN_TURNS} earlier turns", "faint")] if first > starts[0] else []
    )
    for message in history[first:]:
        parts += _render_message(message, renderer)
    return "\n".join(parts)


def _render_message(message: Message, renderer: TextRenderer) -> list[str]:
    if message.role == "user":
        words = extract_user_words(message).strip()
        return ["", renderer.line(f"› {words}", "strong")] if words else []
    if message.role != "assistant":
        return []
    parts: list[str] = []
    for block in message.blocks:
        if isinstance(block, Text) and block.text.strip():
            lines = renderer.markdown(ProseBlock(block.text.strip())).split("\n")
            hidden = len(lines) - SHOWN_ANSWER_LINES
            parts += ["", *lines[:SHOWN_ANSWER_LINES]]
            parts += [renderer.line(f"… {hidden} more lines", "faint")] if hidden > 0 else []
        elif isinstance(block, ToolUse):
            parts.append(renderer.line(f"● {block.name} {_first_argument(block)}".rstrip(), "faint"))
    return parts


def _first_argument(use: ToolUse) -> str:
    value = next((value for value in use.input.values() if isinstance(value, str)), "")
    return value.split("\n")[0][:TITLE_LENGTH]
