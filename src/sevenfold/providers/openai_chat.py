"""Chat completions: OpenAI's, and those of Ollama, vLLM, llama.cpp, LM Studio and others by their address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from sevenfold.core.capabilities import Capabilities, choose_capabilities
from sevenfold.core.models import Model
from sevenfold.core.requests import Dialect, ModelRequest, Reply
from sevenfold.providers.openai_chat_body import ChatWriter
from sevenfold.providers.openai_chat_reply import ChatAssembly, read_chat
from sevenfold.providers.openai_transport import Parcel, Transport
from sevenfold.providers.provider import MOST_UNSTREAMED, OnDelta, ignore

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

PATH = "/chat/completions"
MaxTokensField: TypeAlias = Literal["max_completion_tokens", "max_tokens"]
NEWER_HOSTS = ("openai.com", "azure.com")
"""Who calls it `max_completion_tokens` and refuses the older name; all others know the older one."""


class ChatProvider:
    """Sends requests as chat completions, with a client of the official SDK or to an address.

    `replays_reasoning` sends a model its own reasoning back, for servers that want it between tool calls.
    """

    def __init__(
        self,
        client: AsyncOpenAI | OpenAI | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_tokens_field: MaxTokensField | None = None,
        replays_reasoning: bool = False,
    ) -> None:
        self._transport = Transport(client, base_url, api_key)
        host = self._transport.host
        is_newer = not host or any(name in host for name in NEWER_HOSTS)
        field = max_tokens_field or ("max_completion_tokens" if is_newer else "max_tokens")
        self._writer = ChatWriter(max_tokens_field=field, replays_reasoning=replays_reasoning)

    @property
    def dialect(self) -> Dialect:
        return "openai"

    def capabilities(self, model: Model) -> Capabilities:
        return choose_capabilities(model, self.dialect)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> Reply:
        streams = on_delta is not None or request.frame.max_tokens > MOST_UNSTREAMED
        parcel = Parcel(PATH, self._writer.write(request, streams=streams))
        if streams:
            return await self._transport.stream(parcel, ChatAssembly(), on_delta or ignore)
        return read_chat(await self._transport.fetch(parcel))

    async def close(self) -> None:
        await self._transport.close()
