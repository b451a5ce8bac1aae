"""Prints the tour: the steps, what the layers do and why, and the bill.

`ReadingPace` is its speed: reading time, keys that skip, and a line on the terminal while work goes on.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sevenfold.agent.loop.turn import LayerActed, RoundEnded, TurnEvent
from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.tui.render.status_line import StatusLine
from sevenfold.agent.tui.text_renderer import TextRenderer, TextTone
from sevenfold.agent.tui.turn_view import TurnView
from sevenfold.cli.screen import Screen, TableCell, format_share, format_tokens, format_usd
from sevenfold.cli.tour.run import (
    SECOND_DAY_STEPS,
    TOUR_MODEL,
    BaselineRun,
    DreamDemo,
    TourBill,
    TourGuide,
)
from sevenfold.cli.tour.script import TOUR_STEPS, TourStep
from sevenfold.cli.tour.team import TEAM_STEP, StepOutput
from sevenfold.core import events
from sevenfold.core.errors import describe_missing
from sevenfold.core.events import Event
from sevenfold.layers.memory.extraction.settings import EXTRACTION_KIND

WORD_SECONDS = 0.03
"""A reader takes some 0.25 s for a word, and skims most of what a terminal prints."""
QUIET_SECONDS = 0.6
"""Without output, after which a line says that work goes on."""
SKIP_KEYS = b" \r\nsn"
END_KEYS = b"q\x1b"

KeyReader = Callable[[float], bytes]
"""Waits at most so many seconds for a key; empty if none came."""


class ReadingPace:
    """Waits before a text until the one before it has been read. Work that takes that long costs no time."""

    def __init__(self, screen: Screen, *, is_fast: bool, read_key: KeyReader | None = None) -> None:
        self._screen, self._is_fast, self._read_key = screen, is_fast, read_key
        self._ready_at = self._shown_at = time.monotonic()
        self._label, self._share = "", 0.0
        self._is_skipping = self._is_busy = False
        self.is_over = False
        """The reader has asked for the end."""
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    def begin_part(self, label: str, share: float) -> None:
        """A part of the tour begins; a skip ended the one before it."""
        self._label, self._share, self._is_skipping = label, share, self.is_over

    def wait(self) -> None:
        """Until what was shown last has been read, or a key skips that."""
        while not (self._is_fast or self._is_skipping) and (left := self._ready_at - time.monotonic()) > 0:
            if self._read_key is None:
                time.sleep(left)
            elif not (key := self._read_key(left)):
                return
            else:
                self._press(key)

    def note(self, text: str, show: Callable[[str], None]) -> None:
        """Show a text, which is now being read."""
        with self._lock:
            if self._is_busy:
                self._screen.clear_progress()
                self._is_busy = False
            show(text)
            self._shown_at = time.monotonic()
            self._ready_at = self._shown_at + WORD_SECONDS * len(text.split())

    def _press(self, key: bytes) -> None:
        if key in END_KEYS:
            self.is_over = self._is_skipping = True
        elif key in SKIP_KEYS:
            self._is_skipping = True

    @contextmanager
    def showing_work(self) -> Generator[None]:
        """A line on a terminal says which part is being worked on whenever nothing is printed for a while."""
        if self._is_fast and not sys.stderr.isatty():
            yield
            return
        beat = threading.Thread(target=self._beat, daemon=True)
        beat.start()
        try:
            yield
        finally:
            self._stopped.set()
            beat.join()
            if self._is_busy:
                self._screen.clear_progress()

    def _beat(self) -> None:
        while not self._stopped.wait(QUIET_SECONDS / 2):
            with self._lock:
                if time.monotonic() > max(self._ready_at, self._shown_at + QUIET_SECONDS):
                    self._is_busy = True
                    self._screen.show_progress(self._label, self._share)


@contextmanager
def reading_keys() -> Generator[KeyReader | None]:
    """Single keys from the terminal, unechoed; None where there is no terminal to ask."""
    import termios
    import tty

    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (OSError, ValueError, AttributeError, termios.error):
        yield None
        return

    def read_key(seconds: float) -> bytes:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return os.read(descriptor, 1) if ready else b""

    try:
        tty.setcbreak(descriptor)
        yield read_key
    finally:
        with suppress(OSError, termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


MAX_TOUR_COLUMNS = 100

EVENT_REASONS: dict[type[Event], str] = {
    events.ResultSpilled: "Layer 1, tool results: the full result is in a file that the agent can read in "
    "parts. Every later request sends the same preview, byte for byte, so that the cache stays valid.",
    events.NotesUpdated: "Layer 3, session notes: what was asked, done, broken and learned, written "
    "without a model. When the window is full, the notes become the summary.",
    events.ResultsCleared: "Layer 2, microcompaction: the decision is made by price. The removed results are "
    "on disk, and a marker in their place says where.",
    events.HistoryCompacted: "Layer 4, compaction: the conversation continues from the notes and the last "
    "rounds. The transcript on disk keeps everything. The shorter prompt is written to "
    "the cache once, which costs more than a read; each later request then reads fewer tokens.",
    events.ExtractionEnded: "Layer 5, memory: a fork of the conversation reviewed the turn. What the user "
    "taught becomes a file with a history. Text from tools would wait for your approval.",
    events.MemoryRecalled: "Layer 5, recall: found by words in a millisecond, without a model. It is "
    "appended once and never moved, so that the cache stays valid.",
    events.RuleShown: "Layer 5, rules: the memory is shown before the action that it applies to. The model "
    "then repeats the call or changes it, and Sevenfold counts which.",
    events.AgentEnded: "Layer 7, agents: an answer or a message of an agent is delivered with the next "
    "round, or starts a turn.",
}
"""Printed once each, after the first event of its kind."""

SHOWN_ONCE = (events.ResultSpilled, events.NotesUpdated)
"""Printed the first time only: they happen in every turn."""
NEVER_SHOWN = (
    *(events.ExtraRestored, events.RestoreSkipped, events.CompactionStarted, events.ForkEnded),
    *(events.DreamStarted, events.DreamProgressed, events.DreamEnded),
)
TOUR_PARTS = len(TOUR_STEPS) + len(SECOND_DAY_STEPS) + len(("a dream", "the team"))
BILL_REASON = (
    "The bill so far, at list prices. The same day runs a second time with layers 1 to 5 off and prompt "
    "caching on, and that is the second figure."
)
DIFF_TONES: dict[str, TextTone] = {"+": "good", "-": "warning"}
"""Of the lines of a diff, by how they begin."""


class TourView(TourGuide):
    """Prints at the pace of a reader, or at once."""

    def __init__(self, screen: Screen, pace: ReadingPace, baseline: BaselineRun) -> None:
        self._screen, self._pace, self._baseline = screen, pace, baseline
        self.after_first_bill: Callable[[], object] = int
        """Called once: from then on, work for later parts may use the machine."""
        self._parts = 0
        self._last: tuple[TourStep, TourBill] | None = None
        """The last part of the first day that was billed."""
        self._root = ""
        self._view = TurnView(self, StatusLine())
        self._explained: set[type[Event]] = set()
        self._cached_tokens = 0
        """Of the conversation, by its last round."""

    def renderer(self) -> TextRenderer:
        is_colourful = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        columns = min(shutil.get_terminal_size().columns, MAX_TOUR_COLUMNS)
        has_colour = is_colourful and not os.environ.get("NO_COLOR")
        return TextRenderer(columns, has_colour, "unicode" if self._screen.has_unicode else "ascii")

    def put(self, text: str) -> None:
        self._pace.wait()
        self._pace.note(text, self._show)

    def _show(self, text: str) -> None:
        self._screen.show(text)
        self._screen.flush()

    @property
    def is_over(self) -> bool:
        return self._pace.is_over

    def refresh(self) -> None:
        """Nothing is drawn that could change."""

    def begin(self) -> None:
        self._say(
            "Two days of an agent in a scratch repository, offline. The model is a script: the simulator "
            f"serves it and bills it as {TOUR_MODEL}. The agent and its seven layers are real and have their "
            "default settings. No paid model is asked."
        )
        if self._screen.is_interactive:
            self._say("Space skips to the next part. q goes to the bill.", "good")
        self._begin_part()

    def enter(self, repository: Path) -> None:
        self._root = os.path.realpath(repository)
        self._view = TurnView(self, StatusLine(), root=self._root)

    async def open_step(self, step: TourStep) -> None:
        self._parts += 1
        self.put("")
        self._begin_part()
        self._say(f"{self._parts}/{TOUR_PARTS} {step.title}", "strong")
        self._say(step.narration, "faint")

    def _begin_part(self) -> None:
        self._pace.begin_part(f"part {max(1, self._parts)} of {TOUR_PARTS}", self._parts / TOUR_PARTS)

    async def start_turn(self, step: TourStep) -> None:
        lines = len(step.pasted.splitlines())
        self._view.begin(f"{step.prompt}\n({lines} lines are pasted)" if lines else step.prompt)

    async def close_step(self) -> None:
        self._view.end()

    async def show_bill_so_far(self, step: TourStep, bill: TourBill) -> None:
        if step not in TOUR_STEPS:
            return
        there = self._baseline.wait_for_bill(step)
        self._say(f"$ so far: {_usd(bill)} with the layers, {_usd(there)} with them off", "good")
        if self._last is None:
            self._say(BILL_REASON, "accent", indent=2)
            self.after_first_bill()
        self._last = (step, bill)

    async def show_dream(self, night: DreamDemo) -> None:
        for line in night.dreamt.diff.splitlines():
            self._say(line, DIFF_TONES.get(line[:1], "faint"), indent=2)
        for line in night.dreamt.record.lines():
            self._say(line)
        self._say(
            "Layer 6, dreams: this one needed no model. If you switch it on, a nightly dream uses a model, "
            "with the same checks.",
            "accent",
            indent=2,
        )
        self._say(f"$ sevenfold dream undo: {night.restored} memories are restored, byte for byte", "strong")

    async def open_team(self, missing: Sequence[str]) -> bool:
        """Whether the server's part of the tour can be played; why not, where it cannot."""
        await self.open_step(TEAM_STEP)
        if missing:
            self._say(describe_missing("this part", missing, "server", "team"), "warning")
        return not missing

    def show_step(self, done: StepOutput) -> None:
        if not done.step.is_shown:
            return
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
        if isinstance(seen.event, events.MemoryChanged) and seen.event.who != "fork":
            return  # what the dream changed is shown as a whole
        if kind in NEVER_SHOWN or (kind in SHOWN_ONCE and kind in self._explained):
            return
        self._view.watch(seen)
        if kind not in self._explained and kind in EVENT_REASONS:
            self._explained.add(kind)
            self._say(EVENT_REASONS[kind], "accent", indent=2)

    def _show_fork(self, fork: events.ForkEnded) -> None:
        is_extraction = fork.kind == EXTRACTION_KIND
        if is_extraction and events.ForkEnded in self._explained:
            return  # one follows every turn, and reads the same share
        if fork.rounds != 1 or not self._cached_tokens:
            return  # a sum of several requests says nothing of what the first one found
        if is_extraction:
            self._explained.add(events.ForkEnded)
        share = format_share(min(fork.read_tokens, self._cached_tokens), self._cached_tokens)
        text = f"a fork read {share} of the {self._cached_tokens:,} tokens that the conversation had cached"
        text += ", to look for memories; one follows every turn" if is_extraction else ""
        self._say(f"· layer 7: {text}", "faint")

    def show_bill(self, here: TourBill) -> None:
        """The whole first day; as much of it as was played, where the reader went to the end."""
        there = self._baseline.wait_for_bill(self._last[0] if self.is_over and self._last else None)
        self.put("")
        self._say("The bill of the first day, from the simulator", "strong")
        rows = [[name.rjust(8) for name in ("requests", "read", "written", "output", "cost")]]
        for bill in (here, there):
            usage = bill.usage
            tokens = [format_tokens(count) for count in (usage.read, usage.written, usage.output)]
            rows.append([cell.rjust(8) for cell in (f"{bill.requests:,}", *tokens, _usd(bill))])
        names = ("", "with the layers", "the same, layers off")
        self._screen.show_table(
            [TableCell(name), *map(TableCell, cells)] for name, cells in zip(names, rows, strict=True)
        )
        self._say("read: tokens from the prompt cache. written: tokens sent and put into the cache.", "faint")
        if here.cost and there.cost and there.uncached:
            saved = format_share(float(there.cost.total - here.cost.total), float(there.cost.total))
            self._say(
                f"Saved: {saved}. Without a cache it would have cost {format_usd(there.uncached.total)}. "
                "Most of the difference is the log. An agent that truncates outputs pays less too, and loses "
                "what it cut."
            )

    def end(self) -> None:
        self.put("")
        program = _find_program()
        self._say(f"{program} replay   what your own sessions cost, and where the cache broke", "good")
        self._say(f"{program} chat     an agent in your repository", "good")

    def _say(self, text: str, tone: TextTone = "plain", *, indent: int = 0) -> None:
        self.put(self.renderer().line(text, tone, indent=indent))


def _find_program() -> str:
    """The command as the reader can type it: `make try` installs it where no shell looks."""
    called = sys.argv[0]
    is_script = os.path.basename(called) == "sevenfold" and os.access(called, os.X_OK)
    return called if is_script and shutil.which("sevenfold") is None else "sevenfold"


def _usd(bill: TourBill) -> str:
    return format_usd(bill.cost.total if bill.cost else None)
