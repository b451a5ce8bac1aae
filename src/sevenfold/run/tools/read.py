"""read: a file's lines, numbered; an image as an image, a notebook as text."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from sevenfold.core.errors import FileDamaged, InputError
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import Image
from sevenfold.run.tool import Need, OnProgress, ToolOutput, ToolSpec
from sevenfold.run.tools.file_lines import Window, read_lines, split_lines
from sevenfold.run.tools.inputs import answered, schema, whole_of
from sevenfold.run.tools.notebook import render_notebook
from sevenfold.run.tools.paths import FILE_PATH, allowed_path, asked_path
from sevenfold.run.tools.text_file import is_binary
from sevenfold.run.workplace import ReadMark, Workplace
from sevenfold.store.disk import SYSTEM_DISK, mapped_errors, read_all
from sevenfold.store.user_files import opened_file, read_state

MAX_IMAGE_BYTES = 3_750_000
"""The API takes five million characters of base64 for one image."""

MAX_NOTEBOOK_BYTES = 16 * 1024 * 1024
"""Saved plots make them large; what is shown of it is text."""

MAX_FILE_BYTES = 1024 * 1024 * 1024
"""A range of a larger file is a job for a command: finding a line means reading up to it."""

DEFAULT_LINES = 2_000

_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}

SPEC = ToolSpec(
    "read",
    "Read a file. Text comes with line numbers, at most 2,000 lines at a time: go on with offset. Of a line "
    "that is cut, from_char shows the rest. Images are shown, notebooks come as text. Read a file before you "
    "edit it.",
    schema(
        {
            "file_path": FILE_PATH,
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
class Read:
    spec: ToolSpec = SPEC

    def need(self, given: JsonObject, place: Workplace) -> Need:
        path = asked_path(given, "file_path", place)
        _window(given)
        return Need("read", (path,), said=f"read {path}")

    async def run(self, given: JsonObject, place: Workplace, _on_progress: OnProgress) -> ToolOutput:
        asked, window = asked_path(given, "file_path", place), _window(given)
        return await answered(lambda: _read(allowed_path(asked, place), window, place))


def _window(given: JsonObject) -> Window:
    return Window(
        whole_of(given, "offset", 1, at_least=1),
        whole_of(given, "limit", DEFAULT_LINES, at_least=1),
        whole_of(given, "from_char", 0, at_least=1) if "from_char" in given else 0,
    )


def _read(real: str, window: Window, place: Workplace) -> ToolOutput:
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
    with opened_file(real) as fd, mapped_errors(f"read {real}"):
        shown = read_lines(fd, window, real, MAX_FILE_BYTES)
    place.reads.note(real, ReadMark(shown.sha256, shown.excerpt.is_whole))
    return ToolOutput(shown.excerpt.text)


def _head(real: str) -> bytes:
    with opened_file(real) as fd, mapped_errors(f"read {real}"):
        return read_all(SYSTEM_DISK, fd, 8_192)


def _image_kind(head: bytes) -> str:
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")


def _image(real: str, kind: str, place: Workplace) -> ToolOutput:
    state = read_state(real, max_bytes=MAX_IMAGE_BYTES)
    place.reads.note(real, ReadMark(state.sha256, is_whole=True))
    encoded = base64.b64encode(state.data).decode("ascii")
    source = freeze_object({"type": "base64", "media_type": kind, "data": encoded})
    return ToolOutput((Image(source),))


def _notebook(real: str, window: Window, place: Workplace) -> ToolOutput:
    state = read_state(real, max_bytes=MAX_NOTEBOOK_BYTES)
    shown = split_lines(render_notebook(state.data, real), window, real)
    # What was shown is not what stands in the file, so an edit of it has to be of what is read as text.
    place.reads.note(real, ReadMark(state.sha256, is_whole=False))
    return ToolOutput(shown.text)
