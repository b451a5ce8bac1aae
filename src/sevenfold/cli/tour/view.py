"""Prints the tour: the scenes, what the layers do and why, and the bill."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sevenfold.agent.loop.turn import LayerActed, RoundEnded, TurnEvent
from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.tui.text_renderer import TextRenderer, TextTone
from sevenfold.agent.tui.turn_view import StatusLine, TurnView
from sevenfold.cli.screen import Screen, TableCell, format_share, format_tokens, format_usd
from sevenfold.cli.tour.run import TOUR_MODEL, DreamDemo, TourBill, TourGuide
from sevenfold.cli.tour.script import TourScene
from sevenfold.cli.tour.team import TEAM_EXTRAS, TEAM_SCENE, StepOutput
from sevenfold.core import events
from sevenfold.core.events import Event

WORD_SECONDS = 0.035
"""A reader takes some 0.25 s for a word, and skims most of what a terminal prints."""
MAX_TOUR_COLUMNS = 100

EVENT_REASONS: dict[type[Event], str] = {
    events.ResultSpilled: "Layer 1, tool results: all of it is in a file that the agent can read in parts. "
    "The preview is the same, byte for byte, in every later request, so that the cache stays warm.",
    events.NotesUpdated: "Layer 3, session notes: what was asked, done, broken and learned, written down "
    "without a model. When the window fills, they become the summary.",
    events.ResultsCleared: "Layer 2, microcompaction: decided by price. What left the prompt is on disk, and "
    "the marker in its place says where.",
    events.HistoryCompacted: "Layer 4, compaction: the conversation goes on from the notes and the last "
    "rounds. The transcript on disk keeps every word.",
    events.FileRestored: "Files that were read last are read again from disk, as they are now.",
    events.ExtractionEnded: "Layer 5, memory: a fork of the conversation looked through the turn. What the "
    "user taught becomes a file, with a history; the words of tools and strangers would wait for a person.",
    events.MemoryRecalled: "Layer 5, recall: found by words, in a millisecond, with no model. It is appended "
    "once and never moved, so that the cache stays warm.",
    events.RuleShown: "Layer 5, rules: a memory that is stored and not applied when it matters is of no use. "
    "The model calls again, as it was or changed, and what it did is counted.",
    events.AgentEnded: "Layer 7, agents: what they answer or write is heard when the next round begins, or "
    "begins a turn of its own.",
}
"""Told once each, after the first event of its kind."""

SHOWN_ONCE = (events.ResultSpilled, events.NotesUpdated)
"""Told the first time only: what is cleared is spilled too, and notes are kept all the time."""
NEVER_SHOWN = (
    *(events.ExtraRestored, events.RestoreSkipped, events.CompactionStarted, events.ForkEnded),
    *(events.MemoryChanged, events.DreamStarted, events.DreamProgressed, events.DreamEnded),
)
DIFF_TONES: dict[str, TextTone] = {"+": "good", "-": "warning"}
"""Of the lines of a diff, by how they begin."""


class TourView(TourGuide):
    """Prints at the pace of a reader, or at once."""

    def __init__(self, screen: Screen, *, is_fast: bool) -> None:
        self._screen, self._is_fast = screen, is_fast
        self._root = ""
        self._view = TurnView(self, StatusLine())
        self._explained: set[type[Event]] = set()
        self._cached_tokens = 0
        """Of the conversation, by its last round."""

    def brush(self) -> TextRenderer:
        is_colourful = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        columns = min(shutil.get_terminal_size().columns, MAX_TOUR_COLUMNS)
        return TextRenderer(
            columns, is_colourful and not os.environ.get("NO_COLOR"), self._screen.has_unicode
        )

    def put(self, text: str) -> None:
        self._screen.show(text)
        self._screen.flush()
        if not self._is_fast:
            # A script answers at once; a person wants to read. Nobody else waits meanwhile.
            time.sleep(WORD_SECONDS * len(text.split()))

    def refresh(self) -> None:
        """Nothing is drawn that could change."""

    def begin(self) -> None:
        self._say("Sevenfold in two minutes", "strong")
        self._say(
            "Two days of a real agent, offline, in a scratch repository. Its model is a script, served "
            f"and billed as {TOUR_MODEL} by the simulator. Everything around it is the real thing, "
            f"with default "
            "settings."
        )

    def enter(self, repository: Path) -> None:
        self._root = os.path.realpath(repository)
        self._view = TurnView(self, StatusLine(), root=self._root)

    async def open_scene(self, scene: TourScene) -> None:
        self.put("")
        self._say(scene.title, "strong")
        self._say(scene.narration, "faint")

    async def start_turn(self, scene: TourScene) -> None:
        lines = len(scene.pasted.splitlines())
        self._view.begin(f"{scene.prompt}\n({lines} lines are pasted)" if lines else scene.prompt)

    async def close_scene(self) -> None:
        self._view.end()

    async def show_dream(self, night: DreamDemo) -> None:
        for line in night.dreamt.diff.splitlines():
            self._say(line, DIFF_TONES.get(line[:1], "faint"), indent=2)
        for line in night.dreamt.record.lines():
            self._say(line)
        self._say(
            "Layer 6, dreams: this one needed no model. Another, at night, works as a fork under the same "
            "checks, and only if you switch it on.",
            "accent",
            indent=2,
        )
        self._say(
            f"$ sevenfold dream undo: {night.restored} memories are what they were, byte for byte", "strong"
        )

    async def open_team(self, missing: Sequence[str]) -> bool:
        """Whether the server's part of the tour can be played; why not, where it cannot."""
        await self.open_scene(TEAM_SCENE)
        if missing:
            self._say(f"It needs {', '.join(missing)}: pip install '{TEAM_EXTRAS}' and come back.", "warning")
        return not missing

    def show_step(self, done: StepOutput) -> None:
        if done.step.narration:
            self.put("")
            self._say(done.step.narration, "accent")
        self._say(done.step.shown, "strong")
        for line in done.output.strip().splitlines():
            self._say(line, DIFF_TONES.get(line[:1], "plain"), indent=2)

    async def ask(self, question: PermissionRequest) -> PermissionResponse:
        asked = question.need.said.replace(f"{self._root}/", "")
        self._say(f"? {asked}: {question.reason}. The tour says yes", "warning")
        return PermissionResponse(True)

    def watch(self, seen: TurnEvent) -> None:
        if isinstance(seen, RoundEnded):
            self._cached_tokens = seen.reply.usage.read + seen.reply.usage.written
        if not isinstance(seen, LayerActed):
            self._view.watch(seen)
            return
        kind = type(seen.event)
        if isinstance(seen.event, events.ForkEnded):
            self._show_fork(seen.event)
        if kind in NEVER_SHOWN or (kind in SHOWN_ONCE and kind in self._explained):
            return
        self._view.watch(seen)
        if kind not in self._explained and kind in EVENT_REASONS:
            self._explained.add(kind)
            self._say(EVENT_REASONS[kind], "accent", indent=2)

    def _show_fork(self, fork: events.ForkEnded) -> None:
        if fork.rounds != 1 or not self._cached_tokens:
            return  # a sum of several requests says nothing of what the first one found
        share = format_share(min(fork.read_tokens, self._cached_tokens), self._cached_tokens)
        told = f"a fork read {share} of the {self._cached_tokens:,} tokens that the conversation had cached"
        self._say(f"· layer 7: {told}", "faint")

    def show_bill(self, here: TourBill, there: TourBill) -> None:
        self.put("")
        self._say("The bill of the first day, as the simulator wrote it", "strong")
        rows = [[name.rjust(8) for name in ("requests", "read", "written", "output", "cost")]]
        for bill in (here, there):
            usage = bill.usage
            tokens = [format_tokens(count) for count in (usage.read, usage.written, usage.output)]
            rows.append([cell.rjust(8) for cell in (f"{bill.requests:,}", *tokens, _usd(bill))])
        names = ("", "with the layers", "the same, layers off")
        self._screen.show_table(
            [TableCell(name), *map(TableCell, cells)] for name, cells in zip(names, rows, strict=True)
        )
        if here.cost and there.cost and there.uncached:
            saved = format_share(float(there.cost.total - here.cost.total), float(there.cost.total))
            self._say(
                f"Saved: {saved}. With no cache at all it would have been "
                f"{format_usd(there.uncached.total)}. "
                "Most of it is the log: an agent that cuts outputs short pays less, and has lost what it cut."
            )

    def end(self) -> None:
        self.put("")
        self._say("sevenfold replay   what your own sessions cost, and where the cache broke", "good")
        self._say("sevenfold chat     an agent in your repository", "good")

    def _say(self, text: str, tone: TextTone = "plain", *, indent: int = 0) -> None:
        self.put(self.brush().line(text, tone, indent=indent))


def _usd(bill: TourBill) -> str:
    return format_usd(bill.cost.total if bill.cost else None)
