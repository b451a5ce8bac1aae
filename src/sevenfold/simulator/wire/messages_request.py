"""A request as received: sender, version, betas, and the body as frozen JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from sevenfold.core.canonical import digest
from sevenfold.core.catalog import Catalog
from sevenfold.core.errors import WireError
from sevenfold.core.events import Emit
from sevenfold.core.json import Json, JsonObject, read_object
from sevenfold.core.models import Model
from sevenfold.simulator.wire import betas, request_blocks
from sevenfold.simulator.wire.choices import Choices
from sevenfold.simulator.wire.error_response import (
    ErrorResponse,
    RequestRefused,
    as_object,
    as_text,
    make_invalid_request,
    require_field,
)
from sevenfold.simulator.wire.message_cache import BlockListing, MessageCache
from sevenfold.simulator.wire.models import ModelFeatures, find_model_features

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
        _read_conversation(headers),
    )


def _read_conversation(headers: Mapping[str, str]) -> str:
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
    known = betas.KNOWN_BETAS | choices.extra_betas
    if choices.cache_edits:
        known |= {request_blocks.BETA}
    for name in sorted(sent - known):
        raise make_invalid_request(f"Unexpected value(s) `{name}` for the `anthropic-beta` header.")
    return sent
