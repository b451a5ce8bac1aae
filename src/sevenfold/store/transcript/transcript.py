"""A session's transcript: append-only lines, in the order they happened. File order is the truth.

Appending: under the file's own lock, close off a torn tail if somebody died in mid-line, write the whole
line, fsync, and only then acknowledge. Nothing written is ever changed, so a reader needs no lock.

Also the sessions of a project: their names and which there are, forking one, locking one, and its event log.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NewType, Self

from sevenfold.core import events
from sevenfold.core.clock import Clock
from sevenfold.core.errors import (
    FileMissing,
    LockBusy,
    NotRegular,
    SessionBusy,
    SevenfoldError,
    StoreError,
    WriterBroken,
)
from sevenfold.core.events import Emit, Event, describe_event, ignore_event
from sevenfold.core.json import JsonObject, freeze, freeze_object, read_object, write_json
from sevenfold.core.system import map_os_errors, run_blocking
from sevenfold.store.files import format_line, new_record_id
from sevenfold.store.files.disk import close_in_children, drop_flock, read_fully, take_flock, write_all
from sevenfold.store.files.folder import FileStat, Folder
from sevenfold.store.files.locks import mutex

if TYPE_CHECKING:
    from sevenfold.store.transcript.records import Record


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """Where a record stands in its transcript."""

    offset: int
    length_bytes: int


class Transcript:
    """The writing end. Any number may be open on one file, in threads and processes; lines never mix."""

    def __init__(self, folder: Folder, key: str, fd: int, emit: Emit) -> None:
        self._folder = folder
        self._disk = folder.disk
        self._key = key
        self._fd = fd
        self._emit = emit
        self._thread_lock = threading.Lock()
        self._clean_end = -1
        self._broken: str | None = None
        self._pid = os.getpid()
        self._exits = ExitStack()
        self._exits.enter_context(close_in_children(fd))

    @classmethod
    def open(cls, folder: Folder, session: str, *, emit: Emit = ignore_event) -> Self:
        """The transcript `<session>.jsonl`, made if it is not there."""
        key = f"{session}.jsonl"
        # Also where it is there: its maker may have died before its name was durable, and ours must be.
        return cls(folder, key, folder.open_file(key, os.O_RDWR | os.O_APPEND | os.O_CREAT), emit)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._pid != os.getpid():
            self._fd = -1  # closed when this process was forked; the number may be another file's by now
            return
        with self._thread_lock:
            if self._fd >= 0:
                self._exits.close()
                fd, self._fd = self._fd, -1
                with map_os_errors(f"close {self._folder.path}/{self._key}"):
                    self._disk.close(fd)

    def append(self, record: Record, *, durable: bool = True) -> RecordPosition:
        """Add one record; on return it is on the disk, or with `durable=False` in the kernel's hands."""
        return self.append_all((record,), durable=durable)[0]

    def append_all(self, records: Sequence[Record], *, durable: bool = True) -> list[RecordPosition]:
        """Add records in one go, with one fsync for all."""
        # Not at the top: the history of memories has lines of its own, and no messages.
        from sevenfold.store.transcript.records import write_line

        return self.append_lines([write_line(record) for record in records], durable=durable)

    def append_lines(self, lines: Sequence[bytes], *, durable: bool = True) -> list[RecordPosition]:
        """The same for lines with their checksums."""
        with self._in_turn("append to"):
            take_flock(self._disk, self._fd, self._folder.timeouts.mutex, f"{self._folder.path}/{self._key}")
            try:
                end = self._end()
                start = self._seal_tail(end)
                self._write(b"".join(lines), durable=durable)
            finally:
                drop_flock(self._disk, self._fd)
        if start > end:
            self._emit(events.TailSealed(f"{self._folder.path}/{self._key}", end))
        places: list[RecordPosition] = []
        for line in lines:
            places.append(RecordPosition(start, len(line)))
            start += len(line)
        return places

    def sync(self) -> None:
        """Make durable what was appended without."""
        with self._in_turn("sync"):
            self._fsync()

    @contextmanager
    def _in_turn(self, doing: str) -> Generator[None]:
        """One thread at a time, on a handle that can be used."""
        if self._pid != os.getpid():
            # Before the lock: a thread of the parent's may have held it at the fork, and does not exist here.
            raise StoreError(f"transcript {self._key} was opened by the parent process; open it here as well")
        with self._thread_lock, map_os_errors(f"{doing} {self._folder.path}/{self._key}"):
            self._refuse_if_unusable()
            yield

    def _write(self, data: bytes, *, durable: bool) -> None:
        self._clean_end = -1
        write_all(self._disk, self._fd, data)
        if durable:
            self._fsync()
        # It only saves the next append a look: what was written is there, whatever comes of this.
        with suppress(OSError):
            self._clean_end = self._disk.stat(self._fd).st_size

    def _fsync(self) -> None:
        try:
            self._disk.fsync(self._fd)
        except OSError as error:
            # The kernel may have dropped the pages and would report success next time: never ask twice.
            self._broken = str(error)
            raise

    def _end(self) -> int:
        found = self._disk.stat(self._fd)
        if found.st_nlink == 0:
            raise FileMissing(
                f"transcript {self._key} was removed while it was open, and what is added now would be lost; "
                "open it again to start over"
            )
        return found.st_size

    def _seal_tail(self, end: int) -> int:
        """Where the next line starts. A fragment before it is closed off with a newline of its own."""
        if end in (0, self._clean_end) or self._last_byte(end) == b"\n":
            return end
        write_all(self._disk, self._fd, b"\n")
        return end + 1

    def _last_byte(self, end: int) -> bytes:
        return read_fully(self._disk, self._fd, 1, end - 1)

    def _refuse_if_unusable(self) -> None:
        if self._fd < 0:
            raise StoreError(f"transcript {self._key} is closed; open it again to write")
        if self._broken:
            raise WriterBroken(
                f"an fsync of {self._key} failed ({self._broken}), so later ones prove nothing; open it again"
            )


# The sessions of a project.

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
    return SessionId(new_record_id())


def new_agent_session() -> SessionId:
    """The same for a session that an agent started, and no person."""
    return SessionId(f"{_AGENT}{new_record_id()}")


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
        return sessions.stat(name)
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
    # Not at the top, as above.
    from sevenfold.store.transcript.records import ParentRecord, Record, write_line

    key = f"{parent}.jsonl"
    if sessions.stat(key) is None:
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
    with ExitStack() as exits:
        try:
            exits.enter_context(mutex(folder, _NAME, wait=timedelta()))
        except LockBusy as error:
            raise SessionBusy(
                f"session {session} is open in {_holder(folder)}; go on there, close it there, or start "
                "another session (`sevenfold context` can look at one that is open)"
            ) from error
        holder = {"pid": os.getpid(), "host": os.uname().nodename, "since": clock.now().isoformat()}
        try:
            folder.replace(HOLDER, write_json(freeze(holder)))
        except StoreError as error:
            emit(events.LockFaceFailed(f"{_NAME} {session}", str(error)))
        yield


def _holder(folder: Folder) -> str:
    try:
        holder = read_object(folder.read(HOLDER, max_bytes=MAX_HOLDER_BYTES))
    except SevenfoldError:
        return "another process"
    pid, host = holder.get("pid"), holder.get("host")
    if (pid, host) == (os.getpid(), os.uname().nodename):
        return f"this process ({pid}) already"
    return f"process {pid} on {host} (since {holder.get('since')})"


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
        self._waiting: list[LoggedEvent] = []
        self._left_out = 0

    def add(self, event: Event) -> None:
        """Take an event; it is in the file after the next `flush`."""
        if len(self._waiting) >= MAX_WAITING:
            self._left_out += 1
            return
        self._waiting.append(self._logged(describe_event(event)))

    async def write(self) -> None:
        """Write what was added, in a thread."""
        if self._waiting:
            await run_blocking(self.flush)

    def flush(self) -> None:
        """Write what was added. Blocks on the disk; one that fails drops these events and stops nobody."""
        waiting, self._waiting = self._waiting, []
        if self._left_out:
            waiting.append(self._logged({"event": EVENTS_LEFT_OUT, "count": self._left_out}))
            self._left_out = 0
        if not waiting:
            return
        try:
            self._make_room()
            with Transcript.open(self._folder, _EVENTS) as lines:
                written = [format_line(_KIND, new_record_id(), each.at, each.fields) for each in waiting]
                lines.append_lines(written, durable=False)
        except SevenfoldError as error:
            if not self._is_lost:
                self._is_lost = True
                self._emit(events.EventsLost(f"{self._folder.path}/{_EVENTS}.jsonl", str(error)))

    def _make_room(self) -> None:
        found = self._folder.stat(f"{_EVENTS}.jsonl")
        if found is not None and found.size_bytes >= MAX_EVENT_LOG_BYTES:
            with suppress(FileMissing):
                self._folder.remove(f"{OLDER_EVENTS}.jsonl")
            self._folder.move(f"{_EVENTS}.jsonl", f"{OLDER_EVENTS}.jsonl")

    def _logged(self, fields: Mapping[str, str | int | None]) -> LoggedEvent:
        return LoggedEvent(self._clock.now(), str(fields["event"]), freeze_object(fields))


def read_events(session: Folder) -> Iterator[LoggedEvent]:
    """What was logged, oldest first. Lines that cannot be read are passed over."""
    # Not at the top, as above.
    from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
    from sevenfold.store.transcript.records import UnknownRecord

    for name in (OLDER_EVENTS, _EVENTS):
        if session.stat(f"{name}.jsonl") is None:
            continue
        for line in scan_transcript(session, name):
            body = line.record.body if isinstance(line, StoredRecord) else None
            if isinstance(line, StoredRecord) and isinstance(body, UnknownRecord) and body.kind == _KIND:
                fields = body.wire if isinstance(body.wire, JsonObject) else None
                named = fields.get("event") if fields is not None else None
                if fields is not None and isinstance(named, str):
                    yield LoggedEvent(line.record.at, named, fields)
