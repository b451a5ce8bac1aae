"""The settings of the sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sevenfold.core.settings import limit, lines, switch


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    SECTION: ClassVar[str] = "sandbox"

    enabled: bool = switch(True)
    """On: what is held need not be asked for. Off, each is asked for, or refused where none may run."""

    allow_workspace: bool = switch(False)
    """Off: in `ask` mode a person sees each command that can change the project. On, held ones just run."""

    read: tuple[str, ...] = lines(())
    """More folders that a held command may read, such as a toolchain. None: what it reads a model may see."""

    memory_mb: int = limit(4_096, at_least=64)
    """Of one process: enough for most builds, and a leak stops before the machine does."""

    file_mb: int = limit(2_048, at_least=1)
    """Of one file: a runaway log ends here, not when the disk is full."""

    processes: int = limit(512, at_least=8)
    """Of one command: a parallel build has fewer, a fork bomb more within a tenth of a second."""
