"""What a dream reads: the accepted memories, how they were used, and the daily logs.

`DreamGate` collects the facts that decide whether a dream is due, the cheapest first. `append_log` and
`DistilledLogs` are the daily logs of long-lived assistants: appended through the history of the memories, and
read again only after they have grown.

`PastSessions` finds what past sessions say of memories that are in doubt: turns with Sevenfold, Claude Code
and Codex in the project, by the index that `sevenfold search` uses. They are evidence for the fork, and
nothing that it may take over unasked.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import TypeAlias

from sevenfold.core.clock import Clock
from sevenfold.core.errors import FileMissing, InputError, MemoryConflict, StoreError
from sevenfold.core.events import Emit
from sevenfold.core.json import freeze_object, read_object, write_json
from sevenfold.core.memories import IMPORTED_WHY, LOGS_PREFIX, NO_USES, MemoryUses, Origin
from sevenfold.core.system import run_blocking
from sevenfold.core.text.absolute_dates import resolve_relative_dates
from sevenfold.layers.dreams.merge import MemoryUseFacts
from sevenfold.layers.dreams.policy import DreamFacts, DreamMemory, DreamSettings, choose_dream_step
from sevenfold.layers.memory.search.lexical import is_talk, split_words
from sevenfold.layers.memory.trust.verifier import ProjectVerifiers
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import Lock
from sevenfold.store.foreign.transcripts import find_own_transcripts, find_transcripts, list_default_folders
from sevenfold.store.memory.changes import StoredMemory, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.sidecars import UseStore
from sevenfold.store.project.project import Project
from sevenfold.store.session_index.finder import (
    MARK_END,
    MARK_START,
    SessionHit,
    SessionQuery,
    hide_secrets,
)
from sevenfold.store.session_index.index import SessionIndex
from sevenfold.store.transcript.transcript import is_agent_session, list_sessions

CHECK_BUDGET = timedelta(seconds=1)
"""For what one old memory names: a dream has time, and not for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamInputs:
    stored: Mapping[str, StoredMemory]
    kept: tuple[DreamMemory, ...]
    """Newest first."""
    uses: Mapping[str, MemoryUseFacts]
    logs: Mapping[str, StoredMemory]
    """Daily logs that no dream has distilled as they are now."""
    index: str

    @property
    def before(self) -> dict[str, DreamMemory]:
        return {item.memory.key: item for item in self.kept}

    @property
    def trusted_logs(self) -> dict[str, str]:
        """The logs without foreign words, which may be used without review."""
        return {key: item.memory.text for key, item in self.logs.items() if item.is_trusted}

    @property
    def log_texts(self) -> dict[str, str]:
        return {key: item.memory.text for key, item in self.logs.items()}


def read_dream_inputs(
    project: Project,
    memory: MemoryDir,
    distilled: Mapping[str, str],
    now: datetime,
    settings: DreamSettings,
) -> DreamInputs:
    """Blocks on the disk. `distilled` has the SHA-256 of logs that need not be looked at again."""
    stored = {item.memory.key: item for item in memory.scan(None)}
    kept = tuple(_kept(memory, item) for item in stored.values())
    logs = (memory.find(key) for key in memory.keys(LOGS_PREFIX))
    fresh = {log.memory.key: log for log in logs if log and distilled.get(log.memory.key) != log.sha256}
    began = min((one.at for one in memory.log(limit=None)), default=now)
    uses = dict(_uses(project, kept, now, settings, began))
    return DreamInputs(
        stored={**stored}, kept=kept, uses=uses, logs={**fresh}, index=memory.index_text().text
    )


def _kept(memory: MemoryDir, item: StoredMemory) -> DreamMemory:
    written = item.modified.astimezone(UTC).date()
    body, undated = item.memory.body, () if _is_dated(item.origin) else (None,)
    if resolve_relative_dates(body, written, events_only=True) == body:
        return DreamMemory(item.memory, written, item.origin, undated)
    # Only what speaks of "yesterday" needs to know on which day each line came in.
    blamed = memory.blame(item.memory.key)
    count = len(body.splitlines())
    days = tuple(
        line.at.astimezone(UTC).date() if _is_dated(line.origin) else None
        for line in blamed[len(blamed) - count :]
    )
    return DreamMemory(item.memory, written, item.origin, days if len(days) == count else (None,))


def _is_dated(origin: Origin) -> bool:
    """Whether words came into the history on the day they were written. An edit past the engine is noticed
    later, a dream moves what others wrote, and what was taken in has lain elsewhere."""
    is_here = origin.who not in ("dream", "sync") and "outside edit" not in origin.taint
    return is_here and not origin.why.startswith(IMPORTED_WHY)


def _uses(
    project: Project, kept: tuple[DreamMemory, ...], now: datetime, settings: DreamSettings, began: datetime
) -> Iterator[tuple[str, MemoryUseFacts]]:
    uses_by_key: Mapping[str, MemoryUses] = UseStore(project.memory_state).read()
    verifiers, limit = ProjectVerifiers(project, project.root), timedelta(days=settings.stale_days)
    for item in kept:
        # Uses are counted since the history began: of what was there before, nobody knows how long it lay.
        last = max(uses_by_key.get(item.memory.key, NO_USES).last or began, began)
        day = max(item.written, last.date())
        # Looking for what it names costs time, and only decides where it was not used for long.
        is_idle = now.date() - day >= limit
        verifier = verifiers.find(item.origin) if is_idle else None
        is_broken = verifier is not None and bool(verifier.verify(item.memory.body, CHECK_BUDGET))
        yield item.memory.key, MemoryUseFacts(last, is_broken)


SPREAD = timedelta(hours=1)
"""The projects of a machine start their dreams spread over this time, not all at once."""


class DreamGate:
    """Asked after every turn. It remembers what it counted, so that most answers cost one small read."""

    def __init__(self, project: Project, lock: Lock, settings: DreamSettings, clock: Clock) -> None:
        self._project, self._lock, self._settings, self._clock = project, lock, settings, clock
        self._last_count: datetime | None = None
        self._sessions: int | None = None

    async def is_due(self, own: str) -> bool:
        """Whether a dream is due, apart from taking the lock. `own` is the session that asks."""
        if not self._settings.enabled:
            return False
        facts = await run_blocking(self._read)
        step = choose_dream_step(facts, self._settings)
        if step == "count sessions":
            self._sessions = await run_blocking(lambda: self._count(facts.last_dream, own))
            self._last_count = facts.now
            counted = replace(facts, last_count=self._last_count, sessions_since=self._sessions)
            step = choose_dream_step(counted, self._settings)
        return step == "take lock"

    def forget(self) -> None:
        """A dream has run: forget what was counted before it."""
        self._last_count = self._sessions = None

    def _read(self) -> DreamFacts:
        state = self._lock.read_state()
        return DreamFacts(
            now=self._clock.now(),
            last_dream=state.last_success,
            last_attempt=state.last_attempt,
            strikes=state.strikes,
            spread=self._spread(),
            last_count=self._last_count,
            sessions_since=self._sessions,
        )

    def _spread(self) -> timedelta:
        digest = hashlib.sha256(self._project.id.encode()).digest()
        return SPREAD * int.from_bytes(digest[:2], "big") / 2**16

    def _count(self, last: datetime | None, own: str) -> int:
        since = last or datetime.fromtimestamp(0, UTC)
        return sum(
            entry.modified > since and entry.id != own and not is_agent_session(entry.id)
            for entry in list_sessions(self._project.sessions)
        )


_STATE = "dream-logs.json"
_MAX_STATE_BYTES = 1024 * 1024
MAX_APPEND_TRIES = 20
"""Somebody else appended in between; each try reads what they wrote."""
_MOST_BYTES = 256 * 1024
"""Of one day: beyond that it is no log that anybody distils."""
MAX_LOG_LINE_CHARS = 400


def make_log_key(when: datetime) -> str:
    """The log of that day, by the reader's own calendar."""
    return f"{LOGS_PREFIX}{when:%Y/%m/%Y-%m-%d}.md"


def append_log(memory: MemoryDir, said: str, when: datetime, origin: Origin) -> str:
    """Add a line to the day's log, whose key is returned; all else in it stays. Blocks on the disk."""
    key, line = make_log_key(when), f"- {when:%H:%M} {' '.join(said.split())[:MAX_LOG_LINE_CHARS]}\n"
    for _ in range(MAX_APPEND_TRIES):
        found = memory.find(key)
        text = (found.memory.text if found else f"# {when:%Y-%m-%d}\n\n") + line
        if len(text.encode("utf-8", "surrogatepass")) > _MOST_BYTES:
            raise InputError(
                f"{key} has reached {_MOST_BYTES:,} bytes, which is the most of a day; it is full"
            )
        try:
            memory.commit([Write(key, text, found.sha256 if found else None)], origin)
        except MemoryConflict:
            continue
        return key
    raise MemoryConflict(f"{key} was written to all the while; try again", keys=(key,))


class DistilledLogs:
    """Which logs a dream has been through, by their SHA-256. Every method blocks on the disk."""

    def __init__(self, control: Folder) -> None:
        self._control = control

    def read(self) -> dict[str, str]:
        try:
            wire = read_object(self._control.read(_STATE, max_bytes=_MAX_STATE_BYTES))
        except (FileMissing, InputError, StoreError):
            return {}  # they are distilled once more, which adds nothing that is there
        return {key: value for key, value in wire.items() if isinstance(value, str)}

    def write(self, logs: Mapping[str, StoredMemory]) -> None:
        known = {**self.read(), **{key: log.sha256 for key, log in logs.items()}}
        if logs:
            self._control.replace(_STATE, write_json(freeze_object(known)) + b"\n")


MAX_QUESTIONS = 5
"""A dream looks into few memories at a time; those that it settles are not in doubt at the next."""
TURNS_EACH = 2
_QUERY_WORDS = 8
"""Of what a memory is about. With more, a turn is found for its everyday words."""
_LINE_CHARS = 300
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A memory, and what past sessions are searched for because of it."""

    key: str
    text: str
    since: datetime
    """Only what was said after it was written can say more than it does."""


FindTurns: TypeAlias = Callable[[Sequence[PastQuestion]], str]
"""Searches past sessions. Blocks on the disk."""


def choose_questions(source: DreamInputs) -> tuple[PastQuestion, ...]:
    """Memories that name what the project no longer has, then those that were not used for longest."""
    known = [(item, source.uses.get(item.memory.key, MemoryUseFacts())) for item in source.kept]
    doubtful = sorted(known, key=lambda each: (not each[1].is_broken, _last(*each)))
    asked = (_ask(item) for item, _ in doubtful)
    return tuple(question for question in asked if question is not None)[:MAX_QUESTIONS]


def _last(item: DreamMemory, uses: MemoryUseFacts) -> datetime:
    return uses.last_use or _begin(item)


def _begin(item: DreamMemory) -> datetime:
    return datetime.combine(item.written, time(), UTC)


def _ask(item: DreamMemory) -> PastQuestion | None:
    memory = item.memory
    about = f"{memory.name.replace('-', ' ')} {memory.description} {memory.body[:_LINE_CHARS]}"
    # As they are written: the index of sessions knows no stems.
    telling = (word for word in _WORD.findall(about) if not all(map(is_talk, split_words(word))))
    words = list(dict.fromkeys(telling))[:_QUERY_WORDS]
    return PastQuestion(memory.key, " ".join(words), _begin(item)) if words else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSessions:
    """The sessions of this machine that lie in one project."""

    home: Path
    user_home: Path
    root: Path
    environ: Mapping[str, str]
    emit: Emit

    def find_turns(self, questions: Sequence[PastQuestion]) -> str:
        """A line for each turn that was found, below the memory that it may speak of; empty for none."""
        own = find_own_transcripts(self.home)
        others = find_transcripts(list_default_folders(self.environ, self.user_home))
        unreadable = [item.path for item in (*own.unreadable, *others.unreadable)]
        with closing(SessionIndex.open(self.home, emit=self.emit)) as index:
            index.update([*own.files, *others.files], kept=unreadable)
            return "\n".join(line for question in questions for line in self._answer(index, question))

    def _answer(self, index: SessionIndex, question: PastQuestion) -> Iterator[str]:
        query = SessionQuery(
            text=question.text,
            project=os.path.realpath(self.root),
            since=question.since,
            limit=TURNS_EACH,
        )
        with suppress(InputError):  # it holds no word that the index knows
            if hits := index.search(query):
                yield f"{question.key}:"
                yield from (f"- {_describe(hit)}" for hit in hits)


def _describe(hit: SessionHit) -> str:
    said = " ".join(hide_secrets(hit.snippet, hit.context).translate(_UNMARKED).split())
    when = f"{hit.at:%Y-%m-%d}" if hit.at else "no date"
    return f"{when}, turn {hit.turn} of {hit.path}: {said[:_LINE_CHARS]}"


_UNMARKED = dict.fromkeys(map(ord, (MARK_START, MARK_END)))
