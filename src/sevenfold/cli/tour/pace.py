"""The speed of the tour: reading time, keys that skip, and a line on the terminal while work goes on."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from sevenfold.cli.screen import Screen

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
        left = self._ready_at - time.monotonic()
        if self._is_fast or self._is_skipping or left <= 0:
            return
        if self._read_key is None:
            time.sleep(left)
        elif key := self._read_key(left):
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
        else:
            self.wait()

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
        with suppress(OSError):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
