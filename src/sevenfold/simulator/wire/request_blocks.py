"""The content blocks of a request's messages, taken apart, and put together without those that were removed.

A message keeps its place when it loses blocks, so that a path means the same in the request and in what the
model sees. The second half is `cache_edits`, an extension that deletes tool results inside the cached prefix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES, PromptBlock, PromptLevel
from sevenfold.core.cache.prompt_cache import PartCounter, RenderedPrompt
from sevenfold.core.events import CutRegistered, Emit, ResultsCleared, ignore_event
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.core.tool_kinds import is_clearable
from sevenfold.providers.provider import OnDelta, Provider, ProviderWrapper
from sevenfold.simulator.wire.error_response import as_texts, optional_object

__all__ = [
    "PromptBlock",
    "as_word",
    "get_tool_use_id",
    "is_thinking_block",
    "is_turn_start",
    "rebuild_body",
    "with_wire_fields",
]


def rebuild_body(body: JsonObject, blocks: Iterable[PromptBlock]) -> JsonObject:
    """The body with these blocks in its messages, and no others."""
    left: defaultdict[int, list[JsonObject]] = defaultdict(list)
    for block in blocks:
        left[block.turn].append(block.wire)
    messages = body.get("messages")
    rows = messages if isinstance(messages, tuple) else ()
    return JsonObject({**body, "messages": tuple(_refilled(row, left[at]) for at, row in enumerate(rows))})


def is_thinking_block(block: PromptBlock) -> bool:
    return block.role == "assistant" and block.kind in THINKING_TYPES


def is_turn_start(block: PromptBlock) -> bool:
    """More than a tool result from the user's side: a person, or a program on their behalf, has spoken."""
    return block.role == "user" and block.kind != "tool_result"


def get_tool_use_id(block: PromptBlock) -> ToolUseId:
    """Of a tool request, or of the request that a result answers."""
    return ToolUseId(as_word(block.wire.get("id" if block.kind == "tool_use" else "tool_use_id")))


def with_wire_fields(block: PromptBlock, **fields: Json) -> PromptBlock:
    """The block with some of its fields changed."""
    return replace(block, wire=JsonObject({**block.wire, **fields}))


def as_word(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _refilled(message: Json, blocks: list[JsonObject]) -> Json:
    if not isinstance(message, JsonObject):
        return message
    if isinstance(message.get("content"), str) and blocks:
        return message
    return JsonObject({**message, "content": tuple(blocks)})


# `cache_edits`: no public provider offers it. The simulator parses and applies the field of a request;
# `CacheEditingProvider` wraps a client's provider that sends to such a simulator.

FIELD = "cache_edits"
BETA = "sevenfold-cache-edits"
"""Known only where the choice `cache_edits` is on."""

_IDS = "delete_tool_results"


def check_cache_edits(body: JsonObject) -> None:
    """Refuse a field that does not have the right shape."""
    edits = optional_object("", body, FIELD) or EMPTY_OBJECT
    if edits.get(_IDS) is not None:
        as_texts(f"{FIELD}.{_IDS}", edits[_IDS])


def read_deleted(edits: JsonObject) -> frozenset[ToolUseId]:
    """The results that a request deletes."""
    ids = edits.get(_IDS)
    return frozenset(ToolUseId(as_word(item)) for item in ids) if isinstance(ids, tuple) else frozenset()


def is_deleted(block: JsonObject, deleted: AbstractSet[ToolUseId]) -> bool:
    return block.get("type") == "tool_result" and ToolUseId(as_word(block.get("tool_use_id"))) in deleted


def without_deleted(count: PartCounter, deleted: AbstractSet[ToolUseId]) -> PartCounter:
    """A deleted result keeps its place in the hash, so that the prefix is still found, and weighs nothing."""
    if not deleted:
        return count

    def count_rest(level: PromptLevel, block: JsonObject) -> int:
        return 0 if is_deleted(block, deleted) else count(level, block)

    return count_rest


def describe_deletion(seen: RenderedPrompt, count: PartCounter) -> JsonObject:
    """What the answer's `applied_edits` says of it."""
    gone = [
        count("messages", block.wire)
        for block, part in zip(seen.blocks, seen.parts, strict=True)
        if block.kind == "tool_result" and part.tokens == 0
    ]
    return JsonObject({"type": FIELD, "deleted_tool_results": len(gone), "deleted_input_tokens": sum(gone)})


class CacheEditingProvider(ProviderWrapper):
    """Has the oldest results of the main conversation deleted once there are too many; its messages stay.

    What is deleted follows from the messages alone, so a resumed session deletes the same. A fork sends what
    the main conversation deleted last and deletes nothing itself.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        cached_results: int = 40,
        recent_results: int = 10,
        emit: Emit = ignore_event,
    ) -> None:
        super().__init__(provider)
        self._emit = emit
        self._cached_results, self._recent_results = cached_results, recent_results
        self._deleted: tuple[ToolUseId, ...] = ()

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        if request.purpose == "main":
            self._choose(request)
        return await super().send(self._with_edits(request), on_delta)

    def _choose(self, request: ModelRequest) -> None:
        before = frozenset(self._deleted)
        self._deleted = choose_deleted(request.messages, self._cached_results, self._recent_results)
        count = len(frozenset(self._deleted) - before)
        if count:
            reason = f"{count} old results were deleted in the cached prefix"
            self._emit(CutRegistered(request.purpose, 2, reason, len(request.messages)))
            self._emit(ResultsCleared("cache edits", count, 0))

    def _with_edits(self, request: ModelRequest) -> ModelRequest:
        frame = request.frame
        if not self._deleted or FIELD in frame.params:
            return request
        params = JsonObject({**frame.params, FIELD: JsonObject({_IDS: self._deleted})})
        return replace(request, frame=replace(frame, params=params, betas=(*frame.betas, BETA)))


def choose_deleted(
    messages: Sequence[Message], cached_results: int, recent_results: int
) -> tuple[ToolUseId, ...]:
    """All but the recent results each time that more than `cached_results` are live. What was deleted once
    stays so, for a request that left it out would bring it back."""
    live: list[ToolUseId] = []
    deleted: list[ToolUseId] = []
    for results in _clearable_results(messages):
        live += results
        if len(live) > cached_results:
            gone = len(live) - recent_results
            deleted += live[:gone]
            del live[:gone]
    return tuple(deleted)


def _clearable_results(messages: Sequence[Message]) -> Iterator[list[ToolUseId]]:
    tools: dict[ToolUseId, str] = {}
    for message in messages:
        tools.update((block.id, block.name) for block in message.blocks if isinstance(block, ToolUse))
        ids = [block.tool_use_id for block in message.blocks if isinstance(block, ToolResult)]
        yield [use for use in ids if is_clearable(tools.get(use, ""))]
