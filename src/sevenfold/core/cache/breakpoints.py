"""Where a request asks the provider to cache, and what the provider would refuse about it.

Texts are the provider's own where a public report quotes them; the others say so in
`docs/simulator-contract.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from sevenfold.core.cache.assumptions import DEFAULT_CACHE_CHOICES, FIVE_MINUTES, ONE_HOUR, CacheChoices
from sevenfold.core.cache.prompt_blocks import EFFORT_KIND, THINKING_TYPES, PromptBlock, list_blocks
from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.json import Json, JsonObject

MAX_BODY_BREAKPOINTS = 4
TTLS: Mapping[str, timedelta] = {"5m": FIVE_MINUTES, "1h": ONE_HOUR}

BreakpointProblemKind: TypeAlias = Literal[
    "malformed",
    "thinking",
    "empty text",
    "deferred tool",
    "cleared message",
    "too many",
    "ttl order",
    "automatic",
]


@dataclass(frozen=True, slots=True)
class BodyBreakpoint:
    path: str
    """The block that it stands on."""
    ttl: timedelta
    is_automatic: bool = False


@dataclass(frozen=True, slots=True)
class BreakpointProblem:
    """Why the provider answers 400."""

    trouble: BreakpointProblemKind
    path: str
    message: str
    """The whole text of the error."""


def find_breakpoints(body: JsonObject) -> tuple[BodyBreakpoint, ...]:
    """The markers in force, the automatic one included, in the order of the body."""
    return find_block_breakpoints(body, list_blocks(body))


def find_block_breakpoints(body: JsonObject, blocks: Sequence[PromptBlock]) -> tuple[BodyBreakpoint, ...]:
    """`find_markers` for who has the blocks already. What the provider would refuse marks nothing."""
    explicit = tuple(_explicit(blocks))
    automatic = _automatic(body, blocks)
    if automatic is None or (explicit and explicit[-1].path == automatic.path):
        return explicit
    # It stands on the last block that can have a marker, so after all others.
    return (*explicit, automatic)


def find_breakpoint_problems(
    body: JsonObject,
    choices: CacheChoices = DEFAULT_CACHE_CHOICES,
    *,
    listed: Sequence[PromptBlock] | None = None,
) -> tuple[BreakpointProblem, ...]:
    """Everything wrong with a request's markers; the provider names the first.

    `listed` are the blocks of the body, from who has them already.
    """
    blocks = list_blocks(body) if listed is None else listed
    found = [problem for block in blocks if (problem := _block_problem(block)) is not None]
    top = body.get(CACHE_CONTROL)
    if top is not None and _ttl(top) is None:
        found.append(_malformed(CACHE_CONTROL, top))
    explicit, automatic = tuple(_explicit(blocks)), _automatic(body, blocks)
    found += _count_problems(explicit, automatic, choices)
    found += _order_problems(find_block_breakpoints(body, blocks))
    return tuple(found)


def is_cacheable(block: PromptBlock) -> bool:
    """Whether a marker may stand on it."""
    if block.kind in THINKING_TYPES or block.kind == EFFORT_KIND or block.is_deferred or block.clears:
        return False
    return not _is_empty(block)


def _explicit(blocks: Iterable[PromptBlock]) -> Iterator[BodyBreakpoint]:
    for block in blocks:
        marker = block.wire.get(CACHE_CONTROL)
        ttl = None if marker is None else _ttl(marker)
        if ttl is not None and is_cacheable(block):
            yield BodyBreakpoint(block.path, ttl)


def _automatic(body: JsonObject, blocks: Sequence[PromptBlock]) -> BodyBreakpoint | None:
    ttl = _ttl(body.get(CACHE_CONTROL))
    last = next((block for block in reversed(blocks) if is_cacheable(block)), None)
    return None if ttl is None or last is None else BodyBreakpoint(last.path, ttl, is_automatic=True)


def _ttl(marker: Json) -> timedelta | None:
    """The lifetime a marker asks for; None for what is no marker."""
    if not isinstance(marker, JsonObject) or marker.get("type") != "ephemeral":
        return None
    name = marker.get("ttl")
    if name is None:
        return FIVE_MINUTES
    return TTLS.get(name) if isinstance(name, str) else None


def _is_empty(block: PromptBlock) -> bool:
    return block.kind == "text" and block.wire.get("text") == ""


def _block_problem(block: PromptBlock) -> BreakpointProblem | None:
    marker = block.wire.get(CACHE_CONTROL)
    if marker is None:
        return None
    if block.kind in THINKING_TYPES:
        text = f"{block.path}.{block.kind}.{CACHE_CONTROL}: Extra inputs are not permitted"
        return BreakpointProblem("thinking", block.path, text)
    if _ttl(marker) is None:
        return _malformed(_field_path(block), marker)
    if _is_empty(block):
        text = f"{block.path}.text: cache_control cannot be set for empty text blocks"
        return BreakpointProblem("empty text", block.path, text)
    if block.is_deferred:
        text = (
            f"Tool '{block.wire.get('name')}' cannot have both defer_loading=true and cache_control set. "
            "Tools with defer_loading cannot use prompt caching."
        )
        return BreakpointProblem("deferred tool", block.path, text)
    if block.clears:
        text = f"{block.path}.{CACHE_CONTROL}: cache_control cannot be set in a system message with clear_at"
        return BreakpointProblem("cleared message", block.path, text)
    return None


def _field_path(block: PromptBlock) -> str:
    """Where the provider says that a marker's own fields are: inside messages, and in tools of one's own, it
    names the type of the block too."""
    if block.kind == "tool":
        own = block.wire.get("type") in (None, "custom")
        return f"{block.path}.custom.{CACHE_CONTROL}" if own else f"{block.path}.{CACHE_CONTROL}"
    return (
        f"{block.path}.{block.kind}.{CACHE_CONTROL}"
        if block.level == "messages"
        else f"{block.path}.{CACHE_CONTROL}"
    )


def _malformed(path: str, marker: Json) -> BreakpointProblem:
    if not isinstance(marker, JsonObject):
        text = f"{path}: Input should be a valid dictionary or object"
    elif marker.get("type") != "ephemeral":
        text = (
            f"{path}: Input tag '{marker.get('type')}' found using 'type' does not match any of the expected "
            "tags: 'ephemeral'"
        )
    else:
        text = f"{path}.ephemeral.ttl: Input should be '5m' or '1h'"
    return BreakpointProblem("malformed", path, text)


def _count_problems(
    explicit: Sequence[BodyBreakpoint], automatic: BodyBreakpoint | None, choices: CacheChoices
) -> Iterator[BreakpointProblem]:
    standing = next((item for item in explicit if automatic and item.path == automatic.path), None)
    if automatic is not None and standing is not None and standing.ttl != automatic.ttl:
        text = (
            f"{CACHE_CONTROL}.ttl: automatic caching asks for ttl='{_name(automatic.ttl)}', but the "
            f"block it would "
            f"mark, {standing.path}, has a cache_control with ttl='{_name(standing.ttl)}'"
        )
        yield BreakpointProblem("automatic", CACHE_CONTROL, text)
    adds = automatic is not None and (standing is None or choices.full_auto_fails)
    found = len(explicit) + adds
    if found > MAX_BODY_BREAKPOINTS:
        text = (
            f"A maximum of {MAX_BODY_BREAKPOINTS} blocks with cache_control may be provided. Found {found}."
        )
        is_automatic = len(explicit) <= MAX_BODY_BREAKPOINTS
        yield BreakpointProblem("automatic" if is_automatic else "too many", CACHE_CONTROL, text)


def _order_problems(markers: Iterable[BodyBreakpoint]) -> Iterator[BreakpointProblem]:
    seen_short = False
    for marker in markers:
        if seen_short and marker.ttl == ONE_HOUR:
            where = f"{CACHE_CONTROL}.ttl" if marker.is_automatic else f"{marker.path}.{CACHE_CONTROL}.ttl"
            text = (
                f"{where}: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control "
                "block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
            )
            yield BreakpointProblem("ttl order", marker.path, text)
            return
        seen_short = seen_short or marker.ttl == FIVE_MINUTES


def _name(ttl: timedelta) -> str:
    return next(name for name, value in TTLS.items() if value == ttl)
