"""Where transcripts are: the paths that a user names, or the places where agents leave them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sevenfold.core.errors import InputError

_SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A file that may be a transcript."""

    path: Path
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class TranscriptSearch:
    """What a search came upon, newest first."""

    found: tuple[TranscriptFile, ...]
    unreadable: tuple[UnreadableFile, ...] = ()


def list_default_folders(environ: Mapping[str, str], user_home: Path) -> tuple[Path, ...]:
    """The folders in which Claude Code and Codex keep sessions, those that are there."""
    claude = environ.get("CLAUDE_CONFIG_DIR")
    codex = Path(environ.get("CODEX_HOME") or user_home / ".codex")
    homes = [Path(claude)] if claude else [user_home / ".claude", user_home / ".config" / "claude"]
    places = [*(home / "projects" for home in homes), codex / "sessions", codex / "archived_sessions"]
    return tuple(place for place in places if place.is_dir())


def find_transcripts(paths: Iterable[Path]) -> TranscriptSearch:
    """Every file that is named, and every `.jsonl` below a folder that is named; each once."""
    found: dict[str, TranscriptFile] = {}
    unreadable: list[UnreadableFile] = []
    for path in paths:
        for item in _below(path):
            if isinstance(item, UnreadableFile):
                unreadable.append(item)
            else:
                found.setdefault(os.path.realpath(item.path), item)
    newest = sorted(found.values(), key=lambda item: (-item.modified_ns, str(item.path)))
    return TranscriptSearch(tuple(newest), tuple(unreadable))


def _below(path: Path) -> Iterator[TranscriptFile | UnreadableFile]:
    try:
        is_folder = path.is_dir()
        if not is_folder and not path.exists():
            raise InputError(f"{str(path)!r} does not exist; name a transcript, or a folder that holds some")
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be looked at: {error.strerror}") from error
    if not is_folder:
        yield _measured(path)
        return
    failures: list[OSError] = []
    for folder, folders, names in os.walk(path, onerror=failures.append):
        folders.sort()
        for name in sorted(names):
            if name.endswith(_SUFFIX):
                yield _measured(Path(folder, name))
    for failure in failures:
        yield UnreadableFile(Path(str(failure.filename)), failure.strerror or type(failure).__name__)


def _measured(path: Path) -> TranscriptFile | UnreadableFile:
    try:
        about = path.stat()
    except OSError as error:
        return UnreadableFile(path, error.strerror or type(error).__name__)
    return TranscriptFile(path, about.st_size, about.st_mtime_ns)
