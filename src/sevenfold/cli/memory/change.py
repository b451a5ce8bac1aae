"""`sevenfold memory add`, `edit`, `rm`, `import` and `export`; and of the history `log`, `diff`, `blame`,
`revert`, `undo`, `redo`, `restore` and `purge`.

`read_memory_folder` and `write_memory_folder` exchange memories with plain folders of markdown, such as
another agent keeps.
"""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from sevenfold.cli.memory.context import MemoryContext, make_user_origin
from sevenfold.cli.screen import TableCell, Tone, format_count, format_time, read_piped_input, shorten_text
from sevenfold.core import events
from sevenfold.core.errors import FileMissing, InputError, MemoryConflict
from sevenfold.core.events import Emit, Event, ignore_event
from sevenfold.core.memories import (
    IMPORTED_WHY,
    INDEX_FILE,
    TEAM_PREFIX,
    parse_conditions,
    read_memory,
)
from sevenfold.store.files.folder import Folder, check_memory_key
from sevenfold.store.memory.changes import (
    Remove,
    Transaction,
    Write,
    check_written,
    describe_origin,
    describe_transaction,
    plan_new_memory,
)
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.files import MemoryFiles
from sevenfold.store.memory.records import encode_text
from sevenfold.store.project.project import claude_memory_path


@dataclass(frozen=True, slots=True)
class ImportedFolder:
    """What a folder holds, to be committed or proposed."""

    writes: tuple[Write, ...]
    """Each as a new memory."""
    refused: tuple[events.MemoryRefused, ...]


def read_memory_folder(path: Path, emit: Emit = ignore_event) -> ImportedFolder:
    """Every memory in a folder and below it. No link is followed; what cannot be a memory is told."""
    refused: list[events.MemoryRefused] = []

    def tell(event: Event) -> None:
        if isinstance(event, events.MemoryRefused):
            refused.append(event)
        emit(event)

    with Folder.open(path) as folder:
        files = MemoryFiles(folder, tell)
        keys = files.keys()
        found = zip(keys, map(files.inspect, keys), strict=True)
        writes = [Write(key, look.text, None) for key, look in found if look and look.text is not None]
    return ImportedFolder(tuple(writes), tuple(refused))


def write_memory_folder(memory: MemoryDir, path: Path) -> int:
    """Copy the memories that are shown, and their index, into a folder; how many. Nothing is replaced."""
    stored = memory.scan(limit=None)
    with Folder.open(path, create=True) as folder:
        for item in stored:
            above, _, _ = item.memory.key.rpartition("/")
            if above:
                folder.subfolder(above).close()
            folder.create(item.memory.key, encode_text(item.memory.text))
        folder.create(INDEX_FILE, encode_text(memory.index_text().text))
    return len(stored)


_TEMPLATE = "\n<!-- Write the memory here: what, why, and how to apply it. This line goes. -->\n"
_COMMENT = re.compile(r"<!-- Write the memory here.*?-->\n?", re.DOTALL)


def add_memory(options: Namespace, context: MemoryContext) -> int:
    name = (cast("str | None", options.memory) or "").removesuffix(".md")
    if context.project.is_user_wide and name.startswith(TEAM_PREFIX):
        raise InputError(f"{name!r} would be a team's, and what holds for all your projects is yours alone")
    if name and context.memory.find(f"{name}.md") is not None:
        raise InputError(f"{name!r} is remembered already; `sevenfold memory edit {name}` changes it")
    text = cast("str | None", options.text)
    body = text if text is not None else _typed(context)
    if not body.strip():
        raise InputError("there is nothing to remember; give a text with -m, or pipe one in")
    name = name or _choose_name(body, context.memory)
    key = f"{name}.md"
    written = plan_new_memory(
        name,
        body,
        description=cast("str", options.description),
        kind=cast("str", options.type),
        applies_to=cast("list[str]", options.applies_to),
        is_gate=cast("bool", options.gate),
    )
    done = context.memory.commit([written], make_user_origin("added by hand"))
    where = " for all projects" if context.project.is_user_wide else ""
    return context.report(done, f"remembered as {key}{where}")


def _choose_name(text: str, memory: MemoryDir) -> str:
    """From the words of the text; with a number where another memory has that name."""
    from sevenfold.core.text.stems import make_slug  # not at the top: a listing names nothing

    name = slug = make_slug(text)
    number = 1
    while (stored := memory.find(f"{name}.md")) is not None:
        if stored.memory.body.strip() == text.strip():
            raise InputError(f"this is remembered already, as {name!r}")
        number += 1
        name = f"{slug}-{number}"
    return name


def edit_memory(options: Namespace, context: MemoryContext) -> int:
    stored = context.find(cast("str", options.memory))
    key, before = stored.memory.key, stored.memory.text
    after = _edited(before, key)
    if after == before:
        context.screen.show_line("nothing changed", "faint")
        return 0
    for refused in parse_conditions(read_memory(key, after).applies_to).refused:
        context.screen.note(f"note: {refused.text!r} is no condition, and fires nothing: {refused.reason}")
    try:
        check_written(after)
        done = context.memory.commit([Write(key, after, stored.sha256)], make_user_origin("edited by hand"))
    except (InputError, MemoryConflict):
        context.screen.note(f"note: your text was not committed, and is kept in {_keep(after, key)}")
        raise
    return context.report(done, f"{key} is changed")


def remove_memory(options: Namespace, context: MemoryContext) -> int:
    found = [context.find(name) for name in cast("list[str]", options.memories)]
    changes = [Remove(one.memory.key, one.sha256) for one in found]
    names = ", ".join(change.key for change in changes)
    return context.report(
        context.memory.commit(changes, make_user_origin("removed by hand")), f"forgotten: {names}"
    )


def import_memories(options: Namespace, context: MemoryContext) -> int:
    folder = cast("Path | None", options.folder)
    if (folder is None) != bool(options.claude):
        raise InputError("name one thing to take in: a FOLDER, or --claude")
    if folder is None:
        folder = claude_memory_path(context.project.root, context.workspace.user_home)
        if not folder.is_dir():
            raise FileMissing(f"Claude Code remembers nothing of this project: {folder} is not there")
    found = read_memory_folder(folder)
    left = [f"{one.name}: {one.reason}" for one in found.refused]
    fresh: list[Write] = []
    for write in found.writes:
        reason = _why_not_new(context, write)
        if reason:
            left.append(f"{write.key}: {reason}")
        else:
            fresh.append(write)
    done = context.memory.commit(fresh, make_user_origin(f"{IMPORTED_WHY} {folder}"))
    if context.is_json:
        context.screen.show_json({"id": done.id, "keys": [one.key for one in fresh], "left_out": left})
        return 0
    context.screen.show_line(f"{format_count(len(fresh), 'file')} taken in from {folder}")
    for reason in left:
        context.screen.show_line(f"left out: {reason}", "warning")
    return 0


def _why_not_new(context: MemoryContext, write: Write) -> str:
    if context.memory.find(write.key) is not None:
        return "there is a memory of that name"
    try:
        check_written(write.text)
    except InputError as error:
        return str(error)
    return ""


def export_memories(options: Namespace, context: MemoryContext) -> int:
    folder = cast("Path", options.folder)
    count = write_memory_folder(context.memory, folder)
    if context.is_json:
        context.screen.show_json({"folder": str(folder), "files": count})
    else:
        context.screen.show_line(f"{format_count(count, 'file')} written to {folder}")
    return 0


def _typed(context: MemoryContext) -> str:
    """What was piped in; from a person, what they write in their editor."""
    if context.is_attended:
        return _COMMENT.sub("", _edited(_TEMPLATE, "memory.md"))
    if sys.stdin is None:
        return ""
    return read_piped_input(sys.stdin.fileno(), context.screen.note, is_needed=True)


def _edited(text: str, key: str) -> str:
    """A copy in the person's own editor, as they left it."""
    # Not at the top, as in `_keep`: most actions need neither an editor nor a copy.
    import shlex
    import subprocess
    import tempfile

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
    import tempfile

    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix=f"{Path(key).stem}-", suffix=".md", delete=False
    ) as kept:
        kept.write(text)
    return kept.name


# The history: `log`, `diff`, `blame`, `revert`, `undo`, `redo`, `restore` and `purge`.


def show_memory_log(options: Namespace, context: MemoryContext) -> int:
    key, limit = _key(cast("str | None", options.memory)), cast("int", options.limit)
    changes = context.memory.log(key, limit=None)
    if context.is_json:
        context.screen.show_json([describe_transaction(change) for change in changes[:limit]])
    elif changes:
        context.screen.show_table([_row(change) for change in changes[:limit]])
    else:
        context.screen.show_line("no change is known", "faint")
    if len(changes) > limit:
        older = f"{format_count(len(changes) - limit, 'older change')} not shown"
        context.screen.note(f"note: {older}; --limit {len(changes)} shows all")
    elif changes and not context.is_json:
        context.screen.show_line("no older changes", "faint")
    return 0


def show_memory_diff(options: Namespace, context: MemoryContext) -> int:
    id_ = cast("str | None", options.id)
    change = context.memory.last_change() if id_ is None else context.memory.transaction(id_)
    text = context.memory.diff(change.id)
    if context.is_json:
        context.screen.show_json({**describe_transaction(change), "diff": text})
        return 0
    context.screen.show_table([_row(change)])
    show_diff_text(context, text)
    return 0


def show_diff_text(context: MemoryContext, text: str) -> None:
    for line in text.splitlines():
        context.screen.show_line(line, _TONES.get(line[:1], "plain"))


_TONES: dict[str, Tone] = {"+": "strong", "-": "error", "@": "faint"}


def blame_memory(options: Namespace, context: MemoryContext) -> int:
    lines = context.memory.blame(context.find(cast("str", options.memory)).memory.key)
    if context.is_json:
        context.screen.show_json(
            [
                {
                    "line": line.line,
                    "change": line.transaction,
                    "at": line.at.isoformat(),
                    **describe_origin(line.origin),
                }
                for line in lines
            ]
        )
    elif lines:
        context.screen.show_table(
            [
                TableCell(line.transaction, "faint"),
                TableCell(format_time(line.at)),
                TableCell(line.origin.who),
                TableCell(line.line),
            ]
            for line in lines
        )
    return 0


def revert_memory(options: Namespace, context: MemoryContext) -> int:
    change = context.memory.transaction(cast("str", options.id))
    return context.report(context.memory.revert(change.id, "by hand"), f"change {change.id} is taken back")


def undo_transaction(_options: Namespace, context: MemoryContext) -> int:
    return _show_step(context, context.memory.undo(), "undone", "redo")


def redo_transaction(_options: Namespace, context: MemoryContext) -> int:
    return _show_step(context, context.memory.redo(), "done again", "undo")


def _show_step(context: MemoryContext, done: Transaction, label: str, back: str) -> int:
    """Which change it was, of which memories, and what is different now."""
    diff, of = context.memory.diff(done.id), context.memory.transaction(done.of)
    keys = [change.key for change in done.changes]
    if context.is_json:
        context.screen.show_json(
            {"id": done.id, "kind": done.kind, "keys": keys, "of": done.of, "step": done.step, "diff": diff}
        )
        return 0
    more = f" and {len(keys) - _SHOWN_KEYS:,} more" if len(keys) > _SHOWN_KEYS else ""
    names = f"{', '.join(keys[:_SHOWN_KEYS])}{more}" or "no memory is different"
    what = of.step or of.kind
    context.screen.show_line(f"{label}: {names}", "strong")
    context.screen.show_line(f"{what} {of.id}, {format_time(of.at)}, by {of.origin.who}: {of.origin.why}")
    _show_diff_start(context, diff, done.id)
    waiting = {str(one.id): [change.key for change in one.changes] for one in context.memory.waiting()}
    for id_ in filter(waiting.__contains__, done.reopens):
        changed = ", ".join(waiting[id_][:_SHOWN_KEYS])
        context.screen.show_line(
            f"{id_} ({changed}) waits for you again: `sevenfold memory review`", "warning"
        )
    context.screen.show_line(f"`sevenfold memory {back}` takes this step back", "faint")
    return 0


_SHOWN_KEYS, _SHOWN_LINES = 10, 200
"""Of a step back or forward, which may concern all that was ever taken in: what a person looks at."""


def _show_diff_start(context: MemoryContext, diff: str, id_: str) -> None:
    """The beginning of a diff, after its size where that is not all of it."""
    lines = diff.splitlines()
    if len(lines) <= _SHOWN_LINES:
        show_diff_text(context, diff)
        return
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("--- ") for line in lines)
    context.screen.show_line(f"{added:,} lines added, {removed:,} removed")
    show_diff_text(context, "\n".join(lines[:_SHOWN_LINES]))
    rest = f"… {len(lines) - _SHOWN_LINES:,} more lines"
    context.screen.show_line(f"{rest}; `sevenfold memory diff {id_}` shows all", "faint")


def restore_memory(options: Namespace, context: MemoryContext) -> int:
    key = check_memory_key(f"{cast('str', options.memory).removesuffix('.md')}.md")
    return context.report(context.memory.restore(key, cast("str", options.id)), f"{key} is as it was")


def purge_memory(options: Namespace, context: MemoryContext) -> int:
    key = _key(cast("str | None", options.memory))
    source = _Source(cast("str | None", options.session), key, cast("str | None", options.who))
    found = [change for change in context.memory.log(limit=None) if source.has(change)]
    if not found:
        raise InputError("nothing came from there; `sevenfold memory log` shows what came from where")
    if not options.yes:
        _ask(context, found, source)
    done = context.memory.purge(session=source.session or "", key=key or "", who=source.who or "")
    if context.is_json:
        context.screen.show_json(asdict(done))
        return 0
    context.screen.show_line(
        f"erased: {format_count(done.versions, 'version')} of {', '.join(done.keys) or 'none'}"
    )
    for other in done.still_holding:
        text = f"{other} repeats words of it, now or in its history"
        context.screen.show_line(f"{text}; `sevenfold memory purge --memory` erases it too", "warning")
    return 0


@dataclass(frozen=True, slots=True)
class _Source:
    """Where what is to be erased came from: one of these."""

    session: str | None
    key: str | None
    who: str | None

    def has(self, change: Transaction) -> bool:
        if self.key is not None:
            return any(one.key == self.key for one in change.changes)
        origins = (change.origin, *(one.origin for one in change.changes))
        if self.session is not None:
            return any(origin.session == self.session for origin in origins)
        return any(origin.who == self.who for origin in origins)


def _ask(context: MemoryContext, found: list[Transaction], source: _Source) -> None:
    """What goes is said before it goes; without a person only --yes will do."""
    keys = sorted({one.key for change in found for one in change.changes if source.key in (None, one.key)})
    said = f"{format_count(len(found), 'change')} of {', '.join(keys)} would be erased, history included"
    if not context.is_attended:
        raise InputError(f"{said}; add --yes if that is meant")
    context.screen.show_line(f"{said}. This cannot be undone.", "warning")
    context.screen.show_line("Erase it? [y/N]", "strong")
    context.screen.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError("nothing was erased")


def _key(name: str | None) -> str | None:
    return None if name is None else check_memory_key(f"{name.removesuffix('.md')}.md")


def _row(change: Transaction) -> list[TableCell]:
    keys = ", ".join(one.key.removesuffix(".md") or "(erased)" for one in change.changes)
    return [
        TableCell(change.id, "strong"),
        TableCell(format_time(change.at)),
        TableCell(change.origin.who),
        TableCell(change.step or change.kind),
        TableCell(shorten_text(f"{keys}: {change.origin.why}" if keys else change.origin.why, 100)),
    ]
