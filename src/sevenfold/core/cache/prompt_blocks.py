"""A request body as blocks, in the order they were written, and which of them the model sees.

Also here: `CacheChoices`, what we assume of the prompt cache where the provider's documentation is silent;
and breakpoints, where a request asks for caching and what the provider would refuse about that.

A string where blocks are allowed is one text block. Only the paths say how the blocks of one role are split
into messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.models import Model

# Each assumption may turn out wrong, so each is a field. `docs/simulator-contract.md`, under "Prompt cache",
# gives the reasons for the defaults.

PromptLevel: TypeAlias = Literal["tools", "system", "messages"]
PROMPT_LEVELS: tuple[PromptLevel, ...] = ("tools", "system", "messages")
"""The order in which a request is rendered, and so in which one change spoils what comes after it."""

RefreshRule: TypeAlias = Literal["hit", "found", "prefix"]

FIVE_MINUTES = timedelta(minutes=5)
ONE_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheChoices:
    thinking_level: PromptLevel = "messages"
    """Where thinking config and effort are rendered: "model-specific", say the documents, naming no model."""

    output_level: PromptLevel = "messages"
    """Where output format and task budget are rendered: they break the cache, at a tier nobody names."""

    key_order_counts: bool = True
    """Whether the order of keys in tool inputs and schemas is hashed. The documents warn of languages that
    shuffle them; a model that looked away would promise hits that do not come."""

    renders_deferred: bool = False
    """Whether a tool with `defer_loading` is in the prefix before anything refers to it."""

    collapses_runs: bool = True
    """Whether a run of tool requests, or of results, is one position of the look-back: so on the provider's
    own API, not said of other platforms."""

    hit_needs_ttl: bool = False
    """Whether a breakpoint reads only entries written with its own TTL."""

    refresh: RefreshRule = "found"
    """Which entries a request keeps alive: the one it was billed for (`hit`), what each of its breakpoints
    found (`found`), or every entry on the prefix it read (`prefix`). System prompts are read again after
    hours of conversation, so `hit` alone is unlikely."""

    writes_below_hit: bool = True
    """Whether a breakpoint before the hit writes its entry too, free of charge, if none is alive there."""

    gates_each_marker: bool = True
    """Whether the model's minimum holds for each breakpoint's own prefix, or for the last one's alone."""

    full_auto_fails: bool = False
    """Whether automatic caching is refused when the fourth breakpoint is already where its own would be:
    two documented sentences disagree."""


DEFAULT_CACHE_CHOICES = CacheChoices()
"""The defaults."""


THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})
EFFORT_KIND = "output_config"
"""The kind of a system message's change of effort: it has a place in the prompt, and no tokens of its own."""

_OUTSIDE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlock:
    """One block and where it stands."""

    path: str
    level: PromptLevel
    role: str
    kind: str
    wire: JsonObject
    turn: int = _OUTSIDE
    """The index of its message; below zero outside the messages."""
    clears: bool = False
    """Its message is shown for one turn only."""

    @property
    def is_deferred(self) -> bool:
        return self.kind == "tool" and self.wire.get("defer_loading") is True


def list_blocks(body: JsonObject) -> tuple[PromptBlock, ...]:
    """Every block of the body, seen by the model or not."""
    return (*list_tools_and_system(body), *_messages(body))


def list_tools_and_system(body: JsonObject) -> tuple[PromptBlock, ...]:
    """The tools and the system prompt."""
    return (*_tools(body), *_system(body))


def list_message_blocks(turn: int, message: JsonObject) -> Iterator[PromptBlock]:
    """The blocks of one message, the `turn`-th of its request."""
    role = message.get("role")
    if not isinstance(role, str):
        raise WireError(f"messages.{turn}.role: expected user, assistant or system, not {role!r}")
    clears = message.get("clear_at") == "next_user_message"
    effort = message.get("output_config")
    if role == "system" and isinstance(effort, JsonObject):
        yield PromptBlock(
            path=f"messages.{turn}.output_config",
            level="messages",
            role=role,
            kind=EFFORT_KIND,
            wire=effort,
            turn=turn,
            clears=clears,
        )
    for index, block in enumerate(_blocks(f"messages.{turn}.content", message.get("content"))):
        path = f"messages.{turn}.content.{index}"
        yield PromptBlock(
            path=path, level="messages", role=role, kind=_kind(block), wire=block, turn=turn, clears=clears
        )


def list_rendered_blocks(
    body: JsonObject, blocks: Sequence[PromptBlock], model: Model, choices: CacheChoices
) -> tuple[PromptBlock, ...]:
    """The blocks that are rendered into the prompt, in that order."""
    first = next((index for index, block in enumerate(blocks) if block.turn != _OUTSIDE), len(blocks))
    frame = (block for block in blocks[:first] if choices.renders_deferred or not block.is_deferred)
    spoken = _last_spoken(blocks)
    drops_thinking = model.drops_thinking and not _edits_thinking(body)

    def is_gone(block: PromptBlock) -> bool:
        return block.turn < spoken and (block.clears or (drops_thinking and block.kind in THINKING_TYPES))

    inside = blocks[max(first, _last_compacted(blocks)) :]
    if drops_thinking or any(block.clears for block in inside):
        inside = [block for block in inside if not is_gone(block)]
    # A stable sort: only the web search tool is listed at one level and rendered at another.
    return (*sorted(frame, key=lambda block: PROMPT_LEVELS.index(block.level)), *inside)


def _tools(body: JsonObject) -> Iterator[PromptBlock]:
    for index, tool in enumerate(_list("tools", body.get("tools"))):
        kind = tool.get("type")
        # Switching web search on or off leaves the tools' cache alone and changes the system prompt.
        is_search = isinstance(kind, str) and kind.startswith("web_search")
        yield PromptBlock(
            path=f"tools.{index}",
            level="system" if is_search else "tools",
            role="tool",
            kind="tool",
            wire=tool,
        )


def _system(body: JsonObject) -> Iterator[PromptBlock]:
    system = body.get("system")
    for index, block in enumerate(_blocks("system", system) if system != "" else ()):
        yield PromptBlock(
            path=f"system.{index}", level="system", role="prompt", kind=_kind(block), wire=block
        )


def _messages(body: JsonObject) -> Iterator[PromptBlock]:
    for turn, message in enumerate(_list("messages", body.get("messages"))):
        yield from list_message_blocks(turn, message)


def _blocks(path: str, value: Json) -> Iterable[JsonObject]:
    if isinstance(value, str):
        return (JsonObject({"type": "text", "text": value}),)
    return _list(path, value)


def _list(path: str, value: Json) -> Iterator[JsonObject]:
    if value is None:
        return
    if not isinstance(value, tuple):
        raise WireError(f"{path}: expected a list, not {type(value).__name__}")
    for index, item in enumerate(value):
        if not isinstance(item, JsonObject):
            raise WireError(f"{path}.{index}: expected an object, not {type(item).__name__}")
        yield item


def _kind(block: JsonObject) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _last_spoken(blocks: Sequence[PromptBlock]) -> int:
    """The last message in which the user's side sent more than tool results: where a turn begins."""
    turns = (item.turn for item in reversed(blocks) if item.role == "user" and item.kind != "tool_result")
    return next(turns, _OUTSIDE)


def _last_compacted(blocks: Sequence[PromptBlock]) -> int:
    """Where the last compaction block stands that holds a summary: nothing before it is read."""
    for index in range(len(blocks) - 1, -1, -1):
        block = blocks[index]
        if block.kind == "compaction" and block.turn != _OUTSIDE and block.wire.get("content") is not None:
            return index
    return 0


def _edits_thinking(body: JsonObject) -> bool:
    """Whether the request says itself what thinking to keep; whoever applies that edit has done so."""
    management = body.get("context_management")
    edits = management.get("edits") if isinstance(management, JsonObject) else None
    return isinstance(edits, tuple) and any(
        isinstance(edit, JsonObject) and str(edit.get("type")).startswith("clear_thinking") for edit in edits
    )


# Breakpoints. Error texts are the provider's own where a public report quotes them;
# `docs/simulator-contract.md` marks the others.

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

    kind: BreakpointProblemKind
    path: str
    message: str
    """The whole text of the error."""


def find_breakpoints(body: JsonObject) -> tuple[BodyBreakpoint, ...]:
    """The breakpoints in force, the automatic one included, in the order of the body."""
    return find_block_breakpoints(body, list_blocks(body))


def find_block_breakpoints(body: JsonObject, blocks: Sequence[PromptBlock]) -> tuple[BodyBreakpoint, ...]:
    """`find_breakpoints` for a caller that has the blocks. What the provider would refuse does not count."""
    explicit = tuple(_explicit(blocks))
    automatic = _automatic(body, blocks)
    if automatic is None or (explicit and explicit[-1].path == automatic.path):
        return explicit
    # It stands on the last block that can have a breakpoint, so after all others.
    return (*explicit, automatic)


def find_breakpoint_problems(
    body: JsonObject,
    choices: CacheChoices = DEFAULT_CACHE_CHOICES,
    *,
    listed: Sequence[PromptBlock] | None = None,
) -> tuple[BreakpointProblem, ...]:
    """Everything wrong with a request's breakpoints; the provider names the first.

    `listed` are the blocks of the body, from a caller that has them.
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
    """Whether the block may have a breakpoint."""
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
    """The lifetime that a breakpoint asks for; None for a value that is no breakpoint."""
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
    """The path at which the provider reports the fields of a breakpoint. Inside messages and custom tools it
    contains the type of the block."""
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
