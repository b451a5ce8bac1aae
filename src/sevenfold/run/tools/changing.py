"""What write and edit share: the file as it is known, put in place whole, and a diff of it."""

from __future__ import annotations

import difflib
import hashlib

from sevenfold.core.errors import InputError
from sevenfold.run.tool import ToolOutput
from sevenfold.run.tools.paths import shown_path
from sevenfold.run.tools.text_file import TextFile, TextForm, read_text, write_text
from sevenfold.run.workplace import ReadMark, Workplace
from sevenfold.store.user_files import FileState, find_state, replace_file

MAX_BYTES = 16 * 1024 * 1024
"""Far beyond what a person edits by hand; larger files are made by programs, and changed by them."""

MAX_DIFF_LINES = 20_000
"""Comparing takes time with the square of it."""


def known_state(real: str, place: Workplace) -> FileState | None:
    """The file as it is, None where there is none; refused unless it is as the agent last saw it."""
    state = find_state(real, max_bytes=MAX_BYTES)
    if state is None:
        return None
    mark = place.reads.find(real)
    if mark is None:
        raise InputError(f"{real} is there already and was not read; read it first, then change it")
    if mark.sha256 != state.sha256:
        raise InputError(f"{real} was changed since it was read; read it again, then change it")
    return state


def put_text(real: str, text: str, before: FileState | None, said: str, place: Workplace) -> ToolOutput:
    """Write the text in the form that the file had, and tell what changed."""
    old = read_text(before.data, real) if before else TextFile("", TextForm())
    data = write_text(text, old.form, real)
    if len(data) > MAX_BYTES:
        raise InputError(f"{len(data):,} bytes are over the {MAX_BYTES:,} that a file may have here")
    replace_file(real, data, expected=before, max_bytes=MAX_BYTES)
    seen = place.reads.find(real)
    place.reads.note(real, ReadMark(hashlib.sha256(data).hexdigest(), is_whole=seen is None or seen.is_whole))
    said = " ".join(filter(None, (said, place.on_edit(real))))
    return ToolOutput(said, diff=diff_of(old.text, text, shown_path(real, place)))


def diff_of(old: str, new: str, name: str) -> str:
    """A unified diff for a person."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MAX_DIFF_LINES:
        return f"--- {name}\n+++ {name}\n@@ too long to compare: {len(before):,} lines, now {len(after):,} @@"
    return "\n".join(difflib.unified_diff(before, after, name, name, lineterm=""))
