"""What rules, verification and the counting of uses tell of."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.memory_uses import MemoryUseKind


@dataclass(frozen=True, slots=True)
class ClaimsBroken:
    """A recalled memory names things that could not be found in the project; the model is told so."""

    memory: str
    claims: str
    """Between commas."""


@dataclass(frozen=True, slots=True)
class ConditionRefused:
    """What a memory says of when it applies could not be read: it fires on its other conditions alone."""

    memory: str
    condition: str
    reason: str


@dataclass(frozen=True, slots=True)
class RuleAnswered:
    """What became of an action that a rule was shown before."""

    memory: str
    outcome: MemoryUseKind


@dataclass(frozen=True, slots=True)
class RulesSkipped:
    """Memories could not be read, so that no rule was shown before a call."""

    tool: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleShown:
    """A memory was put before the model because an action was about to need it."""

    memory: str
    condition: str
    tool: str
    tool_use_id: str
    is_held: bool
    """The call waits until it is repeated; False: the text came with its result."""


@dataclass(frozen=True, slots=True)
class UsesLost:
    """How often memories were used could not be read or written: counts begin anew, or lack some."""

    where: str
    reason: str
