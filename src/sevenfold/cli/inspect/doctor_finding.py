"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FindingLevel: TypeAlias = Literal["fine", "note", "worry", "broken"]
"""`note`: something optional is not there. `worry`: it works, and will not for long or not as wished."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    area: str
    level: FindingLevel
    said: str
    advice: str = ""
    """What to do about it; empty where nothing has to be done."""
