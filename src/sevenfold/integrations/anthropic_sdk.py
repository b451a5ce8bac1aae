"""The layers under a client of the Anthropic SDK, as a middleware of the SDK (see `attached_client`).

Clients for Bedrock and Vertex take the same middleware: it sees requests before they get the form of their
platform.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from sevenfold.core.errors import ClientClosed, InputError, PromptTooLong, SevenfoldError, ThinkingRefused
from sevenfold.core.events import Emit, ReplyUnrecorded, RequestPassed
from sevenfold.core.json import read_json
from sevenfold.core.requests import ModelResponse, PreparedRequest, RequestParams
from sevenfold.integrations.conversations import (
    CLOSED_BEFORE_ANSWER,
    AttachedConversation,
    ConversationPool,
    InFlightRequest,
    SessionOpener,
)
from sevenfold.integrations.reply_stream import (
    EVENT_STREAM_TYPE,
    StreamedReplyReader,
    tee_response,
    tee_response_async,
)
from sevenfold.providers.anthropic import AnthropicProvider, is_async_client, needs_json_body
from sevenfold.providers.anthropic.wire import MessagesAssembler, MessagesBodyWriter, read_messages_response
from sevenfold.providers.error_map import map_fault, read_provider_fault
from sevenfold.session import Session

if TYPE_CHECKING:
    import httpx2
    from anthropic import Anthropic, APIResponse, AsyncAnthropic, AsyncAPIResponse
    from anthropic._middleware import AsyncCallNext, CallNext
    from anthropic._request import APIRequest

AnthropicClientT = TypeVar("AnthropicClientT", bound="Anthropic | AsyncAnthropic")

_PATH = "/v1/messages"
_BETAS = "anthropic-beta"
_RecoverableError: TypeAlias = PromptTooLong | ThinkingRefused

_THREADS_UNSUPPORTED = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "threads are kept by the provider, out of reach of the layers; send whole requests",
        "details": {"error_code": "thread_unsupported_request"},
    },
}
"""What the provider itself answers where threads are not to be had; the SDK then sends whole requests."""


class AnthropicAdapter(Generic[AnthropicClientT]):
    """A client of the SDK, and its conversations."""

    def __init__(self, client: AnthropicClientT, opener: SessionOpener, emit: Emit) -> None:
        self._client, self._emit = client, emit
        self.is_async = is_async_client(client)
        self.conversations = ConversationPool[MessagesBodyWriter](
            # Not a method of ours: a cycle would keep the connections of a client that nobody has any more.
            open_conversation=partial(_open_conversation, client, opener)
        )

    def add_layers(
        self, run: Callable[[Coroutine[Any, Any, Any]], Any], end: Callable[[], None]
    ) -> AnthropicClientT:
        client, core = self._client, _MiddlewareCore(self._client, self.conversations, self._emit)
        if not hasattr(client, "with_middleware"):
            raise InputError(
                f"attach(client) cannot use this {type(client).__name__}: it takes no middleware; "
                "install a newer anthropic"
            )
        if self.is_async:
            return client.with_middleware(AsyncLayersMiddleware(cast("AsyncAnthropic", client), core, end))
        return client.with_middleware(LayersMiddleware(cast("Anthropic", client), core, run))


async def _open_conversation(
    client: Anthropic | AsyncAnthropic,
    opener: SessionOpener,
    frame: RequestParams,
    api: str,
    messages: Sequence[object],
) -> AttachedConversation[MessagesBodyWriter]:
    session = await opener.open(frame, AnthropicProvider(client), messages)
    return AttachedConversation(session=session, writer=MessagesBodyWriter(), api=api)


@dataclass(slots=True)
class _Call:
    """A request of the caller's, and what it became."""

    request: APIRequest
    passage: InFlightRequest[MessagesBodyWriter]
    view: PreparedRequest
    needs_json: bool = False
    """The client gives requests another form, and looks into them for it."""

    @property
    def session(self) -> Session:
        return self.passage.conversation.session

    def rewritten(self) -> APIRequest:
        """The caller's request with the view for its body. Not by `copy()`, which copies the old one."""
        streams = self.request.stream or _body(self.request).get("stream") is True
        conversation = self.passage.conversation
        with conversation.writing:
            data = conversation.writer.write(self.view.request, streams=streams)
        headers = dict(self.request.headers)
        if self.view.request.frame.betas:
            headers[_BETAS] = ",".join(self.view.request.frame.betas)
        changed: dict[str, object] = {"json_data": None, "content": data, "headers": headers}
        if self.needs_json:
            changed |= {"json_data": json.loads(data), "content": None, "extra_json": None}
        return type(self.request)(
            options=self.request.options.model_copy(update=changed),
            cast_to=self.request.cast_to,
            stream=self.request.stream,
            stream_cls=self.request.stream_cls,
            retries_taken=self.request.retries_taken,
        )


class _MiddlewareCore:
    """What the plain and the async middleware share: which requests are ours, and how each becomes a view."""

    def __init__(
        self,
        client: Anthropic | AsyncAnthropic,
        conversations: ConversationPool[MessagesBodyWriter],
        emit: Emit,
    ) -> None:
        self._conversations, self._emit = conversations, emit
        self._needs_json = needs_json_body(client)

    def is_ours(self, request: APIRequest) -> bool:
        if request.method.lower() != "post" or request.url.partition("?")[0] != _PATH:
            return False
        reason = _why_untouched(_body(request))
        if reason:
            self._emit(RequestPassed(reason))
        return not reason

    async def prepare(self, request: APIRequest) -> _Call:
        body = _body(request)
        frame = self._conversations.read_frame(body, _betas(request))
        messages = cast("Sequence[object]", body["messages"])
        is_streamed = bool(request.stream)
        passage = await self._conversations.find(messages, frame, is_streamed=is_streamed)
        view = await passage.conversation.session.prepare(messages, frame=frame)
        return _Call(request, passage, view, self._needs_json)

    def read(self, response: httpx2.Response) -> ModelResponse | None:
        """An answer that came whole. One that we cannot read is the caller's all the same."""
        try:
            return read_messages_response(read_json(response.content))
        except SevenfoldError as error:
            self.lost(f"{type(error).__name__}: {error}")
            return None

    async def record(self, call: _Call, reply: ModelResponse) -> None:
        try:
            await call.session.record(reply)
        except InputError:
            if not self.is_closed:
                raise
            self.lost(CLOSED_BEFORE_ANSWER)
        finally:
            await self.finish(call)

    @property
    def is_closed(self) -> bool:
        return self._conversations.is_closed

    async def finish(self, call: _Call) -> None:
        """Nothing more is to come for this call."""
        await self._conversations.finish(call.passage)

    def make_reader(self, response: httpx2.Response) -> StreamedReplyReader:
        is_framed = EVENT_STREAM_TYPE in response.headers.get("content-type", "")
        return StreamedReplyReader(MessagesAssembler(), self.lost, is_framed=is_framed)

    def lost(self, reason: str) -> None:
        self._emit(ReplyUnrecorded(reason))

    async def recover(self, call: _Call, error: _RecoverableError) -> _Call | None:
        """The provider refused the view: another one, if there can be one that it takes."""
        view = await call.session.recover(error)
        return None if view is None else _Call(call.request, call.passage, view, self._needs_json)


class LayersMiddleware:
    """For a blocking client. Runs once per attempt: for a retry a session prepares the same request."""

    def __init__(
        self, client: Anthropic, core: _MiddlewareCore, run: Callable[[Coroutine[Any, Any, Any]], Any]
    ) -> None:
        self._client, self._core, self._run = client, core, run

    def __call__(self, request: APIRequest, call_next: CallNext) -> APIResponse[Any]:
        from anthropic import APIResponse

        if not self._core.is_ours(request):
            return call_next(request)
        if "thread" in _body(request):
            return APIResponse(**_response_fields(request, self._client, _refuse_thread(request)))
        call: _Call = self._run(self._core.prepare(request))
        try:
            return self._answer(call, call_next)
        finally:
            if not call.passage.is_streamed:
                call.passage.finish()
                if self._core.is_closed:
                    with suppress(ClientClosed):
                        self._run(self._core.finish(call))

    def _answer(self, call: _Call, call_next: CallNext) -> APIResponse[Any]:
        response = call_next(call.rewritten())
        error = _find_refusal(response.http_response)
        if error is not None:
            other: _Call | None = self._run(self._core.recover(call, error))
            if other is not None:
                call, response = other, call_next(other.rewritten())
        return self._recorded(call, response)

    def _recorded(self, call: _Call, response: APIResponse[Any]) -> APIResponse[Any]:
        from anthropic import APIResponse

        raw = response.http_response
        if not raw.is_success or not call.view.request.frame.max_tokens:
            return response
        if call.request.stream:

            def ended(reply: ModelResponse) -> None:
                self._record(call, reply)

            passing = tee_response(raw, self._core.make_reader(raw), ended)
            return APIResponse(**_response_fields(call.request, self._client, passing))
        # A caller who asked to stream the bytes of a plain answer gets them from memory.
        raw.read()
        reply = self._core.read(raw)
        if reply is not None:
            self._record(call, reply)
        return response

    def _record(self, call: _Call, reply: ModelResponse) -> None:
        try:
            self._run(self._core.record(call, reply))
        except ClientClosed:
            self._core.lost(CLOSED_BEFORE_ANSWER)


class AsyncLayersMiddleware:
    """For an async client."""

    def __init__(self, client: AsyncAnthropic, core: _MiddlewareCore, end: Callable[[], None]) -> None:
        self._client, self._core, self._end = client, core, end

    async def __call__(self, request: APIRequest, call_next: AsyncCallNext) -> AsyncAPIResponse[Any]:
        from anthropic import AsyncAPIResponse

        if not self._core.is_ours(request):
            return await call_next(request)
        if "thread" in _body(request):
            return AsyncAPIResponse(**_response_fields(request, self._client, _refuse_thread(request)))
        call = await self._core.prepare(request)
        try:
            return await self._answer(call, call_next)
        finally:
            if not call.passage.is_streamed:
                await self._core.finish(call)
                self._end()

    async def _answer(self, call: _Call, call_next: AsyncCallNext) -> AsyncAPIResponse[Any]:
        response = await call_next(call.rewritten())
        error = await _find_refusal_async(response.http_response)
        if error is not None:
            other = await self._core.recover(call, error)
            if other is not None:
                call, response = other, await call_next(other.rewritten())
        return await self._recorded(call, response)

    async def _recorded(self, call: _Call, response: AsyncAPIResponse[Any]) -> AsyncAPIResponse[Any]:
        from anthropic import AsyncAPIResponse

        raw = response.http_response
        if not raw.is_success or not call.view.request.frame.max_tokens:
            return response
        if call.request.stream:
            passing = tee_response_async(raw, self._core.make_reader(raw), partial(self._core.record, call))
            return AsyncAPIResponse(**_response_fields(call.request, self._client, passing))
        await raw.aread()
        reply = self._core.read(raw)
        if reply is not None:
            await self._core.record(call, reply)
        return response


def _body(request: APIRequest) -> Mapping[str, object]:
    """Every field of the body, those of `extra_body` too."""
    extra = request.options.extra_json or {}
    return {**cast("Mapping[str, object]", request.json or {}), **extra}


def _betas(request: APIRequest) -> tuple[str, ...]:
    named = request.headers.get(_BETAS)
    return tuple(name.strip() for name in named.split(",") if name.strip()) if isinstance(named, str) else ()


def _why_untouched(body: Mapping[str, object]) -> str:
    """Why a request passes as it is; empty where it does not."""
    messages = body.get("messages")
    if not isinstance(messages, (list, tuple)) or not messages:
        return "it has no messages"
    if body.get("compaction") is not None:
        return "it asks for a compaction of its own"
    return ""


def _find_refusal(response: httpx2.Response) -> _RecoverableError | None:
    if response.status_code not in (400, 413):
        return None
    response.read()
    return _map_refusal(response)


async def _find_refusal_async(response: httpx2.Response) -> _RecoverableError | None:
    if response.status_code not in (400, 413):
        return None
    await response.aread()
    return _map_refusal(response)


def _map_refusal(response: httpx2.Response) -> _RecoverableError | None:
    try:
        body: object = response.json()
    except ValueError:
        body = None
    error = map_fault(read_provider_fault(response.text, response.status_code, body, response.headers))
    return error if isinstance(error, (PromptTooLong, ThinkingRefused)) else None


def _refuse_thread(request: APIRequest) -> httpx2.Response:
    import httpx2

    return httpx2.Response(400, json=_THREADS_UNSUPPORTED, request=httpx2.Request("POST", request.url))


def _response_fields(request: APIRequest, client: object, raw: httpx2.Response) -> dict[str, Any]:
    """What a response of the SDK is made of."""
    return {
        "raw": raw,
        "cast_to": request.cast_to,
        "client": client,
        "stream": request.stream,
        "stream_cls": request.stream_cls,
        "options": request.options,
        "retries_taken": request.retries_taken,
    }
