"""The layers under a client of the OpenAI SDK, as the transport of its HTTP client (see `attached_client`).

The SDK has no middleware. A copy of the client gets an HTTP client whose transport prepares each request of
Chat Completions and Responses, and sends it with the HTTP client that was handed in.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from sevenfold.core.errors import ClientClosed, InputError, PromptTooLong, SevenfoldError
from sevenfold.core.events import Emit, ReplyUnrecorded, RequestPassed
from sevenfold.core.json import JsonObject, read_json
from sevenfold.core.requests import ModelResponse, PreparedRequest, RequestParams
from sevenfold.integrations.conversations import (
    CLOSED_BEFORE_ANSWER,
    AttachedConversation,
    ConversationPool,
    InFlightRequest,
    SessionOpener,
)
from sevenfold.integrations.reply_stream import StreamedReplyReader, tee_response, tee_response_async
from sevenfold.providers.error_map import map_fault, read_provider_fault
from sevenfold.providers.openai import (
    NEWER_HOSTS,
    Api,
    OpenAIProvider,
    OpenaiTransport,
)
from sevenfold.providers.openai.chat_wire import ChatAssembler, read_chat_completion
from sevenfold.providers.openai.client_body import ClientBodyWriter
from sevenfold.providers.openai.client_request import (
    LIMIT_FIELDS,
    ClientRequest,
    ClientRequestReader,
    OpenAIApi,
    explain_untouched,
    keep_reasoning,
)
from sevenfold.providers.openai.responses_wire import ResponsesAssembler, read_response

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI, OpenAI

OpenAIClientT = TypeVar("OpenAIClientT", bound="OpenAI | AsyncOpenAI")
APIS: dict[str, OpenAIApi] = {"/chat/completions": "chat", "/responses": "responses"}
"""By how the path of a request ends."""
_READ_WHOLE = {"chat": read_chat_completion, "responses": read_response}
_USAGE_KEY = b'"choices":[]'


class OpenAIAdapter(Generic[OpenAIClientT]):
    """A client of the SDK, and its conversations."""

    def __init__(self, client: OpenAIClientT, opener: SessionOpener, emit: Emit) -> None:
        self._client, self._emit = client, emit
        self.is_async = any(of.__name__.startswith("Async") for of in type(client).__mro__)
        self.conversations = ConversationPool[ClientBodyWriter](
            open_conversation=partial(_open_conversation, client, opener)
        )

    def add_layers(
        self, run: Callable[[Coroutine[Any, Any, Any]], Any], end: Callable[[], None]
    ) -> OpenAIClientT:
        # The one thing that the SDK has no public name for: the HTTP client that a client was made with.
        http: object = getattr(self._client, "_client", None)
        try:
            import httpx2
        except ImportError as error:  # an SDK before 3 brings another library
            raise InputError(_explain_http(self._client, http)) from error
        core = _TransportCore(self.conversations, self._emit)
        if isinstance(http, httpx2.Client):
            transport = LayersTransport(http, core, run)
            return self._client.copy(
                http_client=cast("Any", httpx2.Client(**_options(http), transport=cast("Any", transport)))
            )
        if isinstance(http, httpx2.AsyncClient):
            async_transport = AsyncLayersTransport(http, core, end)
            return self._client.copy(
                http_client=cast(
                    "Any", httpx2.AsyncClient(**_options(http), transport=cast("Any", async_transport))
                )
            )
        raise InputError(_explain_http(self._client, http))


def _explain_http(client: object, http: object) -> str:
    of_http = next((one for one in type(http).__mro__ if one.__module__.startswith("http")), type(http))
    return (
        f"attach(client) cannot use this {type(client).__name__}: its HTTP client is of the library "
        f"{of_http.__module__.partition('.')[0]}, and not httpx2; install openai 3 or newer, or start "
        "`sevenfold proxy` and give it as base_url"
    )


async def _open_conversation(
    client: OpenAI | AsyncOpenAI,
    opener: SessionOpener,
    frame: RequestParams,
    api: str,
    messages: Sequence[object],
) -> AttachedConversation[ClientBodyWriter]:
    of_api: OpenAIApi = "responses" if api == "responses" else "chat"
    is_newer = any(name in client.base_url.host for name in NEWER_HOSTS)
    writer = ClientBodyWriter(api=of_api, limit_field=LIMIT_FIELDS[of_api][0 if is_newer else -1])
    transport = OpenaiTransport(client, None, None)
    path = next(path for path, named in APIS.items() if named == of_api)
    assembler = ChatAssembler if of_api == "chat" else ResponsesAssembler
    provider = OpenAIProvider(transport, Api(path, writer, assembler, _READ_WHOLE[of_api]))
    session = await opener.open(frame, provider, messages)
    return AttachedConversation(session=session, writer=writer, api=api)


def _options(http: httpx2.Client | httpx2.AsyncClient) -> dict[str, Any]:
    """What requests are built from; everything about connections is the other client's."""
    return {
        "headers": http.headers,
        "cookies": http.cookies,
        "params": http.params,
        "timeout": http.timeout,
        "follow_redirects": False,
        "trust_env": False,
    }


@dataclass(slots=True, kw_only=True)
class _Call:
    """A request of the caller's, and what it became."""

    request: ClientRequest
    passage: InFlightRequest[ClientBodyWriter]
    view: PreparedRequest
    data: bytes
    hides_usage: bool
    """The caller did not ask for the usage of a stream, and we did."""


@dataclass(slots=True)
class _TransportCore:
    """What the plain and the async transport share: which requests are ours, and how each becomes a view."""

    conversations: ConversationPool[ClientBodyWriter]
    emit: Emit
    _reader: ClientRequestReader = field(default_factory=ClientRequestReader)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def read_request(self, request: httpx2.Request, data: bytes) -> ClientRequest | None:
        """The request, if it is ours."""
        path = request.url.path
        api: OpenAIApi | None = next((name for end, name in APIS.items() if path.endswith(end)), None)
        if request.method != "POST" or api is None:
            return None
        try:
            body = read_json(data)
        except SevenfoldError:
            return None
        if not isinstance(body, JsonObject):
            return None
        reason = explain_untouched(api, body)
        if reason:
            self.emit(RequestPassed(reason))
            return None
        with self._reading:
            return self._reader.read(api, body)

    async def prepare(self, request: ClientRequest, data: bytes) -> _Call:
        messages = request.messages
        passage = await self.conversations.find(
            messages, request.frame, request.api, is_streamed=request.streams
        )
        view = await passage.conversation.session.prepare(messages, frame=request.frame)
        return self._write(request, passage, view, data)

    async def recover(self, call: _Call, error: PromptTooLong) -> _Call | None:
        """The provider refused the view: a shorter one, if there can be one."""
        view = await call.passage.conversation.session.recover(error)
        return None if view is None else self._write(call.request, call.passage, view, call.data)

    def _write(
        self,
        request: ClientRequest,
        passage: InFlightRequest[ClientBodyWriter],
        view: PreparedRequest,
        data: bytes,
    ) -> _Call:
        conversation = passage.conversation
        hides_usage = request.api == "chat" and request.streams and not _tells_usage(request.body)
        with conversation.writing:
            conversation.writer.learn(request)
            written = conversation.writer.write_view(view.request, request, asks_usage=hides_usage)
        return _Call(
            request=request,
            passage=passage,
            view=view,
            data=data if written is None else written,
            hides_usage=hides_usage,
        )

    def read_whole(self, call: _Call, response: httpx2.Response) -> ModelResponse | None:
        """An answer that came whole. One that we cannot read is the caller's all the same."""
        try:
            return _READ_WHOLE[call.request.api](read_json(response.content))
        except SevenfoldError as error:
            self.lost(f"{type(error).__name__}: {error}")
            return None

    def make_reader(self, call: _Call) -> StreamedReplyReader:
        assembler = ChatAssembler() if call.request.api == "chat" else ResponsesAssembler()
        return StreamedReplyReader(assembler, self.lost)

    async def record(self, call: _Call, reply: ModelResponse) -> None:
        kept = replace(reply, message=keep_reasoning(reply.message))
        try:
            await call.passage.conversation.session.record(kept)
        except InputError:
            if not self.conversations.is_closed:
                raise
            self.lost(CLOSED_BEFORE_ANSWER)
        finally:
            await self.finish(call)

    async def finish(self, call: _Call) -> None:
        """Nothing more is to come for this call."""
        await self.conversations.finish(call.passage)

    def lost(self, reason: str) -> None:
        self.emit(ReplyUnrecorded(reason))


class LayersTransport:
    """For a blocking client: what httpx2 expects of a `BaseTransport`."""

    def __init__(
        self, http: httpx2.Client, core: _TransportCore, run: Callable[[Coroutine[Any, Any, Any]], Any]
    ) -> None:
        self._http, self._core, self._run = http, core, run

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        data = request.read()
        asked = self._core.read_request(request, data)
        if asked is None:
            return self._http.send(request, stream=True)
        call: _Call = self._run(self._core.prepare(asked, data))
        try:
            return self._answer(request, call)
        finally:
            if not call.passage.is_streamed:
                call.passage.finish()
                if self._core.conversations.is_closed:
                    with suppress(ClientClosed):
                        self._run(self._core.finish(call))

    def _answer(self, request: httpx2.Request, call: _Call) -> httpx2.Response:
        response = self._http.send(_with_body(request, call.data), stream=True)
        if response.status_code in (400, 413):
            response.read()
            error = _read_refusal(response)
            other: _Call | None = error and self._run(self._core.recover(call, error))
            if other is not None:
                call, response = other, self._http.send(_with_body(request, other.data), stream=True)
        return self._recorded(call, response)

    def _recorded(self, call: _Call, response: httpx2.Response) -> httpx2.Response:
        if not response.is_success:
            return response

        def ended(reply: ModelResponse) -> None:
            try:
                self._run(self._core.record(call, reply))
            except ClientClosed:
                self._core.lost(CLOSED_BEFORE_ANSWER)

        if call.request.streams:
            passing = tee_response(response, self._core.make_reader(call), ended)
            return _without_usage(passing) if call.hides_usage else passing
        response.read()
        reply = self._core.read_whole(call, response)
        if reply is not None:
            ended(reply)
        return response

    def close(self) -> None:
        """The HTTP client is its owner's to close."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncLayersTransport:
    """For an async client: what httpx2 expects of an `AsyncBaseTransport`."""

    def __init__(self, http: httpx2.AsyncClient, core: _TransportCore, end: Callable[[], None]) -> None:
        self._http, self._core, self._end = http, core, end

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        data = await request.aread()
        asked = self._core.read_request(request, data)
        if asked is None:
            return await self._http.send(request, stream=True)
        call = await self._core.prepare(asked, data)
        try:
            return await self._answer(request, call)
        finally:
            if not call.passage.is_streamed:
                await self._core.finish(call)
                self._end()

    async def _answer(self, request: httpx2.Request, call: _Call) -> httpx2.Response:
        response = await self._http.send(_with_body(request, call.data), stream=True)
        if response.status_code in (400, 413):
            await response.aread()
            error = _read_refusal(response)
            other = await self._core.recover(call, error) if error else None
            if other is not None:
                call, response = other, await self._http.send(_with_body(request, other.data), stream=True)
        return await self._recorded(call, response)

    async def _recorded(self, call: _Call, response: httpx2.Response) -> httpx2.Response:
        if not response.is_success:
            return response

        async def ended(reply: ModelResponse) -> None:
            await self._core.record(call, reply)

        if call.request.streams:
            passing = tee_response_async(response, self._core.make_reader(call), ended)
            return _without_usage_async(passing) if call.hides_usage else passing
        await response.aread()
        reply = self._core.read_whole(call, response)
        if reply is not None:
            await ended(reply)
        return response

    async def aclose(self) -> None:
        """The HTTP client is its owner's to close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _tells_usage(body: JsonObject) -> bool:
    options = body.get("stream_options")
    return isinstance(options, JsonObject) and options.get("include_usage") is True


def _with_body(request: httpx2.Request, data: bytes) -> httpx2.Request:
    """The same request with another body."""
    import httpx2

    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    return httpx2.Request(
        request.method, request.url, headers=headers, content=data, extensions=request.extensions
    )


def _read_refusal(response: httpx2.Response) -> PromptTooLong | None:
    try:
        body: object = response.json()
    except ValueError:
        body = None
    fault = cast("dict[str, object]", body).get("error") if isinstance(body, dict) else None
    error = map_fault(read_provider_fault(response.text, response.status_code, fault, response.headers))
    return error if isinstance(error, PromptTooLong) else None


class _UsageFilter:
    """Takes the chunk with the usage out of a stream: the caller did not ask for it, and may not expect a
    chunk without choices."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        *events, self._rest = (self._rest + data).split(b"\n\n")
        return b"".join(event + b"\n\n" for event in events if not _is_usage(event))

    def end(self) -> bytes:
        rest, self._rest = self._rest, b""
        return rest


def _is_usage(event: bytes) -> bool:
    return _USAGE_KEY in event.replace(b" ", b"") and b'"usage"' in event


def _without_usage(response: httpx2.Response) -> httpx2.Response:
    import httpx2

    chunks = _UsageFilter()

    class Passing(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for data in response.iter_bytes():
                yield chunks.feed(data)
            yield chunks.end()

        def close(self) -> None:
            response.close()

    return _with_stream(response, Passing())


def _without_usage_async(response: httpx2.Response) -> httpx2.Response:
    import httpx2

    chunks = _UsageFilter()

    class Passing(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for data in response.aiter_bytes():
                yield chunks.feed(data)
            yield chunks.end()

        async def aclose(self) -> None:
            await response.aclose()

    return _with_stream(response, Passing())


def _with_stream(
    response: httpx2.Response, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream
) -> httpx2.Response:
    import httpx2

    return httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=stream,
        request=response.request,
        extensions=response.extensions,
    )
