"""The APIs of OpenAI, and of servers that are compatible with them, through the official SDK.

- `chat_wire`: chat completions, request and response.
- `responses_wire`: the Responses API, request and response.
- `client_request`, `client_body`: requests that a client wrote, as values, and their views in its words.
- `request_parts`: tools, parameters and content, for both APIs.

Here: `ChatProvider` and `ResponsesProvider`, the transport that both use, and the mapping of the SDK's
errors.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from sevenfold.core.errors import InputError, ProviderError, describe_missing
from sevenfold.core.json import Json, read_json
from sevenfold.core.models import Model
from sevenfold.core.requests import Capabilities, Dialect, ModelRequest, ModelResponse, choose_capabilities
from sevenfold.providers import error_map
from sevenfold.providers.openai.chat_wire import ChatAssembler, ChatBodyWriter, read_chat_completion
from sevenfold.providers.openai.responses_wire import ResponsesAssembler, ResponsesBodyWriter, read_response
from sevenfold.providers.provider import MAX_UNSTREAMED_TOKENS, Delta, OnDelta, ignore_delta
from sevenfold.providers.reply_limits import (
    DEFAULT_CALL_OPTIONS,
    IDENTITY_HEADERS,
    CallOptions,
    StallWatch,
    check_calls,
    limit_error_body,
    limit_reply,
    limit_reply_async,
    limit_reply_bytes,
    send_with_retries,
    shows_progress,
    watch_stall,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream, OpenAI, OpenAIError, RequestOptions, Stream


@contextmanager
def map_openai_errors(*, is_answering: bool = False) -> Generator[None]:
    """What goes wrong leaves as a `ProviderError`; once an answer has begun, it is the answer that failed."""
    import openai

    try:
        with error_map.map_transport():
            yield
    except openai.OpenAIError as error:
        raise map_openai_error(error, is_answering=is_answering) from error
    except UnicodeEncodeError as error:
        raise InputError(f"a text cannot be sent by this client: {error}; replace the character") from error


def map_openai_error(error: OpenAIError, *, is_answering: bool = False) -> ProviderError:
    """The error of ours that stands for one of the SDK's."""
    import openai

    match error:
        case openai.APIStatusError():
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            fault = error_map.read_provider_fault(error.message, error.status_code, error.body, headers)
            return error_map.map_fault(fault)
        case openai.APIConnectionError():
            return (
                error_map.make_broken_error(error)
                if is_answering
                else error_map.make_unreachable_error(error)
            )
        case openai.APIResponseValidationError():
            return error_map.make_broken_error(error)
        case openai.APIError():
            # An error in the middle of a stream, which has no status.
            return error_map.map_fault(error_map.read_provider_fault(error.message, None, error.body, {}))
        case _ if "api_key" in str(error) or "credentials" in str(error):
            return error_map.make_sign_in_error(error)
        case _:
            return error_map.make_unsent_error(error)


LOCAL_KEY = "unused"
"""What a server of one's own is sent for a key: it asks for none, and the SDK insists on one."""


class StreamAssembler(Protocol):
    """Takes the events of a stream, and then makes a reply of them."""

    def add(self, event: object) -> Iterator[Delta]: ...

    def reply(self) -> ModelResponse: ...


@dataclass(frozen=True, slots=True)
class HttpPayload:
    """A request as it goes to the SDK."""

    path: str
    data: bytes
    model: str
    max_bytes: int
    """Of the answer."""

    def body(self, client: AsyncOpenAI | OpenAI) -> object | None:
        """For a client of another class, which looks into it (Azure's does); else None."""
        return None if _is_plain(client) else json.loads(self.data)

    def content(self, client: AsyncOpenAI | OpenAI) -> bytes | None:
        return self.data if _is_plain(client) else None


def _request_options() -> RequestOptions:
    # Retries are ours, and a redirect would take the conversation elsewhere.
    return {"headers": dict(IDENTITY_HEADERS), "max_retries": 0, "follow_redirects": False}


class OpenaiTransport:
    """One client, handed in or made on first use. Only one that was made here is closed here."""

    def __init__(
        self,
        client: AsyncOpenAI | OpenAI | None,
        base_url: str | None,
        api_key: str | None,
        options: CallOptions = DEFAULT_CALL_OPTIONS,
    ) -> None:
        self._client, self._base_url, self._api_key = client, base_url, api_key
        self._options = options
        self._owned: AsyncOpenAI | None = None

    @property
    def host(self) -> str:
        """Where requests go, as far as it is known before the first."""
        if self._client is not None:
            return self._client.base_url.host
        return self._base_url or ""

    async def close(self) -> None:
        owned, self._owned = self._owned, None
        if owned is not None:
            await owned.close()

    async def fetch(self, payload: HttpPayload) -> Json:
        """The whole answer, as JSON."""
        client = self._open()

        async def attempt() -> Json:
            async with watch_stall(self._options.unstreamed / 2):
                with map_openai_errors():
                    return read_json(await _fetch(client, payload))

        return await send_with_retries(attempt, payload.model, client.max_retries, self._options)

    async def stream(
        self, payload: HttpPayload, assemble: Callable[[], StreamAssembler], on_delta: OnDelta
    ) -> ModelResponse:
        """The answer as it is written."""
        client = self._open()
        from openai import OpenAI

        async def attempt() -> ModelResponse:
            async with watch_stall(self._options.stall) as watch:
                with map_openai_errors():
                    if isinstance(client, OpenAI):
                        return await _stream_in_thread(client, payload, assemble(), _OnLoop(watch, on_delta))
                    return await _stream(client, payload, assemble(), _OnLoop(watch, on_delta))

        return await send_with_retries(attempt, payload.model, client.max_retries, self._options)

    def _open(self) -> AsyncOpenAI | OpenAI:
        if self._client is not None:
            return self._client
        if self._owned is None:
            try:
                from openai import AsyncOpenAI, DefaultAsyncHttpxClient
            except ImportError as error:
                raise InputError(describe_missing("this model", ["openai"], "openai")) from error
            key = self._api_key or (LOCAL_KEY if self._base_url else None)
            with map_openai_errors():
                self._owned = AsyncOpenAI(
                    api_key=key,
                    base_url=self._base_url,
                    http_client=DefaultAsyncHttpxClient(
                        follow_redirects=False, event_hooks={"response": [limit_error_body]}
                    ),
                )
        return self._owned


def _is_plain(client: AsyncOpenAI | OpenAI) -> bool:
    """Whether a client is the SDK's own for OpenAI, and sends bytes as they are."""
    from openai import AsyncOpenAI, OpenAI

    return type(client) in (AsyncOpenAI, OpenAI)


@dataclass(frozen=True, slots=True)
class _OnLoop:
    """Who is told, on the event loop, what comes."""

    watch: StallWatch
    on_delta: OnDelta


async def _fetch(client: AsyncOpenAI | OpenAI, payload: HttpPayload) -> bytes:
    """Asked for as a stream: the SDK would read all of an answer, however long."""
    from openai import OpenAI

    if isinstance(client, OpenAI):
        given_up = Event()
        try:
            return await asyncio.to_thread(_fetch_blocking, client, payload, given_up)
        except asyncio.CancelledError:
            given_up.set()
            raise
    stream = await _post(client, payload)
    async with stream:
        limit_reply_async(stream.response, payload.max_bytes)
        return await stream.response.aread()


async def _post(client: AsyncOpenAI, payload: HttpPayload) -> AsyncStream[object]:
    from openai import AsyncStream

    return await client.post(
        payload.path,
        cast_to=object,
        body=payload.body(client),
        content=payload.content(client),
        options=_request_options(),
        stream=True,
        stream_cls=AsyncStream[object],
    )


def _post_blocking(client: OpenAI, payload: HttpPayload) -> Stream[object]:
    from openai import Stream

    return client.post(
        payload.path,
        cast_to=object,
        body=payload.body(client),
        content=payload.content(client),
        options=_request_options(),
        stream=True,
        stream_cls=Stream[object],
    )


def _fetch_blocking(client: OpenAI, payload: HttpPayload, given_up: Event) -> bytes:
    with _post_blocking(client, payload) as stream:
        limit_reply(stream.response, payload.max_bytes, given_up)
        return stream.response.read()


async def _stream(
    client: AsyncOpenAI, payload: HttpPayload, assembly: StreamAssembler, on_loop: _OnLoop
) -> ModelResponse:
    stream = await _post(client, payload)
    with map_openai_errors(is_answering=True):
        async with stream:
            limit_reply_async(stream.response, payload.max_bytes)
            async for event in stream:
                if shows_progress(event):
                    on_loop.watch.progressed()
                for delta in assembly.add(event):
                    on_loop.on_delta(delta)
        return assembly.reply()


async def _stream_in_thread(
    client: OpenAI, payload: HttpPayload, assembly: StreamAssembler, on_loop: _OnLoop
) -> ModelResponse:
    """The same with a sync client. A request that is given up on ends with the next bytes that come."""
    loop, given_up = asyncio.get_running_loop(), Event()

    def run() -> ModelResponse:
        stream = _post_blocking(client, payload)
        with map_openai_errors(is_answering=True), stream:
            limit_reply(stream.response, payload.max_bytes, given_up)
            for event in stream:
                if shows_progress(event):
                    loop.call_soon_threadsafe(on_loop.watch.progressed)
                for delta in assembly.add(event):
                    loop.call_soon_threadsafe(on_loop.on_delta, delta)
            return assembly.reply()

    try:
        return await asyncio.to_thread(run)
    except asyncio.CancelledError:
        given_up.set()
        raise


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
        frame = request.frame
        data = api.writer.write(request, streams=streams)
        payload = HttpPayload(api.path, data, frame.model, limit_reply_bytes(frame.max_tokens))
        if streams:
            return check_calls(await self._transport.stream(payload, api.assemble, on_delta or ignore_delta))
        return check_calls(api.read(await self._transport.fetch(payload)))

    async def close(self) -> None:
        await self._transport.close()


# Chat completions of OpenAI, and of Ollama, vLLM, llama.cpp, LM Studio and others by their address.

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
        options: CallOptions = DEFAULT_CALL_OPTIONS,
    ) -> None:
        transport = OpenaiTransport(client, base_url, api_key, options)
        host = transport.host
        is_newer = not host or any(name in host for name in NEWER_HOSTS)
        field = max_tokens_field or ("max_completion_tokens" if is_newer else "max_tokens")
        writer = ChatBodyWriter(max_tokens_field=field, replays_reasoning=replays_reasoning)
        super().__init__(transport, Api(_CHAT_PATH, writer, ChatAssembler, read_chat_completion))


# In the Responses API, reasoning comes encrypted, is kept with the history, and is sent back with it.

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
        options: CallOptions = DEFAULT_CALL_OPTIONS,
    ) -> None:
        writer = ResponsesBodyWriter(asks_reasoning=asks_reasoning)
        api = Api(_RESPONSES_PATH, writer, ResponsesAssembler, read_response)
        super().__init__(OpenaiTransport(client, base_url, api_key, options), api)
