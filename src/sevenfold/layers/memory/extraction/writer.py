"""The extraction writer (layer 5): after a turn, what the user taught becomes memories, by a fork or by
rules.

Both write through the same gate. The user's own words go into the memory directory; what may be somebody
else's waits outside it until a person accepts it (docs/trust.md). `ExtractionRecord` is how far a session was
searched: `extraction.json` in its folder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import FileDamaged, FileMissing, NotRegular, SevenfoldError, WireError
from sevenfold.core.events import DraftRefused, Emit, ExtractionEnded, ExtractionSkipped, ignore_event
from sevenfold.core.fields import NonNegative, read_fields, write_fields
from sevenfold.core.json import read_object, write_json
from sevenfold.core.memories import Origin
from sevenfold.core.messages import Message
from sevenfold.core.system import run_blocking
from sevenfold.core.tool_kinds import MEMORY_WRITERS
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner
from sevenfold.layers.memory.extraction.drafts import (
    ConversationSnapshot,
    ExtractionRun,
    ExtractionTools,
    MemorySnapshot,
    RecordedMessage,
    StatementReader,
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
from sevenfold.layers.memory.extraction.settings import ExtractionSettings
from sevenfold.layers.memory.search.memory_index import shorten_query
from sevenfold.layers.memory.trust.taint import SourceTracker
from sevenfold.layers.templates import read_template
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.plan import ALREADY_ASKED

EXTRACTION_FILE = "extraction.json"
_MAX_RECORD_BYTES = 256 * 1024
COURTESY_REASON = "what was left at the end of the session is thanks alone"
SHORT_TURN_REASON = "a turn of a word or two is looked through with the next longer one, or at the end"
DEFERRED_REASON = (
    "extraction has cost its share of the session; the turn is looked through later, at the end at the latest"
)


@dataclass(frozen=True, slots=True)
class ExtractionRecord:
    cursor: str = ""
    """The id of the last message that was looked at; empty: none was."""
    turns: NonNegative = 0
    """Since then."""
    topic: Topic = Topic()  # noqa: RUF009 - a value, and frozen


def read_extraction_record(session: Folder, name: str, emit: Emit = ignore_event) -> ExtractionRecord:
    """The record; an empty one if there is none or it cannot be read: then all messages are searched again,
    and the gate refuses what is already known."""
    try:
        return read_fields(
            ExtractionRecord, read_object(session.read(EXTRACTION_FILE, max_bytes=_MAX_RECORD_BYTES))
        )
    except FileMissing:
        return ExtractionRecord()
    except (FileDamaged, NotRegular, WireError) as error:
        emit(ExtractionSkipped(name, f"how far it was looked through is lost: {error}"))
        return ExtractionRecord()


def write_extraction_record(session: Folder, record: ExtractionRecord) -> None:
    session.replace(EXTRACTION_FILE, write_json(write_fields(record)))


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
        self._look_usd = 0.0

    async def turn_ended(self, snapshot: ConversationSnapshot) -> None:
        """Search the messages since the last time, if that is due."""
        if not self._settings.enabled:
            return
        record = await self._read_record()
        new = _since(record.cursor, snapshot.history)
        facts = self._facts(record, new)
        record = replace(record, turns=record.turns + 1)
        facts = replace(facts, turns=record.turns, spent=self._measure_spend())
        step = choose_extraction_step(facts, self._settings)
        if step == "wait":
            await self._keep(record)
            return
        if step == "skip":
            self._emit(ExtractionSkipped(self._places.session, "the agent wrote memory itself in this turn"))
        if step == "defer" or (step == "pass" and facts.has_words):
            # The cursor stays: a "yes" is understood with what comes next.
            reason = DEFERRED_REASON if step == "defer" else SHORT_TURN_REASON
            self._emit(ExtractionSkipped(self._places.session, reason))
            await self._keep(record)
            return
        topic = record.topic
        if step in ("fork", "rules"):
            tools = self._tools if step == "fork" else None
            topic = await self._look(snapshot, new, record.topic, tools)
        await self._keep(ExtractionRecord(new[-1].id if new else record.cursor, 0, topic))

    async def session_ended(self, snapshot: ConversationSnapshot) -> None:
        """Search what was put off: short turns, and a last one that was cut short. A single word, or thanks,
        teaches nothing."""
        record = await self._read_record()
        new = _since(record.cursor, snapshot.history)
        if not self._settings.enabled or not new:
            return
        facts = replace(self._facts(record, new, MIN_LAST_WORDS), turns=max(1, record.turns))
        if facts.has_substance and all(map(is_courtesy, self._find_words(new))):
            self._emit(ExtractionSkipped(self._places.session, COURTESY_REASON))
            return
        step = choose_extraction_step(facts, replace(self._settings, every_turns=1))
        if step in ("fork", "rules"):
            topic = await self._look(snapshot, new, record.topic, self._tools if step == "fork" else None)
            await self._keep(ExtractionRecord(new[-1].id, 0, topic))

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
        await tools.run_fork(build_extraction_brief(task, prompt), fork_tools.run, new)
        after = self._measure_spend()
        if before and after:
            self._look_usd = max(self._look_usd, after.own_usd - before.own_usd)
        return fork_tools

    def _measure_spend(self) -> ExtractionSpend | None:
        measure = self._tools.measure_spend if self._tools else None
        spent = measure() if measure else None
        return replace(spent, look_usd=self._look_usd) if spent else None

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
        return self._record

    async def _keep(self, record: ExtractionRecord) -> None:
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
