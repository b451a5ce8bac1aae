"""What each model accepts and does by default, from its family and version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from sevenfold.core.models import Model

EffortLevel: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
EFFORT_LEVELS: tuple[EffortLevel, ...] = ("low", "medium", "high", "xhigh", "max")

_NAME = re.compile(r"claude-(?P<family>[a-z]+)-(?P<major>[0-9]{1,2})(?:-(?P<minor>[0-9]{1,2}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFeatures:
    """The defaults are those of a model that nobody knows: it may do everything."""

    thinking: frozenset[str] = frozenset({"adaptive", "enabled", "disabled"})
    """The values of `thinking.type` that it takes."""
    thinks_unasked: bool = False
    """Thinks when the request says nothing about it."""
    shows_thinking: bool = True
    """Returns the text of its thinking when the request does not say; else the signature alone."""
    takes_prefill: bool = True
    takes_forced_choice: bool = True
    takes_sampling: bool = True
    """On the older API version; the newer one refuses sampling parameters for all."""
    compacts: bool = True


@lru_cache(maxsize=256)
def find_model_features(model: Model) -> ModelFeatures:
    named = _NAME.fullmatch(model.name)
    if named is None:
        return ModelFeatures()
    family = named["family"]
    version = (int(named["major"]), int(named["minor"] or 0))
    legends = family in {"fable", "mythos"}
    always_thinks = legends or (family, version) == ("opus", (5, 5))
    refuses_force = {"opus": (5, 5), "sonnet": (5, 5), "haiku": (99, 0)}.get(family, (5, 1))
    return ModelFeatures(
        thinking=_thinking(family, version, always_thinks=always_thinks),
        thinks_unasked=always_thinks or (family, version) == ("sonnet", (5, 5)),
        shows_thinking=version < (4, 7),
        takes_prefill=version < (4, 6),
        takes_forced_choice=version < refuses_force,
        takes_sampling=version < (4, 7),
        compacts=version >= (4, 6),
    )


def _thinking(family: str, version: tuple[int, int], *, always_thinks: bool) -> frozenset[str]:
    if always_thinks:
        return frozenset({"adaptive"})
    if (family, version) == ("sonnet", (5, 5)):
        return frozenset({"adaptive", "between_tools"})
    if version >= (4, 7):
        return frozenset({"adaptive", "disabled"})
    if version >= (4, 6):
        return frozenset({"adaptive", "enabled", "disabled"})
    return frozenset({"enabled", "disabled"})
