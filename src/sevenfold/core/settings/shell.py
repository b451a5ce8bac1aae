"""How long a command may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sevenfold.core.settings import limit


@dataclass(frozen=True, slots=True)
class ShellSettings:
    SECTION: ClassVar[str] = "shell"

    timeout_seconds: int = limit(120, at_least=1)
    """Most builds and test runs are over by then; what hangs costs a person two minutes."""

    longest_seconds: int = limit(600, at_least=1)
    """The most that a call can ask for; what takes longer belongs in the background."""
