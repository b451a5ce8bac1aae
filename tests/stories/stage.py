"""A person at a terminal: a real pty, a screen that shows what they would see, keys they would press."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import time
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Protocol, cast

import pyte
from pyte.screens import Char

PATIENCE_SECONDS = 60.0
"""Before something that should happen counts as not happening; a busy machine is no failure."""

ENTER, CTRL_C, CTRL_D, CTRL_O, CTRL_R, ESCAPE = "\r", "\x03", "\x04", "\x0f", "\x12", "\x1b"

_TAKE_TERMINAL = (
    "import fcntl, os, signal, sys, termios\n"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes the pty the terminal that Ctrl-C and a hang-up come from, as a login does. Tests that run in the
background ignore Ctrl-C, and what they start would, too."""


class _Cursor(Protocol):
    hidden: bool


class _Screen(Protocol):
    cursor: _Cursor
    display: list[str]
    buffer: Mapping[int, Mapping[int, _Cell]]
    history: _History

    def resize(self, lines: int, columns: int) -> None: ...

    def wrap(self, columns: int, rows: int) -> None: ...


class _History(Protocol):
    top: Sequence[Mapping[int, _Cell]]


class _Cell(Protocol):
    data: str
    fg: str
    bg: str
    bold: bool


class _Stream(Protocol):
    def feed(self, data: str) -> None: ...


class _Terminal(pyte.HistoryScreen):
    """What tmux and others do beyond what pyte does."""

    def erase_in_display(self, how: int = 0, *args: object, **kwargs: object) -> None:
        """All of a screen that is erased from its first place on goes to the scrollback."""
        if how == 0 and not (self.cursor.x or self.cursor.y):
            shown = [y for y, line in enumerate(self.display) if line.strip()]
            self._scroll_off([dict(self.buffer[y]) for y in range(max(shown, default=-1) + 1)])
        super().erase_in_display(how, *args, **kwargs)

    def wrap(self, columns: int, rows: int) -> None:
        """The same text in fewer columns."""
        kept: list[dict[int, Char]] = []
        at = (0, 0)
        last = max((y for y, line in enumerate(self.display) if line.strip()), default=0)
        for y in range(max(last, self.cursor.y) + 1):
            row, size = self.buffer[y], len(self.display[y].rstrip())
            if y == self.cursor.y:
                at = (self.cursor.x % columns, len(kept) + self.cursor.x // columns)
            parts = range(0, max(size, self.cursor.x if y == self.cursor.y else 0, 1), columns)
            kept += [{x - part: row[x] for x in range(part, min(part + columns, size))} for part in parts]
        over = max(0, len(kept) - rows)
        self.resize(rows, columns)
        self._scroll_off(kept[:over])
        for y in range(rows):
            row = cast("dict[int, Char]", self.buffer[y])
            row.clear()
            row.update(kept[over + y] if over + y < len(kept) else {})
        self.cursor.x, self.cursor.y = at[0], max(0, at[1] - over)

    def _scroll_off(self, rows: list[dict[int, Char]]) -> None:
        cast("list[dict[int, Char]]", self.history.top).extend(rows)


@dataclass(slots=True, kw_only=True)
class Stage:
    """One program in one terminal."""

    process: subprocess.Popen[bytes]
    master: int
    screen: _Screen
    stream: _Stream
    raw: bytearray = field(default_factory=bytearray)
    """All that was written to the terminal."""
    decoder: IncrementalDecoder = field(default_factory=lambda: getincrementaldecoder("utf-8")("replace"))
    """A read may end within a sign: taken for several it would be wider, and lines would break."""
    is_hung_up: bool = False
    """The last one at the other end is gone, and all that it wrote was read."""
    is_closed: bool = False
    """Nobody is at this end any more."""

    @property
    def shown(self) -> str:
        """What stands on the screen now."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def is_drawn(self) -> bool:
        """Whether what is shown is meant to be seen: the cursor hides while it is drawn."""
        return not self.screen.cursor.hidden

    @property
    def everything(self) -> str:
        """What scrolled away, and what stands on the screen."""
        # Cells that were passed over and never written are not in a row, and are blank.
        top = (
            "".join(row[at].data for at in range(max(row, default=-1) + 1)) for row in self.screen.history.top
        )
        top = (line.rstrip() for line in top)
        return "\n".join([*top, self.shown])

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def enter(self, text: str) -> None:
        self.type(text + ENTER)

    def wait_for(self, text: str) -> None:
        """Until it is shown, or was."""
        self.wait_until(lambda: text in self.everything, f"{text!r} is shown")

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"it never came to pass that {what}; the screen:\n{self.everything}")
            if not self.watch(0.2) and self.process.poll() is not None and not holds():
                raise AssertionError(f"the program ended before {what}; the screen:\n{self.everything}")

    def wait_for_end(self) -> int:
        """Until the program is over; its exit code."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it never ended; the screen:\n{self.everything}"
            self.watch(0.1)
        # The kernel hands on what was written when it comes to it, on a busy machine after the writer's end.
        while not self.is_hung_up:
            assert time.monotonic() < deadline, f"something else keeps the terminal open:\n{self.everything}"
            self.watch(0.1)
        return self.process.returncode

    def settle(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something outside the terminal, also after the program's end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"it never came to pass that {what}"
            select.select([], [], [], 0.05)

    def kill(self) -> None:
        """As kill -9 does: nothing is told."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def hang_up(self) -> int:
        """Close the window while the program runs, and wait for its end; its exit code."""
        self.is_closed = True
        os.close(self.master)
        return self.process.wait(PATIENCE_SECONDS)

    def resize(self, columns: int, rows: int = 24) -> None:
        _set_size(self.master, columns, rows)
        self.screen.resize(rows, columns)

    def narrow(self, columns: int, rows: int = 24) -> None:
        """As terminals do that wrap what they show; the cursor stays at its place in the text."""
        self.screen.wrap(columns, rows)
        _set_size(self.master, columns, rows)

    def watch(self, seconds: float) -> bool:
        """Take in what is written next, within so many seconds; False: nothing was."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.master, 65_536)
        except OSError:
            self.is_hung_up = True
            return False
        self.raw += data
        self.stream.feed(self.decoder.decode(data))
        return bool(data)


@contextmanager
def staged(
    command: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    columns: int = 80,
    rows: int = 24,
) -> Generator[Stage]:
    """Run a command in a terminal of its own; whatever is left of it at the end is killed."""
    master, slave = pty.openpty()
    _set_size(master, columns, rows)
    # They would tell of the terminal that the tests run in.
    own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-c", _TAKE_TERMINAL, *command],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=cwd,
        env={**own, "TERM": "xterm-256color", **environ},
        start_new_session=True,
    )
    os.close(slave)
    screen = _Terminal(columns, rows, history=10_000)
    stage = Stage(
        process=process,
        master=master,
        screen=cast("_Screen", screen),
        stream=cast("_Stream", pyte.Stream(screen)),
    )
    try:
        yield stage
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if not stage.is_closed:
            os.close(master)


def _set_size(fd: int, columns: int, rows: int) -> None:
    ioctl(fd, TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
