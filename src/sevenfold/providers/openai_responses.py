"""OpenAI's Responses API: reasoning comes encrypted, is kept with the history, and goes back with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sevenfold.core.capabilities import Capabilities, choose_capabilities
from sevenfold.core.models import Model
from sevenfold.core.requests import Dialect, ModelRequest, Reply
from sevenfold.providers.openai_responses_body import ResponsesWriter
from sevenfold.providers.openai_responses_reply import ResponseAssembly, read_response
from sevenfold.providers.openai_transport import Parcel, Transport
from sevenfold.providers.provider import MOST_UNSTREAMED, OnDelta, ignore

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

PATH = "/responses"


class ResponsesProvider:
    """Sends requests to the Responses API, with a client of the official SDK or to an address.

    Nothing is stored at the provider: the whole history travels, so that it can be cut and kept on our side.
    """

    def __init__(
        self,
        client: AsyncOpenAI | OpenAI | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        asks_reasoning: bool = True,
    ) -> None:
        self._transport = Transport(client, base_url, api_key)
        self._writer = ResponsesWriter(asks_reasoning=asks_reasoning)

    @property
    def dialect(self) -> Dialect:
        return "openai"

    def capabilities(self, model: Model) -> Capabilities:
        return choose_capabilities(model, self.dialect)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Reply:
        streams = on_delta is not None or request.frame.max_tokens > MOST_UNSTREAMED
        parcel = Parcel(PATH, self._writer.write(request, streams=streams))
        if streams:
            return await self._transport.stream(parcel, ResponseAssembly(), on_delta or ignore)
        return read_response(await self._transport.fetch(parcel))

    async def close(self) -> None:
        await self._transport.close()
