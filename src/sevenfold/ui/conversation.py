"""A session's conversation, as it was said and as it was sent, a page of messages at a time.

Of another agent's transcript, what was sent is worked out from its lines: what stood before a compaction is
left out, and cleared tool results are empty. System prompt and tools are in no transcript.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from sevenfold.core.errors import FileMissing, InputError
from sevenfold.core.messages import ToolUse
from sevenfold.replay.report import SessionReport
from sevenfold.session.opening import Workspace
from sevenfold.store.foreign.entries import (
    ForeignClearing,
    ForeignCompaction,
    ForeignInput,
    ForeignOutput,
)
from sevenfold.store.foreign.transcripts import LineTally, read_transcript
from sevenfold.ui.app import PageCall, PageRoute, route_get
from sevenfold.ui.blocks import (
    ShownCut,
    ShownItem,
    ShownMessage,
    choose_source,
    describe_item,
    note_results,
    show_blocks,
)
from sevenfold.ui.own_conversation import OwnTranscript, read_sent
from sevenfold.ui.sessions import SessionCatalog

MAX_PAGE_MESSAGES = 200
PAGE_MESSAGES = 40
KEPT_CONVERSATIONS = 4
"""Read ones that stay in memory: a reader goes back and forth between two or three."""


@dataclass(slots=True, kw_only=True)
class ForeignTranscript:
    """The conversation of another agent, gone through once."""

    items: list[ShownItem] = field(default_factory=list[ShownItem])
    keys: list[str] = field(default_factory=list[str])
    """The line of each item, where it has one."""
    calls: int = 0
    tools: dict[str, str] = field(default_factory=dict[str, str])
    sent_from: list[tuple[int, frozenset[int]]] = field(default_factory=list[tuple[int, frozenset[int]]])
    """Of each compaction: its place among the items, and the items before it that it kept."""
    cleared: dict[str, int] = field(default_factory=dict[str, int])
    """The place of the cut that cleared a tool result, by the id of its use."""
    _call: str = ""

    @classmethod
    def read(cls, session: SessionReport) -> ForeignTranscript:
        found, wanted = cls(), session.sub_agent or ""
        for entry in read_transcript(session.path, session.agent, LineTally()):
            match entry:
                case ForeignInput() | ForeignOutput() if entry.conversation == wanted:
                    found._add(entry)
                case ForeignCompaction() if entry.conversation == wanted:
                    found._compact(entry)
                case ForeignClearing() if entry.conversation == wanted:
                    found._clear(entry)
                case _:
                    pass
        return found

    def _add(self, entry: ForeignInput | ForeignOutput) -> None:
        self.tools |= {block.id: block.name for block in entry.blocks if isinstance(block, ToolUse)}
        blocks = show_blocks(entry.blocks, self.tools)
        call: int | None = None
        if isinstance(entry, ForeignOutput):
            is_next_part = bool(entry.call) and entry.call == self._call
            self.calls += not is_next_part
            self._call, call = entry.call, self.calls - 1
        if not blocks:
            return
        role = "assistant" if isinstance(entry, ForeignOutput) else entry.role
        said_by = "model" if isinstance(entry, ForeignOutput) else entry.source
        message = ShownMessage(
            role=role, source=choose_source(blocks, role, said_by), blocks=blocks, at=entry.at, call=call
        )
        self._append(message, entry.key)

    def _compact(self, entry: ForeignCompaction) -> None:
        start = self.keys.index(entry.kept_from) if entry.kept_from in self.keys[1:] else len(self.keys)
        kept = frozenset(
            place
            for place, key in enumerate(self.keys)
            if isinstance(self.items[place], ShownMessage) and (place >= start or (key and key in entry.kept))
        )
        self.sent_from.append((len(self.items), kept))
        before = f"{entry.before_tokens:,} tokens before it" if entry.before_tokens else ""
        self._cut("Compaction", "the agent replaced the conversation by a summary", before, at=entry.at)

    def _clear(self, entry: ForeignClearing) -> None:
        self.cleared |= dict.fromkeys(entry.tool_use_ids, len(self.items))
        saved = f"{entry.saved_tokens:,} tokens fewer" if entry.saved_tokens else ""
        count = f"{len(entry.tool_use_ids):,} tool results cleared"
        self._cut("Clearing", "the agent took old tool results out of the context", count, saved, at=entry.at)

    def _cut(self, title: str, reason: str, *lines: str, at: datetime | None) -> None:
        filled = tuple(line for line in lines if line)
        self._append(ShownCut(title=title, reason=reason, lines=filled, at=at, call=self.calls))

    def _append(self, item: ShownItem, key: str = "") -> None:
        self.items.append(item)
        self.keys.append(key)

    def said(self) -> list[ShownItem]:
        """Every message, each with what became of it."""
        gone: dict[int, str] = {}
        for cut, kept in self.sent_from:
            for place in range(cut):
                if place not in kept:
                    gone.setdefault(place, "Left out by a compaction: a summary stands in.")
        notes = dict.fromkeys(self.cleared, "Cleared: it is not sent any more.")
        return [
            note_results(replace(item, note=gone.get(place, "")), notes)
            if isinstance(item, ShownMessage)
            else item
            for place, item in enumerate(self.items)
        ]

    def sent(self, call: int) -> list[ShownItem]:
        """What the context held when this call was made."""
        end = self._find_end(call)
        start, kept = 0, frozenset[int]()
        for cut, keeps in self.sent_from:
            if cut < end:
                start, kept = cut, keeps
        places = [*sorted(kept), *range(start, end)]
        gone = {use for use, cut in self.cleared.items() if cut < end}
        notes = dict.fromkeys(gone, "Cleared: the model gets a short note instead.")
        return [
            _without_results(note_results(item, notes), gone)
            for place in places
            if isinstance(item := self.items[place], ShownMessage)
        ]

    def _find_end(self, call: int) -> int:
        for place, item in enumerate(self.items):
            if isinstance(item, ShownMessage) and item.call == call:
                return place
        if call >= self.calls:
            raise InputError(f"there is no call {call + 1}; the session has {self.calls:,}")
        return len(self.items)


def _without_results(message: ShownMessage, gone: set[str]) -> ShownMessage:
    blocks = tuple(
        replace(block, text="") if block.kind == "tool_result" and block.use_id in gone else block
        for block in message.blocks
    )
    return replace(message, blocks=blocks)


@dataclass(frozen=True, slots=True)
class _ReadConversation:
    size_bytes: int
    modified_ns: int
    transcript: OwnTranscript | ForeignTranscript


class ConversationPages:
    """What the page asks about the contents of a session."""

    def __init__(self, catalog: SessionCatalog, workspace: Workspace) -> None:
        self._catalog, self._workspace = catalog, workspace
        self._lock = threading.Lock()
        self._read: OrderedDict[str, _ReadConversation] = OrderedDict()

    def routes(self) -> Sequence[PageRoute]:
        return (route_get("messages", self.messages), route_get("block", self.block))

    def messages(self, call: PageCall) -> object:
        """Some messages of a session, from one on; and where the cuts are."""
        transcript = self._open(call.text("key"))
        items, number = self._list(transcript, call), call.number("from", 0, 10**9)
        most = call.number("limit", PAGE_MESSAGES, MAX_PAGE_MESSAGES)
        calls = transcript.calls if isinstance(transcript, ForeignTranscript) else len(transcript.calls)
        return {
            "total": len(items),
            "calls": calls,
            "from": number,
            "items": [
                describe_item(item, number + n) for n, item in enumerate(items[number : number + most])
            ],
            "cuts": [describe_item(item, n) for n, item in enumerate(items) if isinstance(item, ShownCut)],
        }

    def block(self, call: PageCall) -> object:
        """The whole text of one block; as it was said, a stored tool result is read from its file."""
        transcript = self._open(call.text("key"))
        items = self._list(transcript, call)
        try:
            item = items[call.number("n", 0, 10**9)]
            if not isinstance(item, ShownMessage):
                raise InputError("that is a cut and no message")
            block = item.blocks[call.number("block", 0, 10**9)]
        except IndexError as error:
            raise FileMissing("there is no such block; reload the page") from error
        text: str | None = None
        if isinstance(transcript, OwnTranscript) and call.text("view", "said") == "said":
            text = transcript.read_spill(block.use_id) if block.kind == "tool_result" else None
        return {"text": block.text if text is None else text, "is_stored": text is not None}

    def _list(self, transcript: OwnTranscript | ForeignTranscript, call: PageCall) -> list[ShownItem]:
        if call.text("view", "said") == "said":
            return transcript.said()
        last = transcript.calls if isinstance(transcript, ForeignTranscript) else len(transcript.calls)
        if not last:
            return []
        number = call.number("call", last - 1, last - 1)
        if isinstance(transcript, ForeignTranscript):
            return transcript.sent(number)
        return read_sent(transcript, self._workspace, number)

    def _open(self, key: str) -> OwnTranscript | ForeignTranscript:
        session = self._catalog.find(key)
        size, modified = _measure(session.path)
        with self._lock:
            known = self._read.get(key)
            if known is None or (known.size_bytes, known.modified_ns) != (size, modified):
                is_own = session.agent == "sevenfold" and not session.sub_agent
                transcript = OwnTranscript.read(session.path) if is_own else ForeignTranscript.read(session)
                known = self._read[key] = _ReadConversation(size, modified, transcript)
            self._read.move_to_end(key)
            while len(self._read) > KEPT_CONVERSATIONS:
                self._read.popitem(last=False)
            return known.transcript


def _measure(path: Path) -> tuple[int, int]:
    try:
        about = path.stat()
    except OSError as error:
        raise FileMissing(f"{path} cannot be read: {error}") from error
    return about.st_size, about.st_mtime_ns
