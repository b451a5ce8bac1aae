"""Completions while a person types: commands after a slash, files after an @, by any part of their names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sevenfold.agent.tui.slash_commands import SLASH_COMMANDS
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import SevenfoldError
from sevenfold.store.project.settings_files import find_checkout
from sevenfold.store.project.user_files import list_project_files, resolve_path

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer

MAX_COMPLETIONS = 50
"""Candidates that a person may still look through."""
MAX_PROJECT_FILES = 20_000
"""That are looked through for a name: a keypress later than a tenth of a second is felt."""
FILE_NAMES_TTL = timedelta(seconds=10)
"""How long the list of files is used: files that an agent made a moment ago are wanted soon."""
_MOST_SCANNED = 5_000
_UNWANTED_FOLDERS = frozenset({"__pycache__", "node_modules", "target", "dist", "build", "venv"})
"""Made by programs: nobody names their files in a prompt. Hidden folders are left out too."""
_AT = re.compile(r"""(?:^|\s)@("[^"\n]*|\S*)$""")
"""A name with spaces stands in quotes, as it does where an image is named."""


@dataclass(frozen=True, slots=True)
class CompletionCandidate:
    text: str
    replaces: int
    """How many characters before the cursor it stands for."""
    remark: str = ""


@dataclass(slots=True)
class ProjectFiles:
    """The names of a project's files, read again when they are old."""

    root: Path
    clock: Clock = field(default_factory=SystemClock)
    _names: Sequence[str] = ()
    _read_at: timedelta | None = None

    def list_names(self) -> Sequence[str]:
        now = self.clock.uptime()
        if self._read_at is None or now - self._read_at > FILE_NAMES_TTL:
            self._names = _list_names(self.root)
            self._read_at = self.clock.uptime()
        return self._names


def list_completions(
    before: str, files: ProjectFiles, own: Mapping[str, str] | None = None
) -> tuple[CompletionCandidate, ...]:
    """For the text before the cursor, the best first; looks into folders, and into no file. `own` are more
    commands, with their help."""
    if before.startswith("/") and " " not in before and "/" not in before[1:]:
        helps = {slash.name: slash.help for slash in SLASH_COMMANDS} | dict(own or {})
        found = rank_names(before[1:], list(helps))
        return tuple(CompletionCandidate(f"/{name}", len(before), helps[name]) for name in found)
    mention = _AT.search(before)
    return _list_files(mention[1], files) if mention else ()


def take_completion(buffer: Buffer) -> bool:
    """Close the menu with the file that was chosen in it, behind which the text goes on. False: none was, or
    it is a command, which is sent at once."""
    if not (buffer.complete_state and buffer.complete_state.current_completion):
        return False
    buffer.complete_state = None
    before = buffer.document.text_before_cursor
    if before.startswith("/"):
        return False
    if not before.endswith(("/", " ")):
        buffer.insert_text(" ")
    return True


def take_first_completion(buffer: Buffer) -> None:
    """Close the menu with the entry that is chosen in it, or else with the first."""
    if buffer.complete_state and not buffer.complete_state.current_completion:
        buffer.go_to_completion(0)
    take_completion(buffer)


def rank_names(typed: str, names: Sequence[str]) -> list[str]:
    """The names that hold what was typed, in this order of letters: those that begin with it come first."""
    wanted = typed.lower()
    ranked = ((_rank(wanted, name.lower()), at, name) for at, name in enumerate(names))
    return [name for rank, _, name in sorted(ranked) if rank < _NO_MATCH]


_NO_MATCH = 5


def _rank(wanted: str, name: str) -> int:
    base = name.rpartition("/")[2]
    if name.startswith(wanted):
        return 0
    if base.startswith(wanted):
        return 1
    if wanted in base:
        return 2
    if wanted in name:
        return 3
    letters = iter(name)
    return 4 if all(letter in letters for letter in wanted) else _NO_MATCH


def _list_files(typed: str, files: ProjectFiles) -> tuple[CompletionCandidate, ...]:
    """Entries of the folder that was typed, then any file of the project that matches."""
    wanted = typed.removeprefix('"')
    found = dict.fromkeys(_list_folder(wanted, files.root))
    is_hidden = wanted.rpartition("/")[2].startswith(".")
    if wanted and not is_hidden and not wanted.startswith(("~", "/")):
        found |= dict.fromkeys(rank_names(wanted, files.list_names()))
    return tuple(CompletionCandidate(_quote(name), len(typed)) for name in list(found)[:MAX_COMPLETIONS])


def _quote(name: str) -> str:
    """In quotes, where it could not be told from two words; those of a folder are open, for what is in it."""
    if not re.search(r"\s", name):
        return name
    return f'"{name}' if name.endswith("/") else f'"{name}"'


def _list_folder(typed: str, cwd: Path) -> list[str]:
    folder, _, start = typed.rpartition("/")
    shown = f"{folder}/" if "/" in typed else ""
    found: list[str] = []
    try:
        with os.scandir(cwd / os.path.expanduser(shown or ".")) as entries:
            for at, entry in enumerate(entries):
                if at == _MOST_SCANNED:
                    break
                if entry.name.lower().startswith(start.lower()) and _is_wanted(entry.name, start):
                    found.append(entry.name + ("/" if entry.is_dir() else ""))
    except OSError:
        return []
    best = sorted(found, key=lambda name: (name.startswith("."), name.lower()))[:MAX_COMPLETIONS]
    return [shown + name for name in best]


def _list_names(root: Path) -> list[str]:
    """The project's files: in a git checkout those that git does not ignore."""
    try:
        if (find_checkout(root) / ".git").exists():
            listing = list_project_files(resolve_path(str(root)), _is_wanted_path)
            return [found.path for found in listing.files[:MAX_PROJECT_FILES]]
    except (SevenfoldError, OSError):
        pass  # it is changed while it is read, or cannot be read as one
    return list(_walk(root))


def _is_wanted_path(path: str) -> bool:
    *folders, name = path.split("/")
    return _is_wanted(name, "") and not any(one in _UNWANTED_FOLDERS or one[:1] == "." for one in folders)


def _walk(root: Path) -> Iterable[str]:
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name for name in folders if name not in _UNWANTED_FOLDERS and _is_wanted(name, "")
        )
        for name in sorted(names):
            if _is_wanted(name, ""):
                yield os.path.relpath(os.path.join(folder, name), root)
            count += 1
            if count >= MAX_PROJECT_FILES:
                return


def _is_wanted(name: str, start: str) -> bool:
    """Hidden files only for whoever asks for them, and none that could not be quoted."""
    return (start.startswith(".") or not name.startswith(".")) and not re.search(r'["\n\r]', name)
