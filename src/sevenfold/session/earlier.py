"""Finds the session that a caller's list of messages goes on with, after the caller was restarted.

A caller with a list of its own names no session. Without this module, its first request would open a new
session that does not know what was stored, cleared or summarised before. Its view would differ from what was
sent: the cache does not have it, and models that sign thinking refuse it.

The wrong session would put text of another conversation into the view. So the list has to contain the whole
history of the session, message by message from the first, including messages that a summary replaced. If in
doubt, the answer is that there is no earlier session: a new one is always correct.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sevenfold.core.errors import InputError, SevenfoldError, WireError
from sevenfold.core.json import EMPTY_OBJECT, write_json
from sevenfold.core.messages import (
    Message,
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
from sevenfold.store.files import RecordId
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
"""How many of the newest sessions are compared: a caller that was restarted was active lately."""
TAIL_BYTES = 1024 * 1024
"""The end of each transcript, searched for the last answer before all of it is read. An answer followed by
more than this is not found."""


@dataclass(frozen=True, slots=True)
class EarlierSession:
    """A session whose whole history is in the list of the caller."""

    id: SessionId
    size_bytes: int
    """Of its transcript when it was read."""

    def is_unchanged(self, sessions: Folder) -> bool:
        """Whether nothing was added to it since. Call this while you hold the session."""
        found = sessions.stat(f"{self.id}.jsonl")
        return found is not None and found.size_bytes == self.size_bytes


def find_earlier_session(
    sessions: Folder, messages: Sequence[object], frame: RequestParams
) -> EarlierSession | None:
    """The session that these messages go on with; None where there is none, or more than one. Blocks on the
    disk.

    The last answer in the list has to be one that the session got from this model, with this system prompt
    and these tools: the same example, written by the caller, may begin many conversations. It has to be the
    last answer of the session, or the one before it if the last was lost on its way to the caller.
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
    """Nothing if one of them is not a message: the session reports what is wrong with it."""
    with suppress(WireError, InputError):
        return [one if isinstance(one, Message) else read_message(one) for one in messages]
    return []


def _find_mark(answer: Message) -> bytes:
    """Bytes that every transcript with this answer contains; empty if the answer has no text and no call."""
    for block in answer.blocks:
        if isinstance(block, ToolUse):
            return write_json(block.id)
        if isinstance(block, Text) and block.text:
            return write_json(block.text)[:-1]
    return b""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a session has to match."""

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
    """Whether the list contains the whole history of the session. Reading stops at the first difference."""
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
    """Compares the whole history of a session with the list of the caller. A boundary changes nothing: the
    transcript has what came before it, and messages that were written again keep their ids."""

    wanted: _Wanted
    _dropped: set[RecordId] = field(default_factory=set[RecordId])
    _decisions: dict[ToolUseId, SpillDecision] = field(default_factory=dict[ToolUseId, SpillDecision])
    _seen: set[RecordId] = field(default_factory=set[RecordId])
    _same: int = 0
    """Messages from the start that both have."""
    _open: list[_Answer] = field(default_factory=list[_Answer])
    """Answers after them. At the end of the history the caller may have any one of these, or none."""
    _binding: str = ""
    """The binding of the last bill, which is written right before its answer."""
    _replaced: _Answer | None = None
    """The last answer, if the caller replaced it."""
    _last_binding: str = ""
    """The binding of the last answer in the list."""
    _is_counted: bool = True
    """Whether the last cut that states the length of the history agrees with the messages read."""
    _uncounted: int = 0
    """Open answers that this cut did not count: a session resumed after it does not have them, and one that
    continued wrote the last of them again under its old id."""

    def prepare(self, record: Record) -> None:
        """Read what later records say about earlier ones. Call it for all records before `take`."""
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
        """Whether the list may still contain the whole history."""
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
        """Whether the list contains the whole history. Ask after all records were taken."""
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
        """Compare answers that a message follows: the caller must have all of these."""
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
        """The message as the transcript has it: with previews in place of stored results."""
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
    """Whether both are the same answer. Many callers keep it without thinking or other fields."""
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
