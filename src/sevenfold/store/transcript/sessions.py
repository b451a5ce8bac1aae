"""The sessions of a project: their names and which there are, forking one, locking one, and its event log."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NewType
from uuid import uuid4

from sevenfold.core.clock import Clock
from sevenfold.core.errors import FileMissing, LockBusy, NotRegular, SessionBusy, SevenfoldError, StoreError
from sevenfold.core.events import Emit, Event, EventsLost, LockFaceFailed, describe_event, ignore_event
from sevenfold.core.json import JsonObject, freeze, freeze_object, read_object, write_json
from sevenfold.store.files.folder import FileStat, Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import ParentRecord, Record, UnknownRecord, new_record_id, write_line
from sevenfold.store.transcript.transcript import Transcript

SessionId = NewType("SessionId", str)

_AGENT = "agent-"

_SUFFIX = ".jsonl"
_LATEST_NS = 253_402_300_799 * 10**9
"""The end of the year 9999: some file systems keep times that Python cannot say."""


@dataclass(frozen=True, slots=True)
class SessionEntry:
    id: SessionId
    size_bytes: int
    modified: datetime
    """By the file system's clock: good for a list, not for a decision."""


def new_session_id() -> SessionId:
    """A name nobody else has."""
    return SessionId(uuid4().hex)


def new_agent_session() -> SessionId:
    """The same for a session that an agent started, and no person."""
    return SessionId(f"{_AGENT}{uuid4().hex}")


def is_agent_session(session: str) -> bool:
    """Whether an agent started it: a person who goes on with their last session does not mean this one."""
    return session.startswith(_AGENT)


def list_sessions(sessions: Folder) -> list[SessionEntry]:
    """Every session with a transcript, the most recently written first."""
    found: list[SessionEntry] = []
    for name in sessions.names():
        entry = _entry(sessions, name) if name.endswith(_SUFFIX) else None
        if entry:
            when = datetime.fromtimestamp(min(max(0, entry.modified_ns), _LATEST_NS) / 1e9, UTC)
            found.append(SessionEntry(SessionId(name.removesuffix(_SUFFIX)), entry.size_bytes, when))
    return sorted(found, key=lambda entry: (entry.modified, entry.id), reverse=True)


def _entry(sessions: Folder, name: str) -> FileStat | None:
    try:
        return sessions.entry(name)
    except NotRegular:
        return None  # a folder or a link of that name is no transcript


def latest_session(sessions: Folder) -> SessionId:
    """The one to continue; `FileMissing` when there is none yet."""
    found = [entry for entry in list_sessions(sessions) if not is_agent_session(entry.id)]
    if not found:
        raise FileMissing(f"no session in {sessions.path} to continue; start a new one")
    return found[0].id


# A fork is a new session with all that happened in another one so far.

MAX_COPIED_BYTES = 1024 * 1024 * 1024
"""Held in memory while it is copied; no transcript that was ever seen comes near."""


def fork_transcript(sessions: Folder, parent: SessionId, at: datetime) -> SessionId:
    """The new session, whole or not at all. The old one is not touched, and may be in use."""
    key = f"{parent}.jsonl"
    if sessions.entry(key) is None:
        raise FileMissing(f"no session {parent!r} in {sessions.path} to branch off; name one that is there")
    lines = sessions.read(key, max_bytes=MAX_COPIED_BYTES)
    child = new_session_id()
    # Somebody may be writing the last line just now; it belongs to what happens afterwards.
    whole = lines[: lines.rfind(b"\n") + 1]
    sessions.create(f"{child}.jsonl", whole + write_line(Record(ParentRecord(parent), at)))
    return child


# Two holders of one session would not see each other's messages. A flock keeps others out and ends with its
# holder; the file that names the holder is for people to read, and exclusion does not rest on it.

_NAME = "session"
HOLDER = "session.json"
MAX_HOLDER_BYTES = 4_096


@contextmanager
def hold_session(folder: Folder, session: str, clock: Clock, emit: Emit = ignore_event) -> Generator[None]:
    """Keep others out of a session for the block; `SessionBusy` at once where somebody is in."""
    with ExitStack() as held:
        try:
            held.enter_context(mutex(folder, _NAME, wait=timedelta()))
        except LockBusy as error:
            raise SessionBusy(
                f"session {session} is open in {_holder(folder)}; go on there, close it there, or start "
                "another session (`sevenfold context` can look at one that is open)"
            ) from error
        told = {"pid": os.getpid(), "host": socket.gethostname(), "since": clock.now().isoformat()}
        try:
            folder.replace(HOLDER, write_json(freeze(told)))
        except StoreError as error:
            emit(LockFaceFailed(f"{_NAME} {session}", str(error)))
        yield


def _holder(folder: Folder) -> str:
    try:
        told = read_object(folder.read(HOLDER, max_bytes=MAX_HOLDER_BYTES))
    except SevenfoldError:
        return "another process"
    pid, host = told.get("pid"), told.get("host")
    if (pid, host) == (os.getpid(), socket.gethostname()):
        return f"this process ({pid}) already"
    return f"process {pid} on {host} (since {told.get('since')})"


# Events for `sevenfold stats` and `sevenfold doctor`. Lines are written when the session writes anyway, and
# without fsync: an event that a power cut takes is a lost report, not lost work.

_EVENTS = "events"
OLDER_EVENTS = "events-older"
_KIND = "event"

MAX_EVENT_LOG_BYTES = 4 * 1024 * 1024
"""Some twenty thousand events. Then the file becomes the older one, and the older one before it goes."""

MAX_WAITING = 10_000
"""Events that wait for the next write. Of a storm beyond it only the number is kept."""

EVENTS_LEFT_OUT = "EventsLeftOut"


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event as it was written down."""

    at: datetime
    name: str
    fields: JsonObject


class EventLog:
    """`events.jsonl` in a session's folder."""

    def __init__(self, session: Folder, clock: Clock, emit: Emit = ignore_event) -> None:
        self._folder, self._clock, self._emit = session, clock, emit
        self._is_lost = False
        self._waiting: list[Record] = []
        self._left_out = 0

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def add(self, event: Event) -> None:
        """Take an event; it is in the file after the next `flush`."""
        if len(self._waiting) >= MAX_WAITING:
            self._left_out += 1
            return
        self._waiting.append(self._record(describe_event(event)))

    def flush(self) -> None:
        """Write what was added. Blocks on the disk; one that fails drops these events and stops nobody."""
        waiting, self._waiting = self._waiting, []
        if self._left_out:
            waiting.append(self._record({"event": EVENTS_LEFT_OUT, "count": self._left_out}))
            self._left_out = 0
        if not waiting:
            return
        try:
            self._make_room()
            with Transcript.open(self._folder, _EVENTS) as lines:
                lines.append_all(waiting, durable=False)
        except SevenfoldError as error:
            if not self._is_lost:
                self._is_lost = True
                self._emit(EventsLost(f"{self._folder.path}/{_EVENTS}.jsonl", str(error)))

    def _make_room(self) -> None:
        found = self._folder.entry(f"{_EVENTS}.jsonl")
        if found is not None and found.size_bytes >= MAX_EVENT_LOG_BYTES:
            with suppress(FileMissing):
                self._folder.remove(f"{OLDER_EVENTS}.jsonl")
            self._folder.move(f"{_EVENTS}.jsonl", f"{OLDER_EVENTS}.jsonl")

    def _record(self, fields: Mapping[str, str | int | None]) -> Record:
        return Record(UnknownRecord(_KIND, freeze_object(fields)), self._clock.now(), new_record_id())


def read_events(session: Folder) -> Iterator[LoggedEvent]:
    """What was told, oldest first. Lines that cannot be read are passed over."""
    for name in (OLDER_EVENTS, _EVENTS):
        if session.entry(f"{name}.jsonl") is None:
            continue
        for line in scan_transcript(session, name):
            body = line.record.body if isinstance(line, StoredRecord) else None
            if isinstance(line, StoredRecord) and isinstance(body, UnknownRecord) and body.kind == _KIND:
                fields = body.wire if isinstance(body.wire, JsonObject) else None
                named = fields.get("event") if fields is not None else None
                if fields is not None and isinstance(named, str):
                    yield LoggedEvent(line.record.at, named, fields)
