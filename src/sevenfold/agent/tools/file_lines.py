"""Lines of a file, numbered, within bounds: any part of a file of any shape can be got at."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sevenfold.agent.tools.text_file import decode_text_file
from sevenfold.core.errors import FileDamaged, InputError
from sevenfold.store.files.disk import SYSTEM_DISK, read_fully

MAX_READ_CHARS = 100_000
"""Of one answer: about 25,000 tokens."""

MAX_READ_LINE_CHARS = 2_000
"""Longer lines are minified code or data, of which the beginning tells enough."""

_CHUNK_BYTES = 1024 * 1024
_WHOLE_BYTES = 8 * 1024 * 1024
"""Up to here a file is taken as a whole, which is how encodings other than UTF-8 are told."""


@dataclass(frozen=True, slots=True)
class LineWindow:
    """Which part is wanted."""

    offset: int = 1
    limit: int = 2_000
    from_char: int = 0
    """In line `offset`; 0: whole lines."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    text: str
    is_whole: bool
    """Nothing was left out or cut."""


@dataclass(frozen=True, slots=True)
class ReadExcerpt:
    excerpt: Excerpt
    sha256: str
    """Of the whole file."""


@dataclass(frozen=True, slots=True)
class _Survey:
    sha256: str
    lines: int
    start: int
    """Where the wanted line begins, in bytes."""


def read_lines(fd: int, window: LineWindow, name: str, max_bytes: int) -> ReadExcerpt:
    """The wanted lines of an open file."""
    size = SYSTEM_DISK.stat(fd).st_size
    if size > max_bytes:
        raise FileDamaged(f"{name} has {size:,} bytes; read a part of it with grep or a command")
    if size <= _WHOLE_BYTES:
        data = read_fully(SYSTEM_DISK, fd, _WHOLE_BYTES)
        excerpt = excerpt_lines(decode_text_file(data, name).text, window, name)
        return ReadExcerpt(excerpt, hashlib.sha256(data).hexdigest())
    survey = _survey(fd, window.offset)
    reach = MAX_READ_CHARS * 4 if window.from_char == 0 else (window.from_char + MAX_READ_CHARS) * 4
    part = read_fully(SYSTEM_DISK, fd, reach, survey.start).decode("utf-8", "replace")
    inner = LineWindow(1, window.limit, window.from_char)
    return ReadExcerpt(_windowed(_lines(part), inner, window.offset, survey.lines, name), survey.sha256)


def excerpt_lines(text: str, window: LineWindow, name: str) -> Excerpt:
    """The wanted lines of a text, numbered, and where to go on."""
    lines = _lines(text)
    if not lines and window.offset == 1:
        return Excerpt("[the file is empty]", is_whole=True)
    if window.offset > len(lines):
        raise InputError(f"{name} has {len(lines):,} lines; offset {window.offset:,} is past its end")
    inner = LineWindow(1, window.limit, window.from_char)
    return _windowed(lines[window.offset - 1 :], inner, window.offset, len(lines), name)


def number_lines(lines: list[str], first: int) -> str:
    """Lines with their numbers, as the agent knows them."""
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _windowed(lines: list[str], window: LineWindow, first: int, total: int, name: str) -> Excerpt:
    if window.from_char:
        return Excerpt(
            _part_of_line(lines[0] if lines else "", window.from_char, first, name), is_whole=False
        )
    shown: list[str] = []
    chars = 0
    for number, line in enumerate(lines[: window.limit], first):
        kept = _cut(line, number)
        chars += len(kept) + 8
        if chars > MAX_READ_CHARS and shown:
            break
        shown.append(kept)
    last = first + len(shown) - 1
    is_whole = len(shown) == total and shown == lines
    note = (
        f"\n[lines {first:,} to {last:,} of {total:,}; go on with offset={last + 1}]" if last < total else ""
    )
    return Excerpt(number_lines(shown, first) + note, is_whole)


def _part_of_line(line: str, start: int, number: int, name: str) -> str:
    if start > len(line):
        raise InputError(f"line {number:,} of {name} has {len(line):,} characters; from_char is past its end")
    end = start - 1 + MAX_READ_CHARS
    part = line[start - 1 : end]
    more = f"\n[cut here; go on with offset={number}, from_char={end + 1}]" if end < len(line) else ""
    return part + more


def _cut(line: str, number: int) -> str:
    if len(line) <= MAX_READ_LINE_CHARS:
        return line
    advice = f"go on with offset={number}, from_char={MAX_READ_LINE_CHARS + 1}"
    return f"{line[:MAX_READ_LINE_CHARS]} [cut: the line goes on; {advice}]"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _survey(fd: int, wanted: int) -> _Survey:
    """One pass over a large file: its hash, how many lines it has, and where one of them begins."""
    hashed = hashlib.sha256()
    at = lines = 0
    start = 0 if wanted == 1 else -1
    last = b""
    while chunk := read_fully(SYSTEM_DISK, fd, _CHUNK_BYTES, at):
        hashed.update(chunk)
        found = chunk.count(b"\n")
        if start < 0 and lines + found >= wanted - 1:
            start = at + _nth(chunk, wanted - 1 - lines) + 1
        lines, at, last = lines + found, at + len(chunk), chunk[-1:]
    total = lines + (last != b"\n")
    if start < 0 or start >= at:
        raise InputError(f"it has {total:,} lines; offset {wanted:,} is past its end")
    return _Survey(hashed.hexdigest(), total, start)


def _nth(chunk: bytes, count: int) -> int:
    """Where the `count`th line end of a chunk is."""
    at = -1
    for _ in range(count):
        at = chunk.index(b"\n", at + 1)
    return at
