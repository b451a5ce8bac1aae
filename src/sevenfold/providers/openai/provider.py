"""What OpenAI's two APIs have in common: how a request is sent, streamed or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sevenfold.core.capabilities import Capabilities, choose_capabilities
from sevenfold.core.json import Json
from sevenfold.core.models import Model
from sevenfold.core.requests import Dialect, ModelRequest, ModelResponse
from sevenfold.providers.openai.transport import HttpPayload, OpenaiTransport, StreamAssembler
from sevenfold.providers.provider import MAX_UNSTREAMED_TOKENS, OnDelta, ignore_delta


class BodyWriter(Protocol):
    def write(self, request: ModelRequest, *, streams: bool) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Api:
    """One of the APIs."""

    path: str
    writer: BodyWriter
    assemble: Callable[[], StreamAssembler]
    """Makes what takes the events of one stream."""
    read: Callable[[Json], ModelResponse]
    """An answer that came whole."""


class OpenAIProvider:
    """Sends requests to one of OpenAI's APIs."""

    def __init__(self, transport: OpenaiTransport, api: Api) -> None:
        self._transport, self._api = transport, api

    @property
    def dialect(self) -> Dialect:
        return "openai"

    def capabilities(self, model: Model) -> Capabilities:
        return choose_capabilities(model, self.dialect)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        api = self._api
        streams = on_delta is not None or request.frame.max_tokens > MAX_UNSTREAMED_TOKENS
        parcel = HttpPayload(api.path, api.writer.write(request, streams=streams))
        if streams:
            return await self._transport.stream(parcel, api.assemble(), on_delta or ignore_delta)
        return api.read(await self._transport.fetch(parcel))

    async def close(self) -> None:
        await self._transport.close()
