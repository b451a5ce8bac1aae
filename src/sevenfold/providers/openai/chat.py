"""Chat completions: OpenAI's, and those of Ollama, vLLM, llama.cpp, LM Studio and others by their address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from sevenfold.providers.openai.chat_body import ChatBodyWriter
from sevenfold.providers.openai.chat_reply import ChatAssembler, read_chat_completion
from sevenfold.providers.openai.provider import Api, OpenAIProvider
from sevenfold.providers.openai.transport import OpenaiTransport

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

_CHAT_PATH = "/chat/completions"
MaxTokensField: TypeAlias = Literal["max_completion_tokens", "max_tokens"]
NEWER_HOSTS = ("openai.com", "azure.com")
"""Who calls it `max_completion_tokens` and refuses the older name; all others know the older one."""


class ChatProvider(OpenAIProvider):
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
        transport = OpenaiTransport(client, base_url, api_key)
        host = transport.host
        is_newer = not host or any(name in host for name in NEWER_HOSTS)
        field = max_tokens_field or ("max_completion_tokens" if is_newer else "max_tokens")
        writer = ChatBodyWriter(max_tokens_field=field, replays_reasoning=replays_reasoning)
        super().__init__(transport, Api(_CHAT_PATH, writer, ChatAssembler, read_chat_completion))
