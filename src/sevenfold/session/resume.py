"""Resumes a session: rebuilds its view, byte for byte, from the records of its transcript since the last
boundary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Message, ToolUseId
from sevenfold.core.tokens import TextOrigin
from sevenfold.core.usage import Usage, read_stored_usage
from sevenfold.layers.microcompact.local_clearing import ClearingCost
from sevenfold.session.memory import clear_oldest_memories
from sevenfold.session.model_limits import without_message_thinking
from sevenfold.session.pipeline import (
    CLEARED_KEY,
    DEPTH_KEY,
    FORGOTTEN_KEY,
    MEMORIES_KEY,
    REWRITTEN_KEY,
    SAVED_KEY,
    ViewBuilder,
)
from sevenfold.store.transcript.reader import ResumedSession, StoredRecord
from sevenfold.store.transcript.records import (
    CutRecord,
    DecisionRecord,
    InjectedRecord,
    MessageRecord,
    Record,
    RecordId,
    UsageRecord,
)

DROPPED_KEY, THOUGHTLESS_KEY = "dropped", "thoughtless"
TOKENS_KEY, BETAS_KEY, COVERS_KEY, ROUNDS_KEY = "tokens", "betas", "covers", "rounds"
"""Keys of a cut's detail: records that are no longer part of the history; whether the messages kept by a
boundary lost their thinking; how large the view was after it; the headers that it needs; and how many
messages and rounds the session had then."""


@dataclass(slots=True, kw_only=True)
class _Facts:
    """What all records together say of single ones."""

    binding: str
    """The thinking binding of the parameters that the session continues with."""
    foreign: set[RecordId] = field(default_factory=set[RecordId])
    """Messages up to the last one under other parameters."""
    forgotten: set[RecordId] = field(default_factory=set[RecordId])
    """Messages whose thinking the provider refused."""
    dropped: set[RecordId] = field(default_factory=set[RecordId])
    is_thoughtless: bool = False
    betas: tuple[str, ...] = ()
    covers: int = 0
    _said: list[RecordId] = field(default_factory=list[RecordId])
    _frame: str = ""

    def read(self, record: Record) -> None:
        match record.body:
            case CutRecord():
                self._read_cut(record.body.detail)
            case UsageRecord() if record.body.who == "main":
                self._frame = record.body.frame
            case MessageRecord():
                self._said.append(record.id)
                if record.body.message.role == "assistant" and self._frame not in ("", self.binding):
                    self.foreign.update(self._said)
            case _:
                pass

    def _read_cut(self, detail: JsonObject) -> None:
        gone = detail.get(DROPPED_KEY)
        if isinstance(gone, tuple):
            self.dropped.update(RecordId(item) for item in gone if isinstance(item, str))
        if detail.get(FORGOTTEN_KEY) is True:
            self.forgotten.update(self._said)
        self.is_thoughtless = self.is_thoughtless or detail.get(THOUGHTLESS_KEY) is True
        betas, covers = detail.get(BETAS_KEY), detail.get(COVERS_KEY)
        if isinstance(covers, int):
            self.covers = covers
        if isinstance(betas, tuple):
            self.betas = tuple(str(beta) for beta in betas)


def rebuild_view(path: ViewBuilder, resumed: ResumedSession) -> list[Message]:
    """Fill an empty path with a resumed session; the messages of its history since the boundary."""
    facts = _Facts(binding=path.binding)
    for stored in (*resumed.kept, *resumed.records):
        facts.read(stored.record)
    path.betas = facts.betas
    kept_messages = [stored for stored in resumed.kept if isinstance(stored.record.body, MessageRecord)]
    path.earlier = max(0, facts.covers - len(kept_messages))
    head = tuple(_head(resumed.records))
    taking, kept = _Taking(path, facts), {stored.record.id for stored in resumed.kept}
    for stored in (*head, *resumed.kept, *resumed.records[len(head) :]):
        if stored.record.id not in facts.dropped:
            taking.take(stored.record, is_kept=stored.record.id in kept)
    path.adapt()
    return [entry.message for entry in path.entries]


@dataclass(slots=True)
class _Taking:
    """Records on their way into a path."""

    path: ViewBuilder
    facts: _Facts
    billed: Usage | None = None

    def take(self, record: Record, *, is_kept: bool) -> None:
        path = self.path
        match record.body:
            case DecisionRecord():
                path.spilling.decisions[record.body.decision.tool_use_id] = record.body.decision
            case CutRecord():
                _clear_again(path, record.body)
                if not is_kept:
                    _take_ground(path, record.body)
            case UsageRecord() if record.body.who == "main" and not is_kept:
                self.billed = self._usage(record.body)
                # When it started nobody wrote down; it was within the call's own length before this.
                path.answered(self.billed, record.at, record.at)
            case InjectedRecord() if not is_kept:
                # One among kept messages is an earlier summary, which the boundary left behind.
                path.show(record.body.message, _origin(record.body))
                if record.body.message.role == "system":
                    # It is written down once it stands in a view, whatever came after.
                    path.finish(is_stored=True)
            case MessageRecord():
                message = record.body.message
                if self._is_thoughtless(record.id, is_kept=is_kept):
                    message = without_message_thinking(message)
                usage = self.billed if message.role == "assistant" else None
                path.remember(message, "human", name=record.id, usage=usage)
                self.billed = None
            case _:
                pass

    def _usage(self, body: UsageRecord) -> Usage | None:
        try:
            return read_stored_usage(body.wire, body.dialect)
        except WireError as error:
            # It cannot be counted from, so the estimate stays.
            self.path.report_missing_usage(body.model, str(error))
            return None

    def _is_thoughtless(self, name: RecordId, *, is_kept: bool) -> bool:
        """Whether what was thought in this message is no longer shown."""
        is_foreign = name in self.facts.foreign and not self.path.capabilities.rewrites_history
        return is_foreign or name in self.facts.forgotten or (self.facts.is_thoughtless and is_kept)


def _head(records: Iterable[StoredRecord]) -> Iterator[StoredRecord]:
    """What a boundary put before the messages it kept: the asides that directly follow it."""
    for stored in records:
        if not isinstance(stored.record.body, InjectedRecord):
            return
        yield stored


def _clear_again(path: ViewBuilder, cut: CutRecord) -> None:
    texts = cut.detail.get(CLEARED_KEY)
    if isinstance(texts, JsonObject):
        stake = ClearingCost(_count(cut.detail.get(SAVED_KEY)), _count(cut.detail.get(REWRITTEN_KEY)))
        path.replace_results({ToolUseId(use): str(text) for use, text in texts.items()}, stake)


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _take_ground(path: ViewBuilder, cut: CutRecord) -> None:
    path.rounds += _count(cut.detail.get(ROUNDS_KEY))
    clear_oldest_memories(path, _count(cut.detail.get(MEMORIES_KEY)))
    depth = cut.detail.get(DEPTH_KEY)
    if isinstance(depth, int):
        path.tally.discount(path.server.restore_depth(depth))
    tokens = cut.detail.get(TOKENS_KEY)
    if isinstance(tokens, int):
        path.tally.set_baseline(tokens)


def _origin(body: InjectedRecord) -> TextOrigin:
    return "memory" if body.origin == "memory" else "attachment"
