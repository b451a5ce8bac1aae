"""Whether memory is on, and whether edits from outside the engine are trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sevenfold.core.settings import switch


@dataclass(frozen=True, slots=True)
class MemorySettings:
    SECTION: ClassVar[str] = "memory"

    enabled: bool = switch(True)
    """On: what is known of a project is the reason to have this. Off reads and writes no memory; what is kept
    stays where it is."""

    trust_outside: bool = switch(False)
    """Off: an edit past the engine may be a script's, so it waits for a person. On accepts it at once, as one
    may want where another agent keeps the same folder."""
