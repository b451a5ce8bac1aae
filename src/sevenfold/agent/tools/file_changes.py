"""The `write` and `edit` tools, and text files as all file tools handle them: encodings, line ends, paths.

A file is changed only if it is as the agent last read it. It is written atomically, with a diff for the user.
"""

from __future__ import annotations

import codecs
import difflib
import hashlib
import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec, call_in_thread
from sevenfold.core.errors import AccessDenied, FileDamaged, FileMissing, InputError
from sevenfold.core.json import JsonObject, get_flag, get_string, object_schema
from sevenfold.core.text.safe_text import quote_name
from sevenfold.core.tool_kinds import ReadState, ToolContext
from sevenfold.store.files.folder import check_path
from sevenfold.store.project.user_files import FileState, find_file_state, replace_file, resolve_path

# Text files: decoding, encoding with the same encoding and line ends, and paths in tool calls.

_SNIFFED = 8_192
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a text stands in its file."""

    encoding: str = "utf-8"
    bom: bytes = b""
    """The byte order mark at its beginning."""
    is_crlf: bool = False
    """Every line ends with CR LF. Where some do not, line ends are part of the text."""


@dataclass(frozen=True, slots=True)
class TextFile:
    text: str
    """Lines end with LF alone where all of them ended alike."""
    form: TextFormat


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so is no text."""
    return b"\0" in head[:_SNIFFED] and not head.startswith(_UTF16)


def decode_text_file(data: bytes, name: str) -> TextFile:
    """The text of a file. One that is not UTF-8 is read byte by byte, so that it goes back as it came."""
    if is_binary(data):
        raise FileDamaged(f"{name} is no text ({len(data):,} bytes); look at it with a command")
    mark = next((mark for mark in (codecs.BOM_UTF8, *_UTF16) if data.startswith(mark)), b"")
    encoding = {_UTF16[0]: "utf-16-le", _UTF16[1]: "utf-16-be"}.get(mark, "utf-8")
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError:
        mark, encoding, text = b"", "latin-1", data.decode("latin-1")
    is_crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
    return TextFile(text.replace("\r\n", "\n") if is_crlf else text, TextFormat(encoding, mark, is_crlf))


def encode_text_file(text: str, form: TextFormat, name: str) -> bytes:
    """The bytes of a text in this form."""
    if form.is_crlf:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    try:
        return form.bom + text.encode(form.encoding)
    except UnicodeEncodeError as error:
        odd = text[error.start : error.start + 1]
        raise InputError(
            f"{name} is kept in {form.encoding}, which has no {odd!r}; leave that out, or convert the file"
        ) from error


# From the path in a call to the file that was allowed.
FILE_PATH_SCHEMA = {
    "type": "string",
    "description": "The file: absolute, or relative to the working directory.",
}


def resolve_asked_path(given: JsonObject, key: str, place: ToolContext, default: str | None = None) -> str:
    """The path that a call names, made absolute and otherwise as it stands: links and `..` are kept."""
    text = get_string(given, key, default)
    if not text:
        raise InputError(f"{key} is empty; name a file")
    check_path(text)
    home = place.environ.get("HOME", "")
    if home and (text == "~" or text.startswith("~/")):
        return home + text[1:]
    return os.path.join(place.cwd, text)


def allowed_path(asked: str, place: ToolContext) -> str:
    """Where the path leads now; refused unless that is what was allowed."""
    real = resolve_path(asked)
    if place.admitted is not None:
        if real not in place.admitted:
            raise AccessDenied(
                f"{asked} leads to {real}, which is not what was allowed; it was changed meanwhile: try again"
            )
        return real
    folders = [place.root, place.cwd, *([place.session_folder] if place.session_folder else [])]
    if not any(Path(real).is_relative_to(folder) for folder in folders):
        raise AccessDenied(
            f"{asked} leads to {real}, outside {place.root}; only files in there are used here"
        )
    return real


def display_path(real: str, place: ToolContext) -> str:
    """The path as a person would say it: relative where it lies in the working directory.

    Quoted where it would not stand on one line: a repository chooses the names of its files.
    """
    path = Path(real)
    return quote_name(str(path.relative_to(place.cwd)) if path.is_relative_to(place.cwd) else real)


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


def may_preview(real: str, place: ToolContext) -> bool:
    """Whether a change may be compared with the file before anybody allowed it: the file lies in the project,
    or was read. Of any other file not even its existence is told."""
    return Path(real).is_relative_to(resolve_path(str(place.root))) or place.reads.find(real) is not None


def write_text_file(
    real: str, text: str, before: FileState | None, said: str, place: ToolContext
) -> ToolOutput:
    """Write the text in the form that the file had, and tell what changed."""
    old = decode_text_file(before.data, real) if before else TextFile("", TextFormat())
    data = encode_text_file(text, old.form, real)
    if len(data) > _MAX_BYTES:
        raise InputError(f"{len(data):,} bytes are over the {_MAX_BYTES:,} that a file may have here")
    place.before_change(real, before.data if before else None, data)
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


# Where the text of an edit is not in the file: the nearest text that is, so that the next try succeeds.
_MAX_LINES = 5_000
"""Comparing words with every line takes a while; the beginning of a longer file has to do."""

_MAX_LINE_CHARS = 300

_NUMBERED = re.compile(r"\s*\d+\t")


def find_nearest(text: str, wanted: str) -> str:
    """A sentence about what is there instead."""
    lines = text.split("\n")[:_MAX_LINES]
    asked = wanted.split("\n")
    if wanted.strip() and all(_NUMBERED.match(line) for line in asked if line):
        return "It begins with line numbers, which are not part of the file; leave them out."
    at = _find_spaced(lines, asked)
    if at:
        here = "\n".join(lines[at - 1 : at - 1 + len(asked)])
        return f"The same words stand at line {at} with other white space:\n{here[:2_000]}"
    return _close_line(lines, asked)


def _find_spaced(lines: list[str], asked: list[str]) -> int:
    """The line where the same words stand, white space aside; 0: nowhere."""
    wanted = [_squeezed(line) for line in asked]
    bare = [_squeezed(line) for line in lines]
    if not any(wanted):
        return 0
    size = len(wanted)
    return next((at + 1 for at in range(len(bare) - size + 1) if bare[at : at + size] == wanted), 0)


def _close_line(lines: list[str], asked: list[str]) -> str:
    first = next((line.strip() for line in asked if line.strip()), "")[:_MAX_LINE_CHARS]
    places = {line.strip()[:_MAX_LINE_CHARS]: number for number, line in reversed([*enumerate(lines, 1)])}
    close = get_close_matches(first, list(places), 1, 0.6) if first else []
    if not close:
        return "Nothing like it is there; read the file again."
    verb = "is there" if close[0] == first else "is the nearest"
    return f"Of its first line, this {verb}, at line {places[close[0]]}: {close[0]}"


def _squeezed(line: str) -> str:
    return "".join(line.split())


# `write`: a whole file, new or in place of one that was read.
_WRITE_SPEC = ToolSpec(
    "write",
    "Write a whole file, making the folders it needs. A file that is there already must have been read "
    "first; to change a part of one, use edit.",
    object_schema(
        {
            "file_path": FILE_PATH_SCHEMA,
            "content": {"type": "string", "description": "All of the file's text."},
        },
        ("file_path", "content"),
    ),
)


@dataclass(frozen=True, slots=True)
class WriteTool:
    spec: ToolSpec = _WRITE_SPEC

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        path = resolve_asked_path(given, "file_path", place)
        get_string(given, "content")
        return AccessRequest(kind="edit", paths=(path,), said=f"write {path}")

    async def run(self, given: JsonObject, place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        asked, content = resolve_asked_path(given, "file_path", place), get_string(given, "content")
        return await call_in_thread(lambda: _write(allowed_path(asked, place), content, place))

    def preview(self, given: JsonObject, place: ToolContext) -> str | None:
        real = resolve_path(resolve_asked_path(given, "file_path", place))
        if not may_preview(real, place):
            return None
        before = read_known_state(real, place)
        old = decode_text_file(before.data, real).text if before else ""
        return render_unified_diff(old, get_string(given, "content"), display_path(real, place))


def _write(real: str, content: str, place: ToolContext) -> ToolOutput:
    before = read_known_state(real, place)
    lines = len(content.splitlines())
    said = f"{'Created' if before is None else 'Wrote'} {real} ({lines:,} lines)."
    return write_text_file(real, content, before, said, place)


# `edit`: one exact piece of text in place of another.
MAX_NAMED = 10
"""Places that an error names: more than that and the text was too short anyway."""

_EDIT_SPEC = ToolSpec(
    "edit",
    "Replace text in a file that was read. old_string must stand in it exactly once, white space and all "
    "(without the line numbers that read shows); with replace_all every place is changed.",
    object_schema(
        {
            "file_path": FILE_PATH_SCHEMA,
            "old_string": {"type": "string", "description": "The text to replace, exactly as it stands."},
            "new_string": {"type": "string", "description": "The text to put there."},
            "replace_all": {"type": "boolean", "description": "Change every place; false if left out."},
        },
        ("file_path", "old_string", "new_string"),
    ),
)


@dataclass(frozen=True, slots=True)
class _Change:
    old: str
    new: str
    is_everywhere: bool


@dataclass(frozen=True, slots=True)
class EditTool:
    spec: ToolSpec = _EDIT_SPEC

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        path = resolve_asked_path(given, "file_path", place)
        _change(given)
        return AccessRequest(kind="edit", paths=(path,), said=f"edit {path}")

    async def run(self, given: JsonObject, place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        asked, change = resolve_asked_path(given, "file_path", place), _change(given)
        return await call_in_thread(lambda: _edit(allowed_path(asked, place), change, place))

    def preview(self, given: JsonObject, place: ToolContext) -> str | None:
        real = resolve_path(resolve_asked_path(given, "file_path", place))
        if not may_preview(real, place):
            return None
        plan = _plan_edit(real, _change(given), place)
        return render_unified_diff(plan.old_text, plan.new_text, display_path(real, place))


def _change(given: JsonObject) -> _Change:
    change = _Change(
        get_string(given, "old_string"), get_string(given, "new_string"), get_flag(given, "replace_all")
    )
    if not change.old:
        raise InputError("old_string is empty; say which text to replace, or use write for a new file")
    if change.old == change.new:
        raise InputError("old_string and new_string are the same; nothing would change")
    return change


@dataclass(frozen=True, slots=True)
class _EditPlan:
    before: FileState
    old_text: str
    new_text: str
    places: int


def _edit(real: str, change: _Change, place: ToolContext) -> ToolOutput:
    plan = _plan_edit(real, change, place)
    said = f"Edited {real}: {plan.places:,} {'place' if plan.places == 1 else 'places'} changed."
    return write_text_file(real, plan.new_text, plan.before, said, place)


def _plan_edit(real: str, change: _Change, place: ToolContext) -> _EditPlan:
    """What the edit makes of the file as it is now; an error that helps where it cannot be made."""
    before = read_known_state(real, place)
    if before is None:
        raise FileMissing(f"{real} is not there; check its name with glob, or use write to make it")
    found = decode_text_file(before.data, real)
    # A model that copies from a file with CR LF may or may not copy the CR.
    old, new = (_unix(change.old), _unix(change.new)) if found.form.is_crlf else (change.old, change.new)
    count = found.text.count(old)
    if count == 0:
        raise InputError(f"old_string is not in {real}. {find_nearest(found.text, old)}")
    if count > 1 and not change.is_everywhere:
        raise InputError(
            f"old_string is in {real} {count:,} times, at lines {_places(found.text, old)}; take in more of "
            "the text around the one you mean, or set replace_all"
        )
    return _EditPlan(before, found.text, found.text.replace(old, new), count)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _places(text: str, old: str) -> str:
    lines: list[str] = []
    at = text.find(old)
    while at >= 0 and len(lines) < MAX_NAMED:
        lines.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return ", ".join(lines) + (" and more" if at >= 0 else "")
