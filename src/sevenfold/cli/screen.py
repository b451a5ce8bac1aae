"""The only module that prints: colour, JSON, and characters that a terminal cannot show."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TextIO, TypeAlias

from sevenfold.cli.layout import wrap_lines
from sevenfold.core.text.truncation import escape_controls

Tone: TypeAlias = Literal["plain", "strong", "faint", "warning", "error"]

_PROGRESS_CHARS = 30
_CODES: dict[Tone, str] = {"plain": "", "strong": "1", "faint": "2", "warning": "33", "error": "31"}


@dataclass(frozen=True, slots=True)
class TableCell:
    text: str
    tone: Tone = "plain"


class Screen:
    """Standard output and error, looked up at each use: whoever replaces them is respected."""

    def show_table(self, rows: Iterable[Sequence[TableCell]]) -> None:
        """Rows in columns as wide as they need; the last one runs free."""
        table = [list(row) for row in rows]
        widths = [
            max(len(escape_controls(cell.text)) for cell in column) for column in zip(*table, strict=True)
        ]
        for row in table:
            padded = [
                TableCell(escape_controls(cell.text).ljust(width), cell.tone)
                for cell, width in zip(row[:-1], widths, strict=False)
            ]
            self.show("  ".join(self._painted(cell, sys.stdout) for cell in (*padded, row[-1])).rstrip())

    def show_cells(self, cells: Iterable[TableCell]) -> None:
        """One line, cell after cell with nothing between."""
        self.show("".join(self._painted(cell, sys.stdout) for cell in cells).rstrip())

    def show_line(self, text: str, tone: Tone = "plain") -> None:
        self.show(self._painted(TableCell(text, tone), sys.stdout))

    def show_json(self, value: object) -> None:
        """As it is: whoever reads it may be a program."""
        _write(sys.stdout, _as_json(value))

    def show_help(self, text: str) -> None:
        """To standard error: nobody asked for it."""
        _write(sys.stderr, text.rstrip("\n"))

    def note(self, text: str) -> None:
        """To standard error: worth knowing, and no part of the output that a program may be reading."""
        _write(sys.stderr, escape_controls(text))

    def show(self, text: str) -> None:
        if sys.stdout.isatty():
            text = wrap_lines(text, shutil.get_terminal_size().columns)
        _write(sys.stdout, text)

    @property
    def has_unicode(self) -> bool:
        """Whether standard output can show bars and lines; else ASCII has to do."""
        try:
            "█▏┤…".encode(sys.stdout.encoding or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    @property
    def is_watched(self) -> bool:
        """Whether a person reads here who can be asked."""
        return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()

    def show_progress(self, label: str, share: float) -> None:
        """How far something is, on one line of a terminal that is written over; elsewhere nothing."""
        if sys.stderr.isatty():
            told = escape_controls(label)
            # A line that wraps could not be written over.
            room = shutil.get_terminal_size().columns - len(told) - len(" [] 100% ")
            chars = max(1, min(_PROGRESS_CHARS, room))
            full = round(min(1.0, max(0.0, share)) * chars)
            sys.stderr.write(f"\r{told} [{'#' * full:{chars}}] {share:4.0%}\x1b[K")
            sys.stderr.flush()

    def clear_progress(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def fail(self, message: str) -> None:
        """One error, in a form that a script can look for."""
        label = self._painted(TableCell("error:", "error"), sys.stderr)
        _write(sys.stderr, f"{label} {escape_controls(message)}")

    def confess(self, bug: BaseException) -> None:
        """A failure that nobody foresaw: one line, and where it happened only for those who ask."""
        if os.environ.get("SEVENFOLD_DEBUG") == "1":
            import traceback

            _write(sys.stderr, "".join(traceback.format_exception(bug)).rstrip())
        said = " ".join([type(bug).__name__, *str(bug).split()])[:200]
        self.fail(f"unexpected {said}. This is a bug: please report it, with what SEVENFOLD_DEBUG=1 shows")

    def flush(self) -> None:
        sys.stdout.flush()

    def mute(self) -> None:
        """Nobody reads any more; what is still in the buffer must not fail again when Python exits."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _painted(self, cell: TableCell, stream: TextIO) -> str:
        text, code = escape_controls(cell.text), _CODES[cell.tone]
        return f"\x1b[{code}m{text}\x1b[0m" if code and _has_colour(stream) else text


class CapturedScreen(Screen):
    """A screen for a program of ours: lines without colours, and nobody to ask."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def show(self, text: str) -> None:
        self.lines += text.split("\n")

    def show_json(self, value: object) -> None:
        self.show(_as_json(value))

    def note(self, text: str) -> None:
        self.show(escape_controls(text))

    def flush(self) -> None:
        """There is nothing behind it."""

    @property
    def is_watched(self) -> bool:
        return False

    def _painted(self, cell: TableCell, stream: TextIO) -> str:  # noqa: ARG002 - paint has no colour here
        return escape_controls(cell.text)


STDIO_SCREEN = Screen()


def _as_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)
