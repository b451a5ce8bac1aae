"""Completions while a person types: commands after a slash, files after an @, by any part of their names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from sevenfold.agent.tui.slash_commands import SLASH_COMMANDS
from sevenfold.core.clock import Clock, SystemClock

MAX_COMPLETIONS = 50
"""Candidates that a person may still look through."""
MAX_PROJECT_FILES = 20_000
"""That are looked through for a name: a keypress later than a tenth of a second is felt."""
FILE_NAMES_TTL = timedelta(seconds=10)
"""How long the list of files is used: files that an agent made a moment ago are wanted soon."""
_MOST_SCANNED = 5_000
_UNWANTED_FOLDERS = frozenset({"__pycache__", "node_modules", "target", "dist", "build", "venv"})
"""Made by programs: nobody names their files in a prompt. Hidden folders are left out too."""
_AT = re.compile(r"(?:^|\s)@(\S*)$")


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
            self._names, self._read_at = list(_walk(self.root)), now
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
    found = dict.fromkeys(_list_folder(typed, files.root))
    is_hidden = typed.rpartition("/")[2].startswith(".")
    if typed and not is_hidden and not typed.startswith(("~", "/")):
        found |= dict.fromkeys(rank_names(typed, files.list_names()))
    return tuple(CompletionCandidate(name, len(typed)) for name in list(found)[:MAX_COMPLETIONS])


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
    """Hidden files only for whoever asks for them; names with spaces could not be told from two words."""
    return (start.startswith(".") or not name.startswith(".")) and not re.search(r"\s", name)
