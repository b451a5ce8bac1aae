"""OpenAI's Responses API: reasoning comes encrypted, is kept with the history, and goes back with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sevenfold.providers.openai.provider import Api, OpenAIProvider
from sevenfold.providers.openai.responses_body import ResponsesBodyWriter
from sevenfold.providers.openai.responses_reply import ResponsesAssembler, read_response
from sevenfold.providers.openai.transport import OpenaiTransport

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

_RESPONSES_PATH = "/responses"


class ResponsesProvider(OpenAIProvider):
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
        writer = ResponsesBodyWriter(asks_reasoning=asks_reasoning)
        api = Api(_RESPONSES_PATH, writer, ResponsesAssembler, read_response)
        super().__init__(OpenaiTransport(client, base_url, api_key), api)
