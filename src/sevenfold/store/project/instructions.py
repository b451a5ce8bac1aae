"""Instruction files and skills: where they are looked for, and what each says.

Instruction files are the operator's, the user's, the project's from the top of the checkout down to the
folder that work starts in, and those that a person keeps to themselves. Weakest first: what comes later is
nearer to the work at hand.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.core.errors import FileDamaged, FileMissing, KeyRefused, NotRegular, SevenfoldError
from sevenfold.core.events import Emit, InstructionSkipped, ignore_event
from sevenfold.core.events.agent import SkillSkipped
from sevenfold.core.system import map_os_errors
from sevenfold.core.text.markdown import MarkdownDocument, find_imports, is_path_like, read_frontmatter
from sevenfold.store.files.disk import READ_FLAGS, SYSTEM_DISK, Disk, read_fully
from sevenfold.store.project.user_files import read_file_state, resolve_path

# Instruction files come from others: they must be plain, are capped, and may not lead out of their folder.

MAX_INSTRUCTION_BYTES = 256 * 1024
"""More than a whole context may have of instructions; what is beyond it would be cut anyway."""

FileIdentity: TypeAlias = tuple[int, int]
"""A file's device and number: the same under every name it has."""


@dataclass(frozen=True, slots=True)
class InstructionText:
    text: str
    identity: FileIdentity
    imports: tuple[str, ...] = ()
    is_cut: bool = False
    """It goes on beyond what is read of any such file."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A file as it was read the last time."""

    stamp: tuple[int, ...]
    read: InstructionText


class CachedFileReader:
    """Reads files that may be read before; one that has not changed is not read again."""

    def __init__(self, disk: Disk = SYSTEM_DISK) -> None:
        self._disk = disk
        self._known: dict[str, _Known] = {}

    def read(self, path: Path, within: Sequence[Path] = ()) -> InstructionText:
        """The text of a file; wherever links lead, it lies below one of these folders, if any are named."""
        with map_os_errors(f"read {path}"):
            real = _real(path)
            if within and not any(real.is_relative_to(os.path.realpath(folder)) for folder in within):
                raise KeyRefused(f"it leads out of {within[0]}; put the file itself there")
            fd = self._disk.open(str(real), READ_FLAGS)
            try:
                return self._read_open(str(real), fd)
            finally:
                self._disk.close(fd)

    def _read_open(self, real: str, fd: int) -> InstructionText:
        found = self._disk.stat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise NotRegular("it is a folder, pipe or device; expected a plain file")
        stamp = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        known = self._known.get(real)
        if known is None or known.stamp != stamp:
            data = read_fully(self._disk, fd, MAX_INSTRUCTION_BYTES + 1)
            known = _Known(stamp, _as_text(data, (found.st_dev, found.st_ino)))
            self._known[real] = known
        return known.read


def _real(path: Path) -> Path:
    if "\0" in str(path):
        raise KeyRefused("its name holds a NUL; no file can be called that")
    try:
        return Path(os.path.realpath(path, strict=True))
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():
            raise NotRegular("it is a link that leads nowhere") from error
        raise FileMissing(f"{path} is not there") from error


def _as_text(data: bytes, identity: FileIdentity) -> InstructionText:
    if b"\0" in data:
        raise FileDamaged("it is no text")
    is_cut = len(data) > MAX_INSTRUCTION_BYTES
    # Where it is cut the last character may be in two, and half a character is not the file's fault.
    text = data[:MAX_INSTRUCTION_BYTES].decode("utf-8-sig", "ignore" if is_cut else "replace")
    return InstructionText(text, identity, find_imports(text), is_cut)


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
                reason = (
                    f"it imports more; {MAX_INSTRUCTION_FILES} files and {MAX_IMPORTS} names are "
                    f"looked at in all"
                )
                self._skip(candidate.path, reason)
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


# A skill is a folder with a SKILL.md whose frontmatter says what it is for.

_FILE = "SKILL.md"
_MAX_BYTES = 256 * 1024
MAX_SKILLS = 200
"""All of them are listed to the model."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """A folder that skills are looked for in."""

    path: Path
    confined_to: Path | None = None
    """It comes with a repository, and must not lead out of it."""


@dataclass(frozen=True, slots=True)
class SkillFile:
    name: str
    description: str
    path: str
    """Of its SKILL.md, links followed."""


def list_skill_folders(root: Path, home: Path) -> tuple[SkillFolder, ...]:
    """Where skills lie. The user's own come first: a repository cannot put another in the place of one."""
    return (
        SkillFolder(home / "skills"),
        SkillFolder(root / ".sevenfold/skills", root),
        SkillFolder(root / ".claude/skills", root),
    )


def find_skills(folders: Sequence[SkillFolder], emit: Emit = ignore_event) -> tuple[SkillFile, ...]:
    """The skills there are, by name; what is found and not offered is told."""
    found: dict[str, SkillFile] = {}
    for folder in folders:
        for path in _skill_candidates(folder.path):
            try:
                skill = _read(folder, path)
            except SevenfoldError as error:
                emit(SkillSkipped(str(path), str(error)))
                continue
            other = found.setdefault(skill.name, skill)
            if other is not skill:
                emit(SkillSkipped(str(path), f"{other.path} has the same name and comes first"))
    skills = sorted(found.values(), key=lambda skill: skill.name)
    for skill in skills[MAX_SKILLS:]:
        emit(SkillSkipped(skill.path, f"there are more than {MAX_SKILLS} skills"))
    return tuple(skills[:MAX_SKILLS])


def read_skill(skill: SkillFile) -> MarkdownDocument:
    """The whole skill, as it is now."""
    return _document(skill.path)


def _skill_candidates(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return  # most projects have none
    for name in names:
        if _NAME.fullmatch(name) and (folder / name).is_dir():
            yield folder / name / _FILE


def _read(folder: SkillFolder, path: Path) -> SkillFile:
    real = resolve_path(str(path))
    within = folder.confined_to
    if within is not None and not Path(real).is_relative_to(within):
        raise KeyRefused(f"it leads out of the project, to {real}")
    document = _document(real)
    if document.fault:
        raise FileDamaged(document.fault)
    # The folder names it: a head that claims another name could stand in for another skill.
    return SkillFile(path.parent.name, document.text("description"), real)


def _document(real: str) -> MarkdownDocument:
    return read_frontmatter(read_file_state(real, max_bytes=_MAX_BYTES).data.decode("utf-8", "replace"))
