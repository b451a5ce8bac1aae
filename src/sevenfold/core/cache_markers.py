"""Where a request asks the provider to cache, and what the provider would refuse about it.

Texts are the provider's own where a public report quotes them; the others say so in
`docs/simulator-contract.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from sevenfold.core.cache_choices import CHOICES, FIVE_MINUTES, ONE_HOUR, CacheChoices
from sevenfold.core.canonical import MARKER
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.prompt_blocks import EFFORT, THINKING, Placed, list_blocks

MAX_MARKERS = 4
TTLS: Mapping[str, timedelta] = {"5m": FIVE_MINUTES, "1h": ONE_HOUR}

Trouble: TypeAlias = Literal[
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
class Marker:
    path: str
    """The block that it stands on."""
    ttl: timedelta
    is_automatic: bool = False


@dataclass(frozen=True, slots=True)
class MarkerProblem:
    """Why the provider answers 400."""

    trouble: Trouble
    path: str
    message: str
    """The whole text of the error."""


def find_markers(body: JsonObject) -> tuple[Marker, ...]:
    """The markers in force, the automatic one included, in the order of the body."""
    return place_markers(body, list_blocks(body))


def place_markers(body: JsonObject, blocks: Sequence[Placed]) -> tuple[Marker, ...]:
    """`find_markers` for who has the blocks already. What the provider would refuse marks nothing."""
    explicit = tuple(_explicit(blocks))
    automatic = _automatic(body, blocks)
    if automatic is None or (explicit and explicit[-1].path == automatic.path):
        return explicit
    # It stands on the last block that can have a marker, so after all others.
    return (*explicit, automatic)


def marker_problems(
    body: JsonObject, choices: CacheChoices = CHOICES, *, listed: Sequence[Placed] | None = None
) -> tuple[MarkerProblem, ...]:
    """Everything wrong with a request's markers; the provider names the first.

    `listed` are the blocks of the body, from who has them already.
    """
    blocks = list_blocks(body) if listed is None else listed
    found = [problem for block in blocks if (problem := _block_problem(block)) is not None]
    top = body.get(MARKER)
    if top is not None and _ttl(top) is None:
        found.append(_malformed(MARKER, top))
    explicit, automatic = tuple(_explicit(blocks)), _automatic(body, blocks)
    found += _count_problems(explicit, automatic, choices)
    found += _order_problems(place_markers(body, blocks))
    return tuple(found)


def is_cacheable(block: Placed) -> bool:
    """Whether a marker may stand on it."""
    if block.kind in THINKING or block.kind == EFFORT or block.is_deferred or block.clears:
        return False
    return not _is_empty(block)


def _explicit(blocks: Iterable[Placed]) -> Iterator[Marker]:
    for block in blocks:
        marker = block.wire.get(MARKER)
        ttl = None if marker is None else _ttl(marker)
        if ttl is not None and is_cacheable(block):
            yield Marker(block.path, ttl)


def _automatic(body: JsonObject, blocks: Sequence[Placed]) -> Marker | None:
    ttl = _ttl(body.get(MARKER))
    last = next((block for block in reversed(blocks) if is_cacheable(block)), None)
    return None if ttl is None or last is None else Marker(last.path, ttl, is_automatic=True)


def _ttl(marker: Json) -> timedelta | None:
    """The lifetime a marker asks for; None for what is no marker."""
    if not isinstance(marker, JsonObject) or marker.get("type") != "ephemeral":
        return None
    name = marker.get("ttl")
    if name is None:
        return FIVE_MINUTES
    return TTLS.get(name) if isinstance(name, str) else None


def _is_empty(block: Placed) -> bool:
    return block.kind == "text" and block.wire.get("text") == ""


def _block_problem(block: Placed) -> MarkerProblem | None:
    marker = block.wire.get(MARKER)
    if marker is None:
        return None
    if block.kind in THINKING:
        text = f"{block.path}.{block.kind}.{MARKER}: Extra inputs are not permitted"
        return MarkerProblem("thinking", block.path, text)
    if _ttl(marker) is None:
        return _malformed(_field_path(block), marker)
    if _is_empty(block):
        text = f"{block.path}.text: cache_control cannot be set for empty text blocks"
        return MarkerProblem("empty text", block.path, text)
    if block.is_deferred:
        text = (
            f"Tool '{block.wire.get('name')}' cannot have both defer_loading=true and cache_control set. "
            "Tools with defer_loading cannot use prompt caching."
        )
        return MarkerProblem("deferred tool", block.path, text)
    if block.clears:
        text = f"{block.path}.{MARKER}: cache_control cannot be set in a system message with clear_at"
        return MarkerProblem("cleared message", block.path, text)
    return None


def _field_path(block: Placed) -> str:
    """Where the provider says that a marker's own fields are: inside messages, and in tools of one's own, it
    names the type of the block too."""
    if block.kind == "tool":
        own = block.wire.get("type") in (None, "custom")
        return f"{block.path}.custom.{MARKER}" if own else f"{block.path}.{MARKER}"
    return f"{block.path}.{block.kind}.{MARKER}" if block.level == "messages" else f"{block.path}.{MARKER}"


def _malformed(path: str, marker: Json) -> MarkerProblem:
    if not isinstance(marker, JsonObject):
        text = f"{path}: Input should be a valid dictionary or object"
    elif marker.get("type") != "ephemeral":
        text = (
            f"{path}: Input tag '{marker.get('type')}' found using 'type' does not match any of the expected "
            "tags: 'ephemeral'"
        )
    else:
        text = f"{path}.ephemeral.ttl: Input should be '5m' or '1h'"
    return MarkerProblem("malformed", path, text)


def _count_problems(
    explicit: Sequence[Marker], automatic: Marker | None, choices: CacheChoices
) -> Iterator[MarkerProblem]:
    standing = next((item for item in explicit if automatic and item.path == automatic.path), None)
    if automatic is not None and standing is not None and standing.ttl != automatic.ttl:
        text = (
            f"{MARKER}.ttl: automatic caching asks for ttl='{_name(automatic.ttl)}', but the block it would "
            f"mark, {standing.path}, has a cache_control with ttl='{_name(standing.ttl)}'"
        )
        yield MarkerProblem("automatic", MARKER, text)
    adds = automatic is not None and (standing is None or choices.full_auto_fails)
    found = len(explicit) + adds
    if found > MAX_MARKERS:
        text = f"A maximum of {MAX_MARKERS} blocks with cache_control may be provided. Found {found}."
        is_automatic = len(explicit) <= MAX_MARKERS
        yield MarkerProblem("automatic" if is_automatic else "too many", MARKER, text)


def _order_problems(markers: Iterable[Marker]) -> Iterator[MarkerProblem]:
    seen_short = False
    for marker in markers:
        if seen_short and marker.ttl == ONE_HOUR:
            where = f"{MARKER}.ttl" if marker.is_automatic else f"{marker.path}.{MARKER}.ttl"
            text = (
                f"{where}: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control "
                "block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
            )
            yield MarkerProblem("ttl order", marker.path, text)
            return
        seen_short = seen_short or marker.ttl == FIVE_MINUTES


def _name(ttl: timedelta) -> str:
    return next(name for name, value in TTLS.items() if value == ttl)
