"""read: a file's lines, numbered; an image as an image, a notebook as text."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.agent.tool_inputs import call_in_thread
from sevenfold.agent.tools.file_lines import LineWindow, excerpt_lines, read_lines
from sevenfold.agent.tools.notebook import render_notebook
from sevenfold.agent.tools.paths import FILE_PATH_SCHEMA, allowed_path, resolve_asked_path
from sevenfold.agent.tools.text_file import is_binary
from sevenfold.core.errors import FileDamaged, InputError
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.json_fields import get_integer, object_schema
from sevenfold.core.messages import Image
from sevenfold.core.os_errors import map_os_errors
from sevenfold.core.tool_context import ReadState, ToolContext
from sevenfold.store.files.disk import SYSTEM_DISK, read_fully
from sevenfold.store.files.user_files import open_user_file, read_file_state

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
