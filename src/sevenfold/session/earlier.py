"""Finds the session that a caller's list of messages goes on with, after the caller was restarted.

A caller with a list of its own names no session. Without this, its first request would open a new one that
knows nothing of what was stored, cleared or summed up before: the view would be another than the one that was
sent, which the cache does not have and signed thinking does not allow.

A session that is not the caller's would put what another conversation said into the view. So the whole
history of the session has to stand in the list, message by message from the first, also what a boundary has
summed up. In doubt there is no earlier session: a new one is always right.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sevenfold.core.errors import InputError, SevenfoldError, WireError
from sevenfold.core.json import EMPTY_OBJECT, write_json
from sevenfold.core.messages import (
    Message,
    RecordId,
    Text,
    ToolResult,
    ToolUse,
    ToolUseId,
    change_blocks,
    is_same_message,
    read_message,
    without_message_thinking,
)
from sevenfold.core.requests import RequestParams, compute_thinking_binding
from sevenfold.core.spills import SpillDecision
from sevenfold.layers.conversation_state import COVERS_KEY, DROPPED_KEY
from sevenfold.layers.tool_results.policy import apply_spill_decision, is_empty_result
from sevenfold.layers.tool_results.spill import spill_digest
from sevenfold.session.history_sync import has_same_words
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import (
    CutRecord,
    DecisionRecord,
    MessageRecord,
    Record,
    UsageRecord,
)
from sevenfold.store.transcript.transcript import SessionEntry, SessionId, is_agent_session, list_sessions

MAX_SESSIONS = 32
"""The newest ones, which are looked at: whoever was restarted was at work lately."""
TAIL_BYTES = 1024 * 1024
"""Of each transcript, looked at before all of it is read. An answer that has a longer result behind it is not
found."""


@dataclass(frozen=True, slots=True)
class EarlierSession:
    """A session whose history the caller's list holds."""

    id: SessionId
    size_bytes: int
    """Of its transcript when it was read."""

    def is_unchanged(self, sessions: Folder) -> bool:
        """Whether nothing was added to it since. To be asked by who holds the session."""
        found = sessions.stat(f"{self.id}.jsonl")
        return found is not None and found.size_bytes == self.size_bytes


def find_earlier_session(
    sessions: Folder, messages: Sequence[object], frame: RequestParams
) -> EarlierSession | None:
    """The session that these messages go on with; None where there is none, or more than one. Blocks on the
    disk.

    The caller's last answer has to be one that the session was given by this model, with this system prompt
    and these tools: an example that the caller wrote itself begins many conversations. It is the session's
    last, or the next was lost on its way and is asked for again.
    """
    said = _read_messages(messages)
    last = next((at for at in reversed(range(len(said))) if said[at].role == "assistant"), None)
    mark = b"" if last is None else _find_mark(said[last])
    if last is None or not mark:
        return None
    wanted = _Wanted(said, last, compute_thinking_binding(frame))
    found = [
        EarlierSession(entry.id, entry.size_bytes)
        for entry in list_sessions(sessions)[:MAX_SESSIONS]
        if not is_agent_session(entry.id) and _is_earlier(sessions, entry, wanted, mark)
    ]
    return found[0] if len(found) == 1 else None


def _read_messages(messages: Sequence[object]) -> list[Message]:
    """None of them where one is none: whoever takes them in says what is wrong."""
    with suppress(WireError, InputError):
        return [one if isinstance(one, Message) else read_message(one) for one in messages]
    return []


def _find_mark(answer: Message) -> bytes:
    """Bytes that stand in every transcript with this answer; none where it says nothing."""
    for block in answer.blocks:
        if isinstance(block, ToolUse):
            return write_json(block.id)
        if isinstance(block, Text) and block.text:
            return write_json(block.text)[:-1]
    return b""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the caller's list asks of a session."""

    said: Sequence[Message]
    last: int
    """The place of the last answer."""
    binding: str
    """Of the model, the system prompt and the tools."""


def _is_earlier(sessions: Folder, entry: SessionEntry, wanted: _Wanted, mark: bytes) -> bool:
    start, name = max(0, entry.size_bytes - TAIL_BYTES), f"{entry.id}.jsonl"
    with suppress(SevenfoldError):  # another process may have removed it
        return mark in sessions.read_range(name, start, TAIL_BYTES) and _holds_history(
            sessions, entry, wanted
        )
    return False


def _holds_history(sessions: Folder, entry: SessionEntry, wanted: _Wanted) -> bool:
    """Whether the list holds all that the session does. The first message that it lacks ends the reading."""
    comparison = _Comparison(wanted=wanted)
    for line in scan_transcript(sessions, entry.id, end=entry.size_bytes, kinds=("cut", "decision")):
        if isinstance(line, StoredRecord):
            comparison.prepare(line.record)
    for line in scan_transcript(sessions, entry.id, end=entry.size_bytes, kinds=("message", "cut", "usage")):
        if isinstance(line, StoredRecord) and not comparison.take(line.record):
            return False
    return comparison.is_match


@dataclass(frozen=True, slots=True)
class _Answer:
    message: Message
    binding: str
    """Of the request that it answers; empty where the caller wrote it."""


@dataclass(slots=True, kw_only=True)
class _Comparison:
    """A session's whole history next to the caller's list. A boundary ends nothing here: what is before it
    stands in the transcript too, and messages that were written again have their old ids."""

    wanted: _Wanted
    _dropped: set[RecordId] = field(default_factory=set[RecordId])
    _decisions: dict[ToolUseId, SpillDecision] = field(default_factory=dict[ToolUseId, SpillDecision])
    _seen: set[RecordId] = field(default_factory=set[RecordId])
    _same: int = 0
    """Messages from the start that both have."""
    _open: list[_Answer] = field(default_factory=list[_Answer])
    """Answers behind them. With nothing after them the caller may have any one of them, or none."""
    _binding: str = ""
    """Of the bill that was read last, which stands right before its answer."""
    _replaced: _Answer | None = None
    """The answer read last, if the caller did not keep it as it was."""
    _last_binding: str = ""
    """Of the answer that is the caller's last."""
    _is_counted: bool = True
    """Whether the last cut that says how long the history was agrees with what was read."""
    _uncounted: int = 0
    """The last of the open answers, which that cut did not count: a session that was resumed behind it does
    not have them, and one that ran on wrote the last again, under its old id."""

    def prepare(self, record: Record) -> None:
        """What later records say of earlier ones, before `take`."""
        match record.body:
            case CutRecord(detail=detail):
                gone = detail.get(DROPPED_KEY)
                for item in gone if isinstance(gone, tuple) else ():
                    self._dropped.add(RecordId(str(item)))
            case DecisionRecord(decision=decision):
                self._decisions[decision.tool_use_id] = decision
            case _:
                pass

    def take(self, record: Record) -> bool:
        """Whether the list may still hold all of it."""
        match record.body:
            case UsageRecord(who="main", frame=binding):
                self._binding = binding
            case CutRecord(detail=detail) if isinstance(covers := detail.get(COVERS_KEY), int):
                self._uncounted = self._same + len(self._open) - covers
                self._is_counted = 0 <= self._uncounted <= len(self._open)
            case MessageRecord(message=message):
                binding, self._binding = self._binding, ""
                return self._take_message(record.id, message, binding)
            case _:
                pass
        return True

    @property
    def is_match(self) -> bool:
        """Whether the list, with all of the session read, holds all of it."""
        if not self._is_counted:
            return False
        rest = self.wanted.said[self._same : self.wanted.last + 1]
        if not rest:
            return self._last_binding == self.wanted.binding
        given = [one for one in self._open if one.binding == self.wanted.binding]
        return len(rest) == 1 and any(_is_same_answer(one.message, rest[0]) for one in given)

    def _take_message(self, name: RecordId, message: Message, binding: str) -> bool:
        if name in self._seen:
            self._uncounted = 0
            return True
        if self._is_counted and self._uncounted:
            self._replaced = self._open[-1]
            del self._open[-self._uncounted :]
        replaced, self._replaced, self._uncounted = self._replaced, None, 0
        self._seen.add(name)
        if message.role == "assistant":
            if name in self._dropped:
                self._replaced = _Answer(message, binding)
                return True
            if not binding and replaced is not None and has_same_words(replaced.message, message):
                binding = replaced.binding
            self._open.append(_Answer(message, binding))
            return True
        if name in self._dropped:
            return True
        if not self._settle() or not self._is_said(message):
            return False
        self._same += 1
        return True

    def _settle(self) -> bool:
        """Compare the answers that something follows: the caller has all of them."""
        said, answers, self._open = self.wanted.said, self._open, []
        for answer in answers:
            if self._same >= len(said) or not _is_same_answer(answer.message, said[self._same]):
                return False
            if self._same == self.wanted.last:
                self._last_binding = answer.binding
            self._same += 1
        return True

    def _is_said(self, message: Message) -> bool:
        said = self.wanted.said
        return self._same < len(said) and is_same_message(message, self._as_stored(said[self._same]))

    def _as_stored(self, message: Message) -> Message:
        """The caller's message as the transcript has it: with previews of the results that were stored."""
        return change_blocks(message, lambda b: self._stored(b) if isinstance(b, ToolResult) else b)

    def _stored(self, result: ToolResult) -> ToolResult:
        decision = self._decisions.get(result.tool_use_id)
        if decision is None or decision.preview is None:
            return result
        is_of_it = (
            is_empty_result(result) if decision.spill is None else spill_digest(result) == decision.digest
        )
        return apply_spill_decision(result, decision) if is_of_it else result


def _is_same_answer(one: Message, said: Message) -> bool:
    """Whether it is the same answer, which many callers keep without thinking or other fields."""
    if said.role != "assistant":
        return False
    if is_same_message(without_message_thinking(one), without_message_thinking(said)):
        return True
    return has_same_words(one, said) and _calls(one) == _calls(said) and _says_something(said)


def _says_something(message: Message) -> bool:
    return any(
        isinstance(block, ToolUse) or (isinstance(block, Text) and block.text) for block in message.blocks
    )


def _calls(message: Message) -> list[ToolUse]:
    return [replace(block, extra=EMPTY_OBJECT) for block in message.blocks if isinstance(block, ToolUse)]
