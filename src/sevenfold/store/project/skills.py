"""Skills on disk: a folder each, with a SKILL.md whose head says what it is good for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sevenfold.core.errors import FileDamaged, KeyRefused, SevenfoldError
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.events.tool import SkillSkipped
from sevenfold.core.text.frontmatter import MarkdownDocument, read_frontmatter
from sevenfold.store.files.user_files import read_file_state, resolve_path

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
