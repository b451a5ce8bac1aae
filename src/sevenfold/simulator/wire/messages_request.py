"""A request as received: sender, version, betas, the body as frozen JSON, and its content blocks.

The blocks are taken apart, and put together without those that were removed. `cache_edits` is an extension
that deletes tool results inside the cached prefix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES, PromptBlock, PromptLevel
from sevenfold.core.cache.prompt_cache import PartCounter, RenderedPrompt
from sevenfold.core.canonical import digest
from sevenfold.core.errors import WireError
from sevenfold.core.events import CutRegistered, Emit, ResultsCleared, ignore_event
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_object
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.models import Model
from sevenfold.core.prices import Catalog
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.core.tool_kinds import is_clearable
from sevenfold.providers.provider import OnDelta, Provider, ProviderWrapper
from sevenfold.simulator.wire.choices import Choices
from sevenfold.simulator.wire.error_response import (
    ErrorResponse,
    RequestRefused,
    as_object,
    as_text,
    as_texts,
    make_invalid_request,
    optional_object,
    require_field,
)
from sevenfold.simulator.wire.message_cache import BlockListing, MessageCache
from sevenfold.simulator.wire.models import KNOWN_BETAS, ModelFeatures, find_model_features

# The content blocks of a request's messages. A message keeps its place when it loses blocks, so that a path
# means the same in the request and in what the model sees.


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
    return ToolUseId(as_word(block.wire.get("id" if block.kind.endswith("tool_use") else "tool_use_id")))


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
CACHE_EDITS_FIELD = "cache_edits"
CACHE_EDITS_BETA = "sevenfold-cache-edits"
"""Known only where the choice `cache_edits` is on."""

_IDS = "delete_tool_results"


def check_cache_edits(body: JsonObject) -> None:
    """Refuse a field that does not have the right shape."""
    edits = optional_object("", body, CACHE_EDITS_FIELD) or EMPTY_OBJECT
    if edits.get(_IDS) is not None:
        as_texts(f"{CACHE_EDITS_FIELD}.{_IDS}", edits[_IDS])


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
    return JsonObject(
        {"type": CACHE_EDITS_FIELD, "deleted_tool_results": len(gone), "deleted_input_tokens": sum(gone)}
    )


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
        if not self._deleted or CACHE_EDITS_FIELD in frame.params:
            return request
        params = JsonObject({**frame.params, CACHE_EDITS_FIELD: JsonObject({_IDS: self._deleted})})
        return replace(request, frame=replace(frame, params=params, betas=(*frame.betas, CACHE_EDITS_BETA)))


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


MessagesEndpoint: TypeAlias = Literal["messages", "count_tokens"]

OLDER, NEWER = "2023-06-01", "2026-10-21"
API_VERSIONS = (OLDER, NEWER)

SESSION_HEADERS = ("x-claude-code-session-id", "x-session-id", "agent-session-id", "session-id")
"""How clients name a session: Claude Code and its SDK, opencode, goose, Codex."""
AGENT_HEADERS = ("x-claude-code-agent-id", "thread-id")
"""How they name an agent of the session that has a conversation of its own."""


@dataclass(frozen=True, slots=True)
class RequestEnvelope:
    """Everything but the body, already found to be in order."""

    version: str
    betas: frozenset[str]
    workspace: str
    conversation: str = ""
    """The session and agent that the headers name; empty where they name none."""

    def has(self, beta: str) -> bool:
        return beta in self.betas


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesRequest:
    endpoint: MessagesEndpoint
    envelope: RequestEnvelope
    body: JsonObject
    model: Model
    started: datetime
    listing: BlockListing = field(repr=False, compare=False)
    """The body's blocks."""

    @property
    def features(self) -> ModelFeatures:
        return find_model_features(self.model)

    @property
    def model_name(self) -> str:
        """As the client spelt it; answers repeat it."""
        name = self.body.get("model")
        return name if isinstance(name, str) else self.model.name

    @property
    def is_streaming(self) -> bool:
        return self.body.get("stream") is True

    def part(self, key: str) -> JsonObject:
        """A field that holds an object; an empty one where it is absent."""
        value = self.body.get(key)
        return value if isinstance(value, JsonObject) else JsonObject()

    def has(self, beta: str) -> bool:
        return self.envelope.has(beta)


class RequestContext(Protocol):
    """The parts of `SimulatorState` that a body is parsed with."""

    catalog: Catalog
    knowledge: MessageCache


def parse_envelope(headers: Mapping[str, str], choices: Choices) -> RequestEnvelope:
    """Check who asks and how; `headers` has lower-case names."""
    key = _read_key(headers)
    version = headers.get("anthropic-version")
    if version is None:
        raise make_invalid_request("anthropic-version: header is required")
    if version not in API_VERSIONS:
        raise make_invalid_request(
            f"anthropic-version: {version!r} is not a valid version; use {NEWER!r} or {OLDER!r}"
        )
    # A workspace is the unit that shares a cache: a key has its own unless the request names one.
    workspace = headers.get("anthropic-workspace-id") or f"wrkspc_{digest(key.encode())[:24]}"
    return RequestEnvelope(
        version,
        _read_betas(headers.get("anthropic-beta", ""), choices),
        workspace,
        read_conversation(headers),
    )


def read_conversation(headers: Mapping[str, str]) -> str:
    """The session and agent that the headers name; empty where they name none."""
    session = next((headers[name] for name in SESSION_HEADERS if headers.get(name)), "")
    agent = next((headers[name] for name in AGENT_HEADERS if headers.get(name)), "")
    return f"{session} {agent}" if session else ""


def parse_messages_request(
    endpoint: MessagesEndpoint,
    envelope: RequestEnvelope,
    data: bytes,
    world: RequestContext,
    started: datetime,
    emit: Emit,
) -> MessagesRequest:
    """Decode the body and find the model; what else the body holds is checked by `validate`."""
    try:
        value: Json = world.knowledge.read(data)
    except WireError as error:
        raise make_invalid_request(f"The request body is not valid JSON: {error}") from error
    body = as_object("body", value)
    name = as_text("model", require_field("", body, "model"))
    model = world.catalog.find(name, emit)
    if not model.is_known:
        raise RequestRefused(ErrorResponse(status=404, message=f"model: {name}"))
    return MessagesRequest(
        endpoint=endpoint,
        envelope=envelope,
        body=body,
        model=model,
        started=started,
        listing=BlockListing(body, world.knowledge),
    )


def find_model_name(data: bytes) -> str:
    """The model that a body names, whatever else is wrong with it; empty where that cannot be told."""
    try:
        name = read_object(data).get("model")
    except WireError:
        return ""
    return name if isinstance(name, str) else ""


def _read_key(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    key = headers.get("x-api-key") or (token.strip() if scheme.lower() == "bearer" else "")
    if not key:
        message = "x-api-key header is required: send it, or an Authorization: Bearer header, with any value"
        raise RequestRefused(ErrorResponse(status=401, message=message))
    return key


def _read_betas(header: str, choices: Choices) -> frozenset[str]:
    sent = frozenset(name.strip() for name in header.split(",") if name.strip())
    known = KNOWN_BETAS | choices.extra_betas
    if choices.cache_edits:
        known |= {CACHE_EDITS_BETA}
    for name in sorted(sent - known):
        raise make_invalid_request(f"Unexpected value(s) `{name}` for the `anthropic-beta` header.")
    return sent
