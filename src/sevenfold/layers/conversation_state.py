"""The parts of a conversation, its transcript, and what a resumed session needs to know besides its messages.

`HistoryMessage` and `RecordedReply` are its parts; a `ConversationListener` follows it.

A `Journal` writes to the transcript: durable before anything depends on it, and never a reason to stop. A
disk that fails costs the ability to resume, not the session: what could not be written is tried again with
the next records, and an event says so.

`EntryPlaces` says where in the whole history its entries stand. That, the last answered request and the
state of the token count are in the detail of a cut that made the view anew, so that a resumed session decides
as the one that wrote it would have.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from threading import Lock
from typing import Protocol

from sevenfold.core.clock import Clock
from sevenfold.core.errors import InputError, StoreError, WireError
from sevenfold.core.events import Emit, TranscriptFailed
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Message
from sevenfold.core.requests import AnsweredRequest, ViewMessage
from sevenfold.core.system import run_blocking
from sevenfold.core.tokens import Tally, TextOrigin
from sevenfold.core.usage import Usage
from sevenfold.store.files import RecordId, new_record_id
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import CutRecord, Record, RecordBody
from sevenfold.store.transcript.transcript import Transcript

DROPPED_KEY, FORGOTTEN_KEY = "dropped", "forgotten"
"""Keys of a cut's detail: records that are no longer part of the history; and that nothing is shown any more
of what was thought before it."""
COVERS_KEY, PLACES_KEY = "covers", "places"
"""Keys of a cut's detail: how many messages the session had after it, and where in the history each of those
stands that a resumed session reads."""
FIRST_KEY, STATE_KEY = "first", "state"
"""Keys of a cut's detail: the first message of the view that it changed; and, where the view was made anew,
what a resumed session cannot work out from the records: see `describe_state`."""


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """One message of the history."""

    message: Message
    """Without breakpoints, which are not part of the history."""
    id: RecordId = field(default_factory=new_record_id)
    origin: TextOrigin = "human"


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """A reply that was recorded and is not in the view yet."""

    entry: HistoryMessage
    usage: Usage | None
    boundaries: int = 0
    """How many compactions there had been when it was recorded."""
    binding: str = ""
    """The binding of the parameters of its request: its thinking is valid only under these."""


class ConversationListener:
    """Follows a conversation as it changes. A subclass overrides what it wants to know."""

    def message_added(self, entry: HistoryMessage) -> None:
        """The history has a new message."""

    def message_shown(self, item: ViewMessage) -> None:
        """The view has a new message at its end."""

    def view_rewritten(self, *, keeps_beginning: bool) -> None:
        """The view is another one."""

    def view_cut(self, first: int) -> None:
        """The view differs from this message on from what was sent."""

    def cut_detail(self) -> Mapping[str, Json]:
        """What a resumed session has to know after the cut that is being announced."""
        return {}

    def request_answered(self, idle: timedelta | None) -> None:
        """`last` is a new request, which started so long after the one before with the same model, system
        prompt and tools; None: it is the first."""


@dataclass(slots=True)
class EntryPlaces:
    """Where in the whole history the entries stand: a resumed session did not read all of it."""

    runs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    """The first entry of each run of neighbours, and its place in the history."""

    def place_of(self, entry: int) -> int:
        first, place = self.runs[bisect_right(self.runs, entry, key=lambda run: run[0]) - 1]
        return place + entry - first

    def entry_at(self, place: int) -> int:
        """The first entry that stands there or later."""
        for (first, start), (end, _) in pairwise((*self.runs, (sys.maxsize, 0))):
            if place < start + end - first:
                return max(first, first + place - start)
        return sys.maxsize

    def go_on_at(self, entry: int, place: int) -> None:
        """Set the place of this entry; later entries follow it."""
        self.runs = [run for run in self.runs if run[0] < entry]
        if not self.runs or self.place_of(entry) != place:
            self.runs.append((entry, place))


def describe_state(last: AnsweredRequest, count: JsonObject) -> JsonObject:
    return JsonObject({"last": write_fields(last), "tally": count})


def restore_state(state: Json, tally: Tally) -> AnsweredRequest | None:
    """The last request; the count goes on from what it was. None: an older version wrote nothing of it."""
    count = state.get("tally") if isinstance(state, JsonObject) else None
    if not isinstance(state, JsonObject) or not isinstance(count, JsonObject):
        return None
    try:
        last = read_fields(AnsweredRequest, state.get("last"))
    except WireError:
        return None
    return last if tally.restore_state(count) else None


def read_dropped(sessions: Folder, session: str) -> set[RecordId]:
    """Messages of a transcript that its caller has dropped since."""
    cuts = scan_transcript(sessions, session, kinds=("cut",))
    found = (line.record.body for line in cuts if isinstance(line, StoredRecord))
    lists = (body.detail.get(DROPPED_KEY) for body in found if isinstance(body, CutRecord))
    names = (name for one in lists if isinstance(one, tuple) for name in one)
    return {RecordId(name) for name in names if isinstance(name, str)}


class Journal(Protocol):
    @property
    def path(self) -> str:
        """Where it is written, for a summary to name; empty where nothing is."""
        ...

    def add(self, body: RecordBody, id: RecordId | None = None) -> RecordId:  # noqa: A002 - the record's own word
        """Take a record; it is on the disk after the next `flush`."""
        ...

    async def flush(self) -> None:
        """Make durable what was added."""
        ...

    def offset(self, id: RecordId) -> int:  # noqa: A002
        """Where a record's line starts; 0 where that is not known."""
        ...

    @property
    def waiting(self) -> int:
        """Records that are not on the disk: none after a flush that did what it should."""
        ...

    async def close(self) -> None: ...


class NoJournal:
    """For a session that lives in memory alone."""

    path = ""
    waiting = 0

    def add(self, body: RecordBody, id: RecordId | None = None) -> RecordId:  # noqa: A002, ARG002
        return id or new_record_id()

    async def flush(self) -> None: ...

    def offset(self, id: RecordId) -> int:  # noqa: A002, ARG002
        return 0

    async def close(self) -> None: ...


class DiskJournal:
    """A transcript, written in the order things happened."""

    def __init__(self, folder: Folder, session: str, clock: Clock, emit: Emit) -> None:
        self._folder, self._session, self._clock, self._emit = folder, session, clock, emit
        self._transcript: Transcript | None = None
        self._waiting: list[Record] = []
        self._offsets: dict[RecordId, int] = {}
        self._writing = Lock()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def path(self) -> str:
        return f"{self._folder.path}/{self._session}.jsonl"

    def add(self, body: RecordBody, id: RecordId | None = None) -> RecordId:  # noqa: A002
        record = Record(body, self._clock.now(), id or new_record_id())
        self._waiting.append(record)
        return record.id

    async def flush(self) -> None:
        if not self._waiting:
            return
        try:
            await run_blocking(self._write)
        except StoreError as error:
            # A record written twice counts once, so a write in doubt is simply tried again.
            self._emit(TranscriptFailed(self.path, len(self._waiting), str(error)))

    def offset(self, id: RecordId) -> int:  # noqa: A002
        return self._offsets.get(id, 0)

    def note_offset(self, id: RecordId, offset: int) -> None:  # noqa: A002
        """A record that was read, not written, by us."""
        self._offsets[id] = offset

    async def close(self) -> None:
        await self.flush()
        if self._transcript is not None:
            self._transcript.close()
            self._transcript = None

    def _write(self) -> None:
        """In a thread, and one at a time: a fork may flush while the session does. What it wrote is crossed
        off here, for whoever waits may be cancelled meanwhile."""
        with self._writing:
            self._write_waiting(tuple(self._waiting))

    def _write_waiting(self, records: Sequence[Record]) -> None:
        if self._transcript is None:
            self._transcript = Transcript.open(self._folder, self._session, emit=self._emit)
        try:
            self._append(self._transcript, records)
        except StoreError:
            # After a failed fsync the handle proves nothing any more; the next try starts with a new one.
            broken, self._transcript = self._transcript, None
            broken.close()
            raise
        del self._waiting[: len(records)]

    def _append(self, transcript: Transcript, records: Sequence[Record]) -> None:
        try:
            places = transcript.append_all(records)
        except InputError:
            # One that no line can hold must not keep all others from being written.
            self._append_each(transcript, records)
            return
        for record, place in zip(records, places, strict=True):
            self._offsets[record.id] = place.offset

    def _append_each(self, transcript: Transcript, records: Sequence[Record]) -> None:
        for record in records:
            try:
                self._offsets[record.id] = transcript.append(record).offset
            except InputError as error:
                self._emit(TranscriptFailed(self.path, 1, f"{error}; it is left out"))
