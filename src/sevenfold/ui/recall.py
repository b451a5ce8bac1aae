"""The recall explorer: what a prompt would bring, and why; and a search in the memories.

It asks the search that a session uses, with the same settings. Nothing is recorded as a use.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sevenfold.core.clock import Clock
from sevenfold.core.events import ignore_event
from sevenfold.layers.memory.recall.finder import MemoryFinder, MemoryLibrary
from sevenfold.layers.memory.recall.policy import (
    MIN_CERTAINTY,
    RecallFacts,
    RecallSettings,
    choose_recalled,
    describe_candidate,
)
from sevenfold.session.opening import Workspace
from sevenfold.ui.calls import PageCall, PageRoute, route_get

MAX_FOUND_MEMORIES = 50


class RecallPages:
    """What the page asks of the search. The index stays open, and one question is answered at a time."""

    def __init__(self, workspace: Workspace, clock: Clock) -> None:
        self._workspace, self._clock = workspace, clock
        self._lock = threading.Lock()
        self._finder: MemoryFinder | None = None

    def routes(self) -> Sequence[PageRoute]:
        return (route_get("recall", self.recall), route_get("memories/search", self.search))

    def close(self) -> None:
        with self._lock:
            if self._finder is not None:
                self._finder.close()
                self._finder = None

    def recall(self, call: PageCall) -> object:
        """The memories that come nearest to a prompt, which of them would be recalled, and by what."""
        settings = self._workspace.settings.of(RecallSettings)
        with self._lock:
            finder = self._open()
            found = finder.explain(call.text("q"), call.number("limit", 10, MAX_FOUND_MEMORIES))
            has_meanings = finder.has_meanings
        chosen = choose_recalled(found, RecallFacts(), settings)
        return {
            "is_enabled": settings.enabled,
            "has_meanings": has_meanings,
            "min_certainty": MIN_CERTAINTY,
            "max_files": settings.max_files,
            "found": [
                {**describe_candidate(one, is_recalled=one in chosen), "bytes": one.size_bytes}
                for one in found
            ],
        }

    def search(self, call: PageCall) -> object:
        """Keys of memories that hold the words or the meaning of a query, best first."""
        with self._lock:
            ranked = self._open().rank(call.text("q"), call.number("limit", 30, MAX_FOUND_MEMORIES))
        # By meaning, every memory has a rank.
        return {"keys": [one.key for one in ranked if one.overlap.words or (one.margin or 0.0) > 0]}

    def _open(self) -> MemoryFinder:
        if self._finder is None:
            workspace = self._workspace
            library = MemoryLibrary(workspace.project, workspace.memory, workspace.home, workspace.root)
            finder = MemoryFinder(library, self._clock, ignore_event)
            if workspace.settings.of(RecallSettings).vectors:
                finder.load_encoder()
            self._finder = finder
        while self._finder.embed():
            pass  # somebody waits for an answer by meaning
        return self._finder
