"""What a resumed session has to know of a conversation beside its messages.

`EntryPlaces` says where in the whole history its entries stand. That, the last answered request and the
state of the token count are in the detail of a cut that made the view anew, so that a resumed session decides
as the one that wrote it would have.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise

from sevenfold.core.errors import WireError
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.requests import AnsweredRequest
from sevenfold.core.tokens import Tally

DROPPED_KEY, FORGOTTEN_KEY = "dropped", "forgotten"
"""Keys of a cut's detail: records that are no longer part of the history; and that nothing is shown any more
of what was thought before it."""
COVERS_KEY, PLACES_KEY = "covers", "places"
"""Keys of a cut's detail: how many messages the session had after it, and where in the history each of those
stands that a resumed session reads."""
FIRST_KEY, STATE_KEY = "first", "state"
"""Keys of a cut's detail: the first message of the view that it changed; and, where the view was made anew,
what a resumed session cannot work out from the records: see `describe_state`."""


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
        """The entries from this one on stand there and behind it."""
        self.runs = [run for run in self.runs if run[0] < entry]
        if not self.runs or self.place_of(entry) != place:
            self.runs.append((entry, place))


def describe_state(last: AnsweredRequest, count: JsonObject) -> JsonObject:
    return JsonObject({"last": write_fields(last), "tally": count})


def restore_state(state: Json, tally: Tally) -> AnsweredRequest | None:
    """The last request; the count goes on from what it was. None: an older version wrote nothing of it."""
    told = state.get("tally") if isinstance(state, JsonObject) else None
    if not isinstance(state, JsonObject) or not isinstance(told, JsonObject):
        return None
    try:
        last = read_fields(AnsweredRequest, state.get("last"))
    except WireError:
        return None
    return last if tally.restore_state(told) else None
