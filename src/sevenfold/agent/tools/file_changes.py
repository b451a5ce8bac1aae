"""What write and edit share: the file as it is known, put in place whole, and a diff of it."""

from __future__ import annotations

import difflib
import hashlib

from sevenfold.agent.tool import ToolOutput
from sevenfold.agent.tools.paths import display_path
from sevenfold.agent.tools.text_file import TextFile, TextFormat, decode_text_file, encode_text_file
from sevenfold.core.errors import InputError
from sevenfold.core.tool_context import ReadState, ToolContext
from sevenfold.store.files.user_files import FileState, find_file_state, replace_file

_MAX_BYTES = 16 * 1024 * 1024
"""Far beyond what a person edits by hand; larger files are made by programs, and changed by them."""

MAX_DIFF_LINES = 20_000
"""Comparing takes time with the square of it."""


def read_known_state(real: str, place: ToolContext) -> FileState | None:
    """The file as it is, None where there is none; refused unless it is as the agent last saw it."""
    state = find_file_state(real, max_bytes=_MAX_BYTES)
    if state is None:
        return None
    mark = place.reads.find(real)
    if mark is None:
        raise InputError(f"{real} is there already and was not read; read it first, then change it")
    if mark.sha256 != state.sha256:
        raise InputError(f"{real} was changed since it was read; read it again, then change it")
    return state


def write_text_file(
    real: str, text: str, before: FileState | None, said: str, place: ToolContext
) -> ToolOutput:
    """Write the text in the form that the file had, and tell what changed."""
    old = decode_text_file(before.data, real) if before else TextFile("", TextFormat())
    data = encode_text_file(text, old.form, real)
    if len(data) > _MAX_BYTES:
        raise InputError(f"{len(data):,} bytes are over the {_MAX_BYTES:,} that a file may have here")
    replace_file(real, data, expected=before, max_bytes=_MAX_BYTES)
    seen = place.reads.find(real)
    place.reads.note(
        real, ReadState(hashlib.sha256(data).hexdigest(), is_whole=seen is None or seen.is_whole)
    )
    said = " ".join(filter(None, (said, place.on_edit(real))))
    return ToolOutput(said, diff=render_unified_diff(old.text, text, display_path(real, place)))


def render_unified_diff(old: str, new: str, name: str) -> str:
    """A unified diff for a person."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MAX_DIFF_LINES:
        return f"--- {name}\n+++ {name}\n@@ too long to compare: {len(before):,} lines, now {len(after):,} @@"
    return "\n".join(difflib.unified_diff(before, after, name, name, lineterm=""))
