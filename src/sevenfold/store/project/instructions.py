"""Instruction files: where they are looked for, and what each says.

An operator's, the user's, the project's from the checkout's top down to the folder that work starts in, and
those a person keeps to themselves. Weakest first: what comes later is nearer to the work at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.events import Emit, InstructionSkipped, ignore_event
from sevenfold.store.project.instruction_file import CachedFileReader, FileIdentity, InstructionText
from sevenfold.store.project.instruction_imports import is_path_like

_MANAGED_FILE = Path("/etc/sevenfold/AGENTS.md")
"""An operator's. Never taken from the environment, which a user could set."""

_MAX_DEPTH = 4
"""Files imported by imported files: what other agents follow."""

MAX_INSTRUCTION_FILES = 64
"""In all. A project with more has something else in mind than to be read at every start."""

MAX_IMPORTS = 256
"""Names looked up in all. A text can hold tens of thousands of them, and each costs a look at the disk."""

OWN_NAMES = ("AGENTS.md",)
CLAUDE_NAMES = ("CLAUDE.md", ".claude/CLAUDE.md")
LOCAL_NAMES = ("AGENTS.local.md",)
CLAUDE_LOCAL_NAMES = ("CLAUDE.local.md",)
CLAUDE_USER_FILE = ".claude/CLAUDE.md"

InstructionKind: TypeAlias = Literal["managed", "user", "project", "local"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """What one file says."""

    path: Path
    kind: InstructionKind
    text: str
    is_cut: bool = False
    """It goes on beyond what is read of any file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionPaths:
    """Where to look."""

    home: Path
    """Our own folder of the user's."""
    user_home: Path
    root: Path | None = None
    """The top of the checkout; None: no project."""
    start: Path | None = None
    """The folder in it that work starts in; None: its top."""
    managed: Path = _MANAGED_FILE
    claude_files: bool = True
    """Whether a project's CLAUDE.md counts as well."""
    claude_user_file: bool = False
    """Whether the user's own one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A file that may be there."""

    path: Path
    kind: InstructionKind
    folder: Path
    """Files of one folder that say the same are one."""
    bounds: tuple[Path, ...]
    """What it imports has to lie in one of these."""
    is_bound: bool = False
    """So has the file itself: it came with a repository."""


@dataclass(slots=True)
class _Found:
    """One look at all the files."""

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    seen: set[FileIdentity] = field(default_factory=set[FileIdentity])
    texts: set[tuple[Path, str]] = field(default_factory=set[tuple[Path, str]])
    imports: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.instructions) >= MAX_INSTRUCTION_FILES or self.imports >= MAX_IMPORTS


class InstructionReader:
    """Reads the instruction files of one session, again and again: what is unchanged costs a stat each."""

    def __init__(self, places: InstructionPaths, *, emit: Emit = ignore_event) -> None:
        self._places, self._emit = places, emit
        self._files = CachedFileReader()
        self._told: set[InstructionSkipped] = set()

    def read(self) -> tuple[Instruction, ...]:
        """All there are, in order. One that cannot be read is told, once."""
        found = _Found()
        for candidate in _candidates(self._places):
            if len(found.instructions) >= MAX_INSTRUCTION_FILES:
                self._skip(
                    candidate.path,
                    f"{MAX_INSTRUCTION_FILES} instruction files were read before it; join some",
                )
                break
            try:
                self._take(candidate, found, 0)
            except FileMissing:
                continue
            except SevenfoldError as error:
                self._skip(candidate.path, str(error))
        return tuple(found.instructions)

    def _take(self, candidate: _Candidate, found: _Found, depth: int) -> None:
        plain = self._files.read(candidate.path, candidate.bounds if candidate.is_bound else ())
        if plain.identity in found.seen:
            return
        found.seen.add(plain.identity)
        key = (candidate.folder, plain.text.strip())
        if key not in found.texts and key[1]:
            found.texts.add(key)
            found.instructions.append(
                Instruction(candidate.path, candidate.kind, plain.text.strip(), plain.is_cut)
            )
        self._take_imports(candidate, plain, found, depth)

    def _take_imports(self, candidate: _Candidate, plain: InstructionText, found: _Found, depth: int) -> None:
        for wanted in plain.imports:
            if found.is_full:
                told = (
                    f"it imports more; {MAX_INSTRUCTION_FILES} files and {MAX_IMPORTS} names are "
                    f"looked at in all"
                )
                self._skip(candidate.path, told)
                return
            found.imports += 1
            path = _resolved(wanted, candidate.path.parent, self._places.user_home)
            if depth >= _MAX_DEPTH:
                if is_path_like(wanted):
                    self._skip(path, f"it is imported {_MAX_DEPTH} files deep already; import it further up")
                continue
            imported = replace(candidate, path=path, folder=path.parent, is_bound=True)
            try:
                self._take(imported, found, depth + 1)
            except SevenfoldError as error:
                # A word that only looks like an import names nothing, and nobody misses it.
                if is_path_like(wanted):
                    self._skip(path, f"{candidate.path} imports it: {error}")

    def _skip(self, path: Path, reason: str) -> None:
        event = InstructionSkipped(str(path), reason)
        if event not in self._told:
            self._told.add(event)
            self._emit(event)


def _resolved(wanted: str, folder: Path, user_home: Path) -> Path:
    # Not by `expanduser`, which would ask the machine whose home is whose.
    return user_home / wanted[2:] if wanted.startswith("~/") else folder / wanted


def _candidates(places: InstructionPaths) -> Iterator[_Candidate]:
    managed, home = places.managed, places.home
    yield _Candidate(path=managed, kind="managed", folder=managed.parent, bounds=(managed.parent,))
    own = (places.user_home, home)
    yield _Candidate(path=home / OWN_NAMES[0], kind="user", folder=home, bounds=own)
    if places.claude_user_file:
        yield _Candidate(path=places.user_home / CLAUDE_USER_FILE, kind="user", folder=home, bounds=own)
    if places.root is None:
        return
    folders = _folders(places.root, places.start or places.root)
    names = OWN_NAMES + (CLAUDE_NAMES if places.claude_files else ())
    local_names = LOCAL_NAMES + (CLAUDE_LOCAL_NAMES if places.claude_files else ())
    for folder in folders:
        for name in names:
            yield _Candidate(
                path=folder / name, kind="project", folder=folder, bounds=(places.root,), is_bound=True
            )
    for folder in folders:
        for name in local_names:
            yield _Candidate(
                path=folder / name, kind="local", folder=folder, bounds=(places.root,), is_bound=True
            )


def _folders(root: Path, start: Path) -> list[Path]:
    """From the top down to where work starts, which may be outside or no folder at all: then less of it."""
    if not start.is_relative_to(root):
        return [root]
    folders = [root]
    for name in start.relative_to(root).parts:
        folders.append(folders[-1] / name)
    return folders
