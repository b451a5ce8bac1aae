"""The extraction writer (layer 5): after a turn, what the user taught becomes memories, by a fork or by
rules.

Both write through the same gate. The user's own words go into the memory directory; what may be somebody
else's waits outside it until a person accepts it (docs/trust.md). `ExtractionRecord` is how far a session was
searched: `extraction.json` in its folder. What lies behind that and was summed up before the session was
opened is read in its transcript, whatever ended the process before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, TypeAlias

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import FileDamaged, FileMissing, NotRegular, SevenfoldError, WireError
from sevenfold.core.events import DraftRefused, Emit, ExtractionEnded, ExtractionSkipped, ignore_event
from sevenfold.core.fields import JsonForm, NonNegative, read_fields, write_fields
from sevenfold.core.json import read_object, write_json
from sevenfold.core.memories import Origin
from sevenfold.core.messages import Message
from sevenfold.core.system import run_blocking
from sevenfold.core.tool_kinds import MEMORY_WRITERS
from sevenfold.layers.conversation_state import DROPPED_KEY
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner
from sevenfold.layers.memory.extraction.drafts import (
    ConversationSnapshot,
    ExtractionRun,
    ExtractionTools,
    MemorySnapshot,
    RecordedMessage,
    StatementReader,
    split_looks,
)
from sevenfold.layers.memory.extraction.gate import AdmittedDraft, GateContext
from sevenfold.layers.memory.extraction.policy import (
    MIN_LAST_WORDS,
    MIN_TAUGHT_WORDS,
    ExtractionFacts,
    ExtractionSpend,
    ExtractionTask,
    Topic,
    build_extraction_brief,
    choose_extraction_step,
    extract_user_words,
    has_memory_write,
    has_substance,
    is_courtesy,
)
from sevenfold.layers.memory.extraction.settings import (
    EXTRACTION_FILE,
    MAX_EXTRACTION_FILE_BYTES,
    ExtractionSettings,
)
from sevenfold.layers.memory.search.memory_index import shorten_query
from sevenfold.layers.memory.trust.taint import SourceTracker
from sevenfold.layers.templates import read_template
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.plan import ALREADY_ASKED
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import BoundaryRecord, CutRecord, MessageRecord

COURTESY_REASON = "what was left at the end of the session is thanks alone"
SHORT_TURN_REASON = "a turn of a word or two is looked through with the next longer one, or at the end"
DEFERRED_REASON = (
    "extraction has cost its share of the session; the turn is looked through later, at the end at the latest"
)

RULES_REASON = (
    "extraction has cost its share of the session; of the rest only what was stated in so many words is kept"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionRecord:
    cursor: str = ""
    """The id of the last message that was looked at; empty: none was."""
    turns: NonNegative = 0
    """Since then."""
    topic: Topic = Topic()  # noqa: RUF009 - a value, and frozen
    offset: Annotated[int, JsonForm(at_least=0, omits_default=True)] = 0
    """Of a line of the transcript: what it has behind the cursor comes after it."""
    spent: Annotated[ExtractionSpend, JsonForm(omits_default=True)] = ExtractionSpend()  # noqa: RUF009 - as well

    def advance(self, looked: Sequence[RecordedMessage], topic: Topic, turns: int = 0) -> ExtractionRecord:
        """The record when these messages were looked through too."""
        if not looked:
            return replace(self, turns=turns, topic=topic)
        offset = next((one.offset for one in reversed(looked) if one.offset), self.offset)
        return replace(self, cursor=looked[-1].id, turns=turns, topic=topic, offset=offset)


def read_extraction_record(session: Folder, name: str, emit: Emit = ignore_event) -> ExtractionRecord:
    """The record; an empty one if there is none or it cannot be read: then all messages are searched again,
    and the gate refuses what is already known."""
    try:
        return read_fields(
            ExtractionRecord, read_object(session.read(EXTRACTION_FILE, max_bytes=MAX_EXTRACTION_FILE_BYTES))
        )
    except FileMissing:
        return ExtractionRecord()
    except (FileDamaged, NotRegular, WireError) as error:
        emit(ExtractionSkipped(name, f"how far it was looked through is lost: {error}"))
        return ExtractionRecord()


def write_extraction_record(session: Folder, record: ExtractionRecord) -> None:
    session.replace(EXTRACTION_FILE, write_json(write_fields(record)))


_SINCE_KINDS = ("message", "boundary", "cut", "usage", "request")


def read_unsearched(sessions: Folder, session: str, record: ExtractionRecord) -> Sequence[RecordedMessage]:
    """What a transcript has behind the cursor, without what was dropped since. Blocks on the disk; the work
    grows with what was not looked through, not with the session."""
    try:
        found = _read_since(sessions, session, record.offset)
    except FileMissing:
        return ()
    place = next((at for at, one in enumerate(found) if one.id == record.cursor), -1)
    return found[place + 1 :]


def _read_since(sessions: Folder, session: str, start: int) -> Sequence[RecordedMessage]:
    found: dict[str, RecordedMessage] = {}
    again: dict[str, RecordedMessage] | None = None
    """What a boundary wrote again under its own name; it was said before."""
    for at, line in enumerate(scan_transcript(sessions, session, start=start, kinds=_SINCE_KINDS)):
        if not isinstance(line, StoredRecord):
            if start and not at:
                return _read_since(sessions, session, 0)  # the place is another file's
            continue
        name = line.record.id
        match line.record.body:
            case BoundaryRecord():
                again = {}
            case MessageRecord(message=message):
                known = found if again is None else again
                if name not in found:
                    known.setdefault(name, RecordedMessage(name, message, line.offset))
            case CutRecord(detail=detail):
                again = None
                gone = detail.get(DROPPED_KEY)
                for item in gone if isinstance(gone, tuple) else ():
                    found.pop(str(item), None)
            case _ if again is not None:
                # The process died before the boundary was whole: rather looked through twice than not.
                found, again = found | again, None
            case _:
                pass
    return tuple((found | (again or {})).values())


@dataclass(frozen=True, slots=True)
class UnsearchedMessages:
    """What is to be looked through, and the conversation that it ends."""

    snapshot: ConversationSnapshot
    new: Sequence[RecordedMessage]


def join_unsearched(
    snapshot: ConversationSnapshot, cursor: str, found: Sequence[RecordedMessage]
) -> UnsearchedMessages:
    """A conversation with what its transcript has behind the cursor: what was summed up before the session
    was opened stands there alone."""
    history, places = snapshot.history, {one.id: at for at, one in enumerate(snapshot.history)}
    # What was said since the snapshot was taken is looked through with the next.
    last = max((at for at, one in enumerate(found) if one.id in places), default=len(found) - 1)
    found = found[: last + 1]
    begin = 1 + max(
        (places[name] for name in (cursor, *(one.id for one in found)) if name in places), default=-1
    )
    names = {one.id for one in found}
    new = [history[places[one.id]] if one.id in places else one for one in found] + [*history[begin:]]
    done = [one for one in history[:begin] if one.id not in names]
    hidden = snapshot.hidden | (names - places.keys())
    return UnsearchedMessages(replace(snapshot, history=(*done, *new), hidden=hidden), new)


_PROMPT = "extraction.md"


RunLook: TypeAlias = Callable[[ForkBrief, ToolRunner, Sequence[RecordedMessage]], Awaitable[ForkResult]]
"""Runs a fork that looks through these messages."""


@dataclass(frozen=True, slots=True)
class ForkTools:
    """What a fork needs to run."""

    names: tuple[str, ...]
    """What the conversation declares."""
    run_fork: RunLook
    read: ToolRunner
    """Runs a call that only reads, within the read roots."""
    measure_spend: Callable[[], ExtractionSpend | None] | None = None
    """What the session has cost so far. None: forks are not held to a share of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionPlaces:
    """The folders of a session and its memories."""

    session: str
    memory: MemoryDir
    folder: str
    """Of the memories, as tools name it."""
    kept: Folder | None = None
    """The session's own folder; None: how far it got is known while it lasts."""
    transcripts: Folder | None = None
    """Where its transcript is; None: the conversation that is handed in is all of it."""
    templates: Folder | None = None


class ExtractionWriter:
    """Extraction in one session. The caller runs it one at a time."""

    def __init__(
        self,
        places: ExtractionPlaces,
        settings: ExtractionSettings,
        tools: ForkTools | None = None,
        *,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
    ) -> None:
        self._places, self._settings, self._tools = places, settings, tools
        self._clock, self._emit = clock or SystemClock(), emit
        self._memories, self._listener = MemorySnapshot(places.memory), SourceTracker()
        self._record: ExtractionRecord | None = None
        self._before = ExtractionSpend()
        """What the session had cost before it was opened here."""
        self._look_usd = Decimal()
        self._is_behind = places.transcripts is not None
        """Something may wait that the conversation does not have."""

    async def turn_ended(self, snapshot: ConversationSnapshot) -> None:
        """Search the messages since the last time, if that is due."""
        if not self._settings.enabled:
            return
        record = await self._read_record()
        found = await self._find_unsearched(record, snapshot)
        facts = self._facts(record, found.new)
        record = replace(record, turns=record.turns + 1)
        facts = replace(facts, turns=record.turns, spent=self._measure_spend())
        step = choose_extraction_step(facts, self._settings)
        if step in ("fork", "rules"):
            await self._look_through(found, record, self._tools if step == "fork" else None)
            return
        if step == "skip":
            self._emit(ExtractionSkipped(self._places.session, "the agent wrote memory itself in this turn"))
        # The cursor stays where something waits: a "yes" is understood with what comes next.
        waits = step in ("wait", "defer") or (step == "pass" and facts.has_words)
        if waits and step != "wait":
            reason = DEFERRED_REASON if step == "defer" else SHORT_TURN_REASON
            self._emit(ExtractionSkipped(self._places.session, reason))
        await self._keep(record if waits else record.advance(found.new, record.topic))

    async def session_ended(self, snapshot: ConversationSnapshot) -> None:
        """Search what was put off: short turns, and a last one that was cut short. A single word, or thanks,
        teaches nothing."""
        record = await self._read_record()
        found = await self._find_unsearched(record, snapshot)
        if not self._settings.enabled or not found.new:
            return
        facts = replace(self._facts(record, found.new, MIN_LAST_WORDS), turns=max(1, record.turns))
        if facts.has_substance and all(map(is_courtesy, self._find_words(found.new))):
            self._emit(ExtractionSkipped(self._places.session, COURTESY_REASON))
            return
        step = choose_extraction_step(facts, replace(self._settings, every_turns=1))
        if step in ("fork", "rules"):
            tools = self._tools if step == "fork" else None
            await self._look_through(found, record, tools, is_end=True)

    async def _find_unsearched(
        self, record: ExtractionRecord, snapshot: ConversationSnapshot
    ) -> UnsearchedMessages:
        sessions = self._places.transcripts
        is_lost = bool(record.cursor) and all(one.id != record.cursor for one in snapshot.history)
        if sessions is None or not (self._is_behind or is_lost):
            return UnsearchedMessages(snapshot, _since(record.cursor, snapshot.history))
        name = self._places.session
        read = await run_blocking(lambda: read_unsearched(sessions, name, record))
        found = join_unsearched(snapshot, record.cursor, read)
        known = {one.id for one in snapshot.history}
        self._is_behind = any(one.id not in known for one in found.new)
        return found

    async def _look_through(
        self,
        found: UnsearchedMessages,
        record: ExtractionRecord,
        tools: ForkTools | None,
        *,
        is_end: bool = False,
    ) -> None:
        """Look at the messages, in several looks where they are too much for one."""
        left, snapshot = len(found.new), found.snapshot
        for part in split_looks(found.new) if tools else (found.new,):
            spent = self._measure_spend()
            if left < len(found.new) and tools and spent and spent.is_dear(self._settings.session_percent):
                self._emit(
                    ExtractionSkipped(self._places.session, RULES_REASON if is_end else DEFERRED_REASON)
                )
                if not is_end:
                    return
                tools = None
            left -= len(part)
            shown = replace(snapshot, history=snapshot.history[: len(snapshot.history) - left])
            topic = await self._look(shown, part, record.topic, tools)
            record = record.advance(part, topic, turns=record.turns if left else 0)
            await self._keep(record)

    def _facts(
        self, record: ExtractionRecord, new: Sequence[RecordedMessage], min_words: int = MIN_TAUGHT_WORDS
    ) -> ExtractionFacts:
        messages, words = [spoken.message for spoken in new], self._find_words(new)
        # Turns that were put off are not done with because the agent writes something down in a later one.
        is_behind = record.turns >= self._settings.every_turns and any(map(has_substance, words[:-1]))
        return ExtractionFacts(
            turns=record.turns,
            wrote_memory=not is_behind and has_memory_write(messages, self._places.folder),
            has_words=bool(words),
            has_substance=any(has_substance(own, min_words) for own in words),
            has_model=self._tools is not None and any(name in self._tools.names for name in MEMORY_WRITERS),
        )

    @staticmethod
    def _find_words(new: Sequence[RecordedMessage]) -> list[str]:
        return [own for spoken in new if (own := extract_user_words(spoken.message))]

    async def _look(
        self,
        snapshot: ConversationSnapshot,
        new: Sequence[RecordedMessage],
        topic: Topic,
        tools: ForkTools | None,
    ) -> Topic:
        snapshot = snapshot.restore_view(new)
        await run_blocking(self._memories.refresh)
        today = self._clock.now().astimezone().date()
        context = GateContext(
            await run_blocking(lambda: self._listener.update(snapshot.view, today)),
            self._memories.known,
            self._memories.near,
            today,
        )
        if tools is not None:
            try:
                fork_tools = await self._run_fork(tools, context, new)
            except SevenfoldError as error:
                reason = f"{error}; only what was stated in so many words is kept"
                self._emit(ExtractionSkipped(self._places.session, reason))
            else:
                run = ExtractionRun(topic, fork_tools.drafts, fork_tools.refused)
                await self._publish(run, snapshot, "model")
                return topic
        # In a thread: a long conversation takes a while to be compared.
        rules = StatementReader(self._places.session, self._memories, self._emit)
        run = await run_blocking(lambda: rules.read(context, snapshot, new, topic))
        await self._publish(run, snapshot, "rules")
        return run.topic

    async def _run_fork(
        self, tools: ForkTools, context: GateContext, new: Sequence[RecordedMessage]
    ) -> ExtractionTools:
        places = self._places
        prompt = await run_blocking(lambda: read_template(places.templates, _PROMPT))
        tool = next(name for name in MEMORY_WRITERS if name in tools.names)
        manifest = self._memories.describe(shorten_query("\n".join(self._find_words(new))))
        task = ExtractionTask(
            messages=len(new),
            manifest=manifest,
            tool=tool,
            today=context.today,
            tools=tools.names,
            rounds=self._settings.rounds,
        )
        fork_tools = ExtractionTools(
            places.session, places.folder, context, self._memories, read=tools.read, emit=self._emit
        )
        before = self._measure_spend()
        if before and self._record:
            # A look is paid for though the process dies in it: counted before, as the dearest so far.
            await self._keep(self._record, held_usd=before.look_usd)
        await tools.run_fork(build_extraction_brief(task, prompt), fork_tools.run, new)
        after = self._measure_spend()
        if before and after:
            self._look_usd = max(self._look_usd, after.own_usd - before.own_usd)
        return fork_tools

    def _measure_spend(self) -> ExtractionSpend | None:
        measure, before = self._tools.measure_spend if self._tools else None, self._before
        spent = measure() if measure else None
        if spent is None:
            return None
        return ExtractionSpend(
            own_usd=before.own_usd + spent.own_usd,
            session_usd=before.session_usd + spent.session_usd,
            look_usd=max(before.look_usd, self._look_usd),
        )

    async def _publish(self, run: ExtractionRun, snapshot: ConversationSnapshot, writer: str) -> None:
        ids = {spoken.message: spoken.id for spoken in snapshot.history} if run.admitted else {}
        own = [item for item in run.admitted.values() if not item.judgement.taint]
        others = [item for item in run.admitted.values() if item.judgement.taint]

        def write() -> int:
            memory, waiting = self._places.memory, 0
            if own:
                memory.commit(
                    [_write(item, self._origin(item, snapshot.view, ids, writer)) for item in own],
                    Origin(who="fork", why=f"extraction by {writer}", session=self._places.session),
                )
            for item in others:
                origin = self._origin(item, snapshot.view, ids, writer)
                changes = [_write(item, origin)]
                if memory.was_asked(changes):
                    self._emit(DraftRefused(self._places.session, item.key, "asked", ALREADY_ASKED))
                    continue
                memory.propose(changes, origin, _reason(item))
                waiting += 1
            return waiting

        waiting = await run_blocking(write)
        session = self._places.session
        if writer == "model" or own or waiting or run.refused:
            self._emit(
                ExtractionEnded(
                    session=session, writer=writer, written=len(own), waiting=waiting, refused=run.refused
                )
            )

    def _origin(
        self, item: AdmittedDraft, view: Sequence[Message], ids: dict[Message, str], writer: str
    ) -> Origin:
        found = item.judgement
        named = (ids.get(view[at]) for at in found.messages if 0 <= at < len(view))
        return Origin(
            who="fork",
            why=f"extraction by {writer}",
            session=self._places.session,
            messages=tuple(name for name in named if name),
            said_by=found.said_by,
            taint=found.taint,
            evidence=found.evidence,
        )

    async def _read_record(self) -> ExtractionRecord:
        kept = self._places.kept
        if self._record is None:
            self._record = ExtractionRecord()
            if kept is not None:
                name = self._places.session
                self._record = await run_blocking(lambda: read_extraction_record(kept, name, self._emit))
            self._before = self._record.spent
        return self._record

    async def _keep(self, record: ExtractionRecord, held_usd: Decimal = Decimal()) -> None:
        if (spent := self._measure_spend()) is not None:
            own, whole = spent.own_usd + held_usd, spent.session_usd + held_usd
            record = replace(record, spent=replace(spent, own_usd=own, session_usd=whole))
        self._record = record
        kept = self._places.kept
        if kept is not None:
            await run_blocking(lambda: write_extraction_record(kept, record))


def _write(item: AdmittedDraft, origin: Origin) -> Write:
    return Write(item.key, item.text, item.base, origin)


def _reason(item: AdmittedDraft) -> str:
    unsupported = item.judgement.unsupported
    quoted = f": {unsupported[0][:160]!r}" if unsupported else ""
    return f"not the user's own words (seen in {', '.join(sorted(item.judgement.taint))}){quoted}"


def _since(cursor: str, history: Sequence[RecordedMessage]) -> Sequence[RecordedMessage]:
    """What was said after the cursor; all of it where that message is no longer there."""
    for at in range(len(history) - 1, -1, -1):
        if history[at].id == cursor:
            return history[at + 1 :]
    return history
