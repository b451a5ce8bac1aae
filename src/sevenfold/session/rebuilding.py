"""Rebuilds the view of a session that continues, byte for byte, from its records since the last boundary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Message, RecordId, without_message_thinking
from sevenfold.core.tokens import TextOrigin
from sevenfold.core.usage import Usage, read_stored_usage
from sevenfold.layers.compaction.layer import BETAS_KEY, ROUNDS_KEY, THOUGHTLESS_KEY, TOKENS_KEY
from sevenfold.layers.conversation_state import (
    COVERS_KEY,
    DROPPED_KEY,
    FORGOTTEN_KEY,
    PLACES_KEY,
    STATE_KEY,
    EntryPlaces,
)
from sevenfold.session.pipeline import ViewSteps
from sevenfold.store.transcript.reader import ResumedSession, StoredRecord
from sevenfold.store.transcript.records import (
    CutRecord,
    DecisionRecord,
    InjectedRecord,
    MessageRecord,
    Record,
    SentRecord,
    UsageRecord,
)


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
    places: tuple[int, ...] | None = None
    _messages: list[RecordId] = field(default_factory=list[RecordId])
    _frame: str = ""

    def read(self, record: Record) -> None:
        match record.body:
            case CutRecord():
                self._read_cut(record.body.detail)
            case UsageRecord() if record.body.who == "main":
                self._frame = record.body.frame
            case MessageRecord():
                self._messages.append(record.id)
                if record.body.message.role == "assistant":
                    if self._frame not in ("", self.binding):
                        self.foreign.update(self._messages)
                    # One that a boundary wrote again has no bill before it, and is as it was last shown.
                    self._frame = ""
            case _:
                pass

    def _read_cut(self, detail: JsonObject) -> None:
        gone = detail.get(DROPPED_KEY)
        if isinstance(gone, tuple):
            self.dropped.update(RecordId(item) for item in gone if isinstance(item, str))
        if detail.get(FORGOTTEN_KEY) is True:
            self.forgotten.update(self._messages)
        self.is_thoughtless = self.is_thoughtless or detail.get(THOUGHTLESS_KEY) is True
        betas, covers, places = detail.get(BETAS_KEY), detail.get(COVERS_KEY), detail.get(PLACES_KEY)
        if isinstance(places, tuple):
            self.places = tuple(place for place in places if isinstance(place, int))
        if isinstance(covers, int):
            self.covers = covers
        if isinstance(betas, tuple):
            self.betas = tuple(str(beta) for beta in betas)

    def place_entries(self, found: EntryPlaces, kept: Iterable[StoredRecord]) -> None:
        """Say where in the history the messages stand that are read. An old record counts them alone."""
        if self.places is None:
            messages = [one for one in kept if isinstance(one.record.body, MessageRecord)]
            found.go_on_at(0, max(0, self.covers - len(messages)))
            return
        for entry, place in enumerate((*self.places, self.covers)):
            if found.place_of(entry) != place:
                found.go_on_at(entry, place)


def rebuild_view(steps: ViewSteps, resumed: ResumedSession) -> list[Message]:
    """Fill an empty conversation with a resumed one; the messages of its history since the boundary."""
    conversation = steps.conversation
    facts = _Facts(binding=conversation.binding)
    for stored in (*resumed.kept, *resumed.records):
        facts.read(stored.record)
    conversation.betas = facts.betas
    facts.place_entries(conversation.places, resumed.kept)
    head = tuple(_head(resumed.records))
    replay, kept = _Replay(steps, facts), {stored.record.id for stored in resumed.kept}
    for stored in (*head, *resumed.kept, *resumed.records[len(head) :]):
        if stored.record.id not in facts.dropped:
            replay.take(stored.record, is_kept=stored.record.id in kept)
    conversation.adapt()
    return [entry.message for entry in conversation.entries]


@dataclass(slots=True)
class _Replay:
    """Records on their way into a conversation."""

    steps: ViewSteps
    facts: _Facts
    billed: Usage | None = None
    started: datetime | None = None
    """When the request was sent that is answered next; an old record says nothing of it."""

    def take(self, record: Record, *, is_kept: bool) -> None:
        conversation = self.steps.conversation
        match record.body:
            case DecisionRecord():
                self.steps.spilling.restore(record.body.decision)
            case CutRecord():
                self._restore_cut(record.body.detail, is_kept=is_kept)
            case SentRecord() if record.body.who == "main" and not record.body.is_refused:
                self.started = record.at
            case UsageRecord() if record.body.who == "main" and not is_kept:
                self._settle_bill()
                self.billed = self._usage(record.body)
                started = self.started or record.at
                conversation.answered(self.billed, started, record.at, record.body.frame)
                self.started = None
            case InjectedRecord() if not is_kept:
                # One among kept messages is an earlier summary, which the boundary left behind.
                conversation.show(record.body.message, _origin(record.body))
                if record.body.message.role == "system":
                    # It is written down once it stands in a view, whatever came after.
                    conversation.finish(is_stored=True)
            case MessageRecord():
                message = record.body.message
                if self._is_thoughtless(record.id, is_kept=is_kept):
                    message = without_message_thinking(message)
                if message.role != "assistant":
                    self._settle_bill()
                conversation.add(message, id=record.id, usage=self.billed)
                self.billed = None
            case _:
                pass

    def _settle_bill(self) -> None:
        """The caller did not keep the last answer: the size of its prompt is known all the same."""
        if self.billed is not None:
            self.steps.conversation.tally.bill(self.billed, Message("assistant", ()), is_output_known=False)
            self.billed = None

    def _restore_cut(self, detail: JsonObject, *, is_kept: bool) -> None:
        """What was known of the view when it was cut, by a boundary or otherwise."""
        conversation, tokens = self.steps.conversation, detail.get(TOKENS_KEY)
        if not is_kept:
            conversation.rounds += _count(detail.get(ROUNDS_KEY))
            conversation.restore_cut(detail)
        self.steps.clearing.restore(detail, is_kept=is_kept)
        if not is_kept and isinstance(tokens, int) and STATE_KEY not in detail:
            conversation.tally.set_baseline(tokens)

    def _usage(self, body: UsageRecord) -> Usage | None:
        try:
            return read_stored_usage(body.wire, body.dialect)
        except WireError as error:
            # It cannot be counted from, so the estimate stays.
            self.steps.conversation.report_missing_usage(body.model, str(error))
            return None

    def _is_thoughtless(self, name: RecordId, *, is_kept: bool) -> bool:
        """Whether what was thought in this message is no longer shown."""
        is_foreign = name in self.facts.foreign and not self.steps.conversation.capabilities.rewrites_history
        return is_foreign or name in self.facts.forgotten or (self.facts.is_thoughtless and is_kept)


def _head(records: Iterable[StoredRecord]) -> Iterator[StoredRecord]:
    """What a boundary put before the messages it kept: the asides that directly follow it."""
    for stored in records:
        if not isinstance(stored.record.body, InjectedRecord):
            return
        yield stored


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _origin(body: InjectedRecord) -> TextOrigin:
    return "memory" if body.origin == "memory" else "attachment"
