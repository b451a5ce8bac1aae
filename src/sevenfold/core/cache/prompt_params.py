"""The settings of a request that are rendered into its prompt, and the level from which each one counts.

A knob that is turned spoils the cache of its level and of those after it, though no block has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sevenfold.core.cache.assumptions import PROMPT_LEVELS, CacheChoices, PromptLevel
from sevenfold.core.cache.prompt_blocks import PromptBlock
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.core.models import Model

MEDIUM_EFFORT = frozenset({"claude-opus-5-5", "claude-haiku-5-5"})
"""Models whose effort is medium unless told; the others' is high."""

SPEED_PARAM = "speed"
"""The knob that the provider's diagnostics take for a change of model."""

ALWAYS_THINKS = frozenset(
    {
        "claude-opus-5-5",
        *(f"claude-{kind}-5{minor}" for kind in ("fable", "mythos") for minor in ("", "-1", "-2")),
    }
)
"""Models that think whatever they are told, so that adaptive thinking is the same as saying nothing."""


INSPECTED_TYPES = frozenset({"tool_result", "image", "document", "search_result"})
"""The types of blocks that can turn a knob by being there."""


@dataclass(frozen=True, slots=True)
class PromptParam:
    name: str
    level: PromptLevel
    value: Json
    """None when it stands where the provider puts it, said or not."""


def read_prompt_params(
    body: JsonObject, blocks: Iterable[PromptBlock], model: Model, choices: CacheChoices
) -> tuple[PromptParam, ...]:
    """All knobs of a request, by level, always the same ones. `blocks` are those the model sees."""
    looks = [
        _look(block.wire) for block in blocks if block.kind in INSPECTED_TYPES and block.level == "messages"
    ]
    output = _object(body.get("output_config"))
    knobs = (
        PromptParam(SPEED_PARAM, "system", _unless(body.get("speed"), "standard")),
        PromptParam("citations", "system", any(look.cites for look in looks) or None),
        PromptParam("thinking", choices.thinking_level, _thinking(body, model)),
        PromptParam("effort", choices.thinking_level, _effort(output, model)),
        PromptParam("format", choices.output_level, output.get("format")),
        PromptParam("task_budget", choices.output_level, output.get("task_budget")),
        PromptParam("tool_choice", "messages", _tool_choice(body)),
        PromptParam("images", "messages", any(look.shows for look in looks) or None),
    )
    return tuple(sorted(knobs, key=lambda knob: PROMPT_LEVELS.index(knob.level)))


@dataclass(frozen=True, slots=True)
class _Look:
    cites: bool = False
    shows: bool = False


_PLAIN = _Look()


def _look(block: JsonObject) -> _Look:
    """Whether a block, or one inside it, is an image or may be cited."""
    kind = block.get("type")
    if kind == "tool_result":
        content = block.get("content")
        inner = [_look(item) for item in _objects(content)] if isinstance(content, tuple) else []
        return _Look(any(look.cites for look in inner), any(look.shows for look in inner))
    if kind == "image":
        return _Look(shows=True)
    if kind in ("document", "search_result"):
        return _Look(cites=_object(block.get("citations")).get("enabled") is True)
    return _PLAIN


def _thinking(body: JsonObject, model: Model) -> Json:
    """Mode and budget alone: how thinking is displayed or checked is no part of the prompt."""
    config = _object(body.get("thinking"))
    mode = config.get("type")
    if mode in (None, "disabled") or (mode == "adaptive" and model.name in ALWAYS_THINKS):
        return None
    return (mode, config.get("budget_tokens"))


def _effort(output: JsonObject, model: Model) -> Json:
    return _unless(output.get("effort"), "medium" if model.name in MEDIUM_EFFORT else "high")


def _tool_choice(body: JsonObject) -> Json:
    choice = _object(body.get("tool_choice"))
    told = {key: value for key, value in choice.items() if value is not None and value is not False}
    return None if told in ({}, {"type": "auto"}) else JsonObject(told)


def _unless(value: Json, default: str) -> Json:
    return None if value == default else value


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, JsonObject) else EMPTY_OBJECT


def _objects(value: Json) -> Iterator[JsonObject]:
    if isinstance(value, tuple):
        yield from (item for item in value if isinstance(item, JsonObject))
