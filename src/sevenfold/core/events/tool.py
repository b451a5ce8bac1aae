"""What tools and permissions tell of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RuleLost:
    """What was allowed for always could not be kept: it holds for this session alone."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class SkillSkipped:
    """A skill was found and is not offered."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ToolStateLost:
    """What a tool keeps of a session, such as the todo list, could not be read or written: a session that is
    resumed later may lack it."""

    name: str
    reason: str
