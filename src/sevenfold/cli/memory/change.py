"""`sevenfold memory add`, `edit`, `rm`, `import` and `export`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import cast

from sevenfold.cli.layout import format_count
from sevenfold.cli.memory.context import MemoryContext, make_user_origin
from sevenfold.cli.piped_input import read_piped_input
from sevenfold.core.errors import FileMissing, InputError, MemoryConflict
from sevenfold.core.memories import parse_conditions, read_memory
from sevenfold.core.secrets import refuse_secrets
from sevenfold.store.memory.changes import Remove, Write, plan_new_memory
from sevenfold.store.memory.interchange import read_memory_folder, write_memory_folder
from sevenfold.store.project.project import claude_memory_path
from sevenfold.store.project.settings_files import find_user_home

_TEMPLATE = "\n<!-- Write the memory here: what, why, and how to apply it. This line goes. -->\n"
_COMMENT = re.compile(r"<!-- Write the memory here.*?-->\n?", re.DOTALL)


def add_memory(options: Namespace, desk: MemoryContext) -> int:
    name = cast("str", options.memory).removesuffix(".md")
    key = f"{name}.md"
    if desk.memory.find(key) is not None:
        raise InputError(f"{name!r} is remembered already; `sevenfold memory edit {name}` changes it")
    text = cast("str | None", options.text)
    body = text if text is not None else _typed(desk)
    if not body.strip():
        raise InputError("there is nothing to remember; give a text with -m, or pipe one in")
    written = plan_new_memory(
        name,
        body,
        description=cast("str", options.description),
        kind=cast("str", options.type),
        applies_to=cast("list[str]", options.applies_to),
        is_gate=cast("bool", options.gate),
    )
    done = desk.memory.commit([written], make_user_origin("added by hand"))
    return desk.report(done, f"remembered as {key}")


def edit_memory(options: Namespace, desk: MemoryContext) -> int:
    stored = desk.find(cast("str", options.memory))
    key, before = stored.memory.key, stored.memory.text
    after = _edited(before, key)
    if after == before:
        desk.screen.show_line("nothing changed", "faint")
        return 0
    for refused in parse_conditions(read_memory(key, after).applies_to).refused:
        desk.screen.note(f"note: {refused.text!r} is no condition, and fires nothing: {refused.reason}")
    try:
        refuse_secrets(after)
        done = desk.memory.commit([Write(key, after, stored.sha256)], make_user_origin("edited by hand"))
    except (InputError, MemoryConflict):
        desk.screen.note(f"note: your text was not committed, and is kept in {_keep(after, key)}")
        raise
    return desk.report(done, f"{key} is changed")


def remove_memory(options: Namespace, desk: MemoryContext) -> int:
    found = [desk.find(name) for name in cast("list[str]", options.memories)]
    changes = [Remove(one.memory.key, one.sha256) for one in found]
    names = ", ".join(change.key for change in changes)
    return desk.report(
        desk.memory.commit(changes, make_user_origin("removed by hand")), f"forgotten: {names}"
    )


def import_memories(options: Namespace, desk: MemoryContext) -> int:
    folder = cast("Path | None", options.folder)
    if (folder is None) != bool(options.claude):
        raise InputError("name one thing to take in: a FOLDER, or --claude")
    if folder is None:
        folder = claude_memory_path(desk.project.root, find_user_home(os.environ))
        if not folder.is_dir():
            raise FileMissing(f"Claude Code remembers nothing of this project: {folder} is not there")
    found = read_memory_folder(folder)
    left = [f"{one.name}: {one.reason}" for one in found.refused]
    fresh: list[Write] = []
    for write in found.writes:
        reason = _why_not_new(desk, write)
        if reason:
            left.append(f"{write.key}: {reason}")
        else:
            fresh.append(write)
    done = desk.memory.commit(fresh, make_user_origin(f"taken in from {folder}"))
    if desk.is_json:
        desk.screen.show_json({"id": done.id, "keys": [one.key for one in fresh], "left_out": left})
        return 0
    desk.screen.show_line(f"{format_count(len(fresh), 'file')} taken in from {folder}")
    for reason in left:
        desk.screen.show_line(f"left out: {reason}", "warning")
    return 0


def _why_not_new(desk: MemoryContext, write: Write) -> str:
    if desk.memory.find(write.key) is not None:
        return "there is a memory of that name"
    try:
        refuse_secrets(write.text)
    except InputError as error:
        return str(error)
    return ""


def export_memories(options: Namespace, desk: MemoryContext) -> int:
    folder = cast("Path", options.folder)
    count = write_memory_folder(desk.memory, folder)
    if desk.is_json:
        desk.screen.show_json({"folder": str(folder), "files": count})
    else:
        desk.screen.show_line(f"{format_count(count, 'file')} written to {folder}")
    return 0


def _typed(desk: MemoryContext) -> str:
    """What was piped in; from a person, what they write in their editor."""
    if desk.is_attended:
        return _COMMENT.sub("", _edited(_TEMPLATE, "memory.md"))
    if sys.stdin is None:
        return ""
    return read_piped_input(sys.stdin.fileno(), desk.screen.note, is_needed=True)


def _edited(text: str, key: str) -> str:
    """A copy in the person's own editor, as they left it."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="sevenfold-") as folder:
        copy = Path(folder) / key.rpartition("/")[2]
        copy.write_text(text, "utf-8")
        try:
            subprocess.run([*shlex.split(command), str(copy)], check=True)
            return copy.read_text("utf-8")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise InputError(f"the editor {command!r} failed: {error}; set $EDITOR, or use add -m") from error


def _keep(text: str, key: str) -> str:
    """A text that could not be committed must not be lost."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix=f"{Path(key).stem}-", suffix=".md", delete=False
    ) as kept:
        kept.write(text)
    return kept.name
