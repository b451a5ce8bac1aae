"""The only module of the commands that prints: colour, JSON, and characters that a terminal cannot show.

Everything goes through one escape, so that no text can tell a terminal what to do. Text stays as it is only
where it is data and standard output is no terminal.

Also formats numbers, wraps lines for narrow terminals, and reads piped input.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias

from sevenfold.core.errors import InputError
from sevenfold.core.text.safe_text import escape_controls, escape_json, escape_painted

if TYPE_CHECKING:
    # `--version` and `--help` load this module, and need none of these.
    from datetime import datetime, timedelta
    from decimal import Decimal

# Numbers for people: short, aligned, the same everywhere.

_UNITS = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "K"))
_EIGHTHS = " ▏▎▍▌▋▊▉█"
ELLIPSIS = "..."


def format_tokens(tokens: int) -> str:
    """12, 3.4K, 56.7K, 890K, 1.2M: three digits at most."""
    for unit, letter in _UNITS:
        if abs(tokens) >= unit:
            value = tokens / unit
            return f"{value:.1f}{letter}" if abs(value) < 99.95 else f"{value:.0f}{letter}"
    return str(tokens)


def format_usd(amount: Decimal | None) -> str:
    """Cents from a dollar on; below, as many places as show something; no cents of tens of thousands."""
    if amount is None:
        return "unpriced"
    if abs(amount) >= 10_000:
        return f"${amount:,.0f}"
    if amount == 0 or abs(amount) >= 1:
        return f"${amount:,.2f}"
    return f"${amount:.3f}" if 10 * abs(amount) >= 1 else f"${amount:.4f}"


def format_share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def format_duration(span: timedelta | None) -> str:
    """The largest unit that fits, to one place: 12 s, 4.5 min, 3.0 h, 2.1 d."""
    if span is None:
        return "?"
    seconds = span.total_seconds()
    for unit, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if abs(seconds) >= unit:
            return f"{seconds / unit:.1f} {word}"
    return f"{seconds:.0f} s"


def format_time(at: datetime | None) -> str:
    """Local to whoever reads it."""
    return f"{at.astimezone():%Y-%m-%d %H:%M}" if at else "no time"


def format_count(number: int, thing: str) -> str:
    """1 call, 2 calls, 2 memories, 2 matches."""
    if number == 1:
        return f"1 {thing}"
    if thing.endswith("y") and thing[-2:-1] not in "aeiou":
        return f"{number:,} {thing[:-1]}ies"
    return f"{number:,} {thing}{'es' if thing.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def shorten_text(text: str, width: int, *, is_path: bool = False) -> str:
    """At most so many characters; of a path its end is kept, for there is the file."""
    if len(text) <= width:
        return text
    room = width - len(ELLIPSIS)
    return ELLIPSIS + text[-room:] if is_path else text[:room] + ELLIPSIS


def render_bar(share: float, width: int, *, has_unicode: bool) -> str:
    """A bar that is full at 1; something is never nothing."""
    share = min(1.0, max(0.0, share))
    if not has_unicode:
        return "#" * max(round(share * width), 1 if share > 0 else 0)
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    return _EIGHTHS[8] * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


# Lines laid out for 80 columns, on a terminal that has fewer.
DEFAULT_COLUMNS = 80
"""What everything is laid out for; a wider terminal shows it as it is."""
MIN_COLUMNS = 20

_PAINT = re.compile(r"\x1b\[[\d;]*m")
_BAR = re.compile(r"[█▉▊▋▌▍▎▏░#]{12,}")


def wrap_lines(text: str, columns: int) -> str:
    """The same lines, broken between words and set in; bars are drawn shorter. Paint stays on what fits."""
    if columns >= DEFAULT_COLUMNS:
        return text
    room = max(columns, MIN_COLUMNS)
    return "\n".join(part for line in text.split("\n") for part in _fitting(line, room))


def _fitting(line: str, columns: int) -> Iterator[str]:
    plain = _PAINT.sub("", line)
    if len(plain) <= columns:
        yield line
        return
    share = columns / DEFAULT_COLUMNS
    shorter = _BAR.sub(lambda bar: _sampled(bar.group(), share), plain)
    words = shorter.lstrip(" ")
    # What stands far to the right points at something above it, which is not there any more.
    indent = " " * min(len(shorter) - len(words), columns // 8)
    from textwrap import wrap

    yield from wrap(words, columns, initial_indent=indent, subsequent_indent=f"{indent}  ") or [""]


def _sampled(bar: str, share: float) -> str:
    count = max(1, int(len(bar) * share))
    return "".join(bar[at * len(bar) // count] for at in range(count))


TAB_COLUMNS = 8

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
        widths = [max(len(_on_one_line(cell.text)) for cell in column) for column in zip(*table, strict=True)]
        for row in table:
            padded = [
                TableCell(_on_one_line(cell.text).ljust(width), cell.tone)
                for cell, width in zip(row[:-1], widths, strict=False)
            ]
            self.show("  ".join(self._painted(cell, sys.stdout) for cell in (*padded, row[-1])).rstrip())

    def show_cells(self, cells: Iterable[TableCell]) -> None:
        """One line, cell after cell with nothing between."""
        self.show("".join(self._painted(cell, sys.stdout) for cell in cells).rstrip())

    def show_line(self, text: str, tone: Tone = "plain") -> None:
        self.show(self._painted(TableCell(text, tone), sys.stdout))

    def show_text(self, text: str) -> None:
        """Somebody else's text, such as an answer: as it is for a program, escaped for a person."""
        if sys.stdout.isatty():
            self.show(escape_controls(text.expandtabs(TAB_COLUMNS)))
        else:
            _write(sys.stdout, text)

    def show_json(self, value: object) -> None:
        """On lines of its own: whoever reads it may be a program."""
        _write(sys.stdout, _as_json(value))

    def show_help(self, text: str) -> None:
        """To standard error: nobody asked for it."""
        _write(sys.stderr, escape_controls(text.rstrip("\n")))

    def note(self, text: str) -> None:
        """To standard error: worth knowing, and no part of the output that a program may be reading."""
        _write(sys.stderr, _fitted(escape_controls(text), sys.stderr))

    def show(self, text: str) -> None:
        """Text that was escaped and then coloured; of what a terminal obeys, only colours are let through."""
        _write(sys.stdout, _fitted(escape_painted(text), sys.stdout))

    @property
    def columns(self) -> int:
        """How wide a drawing may be that must not be wrapped."""
        if not sys.stdout.isatty():
            return DEFAULT_COLUMNS
        return min(DEFAULT_COLUMNS, max(MIN_COLUMNS, count_columns()))

    @property
    def has_unicode(self) -> bool:
        """Whether standard output can show bars and lines; else ASCII has to do."""
        try:
            "█▏┤…".encode(sys.stdout.encoding or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    @property
    def is_interactive(self) -> bool:
        """Whether a person reads here who can be asked."""
        return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()

    def show_progress(self, label: str, share: float) -> None:
        """How far something is, on one line of a terminal that is written over; elsewhere nothing."""
        if sys.stderr.isatty():
            name = _on_one_line(label)
            # A line that wraps could not be written over.
            room = count_columns() - len(name) - len(" [] 100% ")
            chars = max(1, min(_PROGRESS_CHARS, room))
            full = round(min(1.0, max(0.0, share)) * chars)
            sys.stderr.write(f"\r{name} [{'#' * full:{chars}}] {share:4.0%}\x1b[K")
            sys.stderr.flush()

    def clear_progress(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def fail(self, message: str) -> None:
        """One error, in a form that a script can look for."""
        label = self._painted(TableCell("error:", "error"), sys.stderr)
        _write(sys.stderr, _fitted(f"{label} {escape_controls(message)}", sys.stderr))

    def report_bug(self, bug: BaseException) -> None:
        """A failure that nobody foresaw: one line, and where it happened only for those who ask."""
        if os.environ.get("SEVENFOLD_DEBUG") == "1":
            import traceback

            self.note("".join(traceback.format_exception(bug)).rstrip())
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
        self.lines += escape_painted(text).split("\n")

    def show_text(self, text: str) -> None:
        self.show(escape_controls(text.expandtabs(TAB_COLUMNS)))

    def show_json(self, value: object) -> None:
        self.show(_as_json(value))

    def note(self, text: str) -> None:
        self.show(escape_controls(text))

    def flush(self) -> None:
        """There is nothing behind it."""

    @property
    def is_interactive(self) -> bool:
        return False

    def _painted(self, cell: TableCell, stream: TextIO) -> str:  # noqa: ARG002 - paint has no colour here
        return escape_controls(cell.text)


STDIO_SCREEN = Screen()


def count_columns() -> int:
    """Of the terminal, as `shutil` counts them: that module takes longer to load than a page to print."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        found = os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else -1).columns
    except (ValueError, OSError):  # closed, or no terminal
        found = 0
    return found or DEFAULT_COLUMNS


def _fitted(text: str, stream: TextIO) -> str:
    """Broken between words where a person reads it in a narrow terminal."""
    return wrap_lines(text, count_columns()) if stream.isatty() else text


def _on_one_line(text: str) -> str:
    """A cell that others follow: a line break in it would pass for another row."""
    return escape_controls(text).replace("\n", "\\n")


def _as_json(value: object) -> str:
    return escape_json(json.dumps(value, indent=2, ensure_ascii=False))


def _has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


# Standard input may be a pipe that nobody writes to and nobody closes.

FIRST_BYTE_SECONDS = 3.0
"""For the first byte. Cron, CI and programs that start programs leave the pipe open and say nothing."""

MAX_PIPED_BYTES = 10_000_000
"""More than any window holds."""

PIPE_CHUNK_BYTES = 65_536


def ask_secret(prompt: str) -> str:
    """What is typed, which is not shown."""
    from getpass import getpass

    return getpass(escape_controls(prompt))


def read_piped_input(
    descriptor: int, note: Callable[[str], None], *, is_needed: bool, wait_seconds: float = FIRST_BYTE_SECONDS
) -> str:
    """All of it to its end; nothing from a terminal. A silent pipe is reported, and waited for only
    where it `is_needed`."""
    if os.isatty(descriptor):
        return ""
    if not _has_begun(descriptor, wait_seconds):
        seconds = f"{wait_seconds:g} s"
        if not is_needed:
            note(
                f"nothing was piped in within {seconds}: going on without it; < /dev/null skips the wait, "
                "and what a slow command prints can be piped in from a file"
            )
            return ""
        note(f"nothing was piped in within {seconds}, and there is no PROMPT: waiting for it")
    return _read_all(descriptor).decode("utf-8", "replace").strip()


def _has_begun(descriptor: int, wait_seconds: float) -> bool:
    """Whether something can be read, or the end was reached."""
    import select

    ready, _, _ = select.select([descriptor], [], [], wait_seconds)
    return bool(ready)


def _read_all(descriptor: int) -> bytes:
    found = bytearray()
    while part := os.read(descriptor, PIPE_CHUNK_BYTES):
        found += part
        if len(found) > MAX_PIPED_BYTES:
            raise InputError(
                f"more than {MAX_PIPED_BYTES:,} bytes were piped in, which is the most; "
                "name the file in the PROMPT instead, so that the parts that matter are read"
            )
    return bytes(found)
