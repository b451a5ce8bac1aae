"""A request rendered as the provider's cache sees it: parts in order, each with the hash of all up to it.

Where markers stand never enters a hash. What a knob spoils follows from where it is chained in: at the head
of its level, so that every part from there on hashes differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from operator import is_
from typing import TypeAlias

from sevenfold.core.cache.assumptions import DEFAULT_CACHE_CHOICES, PROMPT_LEVELS, CacheChoices, PromptLevel
from sevenfold.core.cache.breakpoints import find_block_breakpoints
from sevenfold.core.cache.prompt_blocks import EFFORT_KIND, PromptBlock, list_blocks, list_rendered_blocks
from sevenfold.core.cache.prompt_params import PromptParam, read_prompt_params
from sevenfold.core.canonical import EMPTY_DIGEST, Digest, block_bytes, canonical_bytes, chain_digest
from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.json import Json, JsonObject, write_json

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
    """What its marker asks for; None when it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPrompt:
    """A rendered request."""

    model: str
    knobs: tuple[PromptParam, ...]
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
    knobs = read_prompt_params(body, shown, known_as, choices)
    ttls = {marker.path: marker.ttl for marker in find_block_breakpoints(body, blocks)}
    opening = _opening(shown, knobs, choices, after)
    known = _known(shown, after, len(opening))
    hashes = _chained(shown, knobs, choices, after, known=known, opening=opening)
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
    return RenderedPrompt(model=model, knobs=knobs, parts=parts, blocks=shown, choices=choices)


def _opening(
    blocks: Sequence[PromptBlock],
    knobs: tuple[PromptParam, ...],
    choices: CacheChoices,
    after: RenderedPrompt | None,
) -> tuple[PromptPart, ...]:
    """The parts of the earlier prompt that the very same blocks begin; only automatic markers can differ."""
    if after is None or after.choices != choices or after.knobs != knobs:
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
    knobs: tuple[PromptParam, ...],
    choices: CacheChoices,
    after: RenderedPrompt | None,
    known: Mapping[int, PromptPart],
    opening: Sequence[PromptPart],
) -> Iterator[Digest]:
    """The hash after each block behind the opening. While all before it was the same, a known part's hash is
    taken as it is."""
    earlier = after.parts if after and after.choices == choices and after.knobs == knobs else ()
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
                current = chain_digest(current, _salt(name, knobs))
            current = chain_digest(current, _hashed(block, choices))
            # A marker that moved makes a block unequal and leaves its hash as it was.
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


def _salt(level: PromptLevel, knobs: Sequence[PromptParam]) -> bytes:
    turned = {knob.name: knob.value for knob in knobs if knob.level == level and knob.value is not None}
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
