"""A session's events on disk, for `sevenfold stats` and `sevenfold doctor`: told once, and there tomorrow.

Telling costs an append to a list. Lines are written when the session writes anyway, and without an fsync: an
event that a power cut takes is a report lost, and no work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from sevenfold.core.clock import Clock
from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.events import Emit, Event, EventsLost, describe_event, ignore_event
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import Record, UnknownRecord, new_record_id
from sevenfold.store.transcript.transcript import Transcript

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
