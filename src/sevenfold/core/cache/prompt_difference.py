"""Where a request stops being the one before it: the first part that differs, and why."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sevenfold.core.cache.assumptions import PROMPT_LEVELS
from sevenfold.core.cache.prompt_params import SPEED_PARAM
from sevenfold.core.cache.rendered_prompt import PromptPart, RenderedPrompt

DifferenceCause: TypeAlias = Literal["model", "tools", "system", "message", "params"]
MissReason: TypeAlias = Literal[
    "model_changed", "tools_changed", "system_changed", "messages_changed", "unavailable"
]

_REASONS: dict[DifferenceCause, MissReason] = {
    "model": "model_changed",
    "tools": "tools_changed",
    "system": "system_changed",
    "message": "messages_changed",
    "params": "unavailable",
}
_CAUSES: dict[str, DifferenceCause] = {"tools": "tools", "system": "system", "messages": "message"}


@dataclass(frozen=True, slots=True)
class PromptDifference:
    cause: DifferenceCause
    path: str
    """The part that differs, as the later request has it, or the setting: `model`, `speed`, `tool_choice`."""
    index: int
    """How many parts both have in common before it."""
    missed_tokens: int
    """How much of the earlier prompt comes after that, and can no longer be read."""

    @property
    def reason(self) -> MissReason:
        """The type that the provider's diagnostics give."""
        return _REASONS[self.cause]


def find_first_difference(previous: RenderedPrompt, current: RenderedPrompt) -> PromptDifference | None:
    """Where `current` leaves `previous`; None when it only goes on from it, or stops short of it."""
    if previous.model != current.model:
        return PromptDifference("model", "model", 0, previous.tokens)
    index = _shared_length(previous.parts, current.parts)
    if index == min(len(previous.parts), len(current.parts)):
        return None
    missed = sum(part.tokens for part in previous.parts[index:])
    level = min(
        PROMPT_LEVELS.index(previous.parts[index].level), PROMPT_LEVELS.index(current.parts[index].level)
    )
    turned = [after for before, after in zip(previous.knobs, current.knobs, strict=True) if before != after]
    if any(knob.name == SPEED_PARAM for knob in turned):
        return PromptDifference("model", SPEED_PARAM, index, missed)
    # A knob counts from the head of its level, so it comes before whatever block differs there or later.
    for knob in turned:
        if PROMPT_LEVELS.index(knob.level) <= level:
            return PromptDifference("params", knob.name, index, missed)
    return PromptDifference(_CAUSES[PROMPT_LEVELS[level]], current.parts[index].path, index, missed)


def _shared_length(previous: tuple[PromptPart, ...], current: tuple[PromptPart, ...]) -> int:
    """How many parts are the same. Each hash covers all before it, so it can be found by halving."""
    length = min(len(previous), len(current))
    return bisect_left(range(length), True, key=lambda index: previous[index].digest != current[index].digest)
