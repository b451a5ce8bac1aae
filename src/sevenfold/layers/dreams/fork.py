"""The fork that dreams: what it may read, and how its `memory` calls reach the copy and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sevenfold.core.errors import SevenfoldError
from sevenfold.core.messages import ToolResult, ToolUse
from sevenfold.layers.dreams.policy import MEMORY_TOOL
from sevenfold.layers.dreams.progress import DreamProgress
from sevenfold.layers.dreams.workspace import DreamWorkspace
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner
from sevenfold.store.files.offload import run_blocking

RunDreamFork: TypeAlias = Callable[[ForkBrief, ToolRunner], Awaitable[ForkResult]]
MakeReader: TypeAlias = Callable[[tuple[Path, ...]], ToolRunner]
"""Makes a runner of read-only calls that may read the project and these folders, and nothing else."""

_SEARCH = "grep"


@dataclass(frozen=True, slots=True)
class DreamModel:
    """How a model dreams: what runs its read-only calls, and how a fork is run."""

    reader_of: MakeReader
    run_fork: RunDreamFork


class DreamToolRunner:
    """Runs the calls of a dream's fork."""

    def __init__(
        self,
        reader_of: MakeReader,
        stage: DreamWorkspace,
        copy: Path,
        sessions: Path,
        progress: DreamProgress,
    ) -> None:
        self._stage, self._progress = stage, progress
        # Not the memory folder itself: what somebody put there and nobody accepted is not to be learnt from.
        self._read = reader_of((copy,))
        # Transcripts are searched and never read whole.
        self._search = reader_of((copy, sessions))

    async def run(self, use: ToolUse) -> ToolResult:
        self._progress.tool(_said(use))
        if use.name == MEMORY_TOOL:
            return await self._run_memory(use)
        return await (self._search(use) if use.name == _SEARCH else self._read(use))

    async def _run_memory(self, use: ToolUse) -> ToolResult:
        try:
            return ToolResult(use.id, await run_blocking(lambda: self._stage.run(use.input)))
        except SevenfoldError as error:
            return ToolResult(use.id, str(error), is_error=True)


def _said(use: ToolUse) -> str:
    shown = [use.input.get(key) for key in ("action", "name", "file_path", "path", "pattern")]
    return " ".join((use.name, *(text for text in shown if isinstance(text, str))))
