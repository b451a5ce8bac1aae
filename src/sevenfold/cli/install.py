"""`sevenfold install`: entries in the configuration of other agents, shown as diffs and taken out again.

Before a file is changed, a copy of it is kept in `<home>/installed/<agent>`. Uninstalling puts the copy back
where nobody has edited the file since; otherwise it takes out our entries alone.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from sevenfold.cli.screen import Screen, format_count
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.errors import FileMissing, InputError, WireError
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import read_object, write_json
from sevenfold.resident import agent_configs
from sevenfold.resident.agent_configs import AgentName, ConfigChange, InstallPaths, plan_install
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.settings_files import find_user_home
from sevenfold.store.project.user_files import (
    PRIVATE_MASK,
    FileState,
    find_file_state,
    replace_file,
    resolve_path,
)

MAX_CONFIG_BYTES = 16 * 1024 * 1024
"""Claude Code keeps more than settings in its file."""

INSTALLED_FOLDER = "installed"
_RECORD, _MAX_RECORD_BYTES = "record.json", 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledFile:
    """A file that was changed: what it was before, and what it was made to be."""

    path: str
    """With links resolved."""
    sha256: str
    """Of what we wrote."""
    name: str = ""
    """Of the file that the agent reads, which may be a link."""
    earlier_sha256: str = ""
    """Of what we wrote the time before: an install that was interrupted may have left it there."""
    backup: str = ""
    """The name of the copy; empty: there was no file."""
    folders: tuple[str, ...] = ()
    """That were made for it, the innermost first."""

    def is_written(self, data: bytes) -> bool:
        """Whether a content is one that we wrote, and nobody has edited."""
        return _hash(data) in (self.sha256, self.earlier_sha256)


@dataclass(frozen=True, slots=True)
class InstallRecord:
    files: tuple[InstalledFile, ...] = ()

    def find(self, path: str) -> InstalledFile | None:
        return next((one for one in self.files if one.path == path), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    """A file, as it is and as it will be."""

    path: Path
    real: str
    state: FileState | None
    after: bytes | None
    """None: the file goes."""
    backup: bytes | None = None
    """What uninstalling puts back; None: nothing."""

    @property
    def before(self) -> bytes | None:
        return self.state.data if self.state else None

    @property
    def action(self) -> str:
        if self.before == self.after:
            return "unchanged"
        return "created" if self.before is None else "removed" if self.after is None else "changed"

    def diff(self) -> str:
        name = str(self.path)
        before, after = ((data or b"").decode("utf-8", "replace") for data in (self.before, self.after))
        lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), name, name, n=2)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def run_install(options: Namespace, screen: Screen) -> int:
    agent, is_dry = cast("AgentName", options.agent), cast("bool", options.dry_run)
    changes = plan_install(agent, find_install_paths())
    place = open_workspace().home / INSTALLED_FOLDER / agent
    if options.uninstall:
        edits = _uninstall(changes, place, is_dry=is_dry)
    else:
        edits = _install(changes, place, is_dry=is_dry)
    _report(edits, options, screen)
    return 0


def _install(changes: Sequence[ConfigChange], place: Path, *, is_dry: bool) -> list[_Edit]:
    if is_dry and not place.is_dir():
        return _plan_edits(changes, InstallRecord(), None)
    with Folder.open(place, create=True) as folder:
        record = _read_record(folder)
        edits = _plan_edits(changes, record, folder)
        if not is_dry:
            _keep(edits, record, folder)
            _write_files(edits)
    return edits


def _uninstall(changes: Sequence[ConfigChange], place: Path, *, is_dry: bool) -> list[_Edit]:
    if not place.is_dir():
        edits = _plan_removal(changes, InstallRecord(), None)
        if not is_dry:
            _write_files(edits)
        return edits
    with Folder.open(place) as folder:
        record = _read_record(folder)
        edits = _plan_removal(_add_recorded(changes, record), record, folder)
        if not is_dry:
            _write_files(edits)
            _forget(record, folder)
    if not is_dry:
        for left in (place, place.parent):
            with suppress(OSError):  # other agents are installed, or a person keeps something there
                left.rmdir()
    return edits


def find_install_paths() -> InstallPaths:
    environ, package = os.environ, Path(agent_configs.__file__).parent.parent
    command = Path(sys.executable).with_name("sevenfold")
    config = environ.get("XDG_CONFIG_HOME", "")
    return InstallPaths(
        user_home=find_user_home(environ),
        python=sys.executable,
        script=str(package / agent_configs.HOOK_SCRIPT),
        server=(str(command), "mcp") if command.is_file() else (sys.executable, "-m", "sevenfold", "mcp"),
        claude_home=_find_folder("CLAUDE_CONFIG_DIR"),
        codex_home=_find_folder("CODEX_HOME"),
        # Agents pass over a relative one, as its specification says.
        config_home=Path(config) if os.path.isabs(config) else None,
        continue_home=_find_folder("CONTINUE_GLOBAL_DIR"),
    )


def _find_folder(variable: str) -> Path | None:
    found = os.environ.get(variable)
    return Path(os.path.abspath(found)) if found else None


def _plan_edits(changes: Sequence[ConfigChange], record: InstallRecord, folder: Folder | None) -> list[_Edit]:
    """Everything is planned before anything is written: one file that cannot be read stops all of it."""
    edits: list[_Edit] = []
    for change in changes:
        real, state, text = read_config(change)
        known = record.find(real)
        after = change.add(text, known is not None).encode()
        backup = state.data if state else None
        if known is not None and state is not None:
            if known.is_written(state.data):
                backup = _read_backup(known, folder)
            else:  # edited since, or never written: then it is the original, which this leaves as it is
                bare = change.remove(text or "", True)
                backup = bare.encode() if bare is not None else None
        edits.append(_Edit(path=change.path, real=real, state=state, after=after, backup=backup))
    return edits


def _add_recorded(changes: Sequence[ConfigChange], record: InstallRecord) -> list[ConfigChange]:
    """With files that an install has changed while variables such as `CLAUDE_CONFIG_DIR` named others."""
    found = {resolve_path(str(one.path)) for one in changes}
    by_name = {one.path.name: one for one in changes}
    others = [file for file in record.files if file.path not in found]
    named = ((file, by_name.get(Path(file.name or file.path).name)) for file in others)
    return [*changes, *(replace(change, path=Path(file.path)) for file, change in named if change)]


def _plan_removal(
    changes: Sequence[ConfigChange], record: InstallRecord, folder: Folder | None
) -> list[_Edit]:
    edits: list[_Edit] = []
    for change in changes:
        real, state, text = read_config(change)
        known = record.find(real)
        if state is None or text is None:
            continue
        if known is not None and known.is_written(state.data):
            after = _read_backup(known, folder)
        else:
            left = change.remove(text, known is not None) if text.strip() else text
            is_made = known is not None and not known.backup
            empty = b"{}\n" if change.path.suffix == ".json" else b""
            after = left.encode() if left is not None else None if is_made else empty
        edits.append(_Edit(path=change.path, real=real, state=state, after=after))
    return edits


def read_config(change: ConfigChange) -> tuple[str, FileState | None, str | None]:
    real = resolve_path(str(change.path))
    state = find_file_state(real, max_bytes=MAX_CONFIG_BYTES)
    try:
        return real, state, state.data.decode() if state else None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{change.path} is not UTF-8; nothing was changed. Correct it, then try again"
        ) from error


def _write_files(edits: Sequence[_Edit]) -> None:
    for edit in edits:
        if edit.action == "unchanged":
            continue
        if edit.after is None:
            Path(edit.real).unlink()
        else:
            # Some of them say what the agent runs.
            expected, limit = edit.state, MAX_CONFIG_BYTES
            replace_file(edit.real, edit.after, expected=expected, max_bytes=limit, mask=PRIVATE_MASK)


def _keep(edits: Sequence[_Edit], record: InstallRecord, folder: Folder) -> None:
    """Copies and the record are on disk before the first file is changed."""
    own = {edit.real for edit in edits}
    files = [file for file in record.files if file.path not in own]
    for edit in edits:
        known = record.find(edit.real)
        name, before = "", edit.before or b""
        if edit.backup is not None:
            name = f"{_hash(os.fsencode(edit.real))[:8]}-{edit.path.name.lstrip('.')}"
            folder.replace(name, edit.backup)
        made = known.folders if known else tuple(map(str, _find_missing(Path(edit.real).parent)))
        files.append(
            InstalledFile(
                path=edit.real,
                sha256=_hash(edit.after or b""),
                name=edit.path.name,
                earlier_sha256=_hash(before) if known and known.is_written(before) else "",
                backup=name,
                folders=made,
            )
        )
    folder.replace(_RECORD, write_json(write_fields(InstallRecord(tuple(files)))))


def _forget(record: InstallRecord, folder: Folder) -> None:
    for file in record.files:
        for made in file.folders:
            with suppress(OSError):  # somebody has put something there since
                Path(made).rmdir()
        if file.backup:
            with suppress(FileMissing):
                folder.remove(file.backup)
    with suppress(FileMissing):
        folder.remove(_RECORD)


def _read_record(folder: Folder) -> InstallRecord:
    try:
        return read_fields(InstallRecord, read_object(folder.read(_RECORD, max_bytes=_MAX_RECORD_BYTES)))
    except (FileMissing, WireError):
        return InstallRecord()


def _read_backup(known: InstalledFile, folder: Folder | None) -> bytes | None:
    return folder.read(known.backup, max_bytes=MAX_CONFIG_BYTES) if known.backup and folder else None


def _find_missing(folder: Path) -> list[Path]:
    found: list[Path] = []
    while not folder.exists():
        found.append(folder)
        folder = folder.parent
    return found


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _report(edits: Sequence[_Edit], options: Namespace, screen: Screen) -> None:
    if options.json:
        files = [{"path": str(one.path), "action": one.action, "diff": one.diff()} for one in edits]
        screen.show_json({"agent": options.agent, "is_dry_run": options.dry_run, "files": files})
        return
    for edit in edits:
        if edit.action != "unchanged":
            screen.show_text(edit.diff())
    changed = [edit for edit in edits if edit.action != "unchanged"]
    if not changed:
        state = "has nothing of Sevenfold in its files" if options.uninstall else "is set up already"
        screen.show_line(f"nothing to change: {options.agent} {state}", "faint")
    elif options.dry_run:
        screen.show_line(_summarize(changed))
        screen.show_line("nothing was changed; run it without --dry-run to do this", "faint")
    else:
        for edit in changed:
            screen.show_line(f"{edit.action} {edit.path}")
        if not options.uninstall:
            screen.show_line(
                f"if {options.agent} is running, restart it: it reads these files when it starts", "faint"
            )
        if options.agent == "codex" and not options.uninstall:
            screen.show_line(
                "Codex runs the hooks once you have reviewed them: start codex and type /hooks", "faint"
            )


def _summarize(edits: Sequence[_Edit]) -> str:
    counts = Counter(edit.action for edit in edits)
    return ", ".join(f"{format_count(count, 'file')} to be {action}" for action, count in counts.items())
