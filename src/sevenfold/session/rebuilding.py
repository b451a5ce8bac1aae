"""Rebuilds the view of a session that continues, byte for byte, from its records since the last boundary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Message, without_message_thinking
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
    HistoryMessage,
    RecordedReply,
)
from sevenfold.session.pipeline import ViewSteps
from sevenfold.store.files import RecordId
from sevenfold.store.transcript.reader import ResumedSession, StoredRecord
from sevenfold.store.transcript.records import (
    BoundaryRecord,
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
    """What all records together say about each of them."""

    binding: str
    """The thinking binding of the parameters that the session continues with."""
    foreign: set[RecordId] = field(default_factory=set[RecordId])
    """Messages up to the last one that was made under other parameters."""
    forgotten: set[RecordId] = field(default_factory=set[RecordId])
    """Messages whose thinking the provider refused."""
    dropped: set[RecordId] = field(default_factory=set[RecordId])
    is_thoughtless: bool = False
    betas: tuple[str, ...] = ()
    covers: int = 0
    summed_up: int | None = None
    """Messages that the last compaction knew. None: its cut was not written."""
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
                    # A message that a boundary wrote again has no bill before it, and is already as shown.
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
            if ROUNDS_KEY in detail:
                self.summed_up = covers
        if isinstance(betas, tuple):
            self.betas = tuple(str(beta) for beta in betas)

    def drop_injected(self, as_shown: Iterable[StoredRecord]) -> None:
        """Leave out what the engine had put behind a message that was dropped, in the order of the view: it
        went with the message."""
        shown: dict[RecordId, bool] = {}
        """Of each message in the view, by the name of its record, whether the engine put it there."""
        for stored in as_shown:
            match stored.record.body:
                case MessageRecord() | InjectedRecord():
                    shown[stored.record.id] = isinstance(stored.record.body, InjectedRecord)
                case CutRecord(detail=detail):
                    gone = detail.get(DROPPED_KEY)
                    left = (
                        {item for item in gone if item in shown} if isinstance(gone, tuple) else set[Json]()
                    )
                    while left:
                        name, is_injected = shown.popitem()
                        left.discard(name)
                        if is_injected:
                            self.dropped.add(name)
                case _:
                    pass

    def place_entries(self, found: EntryPlaces, kept: Iterable[StoredRecord]) -> None:
        """Set the places of these messages in the history. An old record has only their number."""
        if self.places is None:
            messages = [one for one in kept if isinstance(one.record.body, MessageRecord)]
            found.go_on_at(0, max(0, self.covers - len(messages)))
            return
        for entry, place in enumerate((*self.places, self.covers)):
            if found.place_of(entry) != place:
                found.go_on_at(entry, place)


def rebuild_view(steps: ViewSteps, resumed: ResumedSession) -> None:
    """Fill an empty conversation with everything since the last boundary."""
    _replay(steps, resumed).show_answer()
    steps.conversation.adapt()


def rebuild_history(steps: ViewSteps, resumed: ResumedSession) -> RecordedReply | None:
    """The same without a last answer that no request has sent back: the caller may not have it."""
    replay = _replay(steps, resumed)
    steps.conversation.adapt()
    return replay.describe_answer()


def _replay(steps: ViewSteps, resumed: ResumedSession) -> _Replay:
    conversation = steps.conversation
    facts = _Facts(binding=conversation.binding)
    for stored in (*resumed.kept, *resumed.records):
        facts.read(stored.record)
    conversation.betas = facts.betas
    facts.place_entries(conversation.places, resumed.kept)
    head = tuple(_head(resumed.records))
    as_shown = (*head, *resumed.kept, *resumed.records[len(head) :])
    facts.drop_injected(as_shown)
    replay, kept = _Replay(steps=steps, facts=facts), {stored.record.id for stored in resumed.kept}
    for stored in as_shown:
        if stored.record.id not in facts.dropped:
            replay.take(stored.record, is_kept=stored.record.id in kept)
    if resumed.boundary is not None:
        known = facts.summed_up
        conversation.summed_up = (
            conversation.places.place_of(len(conversation.entries)) if known is None else known
        )
    return replay


@dataclass(slots=True, kw_only=True)
class _Replay:
    """Adds records to a conversation, one by one."""

    steps: ViewSteps
    facts: _Facts
    billed: Usage | None = None
    started: datetime | None = None
    """When the request was sent whose answer comes next; None in old transcripts."""
    answer: Record | None = None
    """The last message, if it is an answer that no request has sent back so far."""
    binding: str | None = None
    """The binding of the last request, if it was billed and no message came since."""

    def take(self, record: Record, *, is_kept: bool) -> None:
        conversation = self.steps.conversation
        if _ends_wait(record):
            self.show_answer()
        match record.body:
            case DecisionRecord():
                self.steps.spilling.restore(record.body.decision)
            case CutRecord():
                self._restore_cut(record.body.detail, is_kept=is_kept)
            case SentRecord() if record.body.who == "main" and not record.body.is_refused:
                self.started = record.at
            case UsageRecord() if record.body.who == "main" and not is_kept:
                self._settle_bill()
                self.billed, self.binding = self._usage(record.body), record.body.frame
                started = record.body.resent_at or self.started or record.at
                conversation.answered(self.billed, started, record.at, record.body.frame)
                self.started = None
            case InjectedRecord() if not is_kept:
                # Among kept messages this is an earlier summary, which the boundary replaced.
                conversation.show(record.body.message, _origin(record.body))
                if record.body.message.role == "system":
                    # It was written when it became part of a view, whatever came after it.
                    conversation.finish(is_stored=True)
            case MessageRecord():
                if record.body.message.role == "assistant" and self.binding is not None:
                    self.answer = record
                    return
                self._settle_bill()
                self._add(record, is_kept=is_kept)
            case _:
                pass

    def show_answer(self) -> None:
        """Add the last answer, if there is one."""
        if self.answer is not None:
            self._add(self.answer, is_kept=False)

    def describe_answer(self) -> RecordedReply | None:
        body = self.answer.body if self.answer is not None else None
        if self.answer is None or not isinstance(body, MessageRecord):
            return None
        conversation = self.steps.conversation
        binding = self.binding or conversation.binding
        entry = HistoryMessage(body.message, self.answer.id)
        return RecordedReply(entry, self.billed, conversation.boundaries, binding)

    def _add(self, record: Record, *, is_kept: bool) -> None:
        assert isinstance(record.body, MessageRecord)
        message = record.body.message
        if self._is_thoughtless(record.id, is_kept=is_kept):
            message = without_message_thinking(message)
        self.steps.conversation.add(message, id=record.id, usage=self.billed)
        self.answer = self.billed = self.binding = None

    def _settle_bill(self) -> None:
        """The caller did not keep the last answer, but the size of its prompt is known."""
        if self.billed is not None:
            self.steps.conversation.tally.bill(self.billed, Message("assistant", ()), is_output_known=False)
            self.billed = None

    def _restore_cut(self, detail: JsonObject, *, is_kept: bool) -> None:
        """Restore what a cut says about the view, whether a boundary made it or not."""
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
            # The estimate stays: this bill cannot be read.
            self.steps.conversation.report_missing_usage(body.model, str(error))
            return None

    def _is_thoughtless(self, name: RecordId, *, is_kept: bool) -> bool:
        """Whether the thinking in this message is no longer shown."""
        is_foreign = name in self.facts.foreign and not self.steps.conversation.capabilities.rewrites_history
        return is_foreign or name in self.facts.forgotten or (self.facts.is_thoughtless and is_kept)


def _ends_wait(record: Record) -> bool:
    """Whether this record belongs to the request path: then an answer before it is part of a view."""
    match record.body:
        case MessageRecord() | InjectedRecord() | CutRecord() | BoundaryRecord():
            return True
        case SentRecord() | UsageRecord():
            return record.body.who == "main"
        case _:
            return False


def _head(records: Iterable[StoredRecord]) -> Iterator[StoredRecord]:
    """The messages that a boundary put before those it kept: they directly follow it."""
    for stored in records:
        if not isinstance(stored.record.body, InjectedRecord):
            return
        yield stored


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _origin(body: InjectedRecord) -> TextOrigin:
    return "memory" if body.origin == "memory" else "attachment"
