"""The `read` tool: the lines of a file, numbered; an image as an image, a notebook as text.

`read_lines` returns any part of a file of any size, within limits. `render_notebook` returns the cells and
what they printed; pictures are named, not shown.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec, call_in_thread
from sevenfold.agent.tools.file_changes import (
    FILE_PATH_SCHEMA,
    allowed_path,
    decode_text_file,
    is_binary,
    resolve_asked_path,
)
from sevenfold.core.errors import FileDamaged, InputError, WireError
from sevenfold.core.json import Json, JsonObject, freeze_object, get_integer, object_schema, read_object
from sevenfold.core.messages import Image
from sevenfold.core.system import map_os_errors
from sevenfold.core.tool_kinds import ReadState, ToolContext
from sevenfold.store.files.disk import SYSTEM_DISK, read_fully
from sevenfold.store.project.user_files import open_user_file, read_file_state

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


MAX_OUTPUT_CHARS = 4_000
"""Of one cell: enough for a table or a traceback."""


def render_notebook(data: bytes, name: str) -> str:
    """The cells in order, each under a line that says what it is."""
    try:
        notebook = read_object(data)
    except WireError as error:
        raise FileDamaged(f"{name} is no notebook that can be read: {error}") from error
    cells = [cell for cell in _items(notebook.get("cells")) if isinstance(cell, JsonObject)]
    return "\n".join(line for number, cell in enumerate(cells, 1) for line in _cell(cell, number))


def _cell(cell: JsonObject, number: int) -> Iterator[str]:
    kind = cell.get("cell_type")
    yield f"--- cell {number}: {kind if isinstance(kind, str) else 'unknown'} ---"
    yield _joined(cell.get("source"))
    outputs = [_output(item) for item in _items(cell.get("outputs")) if isinstance(item, JsonObject)]
    printed = "\n".join(filter(None, outputs))
    if printed:
        yield f"--- output of cell {number} ---"
        cut = f"\n[cut; {len(printed):,} characters in all]" if len(printed) > MAX_OUTPUT_CHARS else ""
        yield printed[:MAX_OUTPUT_CHARS] + cut


def _output(output: JsonObject) -> str:
    if output.get("output_type") == "error":
        return "\n".join(_joined(line) for line in _items(output.get("traceback")))
    shown = output.get("data")
    if not isinstance(shown, JsonObject):
        return _joined(output.get("text"))
    text = _joined(shown.get("text/plain"))
    pictures = [f"[{kind}]" for kind in shown if kind.startswith("image/")]
    return "\n".join(filter(None, [text, *pictures]))


def _items(value: Json) -> tuple[Json, ...]:
    return value if isinstance(value, tuple) else ()


def _joined(value: Json) -> str:
    """Text, which notebooks also keep as a list of lines."""
    if isinstance(value, str):
        return value.removesuffix("\n")
    return "".join(part for part in _items(value) if isinstance(part, str)).removesuffix("\n")


MAX_READ_IMAGE_BYTES = 3_750_000
"""The API takes five million characters of base64 for one image."""

MAX_NOTEBOOK_BYTES = 16 * 1024 * 1024
"""Saved plots make them large; what is shown of it is text."""

_MAX_FILE_BYTES = 1024 * 1024 * 1024
"""A range of a larger file is a job for a command: finding a line means reading up to it."""

DEFAULT_READ_LINES = 2_000

_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}

_SPEC = ToolSpec(
    "read",
    "Read a file. Text comes with line numbers, at most 2,000 lines at a time: go on with offset. Of a line "
    "that is cut, from_char shows the rest. Images are shown, notebooks come as text. Read a file before you "
    "edit it.",
    object_schema(
        {
            "file_path": FILE_PATH_SCHEMA,
            "offset": {"type": "integer", "description": "The line to start from; the first is 1."},
            "limit": {"type": "integer", "description": "How many lines."},
            "from_char": {
                "type": "integer",
                "description": "Show only line `offset`, from this character on; the first is 1.",
            },
        },
        ("file_path",),
    ),
    is_parallel=True,
)


@dataclass(frozen=True, slots=True)
class ReadTool:
    spec: ToolSpec = _SPEC

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        path = resolve_asked_path(given, "file_path", place)
        _window(given)
        return AccessRequest(kind="read", paths=(path,), said=f"read {path}")

    async def run(self, given: JsonObject, place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        asked, window = resolve_asked_path(given, "file_path", place), _window(given)
        return await call_in_thread(lambda: _read(allowed_path(asked, place), window, place))


def _window(given: JsonObject) -> LineWindow:
    return LineWindow(
        get_integer(given, "offset", 1, at_least=1),
        get_integer(given, "limit", DEFAULT_READ_LINES, at_least=1),
        get_integer(given, "from_char", 0, at_least=1) if "from_char" in given else 0,
    )


def _read(real: str, window: LineWindow, place: ToolContext) -> ToolOutput:
    head = _head(real)
    kind = _image_kind(head)
    if kind:
        return _image(real, kind, place)
    if head.startswith(b"%PDF-"):
        raise InputError(f"{real} is a PDF; turn it into text first, with pdftotext say, and read that")
    if is_binary(head):
        raise FileDamaged(f"{real} is no text; look at it with a command such as file, strings or xxd")
    if Path(real).suffix == ".ipynb":
        return _notebook(real, window, place)
    with open_user_file(real) as fd, map_os_errors(f"read {real}"):
        shown = read_lines(fd, window, real, _MAX_FILE_BYTES)
    place.reads.note(real, ReadState(shown.sha256, shown.excerpt.is_whole))
    return ToolOutput(shown.excerpt.text)


def _head(real: str) -> bytes:
    with open_user_file(real) as fd, map_os_errors(f"read {real}"):
        return read_fully(SYSTEM_DISK, fd, 8_192)


def _image_kind(head: bytes) -> str:
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")


def _image(real: str, kind: str, place: ToolContext) -> ToolOutput:
    state = read_file_state(real, max_bytes=MAX_READ_IMAGE_BYTES)
    place.reads.note(real, ReadState(state.sha256, is_whole=True))
    encoded = base64.b64encode(state.data).decode("ascii")
    source = freeze_object({"type": "base64", "media_type": kind, "data": encoded})
    return ToolOutput((Image(source),))


def _notebook(real: str, window: LineWindow, place: ToolContext) -> ToolOutput:
    state = read_file_state(real, max_bytes=MAX_NOTEBOOK_BYTES)
    shown = excerpt_lines(render_notebook(state.data, real), window, real)
    # What was shown is not what stands in the file, so an edit of it has to be of what is read as text.
    place.reads.note(real, ReadState(state.sha256, is_whole=False))
    return ToolOutput(shown.text)
