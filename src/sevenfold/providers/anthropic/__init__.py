"""The Anthropic Messages API, through the official SDK, which brings keys, retries and timeouts.

- `wire`: request bodies, and responses whole or streamed.

Here: `AnthropicProvider`, and the mapping of the SDK's errors. The SDK carries bytes; `wire` writes and reads
them, so that nothing is lost in the SDK's types.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, TypedDict, cast

from sevenfold.core.errors import InputError, ProviderError, describe_missing
from sevenfold.core.json import read_json
from sevenfold.core.models import Model
from sevenfold.core.requests import Capabilities, Dialect, ModelRequest, ModelResponse, choose_capabilities
from sevenfold.providers import error_map
from sevenfold.providers.anthropic.wire import MessagesAssembler, MessagesBodyWriter, read_messages_response
from sevenfold.providers.provider import MAX_UNSTREAMED_TOKENS, OnDelta, ignore_delta
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
    from anthropic import Anthropic, AnthropicError, AsyncAnthropic, RequestOptions


@contextmanager
def map_anthropic_errors() -> Generator[None]:
    """Everything that goes wrong while a request is sent or an answer read leaves as a `ProviderError`."""
    import anthropic

    try:
        with error_map.map_transport():
            yield
    except anthropic.AnthropicError as error:
        raise map_anthropic_error(error) from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"a text holds half a character, {error.object[error.start : error.end]!r}, which this client "
            "cannot send; replace it, or use a client without middleware"
        ) from error
    except TypeError as error:
        # This is how the SDK says that it has no key; any other is a mistake of ours.
        if "authentication" not in str(error):
            raise
        raise error_map.make_sign_in_error(error) from error


def map_anthropic_error(error: AnthropicError) -> ProviderError:
    """The error of ours that stands for one of the SDK's."""
    import anthropic

    match error:
        case anthropic.APIStatusError():
            # An error inside a stream has the status of the stream.
            status = error.status_code if error.status_code >= 300 else None
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            return error_map.map_fault(
                error_map.read_provider_fault(error.message, status, error.body, headers)
            )
        case anthropic.APIConnectionError() | anthropic.RetryableError():
            # The second is raised by middleware to be tried again, and was given up on.
            return error_map.make_unreachable_error(error)
        case anthropic.CredentialsError():
            return error_map.make_sign_in_error(error)
        case anthropic.APIError():
            return error_map.make_broken_error(error)
        case _:
            return error_map.make_unsent_error(error)


_PATH = "/v1/messages"
_BETAS = "anthropic-beta"


class AnthropicProvider:
    """Sends requests with a client of the official SDK: async, or sync and then in a thread.

    A client that was handed in stays its owner's to close. Without one, the SDK's own environment variables
    and profiles say what is not said here: where to send, and with which key or token, of which it takes one.
    """

    def __init__(
        self,
        client: AsyncAnthropic | Anthropic | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        auth_token: str | None = None,
        options: CallOptions = DEFAULT_CALL_OPTIONS,
    ) -> None:
        self._client, self._options = client, options
        self._base_url, self._api_key, self._auth_token = base_url, api_key, auth_token
        self._owned: AsyncAnthropic | None = None
        self._writer: MessagesBodyWriter | None = None

    @property
    def dialect(self) -> Dialect:
        return "anthropic"

    def capabilities(self, model: Model) -> Capabilities:
        return choose_capabilities(model, self.dialect)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        client = self._open()
        payload = self._make_payload(client, request, wants_deltas=on_delta is not None)
        stall = self._options.stall if payload.streams else self._options.unstreamed / 2

        async def attempt() -> ModelResponse:
            async with watch_stall(stall) as watch:
                if not is_async_client(client):
                    blocking = cast("Anthropic", client)
                    return await _send_in_thread(blocking, payload, watch, on_delta or ignore_delta)
                with map_anthropic_errors():
                    non_blocking = cast("AsyncAnthropic", client)
                    return await _send(non_blocking, payload, watch, on_delta or ignore_delta)

        return check_calls(
            await send_with_retries(attempt, request.frame.model, client.max_retries, self._options)
        )

    async def close(self) -> None:
        owned, self._owned = self._owned, None
        if owned is not None:
            await owned.close()

    def _open(self) -> AsyncAnthropic | Anthropic:
        if self._client is not None:
            return self._client
        if self._owned is None:
            try:
                from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
            except ImportError as error:
                raise InputError(describe_missing("this model", ["anthropic"], "anthropic")) from error
            with map_anthropic_errors():
                self._owned = AsyncAnthropic(
                    base_url=self._base_url,
                    api_key=self._api_key,
                    auth_token=self._auth_token,
                    http_client=DefaultAsyncHttpxClient(
                        follow_redirects=False, event_hooks={"response": [limit_error_body]}
                    ),
                )
        return self._owned

    def _make_payload(
        self, client: AsyncAnthropic | Anthropic, request: ModelRequest, *, wants_deltas: bool
    ) -> _Payload:
        most = request.frame.max_tokens
        # A request for no tokens warms the cache, and the API refuses to stream that.
        streams = most > 0 and (wants_deltas or most > MAX_UNSTREAMED_TOKENS)
        if self._writer is None:
            self._writer = MessagesBodyWriter()
        data = self._writer.write(request, streams=streams)
        body, content = (json.loads(data), None) if needs_json_body(client) else (None, data)
        # Retries are ours, and a redirect would take the conversation elsewhere.
        options: RequestOptions = {
            "headers": {**IDENTITY_HEADERS, **_headers(client, request.frame.betas)},
            "max_retries": 0,
            "follow_redirects": False,
        }
        arguments: _PostArguments = {"body": body, "content": content, "options": options}
        return _Payload(arguments, streams, limit_reply_bytes(most))


class _PostArguments(TypedDict):
    body: object | None
    """For a client that has to look into it; else None, and `content` is set."""
    content: bytes | None
    options: RequestOptions


@dataclass(frozen=True, slots=True)
class _Payload:
    """A request as it goes to the SDK."""

    arguments: _PostArguments
    streams: bool
    max_bytes: int
    """Of the answer."""

    @property
    def is_read_by_sdk(self) -> bool:
        """An answer that comes whole to a client with middleware, which tells the two kinds apart."""
        return not self.streams and self.arguments["body"] is not None


def is_async_client(client: AsyncAnthropic | Anthropic) -> bool:
    """By its name: clients of platforms, such as Bedrock, have no public class in common with the others."""
    return any(of.__name__.startswith("AsyncAnthropic") for of in type(client).__mro__)


def needs_json_body(client: AsyncAnthropic | Anthropic) -> bool:
    """Whether something between us and HTTP wants the body as an object: another kind of client, middleware,
    traces that record it. All others are spared parsing a long history on every request."""
    from anthropic import Anthropic, AsyncAnthropic

    if type(client) not in (AsyncAnthropic, Anthropic):
        return True
    traces = getattr(client, "_otel", None)
    return bool(getattr(client, "_middleware", True)) or bool(getattr(traces, "records_content", True))


async def _send(
    client: AsyncAnthropic, payload: _Payload, watch: StallWatch, on_delta: OnDelta
) -> ModelResponse:
    from anthropic import AsyncStream

    if payload.is_read_by_sdk:
        data = await client.post(_PATH, cast_to=bytes, **payload.arguments)
        return read_messages_response(read_json(data))
    # A whole answer is asked for as a stream too: the SDK would read all of it, however long.
    stream = await client.post(
        _PATH, cast_to=object, **payload.arguments, stream=True, stream_cls=AsyncStream[object]
    )
    async with stream:
        limit_reply_async(stream.response, payload.max_bytes)
        if not payload.streams:
            return read_messages_response(read_json(await stream.response.aread()))
        assembly = MessagesAssembler()
        async for event in stream:
            if shows_progress(event):
                watch.progressed()
            for delta in assembly.add(event):
                on_delta(delta)
    return assembly.reply()


async def _send_in_thread(
    client: Anthropic, payload: _Payload, watch: StallWatch, on_delta: OnDelta
) -> ModelResponse:
    """The same with a sync client. A request that is given up on ends with the next bytes that come."""
    loop, given_up = asyncio.get_running_loop(), Event()
    on_loop = _OnLoop(
        lambda delta: _call(loop, lambda: on_delta(delta)), lambda: _call(loop, watch.progressed), given_up
    )
    try:
        return await asyncio.to_thread(_send_blocking, client, payload, on_loop)
    except asyncio.CancelledError:
        given_up.set()
        raise


@dataclass(frozen=True, slots=True)
class _OnLoop:
    """What a thread tells the event loop, and hears from it."""

    on_delta: OnDelta
    progressed: Callable[[], None]
    given_up: Event


def _call(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(callback)


def _send_blocking(client: Anthropic, payload: _Payload, on_loop: _OnLoop) -> ModelResponse:
    from anthropic import Stream

    with map_anthropic_errors():
        if payload.is_read_by_sdk:
            data = client.post(_PATH, cast_to=bytes, **payload.arguments)
            return read_messages_response(read_json(data))
        stream = client.post(
            _PATH, cast_to=object, **payload.arguments, stream=True, stream_cls=Stream[object]
        )
    with map_anthropic_errors(), stream:
        limit_reply(stream.response, payload.max_bytes, on_loop.given_up)
        if not payload.streams:
            return read_messages_response(read_json(stream.response.read()))
        assembly = MessagesAssembler()
        for event in stream:
            if shows_progress(event):
                on_loop.progressed()
            for delta in assembly.add(event):
                on_loop.on_delta(delta)
        return assembly.reply()


def _headers(client: AsyncAnthropic | Anthropic, betas: tuple[str, ...]) -> dict[str, str]:
    """Our betas beside those that the client sends with every request."""
    standing = client.default_headers.get(_BETAS)
    names = [name.strip() for name in standing.split(",")] if isinstance(standing, str) else []
    if not betas:
        return {}
    return {_BETAS: ",".join(dict.fromkeys([name for name in (*names, *betas) if name]))}
