"""A request rendered as the provider's cache sees it: parts in order, each with the hash of all up to it.

Also here: the parameters of a request that are rendered into its prompt (`read_prompt_params`), and where a
request first differs from the one before it (`find_first_difference`).

Breakpoints are not hashed. A parameter is hashed at the start of its level, so a changed parameter changes
the hash of every part from there on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from operator import is_
from typing import Literal, TypeAlias

from sevenfold.core.cache.prompt_blocks import (
    DEFAULT_CACHE_CHOICES,
    EFFORT_KIND,
    PROMPT_LEVELS,
    CacheChoices,
    PromptBlock,
    PromptLevel,
    find_block_breakpoints,
    list_blocks,
    list_rendered_blocks,
)
from sevenfold.core.canonical import EMPTY_DIGEST, Digest, block_bytes, canonical_bytes, chain_digest
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, write_json
from sevenfold.core.models import Model
from sevenfold.core.prices import CATALOG, Catalog

# Parameters that are rendered into the prompt, and the level from which each counts. Changing one breaks the
# cache of its level and of later levels, though no block has changed.

MEDIUM_EFFORT = frozenset({"claude-opus-5-5", "claude-haiku-5-5"})
"""Models whose effort is medium unless told; the others' is high."""

SPEED_PARAM = "speed"
"""The parameter that the provider's diagnostics report as a change of model."""

ALWAYS_THINKS = frozenset(
    {
        "claude-opus-5-5",
        *(f"claude-{kind}-5{minor}" for kind in ("fable", "mythos") for minor in ("", "-1", "-2")),
    }
)
"""Models that think whatever they are told, so that adaptive thinking is the same as saying nothing."""


INSPECTED_TYPES = frozenset({"tool_result", "document", "search_result"})
"""The types of blocks whose presence can change a parameter. Images do not: the provider's documentation says
that the first one invalidates all messages, and bills show that they are read from the cache all the same."""


@dataclass(frozen=True, slots=True)
class PromptParam:
    name: str
    level: PromptLevel
    value: Json
    """None when it stands where the provider puts it, said or not."""


def read_prompt_params(
    body: JsonObject, blocks: Iterable[PromptBlock], model: Model, choices: CacheChoices
) -> tuple[PromptParam, ...]:
    """The parameters of a request by level, always the same ones. `blocks` are those that the model sees."""
    cites = any(
        _cites(block.wire) for block in blocks if block.kind in INSPECTED_TYPES and block.level == "messages"
    )
    output = _object(body.get("output_config"))
    given = (
        PromptParam(SPEED_PARAM, "system", _unless(body.get("speed"), "standard")),
        PromptParam("citations", "system", cites or None),
        PromptParam("thinking", choices.thinking_level, _thinking(body, model)),
        PromptParam("effort", choices.thinking_level, _effort(output, model)),
        PromptParam("format", choices.output_level, output.get("format")),
        PromptParam("task_budget", choices.output_level, output.get("task_budget")),
        PromptParam("tool_choice", "messages", _tool_choice(body)),
    )
    return tuple(sorted(given, key=lambda param: PROMPT_LEVELS.index(param.level)))


def _cites(block: JsonObject) -> bool:
    """Whether a block, or one inside it, may be cited."""
    kind = block.get("type")
    if kind == "tool_result":
        content = block.get("content")
        return isinstance(content, tuple) and any(map(_cites, _objects(content)))
    if kind in ("document", "search_result"):
        return _object(block.get("citations")).get("enabled") is True
    return False


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
    given = {key: value for key, value in choice.items() if value is not None and value is not False}
    return None if given in ({}, {"type": "auto"}) else JsonObject(given)


def _unless(value: Json, default: str) -> Json:
    return None if value == default else value


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, JsonObject) else EMPTY_OBJECT


def _objects(value: Json) -> Iterator[JsonObject]:
    if isinstance(value, tuple):
        yield from (item for item in value if isinstance(item, JsonObject))


PartCounter: TypeAlias = Callable[[PromptLevel, JsonObject], int]
"""How many tokens a block is; a tool, a part of the system prompt or a block of a message, as sent."""

ORDERED_FIELDS = ("input", "input_schema")
"""Fields whose JSON the model reads as it was written, so that the order of their keys shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """One block of the rendered prompt."""

    path: str
    """`tools.0`, `system.1`, `messages.3.content.0`."""
    level: PromptLevel
    kind: str
    """The block's type, or `tool`."""
    digest: Digest
    """The hash of the prefix up to and including it."""
    tokens: int
    ttl: timedelta | None
    """What its breakpoint asks for; None when it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPrompt:
    """A rendered request."""

    model: str
    params: tuple[PromptParam, ...]
    parts: tuple[PromptPart, ...]
    blocks: tuple[PromptBlock, ...] = field(repr=False, compare=False)
    """What each part was rendered from, kept so that the next request need not render it again."""
    choices: CacheChoices = field(default=DEFAULT_CACHE_CHOICES, repr=False)

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


def render_prompt(
    body: JsonObject,
    count: PartCounter,
    *,
    choices: CacheChoices = DEFAULT_CACHE_CHOICES,
    catalog: Catalog = CATALOG,
    after: RenderedPrompt | None = None,
    listed: Sequence[PromptBlock] | None = None,
) -> RenderedPrompt:
    """A Messages API request as a prompt.

    `after` is an earlier prompt of the same conversation: what both have is neither hashed nor counted again,
    and the result is the same as without it. `listed` are the blocks of the body, from who has them already.
    """
    named = body.get("model")
    model = named if isinstance(named, str) else ""
    known_as = catalog.find(model)
    blocks = list_blocks(body) if listed is None else listed
    shown = list_rendered_blocks(body, blocks, known_as, choices)
    given = read_prompt_params(body, shown, known_as, choices)
    ttls = {marker.path: marker.ttl for marker in find_block_breakpoints(body, blocks)}
    opening = _opening(shown, given, choices, after)
    known = _known(shown, after, len(opening))
    hashes = _chained(shown, given, choices, after, known=known, opening=opening)
    rest = range(len(opening), len(shown))
    tokens = (_tokens(shown[index], known.get(index), count) for index in rest)
    parts = (
        *(part if part.ttl == (ttl := ttls.get(part.path)) else replace(part, ttl=ttl) for part in opening),
        *(
            PromptPart(
                path=block.path,
                level=block.level,
                kind=block.kind,
                digest=digest,
                tokens=size,
                ttl=ttls.get(block.path),
            )
            for block, digest, size in zip(shown[len(opening) :], hashes, tokens, strict=True)
        ),
    )
    return RenderedPrompt(model=model, params=given, parts=parts, blocks=shown, choices=choices)


def _opening(
    blocks: Sequence[PromptBlock],
    given: tuple[PromptParam, ...],
    choices: CacheChoices,
    after: RenderedPrompt | None,
) -> tuple[PromptPart, ...]:
    """The first parts of the earlier prompt, up to a block that is not the same object. Only automatic
    breakpoints can differ."""
    if after is None or after.choices != choices or after.params != given:
        return ()
    pairs = enumerate(map(is_, blocks, after.blocks))
    length = min(len(blocks), len(after.blocks))
    return after.parts[: next((index for index, same in pairs if not same), length)]


def _known(blocks: Sequence[PromptBlock], after: RenderedPrompt | None, first: int) -> dict[int, PromptPart]:
    """The parts of the earlier prompt whose blocks stand unchanged at the same place, from the first on."""
    if after is None:
        return {}
    pairs = zip(blocks[first:], after.blocks[first:], strict=False)
    return {
        index: after.parts[index]
        for index, (block, before) in enumerate(pairs, first)
        if _is_same(block, before)
    }


def _tokens(block: PromptBlock, known: PromptPart | None, count: PartCounter) -> int:
    if known is not None:
        return known.tokens
    return 0 if block.kind == EFFORT_KIND else count(block.level, block.wire)


def _chained(
    blocks: Sequence[PromptBlock],
    given: tuple[PromptParam, ...],
    choices: CacheChoices,
    after: RenderedPrompt | None,
    known: Mapping[int, PromptPart],
    opening: Sequence[PromptPart],
) -> Iterator[Digest]:
    """The hash after each block behind the opening. While all before it was the same, a known part's hash is
    taken as it is."""
    earlier = after.parts if after and after.choices == choices and after.params == given else ()
    in_step = True
    current, level = EMPTY_DIGEST, 0
    if opening:
        current, level = opening[-1].digest, PROMPT_LEVELS.index(opening[-1].level) + 1
    for index, block in enumerate(blocks[len(opening) :], len(opening)):
        in_step = in_step and index < len(earlier)
        reached = PROMPT_LEVELS.index(block.level) + 1
        if in_step and index in known:
            current = known[index].digest
        else:
            for name in PROMPT_LEVELS[level:reached]:
                current = chain_digest(current, _salt(name, given))
            current = chain_digest(current, _hashed(block, choices))
            # A breakpoint that moved makes a block unequal and leaves its hash as it was.
            in_step = in_step and earlier[index].digest == current
        level = reached
        yield current


def _is_same(block: PromptBlock, other: PromptBlock) -> bool:
    if block.role != other.role or block.level != other.level or block.kind != other.kind:
        return False
    if block.wire is other.wire:
        return True
    # Equality looks past the order of keys, which may count.
    return not any(key in block.wire for key in ORDERED_FIELDS) and block.wire == other.wire


def _salt(level: PromptLevel, given: Sequence[PromptParam]) -> bytes:
    turned = {param.name: param.value for param in given if param.level == level and param.value is not None}
    return canonical_bytes({"level": level, "knobs": turned})


def _hashed(block: PromptBlock, choices: CacheChoices) -> bytes:
    """What one block adds to the prefix."""
    plain = _normal(block.kind, block.wire)
    data = block_bytes(block.role, plain)
    if choices.key_order_counts:
        data += b"".join(b"\n" + write_json(plain[key]) for key in ORDERED_FIELDS if key in plain)
    return data


def _normal(kind: str, wire: JsonObject) -> JsonObject:
    """The block with everything said in one way: no nulls, no defaults, a result's text as a block."""
    plain: dict[str, Json] = {key: value for key, value in wire.items() if value is not None}
    if kind == "tool":
        _drop(plain, "type", "custom")
        _drop(plain, "defer_loading", False)
    if kind == "tool_result":
        _drop(plain, "is_error", False)
        content = plain.get("content")
        if content in ("", ()):
            del plain["content"]
        elif isinstance(content, str):
            plain["content"] = (JsonObject({"type": "text", "text": content}),)
    return JsonObject(plain)


def _drop(fields: dict[str, Json], key: str, default: Json) -> None:
    if fields.get(key) == default:
        fields.pop(key, None)


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
    turned = [after for before, after in zip(previous.params, current.params, strict=True) if before != after]
    if any(param.name == SPEED_PARAM for param in turned):
        return PromptDifference("model", SPEED_PARAM, index, missed)
    # A parameter counts from the start of its level, so it comes before a block that differs there or later.
    for param in turned:
        if PROMPT_LEVELS.index(param.level) <= level:
            return PromptDifference("params", param.name, index, missed)
    return PromptDifference(_CAUSES[PROMPT_LEVELS[level]], current.parts[index].path, index, missed)


def _shared_length(previous: tuple[PromptPart, ...], current: tuple[PromptPart, ...]) -> int:
    """How many parts are the same. Each hash covers all before it, so it can be found by halving."""
    length = min(len(previous), len(current))
    return bisect_left(range(length), True, key=lambda index: previous[index].digest != current[index].digest)
