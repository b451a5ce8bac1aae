"""The parts of a conversation, and what a resumed session needs to know besides its messages.

`HistoryMessage` and `RecordedReply` are its parts; a `ConversationListener` follows it.

`EntryPlaces` says where in the whole history its entries stand. That, the last answered request and the
state of the token count are in the detail of a cut that made the view anew, so that a resumed session decides
as the one that wrote it would have.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

from sevenfold.core.errors import WireError
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Message, RecordId, new_record_id
from sevenfold.core.requests import AnsweredRequest, ViewMessage
from sevenfold.core.tokens import Tally, TextOrigin
from sevenfold.core.usage import Usage
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import CutRecord

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
