"""The layers under an agent loop that calls the Anthropic SDK itself, with one new line:

    with attach(anthropic.Anthropic(), project=".") as client:
        client.messages.create(...)

or, where a block does not fit:

    client = attach(anthropic.Anthropic(), project=".")
    client.messages.create(...)
    client.close()

What comes back from `with` and `open` is a client of the same type. Its `messages` calls, streamed or not,
plain or beta, go through the request path; all others pass untouched.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast, overload

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import ClientClosed, InputError, SevenfoldError
from sevenfold.core.events import Emit, ReplyUnrecorded, RequestPassed, ignore_event
from sevenfold.core.json import read_json
from sevenfold.core.requests import ModelResponse, PreparedRequest
from sevenfold.core.system import LoopThread
from sevenfold.integrations.anthropic_stream import (
    RecoverableError,
    find_refusal,
    find_refusal_async,
    refuse_thread,
    response_fields,
    tee_response,
    tee_response_async,
)
from sevenfold.integrations.conversations import (
    CLIENT_CLOSED,
    CLOSED_BEFORE_ANSWER,
    ConversationPool,
    InFlightRequest,
    SessionOpener,
)
from sevenfold.providers.anthropic.wire import read_messages_response
from sevenfold.session import Session
from sevenfold.session.opening import WorkspaceOptions

if TYPE_CHECKING:
    import httpx2
    from anthropic import Anthropic, APIResponse, AsyncAnthropic, AsyncAPIResponse
    from anthropic._middleware import AsyncCallNext, CallNext
    from anthropic._request import APIRequest

C = TypeVar("C", bound="Anthropic | AsyncAnthropic")
RunCoroutine: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]

_PATH = "/v1/messages"
_BETAS = "anthropic-beta"


def attach(
    client: C,
    *,
    project: str | Path | None = ".",
    settings: Mapping[str, Mapping[str, object]] | None = None,
    emit: Emit = ignore_event,
    clock: Clock | None = None,
    environ: Mapping[str, str] | None = None,
    context: bool = False,
    clearable: Mapping[str, bool] | None = None,
) -> AttachedClient[C]:
    """The layers under this client: `with attach(client) as client`, or `async with` for an async one.

    Without a block it is used as it is, and closed by `close()`, which is awaited for an async one.

    Each conversation that passes is a session of the project, known by its messages. Without a project
    nothing is kept on disk. The client that was handed in goes on as it was, and is its owner's to close.
    With `context` the model is told what instruction files say; without, the prompt is the caller's alone.
    `clearable` says of tools, by name, whether their old results may be cleared.
    """

    options = WorkspaceOptions(
        project=Path(project) if project is not None else None,
        settings=settings,
        trusts_local=True,
        clock=clock or SystemClock(),
        environ=os.environ if environ is None else environ,
    )
    opener = SessionOpener(
        client=client, options=options, emit=emit, adds_context=context, clearable=clearable
    )
    return AttachedClient(client, ConversationPool(open_session=opener.open), emit, opener.close)


class AttachedClient(Generic[C]):
    """A client on top of the layers: a context manager, plain or async, or used as it is.

    `with` and `open` give a client of the type that was handed in. Used as it is, it opens with the first
    attribute that is asked of it, and is closed by `close`. A blocking one is closed at the latest when the
    interpreter ends; an async one is not, since its event loop is gone by then.
    """

    def __init__(
        self, client: C, conversations: ConversationPool, emit: Emit, close: Callable[[], None]
    ) -> None:
        self._client, self._conversations, self._emit = client, conversations, emit
        self._close_workspace = close
        self._loop = LoopThread()
        self._opened: C | None = None
        self._opening = threading.Lock()
        self._has_closed = False
        """`close` is over; what it waited for may still come."""

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The conversations that have passed, the one used last at the end."""
        return tuple(conversation.session for conversation in self._conversations.conversations)

    @property
    def is_forked(self) -> bool:
        """Whether another process opened it, which this one was forked from."""
        return self._loop.is_forked

    def __getattr__(self, name: str) -> Any:
        # What the interpreter or a library looks up to find out what this is opens nothing.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if self._conversations.is_closed:
            raise ClientClosed(CLIENT_CLOSED)
        return getattr(self._opened or self.open(), name)

    def open(self) -> C:
        """The client to use from now on, of the type that was handed in. Again after `close`, too."""
        with self._opening:
            self._conversations.is_closed = self._has_closed = False
            if self._opened is None:
                self._opened = self._with_layers()
            if not _is_async(self._client):
                _register_exit()
                _open_clients.add(self)
            return self._opened

    @overload
    def close(self: AttachedClient[Anthropic]) -> None: ...
    @overload
    def close(self: AttachedClient[AsyncAnthropic]) -> Coroutine[Any, Any, None]: ...
    def close(self) -> Coroutine[Any, Any, None] | None:
        """Write what is left of all conversations; to be awaited for an async client. A second call does
        nothing. The client that was handed in stays open."""
        return self._close_async() if _is_async(self._client) else self._close()

    def __enter__(self) -> C:
        if _is_async(self._client):
            raise InputError(_wrong_colour(self._client, "with", "Anthropic"))
        return self.open()

    def __exit__(self, *_: object) -> None:
        self._close()

    async def __aenter__(self) -> C:
        if not _is_async(self._client):
            raise InputError(_wrong_colour(self._client, "async with", "AsyncAnthropic"))
        return self.open()

    async def __aexit__(self, *_: object) -> None:
        await self._close_async()

    def _with_layers(self) -> C:
        from anthropic import Anthropic

        client, core = self._client, _MiddlewareCore(self._conversations, self._emit)
        if isinstance(client, Anthropic):
            return client.with_middleware(LayersMiddleware(client, core, self._run))
        if _is_async(client):
            return client.with_middleware(AsyncLayersMiddleware(client, core, self._end))
        raise InputError(
            f"attach(client) takes an anthropic.Anthropic or an anthropic.AsyncAnthropic, not a "
            f"{type(client).__name__}; other providers are not attached yet"
        )

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a part of a call. One that still runs when the client is closed ends there."""
        if self._has_closed and not self._loop.is_running:
            work.close()
            raise ClientClosed(CLIENT_CLOSED)
        try:
            return self._loop.run(work)
        except CancelledError as error:
            if self._conversations.is_closed:
                raise ClientClosed(CLIENT_CLOSED) from error
            raise
        finally:
            self._end()

    def close_at_exit(self) -> None:
        """Close as the interpreter ends, when nobody could handle an error: it is told."""
        if self.is_forked:
            return
        try:
            # Python 3.12 starts no thread any more here: a RuntimeError, if all that there are are busy.
            self._close()
        except Exception as error:
            told = f"closed as the interpreter ended: {type(error).__name__}: {error}"
            self._emit(ReplyUnrecorded(told))

    def _close(self) -> None:
        if self._conversations.is_closed:
            return
        _open_clients.discard(self)
        try:
            if self._loop.is_running:
                self._loop.run(self._conversations.close())
            self._conversations.is_closed = True
        finally:
            self._has_closed = True
            self._end()

    async def _close_async(self) -> None:
        try:
            await self._conversations.close()
        finally:
            self._has_closed = True
            self._end()

    def _end(self) -> None:
        """Let go of everything, unless an answer is still under way: whoever brings the last one does it."""
        if self._has_closed and not self._conversations.unfinished:
            self._close_workspace()
            self._loop.stop()


_open_clients: set[AttachedClient[Any]] = set()
"""Blocking clients that were not closed yet."""


@cache
def _register_exit() -> None:
    # `atexit` is too late: no thread can be started any more by then, and closing a session takes one. The
    # pool of threads, which registers itself too, has to come first: the last one is called first.
    import_module("concurrent.futures.thread")
    with suppress(RuntimeError):
        getattr(threading, "_register_atexit", atexit.register)(_close_open_clients)


def _close_open_clients() -> None:
    for attached in tuple(_open_clients):
        attached.close_at_exit()


@dataclass(slots=True)
class _Call:
    """A request of the caller's, and what it became."""

    request: APIRequest
    passage: InFlightRequest
    view: PreparedRequest

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
        changed = {"json_data": None, "content": data, "headers": headers}
        return type(self.request)(
            options=self.request.options.model_copy(update=changed),
            cast_to=self.request.cast_to,
            stream=self.request.stream,
            stream_cls=self.request.stream_cls,
            retries_taken=self.request.retries_taken,
        )


class _MiddlewareCore:
    """What the plain and the async middleware share: which requests are ours, and how each becomes a view."""

    def __init__(self, conversations: ConversationPool, emit: Emit) -> None:
        self._conversations, self._emit = conversations, emit

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
        return _Call(request, passage, await passage.conversation.session.prepare(messages, frame=frame))

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

    def lost(self, reason: str) -> None:
        self._emit(ReplyUnrecorded(reason))

    async def recover(self, call: _Call, error: RecoverableError) -> _Call | None:
        """The provider refused the view: another one, if there can be one that it takes."""
        view = await call.session.recover(error)
        return None if view is None else _Call(call.request, call.passage, view)


class LayersMiddleware:
    """For a blocking client. Runs once per attempt: for a retry a session prepares the same request."""

    def __init__(self, client: Anthropic, core: _MiddlewareCore, run: RunCoroutine) -> None:
        self._client, self._core, self._run = client, core, run

    def __call__(self, request: APIRequest, call_next: CallNext) -> APIResponse[Any]:
        from anthropic import APIResponse

        if not self._core.is_ours(request):
            return call_next(request)
        if "thread" in _body(request):
            return APIResponse(**response_fields(request, self._client, refuse_thread(request)))
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
        error = find_refusal(response.http_response)
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

            passing = tee_response(raw, ended, self._core.lost)
            return APIResponse(**response_fields(call.request, self._client, passing))
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
            return AsyncAPIResponse(**response_fields(request, self._client, refuse_thread(request)))
        call = await self._core.prepare(request)
        try:
            return await self._answer(call, call_next)
        finally:
            if not call.passage.is_streamed:
                await self._core.finish(call)
                self._end()

    async def _answer(self, call: _Call, call_next: AsyncCallNext) -> AsyncAPIResponse[Any]:
        response = await call_next(call.rewritten())
        error = await find_refusal_async(response.http_response)
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
            passing = tee_response_async(raw, partial(self._core.record, call), self._core.lost)
            return AsyncAPIResponse(**response_fields(call.request, self._client, passing))
        await raw.aread()
        reply = self._core.read(raw)
        if reply is not None:
            await self._core.record(call, reply)
        return response


def _is_async(client: object) -> bool:
    from anthropic import AsyncAnthropic

    return isinstance(client, AsyncAnthropic)


def _wrong_colour(client: object, used: str, expected: str) -> str:
    other = "async with" if used == "with" else "with"
    return (
        f"`{used} attach(client)` takes an anthropic.{expected}, not a {type(client).__name__}; "
        f"for the other colour use `{other} attach(client)`, and other providers are not attached yet"
    )


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
