"""What tools work with: the folder, the files that the agent has read, the sandbox profile, and listeners.

A fork gets a copy of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.events import Emit, ignore_event

SandboxProfile: TypeAlias = Literal["read-only", "workspace", "open"]
"""Strictest first. `read-only`: it changes nothing and reaches no network; `workspace`: it also writes in the
project's folder and in a scratch folder of its own; `open`: nothing holds it."""


@dataclass(frozen=True, slots=True)
class ReadState:
    """A file as it was when the agent last saw it: an edit of another state is refused."""

    sha256: str
    is_whole: bool
    """All of it was shown, and not a range."""


@dataclass(slots=True)
class FileReads:
    """What the agent has seen of which file, newest last; by absolute path."""

    marks: dict[str, ReadState] = field(default_factory=dict[str, ReadState])

    def note(self, path: str, mark: ReadState) -> None:
        self.marks.pop(path, None)
        self.marks[path] = mark

    def find(self, path: str) -> ReadState | None:
        return self.marks.get(path)

    def copy(self) -> FileReads:
        return FileReads(dict(self.marks))


def ignore_edit(_path: str) -> str:
    """For a place where nobody minds which files are changed."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What every tool is handed. What only one tool needs is given to that tool when it is made."""

    root: Path
    """The project's folder: absolute, links resolved."""
    cwd: Path
    """Where relative paths and commands start; inside the root, or a worktree of its own."""
    session_folder: Path | None = None
    """Where this session's spills and plan lie; None when it lives in memory."""
    reads: FileReads = field(default_factory=FileReads)
    emit: Emit = ignore_event
    clock: Clock = field(default_factory=SystemClock)
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    confined_to: SandboxProfile = "open"
    """The most that a command may do here, whatever it asks for. A fork's is `read-only`."""
    admitted: tuple[str, ...] | None = None
    """Real paths that this one call may touch; None: nobody judged it, and it stays inside the root
    and the session's folder."""

    on_edit: Callable[[str], str] = ignore_edit
    """Told of every file that was written or edited, by its real path; the agent reads what it says."""

    def clone(self, **changes: Path) -> ToolContext:
        """For a fork or an agent: what was read is known there too, and what it reads is not known here."""
        return replace(self, reads=self.reads.copy(), **changes)
