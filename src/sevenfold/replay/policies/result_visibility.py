"""What the view of a session that is played shows, and what the recorded answers wanted of it.

Both accounts of a policy ask here, so that a result is read again under both for the same reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sevenfold.core.messages import ToolUseId
from sevenfold.layers.microcompact.clearable_results import FILE_RESULT_KINDS
from sevenfold.replay.policies.recording import RecordedRound, RecordedSegment


class ResultVisibility:
    """One session under one policy. Not for sharing between threads."""

    __slots__ = ("_bare", "_numbers", "_shown", "_stretch", "in_view", "one_pointer_away", "wanted")

    def __init__(self) -> None:
        self.in_view = 0
        """Uses of what a result had shown, with such a result in view at that moment."""
        self.one_pointer_away = 0
        """Uses of what only cleared results show, where what stands in their place names file or spill."""
        self.wanted = 0
        """All uses of what any result of the session had shown."""
        self._stretch: RecordedSegment | None = None
        self._numbers: dict[ToolUseId, int] = {}
        """Which recorded result each of the view shows."""
        self._shown = Counter[int]()
        """How often each recorded result is in view."""
        self._bare: set[int] = set()
        """Cleared results whose marker names nothing."""

    def start(self, stretch: RecordedSegment) -> None:
        """A boundary: nothing of what was in view is."""
        self._stretch = stretch
        self._numbers.clear()
        self._shown.clear()
        self._bare.clear()

    def show(self, use: ToolUseId, number: int) -> None:
        """A recorded result joins the view, as the answer to this call."""
        self._numbers[use] = number
        self._shown[number] += 1

    def show_again(self, use: ToolUseId, before: ToolUseId) -> None:
        """The answer to a call joins the view once more, as that to another one."""
        self.show(use, self._numbers[before])

    def clear(self, uses: Iterable[ToolUseId], *, is_bare: bool = False) -> None:
        """Markers take the place of these."""
        for use in uses:
            number = self._numbers.get(use)
            if number is None:
                continue  # a result that no recorded round shows, which nothing is known to use
            self._shown[number] -= 1
            if is_bare:
                self._bare.add(number)

    def find_needed(self, turn: RecordedRound) -> list[int]:
        """Count what an answer uses. Results to read again before it can be given: the newest that shows a
        line which it quotes and which nothing in view does."""
        needed: dict[int, None] = {}
        for use in turn.uses:
            self.wanted += 1
            if any(self._shown[number] for number in use.sources):
                self.in_view += 1
                continue
            if not use.sources:
                continue
            self.one_pointer_away += any(self._is_named(number) for number in use.sources)
            if use.kind == "span":
                needed[use.sources[-1]] = None
        return list(needed)

    def _is_named(self, number: int) -> bool:
        """Whether what stands in its place, or the call before it, names what to look at."""
        if number not in self._bare or self._stretch is None:
            return True
        return self._stretch.results[number].result.kind in FILE_RESULT_KINDS
