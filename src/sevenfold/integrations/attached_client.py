"""The layers under an agent loop that calls the SDK of Anthropic or OpenAI itself, with one new line:

    with attach(anthropic.Anthropic(), project=".") as client:
        client.messages.create(...)

or, where a block does not fit:

    client = attach(openai.OpenAI(), project=".")
    client.chat.completions.create(...)
    client.close()

What comes back from `with` and `open` is a client of the same type. Its calls for messages, chat completions
and responses, streamed or not, plain or beta, go through the request path; all others pass untouched.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, cast, overload

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import ClientClosed, InputError
from sevenfold.core.events import Emit, ReplyUnrecorded, ignore_event
from sevenfold.core.system import LoopThread
from sevenfold.integrations.conversations import CLIENT_CLOSED, ConversationPool, SessionOpener
from sevenfold.session import Session
from sevenfold.session.opening import WorkspaceOptions

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from anthropic.lib.bedrock import AnthropicBedrock, AsyncAnthropicBedrock
    from anthropic.lib.vertex import AnthropicVertex, AsyncAnthropicVertex
    from openai import AsyncOpenAI, OpenAI

BlockingClient: TypeAlias = "Anthropic | AnthropicBedrock | AnthropicVertex | OpenAI"
AsyncClient: TypeAlias = "AsyncAnthropic | AsyncAnthropicBedrock | AsyncAnthropicVertex | AsyncOpenAI"
C = TypeVar("C", bound="BlockingClient | AsyncClient")
ClientT_co = TypeVar("ClientT_co", bound="BlockingClient | AsyncClient", covariant=True)
RunCoroutine: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]

_ADAPTERS = {
    "anthropic": "sevenfold.integrations.anthropic_sdk:AnthropicAdapter",
    "openai": "sevenfold.integrations.openai_sdk:OpenAIAdapter",
}
"""By the package that the client's class comes from: neither SDK is imported for the other."""


class ClientAdapter(Protocol[ClientT_co]):
    """What one SDK needs to go through the layers."""

    conversations: ConversationPool[Any]

    @property
    def is_async(self) -> bool: ...

    def add_layers(self, run: RunCoroutine, end: Callable[[], None]) -> ClientT_co:
        """A client of the same type on top of the layers. `run` is for a blocking one; an async one calls
        `end` when an answer has come."""
        ...


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
    The client is one of the OpenAI SDK, or of the Anthropic SDK: those for Bedrock and Vertex too.
    """
    options = WorkspaceOptions(
        project=Path(project) if project is not None else None,
        settings=settings,
        trusts_local=True,
        clock=clock or SystemClock(),
        environ=os.environ if environ is None else environ,
    )
    opener = SessionOpener(options=options, emit=emit, adds_context=context, clearable=clearable)
    return AttachedClient(client, _find_adapter(client)(client, opener, emit), opener.close, emit)


class AttachedClient(Generic[ClientT_co]):
    """A client on top of the layers: a context manager, plain or async, or used as it is.

    `with` and `open` give a client of the type that was handed in. Used as it is, it opens with the first
    attribute that is asked of it, and is closed by `close`. A blocking one is closed at the latest when the
    interpreter ends; an async one is not, since its event loop is gone by then.
    """

    def __init__(
        self,
        client: ClientT_co,
        adapter: ClientAdapter[ClientT_co],
        close_workspace: Callable[[], None],
        emit: Emit,
    ) -> None:
        self._client, self._adapter, self._emit = client, adapter, emit
        self._conversations = adapter.conversations
        self._close_workspace = close_workspace
        self._loop = LoopThread()
        self._opened: ClientT_co | None = None
        self._opening = threading.Lock()
        self._has_closed = False
        """`close` is over; what it waited for may still come."""

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The conversations that have passed, the one used last at the end."""
        return tuple(conversation.session for conversation in self._conversations.conversations)

    @property
    def is_async(self) -> bool:
        return self._adapter.is_async

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

    def open(self) -> ClientT_co:
        """The client to use from now on, of the type that was handed in. Again after `close`, too."""
        with self._opening:
            self._conversations.is_closed = self._has_closed = False
            if self._opened is None:
                self._opened = self._adapter.add_layers(self._run, self._end)
            if not self._adapter.is_async:
                _register_exit()
                _open_clients.add(self)
            return self._opened

    @overload
    def close(self: AttachedClient[BlockingClient]) -> None: ...
    @overload
    def close(self: AttachedClient[AsyncClient]) -> Coroutine[Any, Any, None]: ...
    def close(self) -> Coroutine[Any, Any, None] | None:
        """Write what is left of all conversations; to be awaited for an async client. A second call does
        nothing. The client that was handed in stays open."""
        return self._close_async() if self._adapter.is_async else self._close()

    def __enter__(self) -> ClientT_co:
        if self._adapter.is_async:
            raise InputError(_explain_colour(self._client, "async with"))
        return self.open()

    def __exit__(self, *_: object) -> None:
        self._close()

    async def __aenter__(self) -> ClientT_co:
        if not self._adapter.is_async:
            raise InputError(_explain_colour(self._client, "with"))
        return self.open()

    async def __aexit__(self, *_: object) -> None:
        await self._close_async()

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
            reason = f"closed as the interpreter ended: {type(error).__name__}: {error}"
            self._emit(ReplyUnrecorded(reason))

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


def is_sdk_client(value: object) -> bool:
    """Whether `attach` takes it."""
    return bool(_name_adapter(value)) and hasattr(value, "with_options")


def _name_adapter(client: object) -> str:
    """The adapter of an SDK for one of its objects; empty: it is of no SDK."""
    packages = (of_client.__module__.partition(".")[0] for of_client in type(client).__mro__)
    return next((_ADAPTERS[package] for package in packages if package in _ADAPTERS), "")


def _find_adapter(client: object) -> Callable[[Any, SessionOpener, Emit], ClientAdapter[Any]]:
    module, _, adapter = _name_adapter(client).partition(":")
    if module:
        return cast(
            "Callable[[Any, SessionOpener, Emit], ClientAdapter[Any]]",
            getattr(import_module(module), adapter),
        )
    raise InputError(
        f"attach(client) takes an anthropic.Anthropic or openai.OpenAI, plain or async, not a "
        f"{type(client).__name__}; "
        "for others start `sevenfold proxy` and give them its address"
    )


def _explain_colour(client: object, expected: str) -> str:
    return f"a {type(client).__name__} is attached by `{expected} attach(client)`"
