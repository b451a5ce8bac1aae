"""The Anthropic Messages API, through the official SDK, which brings keys, retries and timeouts.

- `wire`: request bodies, and responses whole or streamed.

Here: `AnthropicProvider`, and the mapping of the SDK's errors. The SDK carries bytes; `wire` writes and reads
them, so that nothing is lost in the SDK's types.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, TypedDict

from sevenfold.core.errors import InputError, ProviderError, ReplyBroken
from sevenfold.core.json import read_json
from sevenfold.core.models import Model
from sevenfold.core.requests import Capabilities, Dialect, ModelRequest, ModelResponse, choose_capabilities
from sevenfold.providers import error_map
from sevenfold.providers.anthropic.wire import MessagesAssembler, MessagesBodyWriter, read_messages_response
from sevenfold.providers.provider import MAX_UNSTREAMED_TOKENS, Delta, OnDelta

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
            status = error.status_code if error.status_code >= 400 else None
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
_EXTRA = "AnthropicProvider needs the anthropic package: install sevenfold[anthropic]"


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
    ) -> None:
        self._client = client
        self._base_url, self._api_key, self._auth_token = base_url, api_key, auth_token
        self._owned: AsyncAnthropic | None = None
        self._writer = MessagesBodyWriter()

    @property
    def dialect(self) -> Dialect:
        return "anthropic"

    def capabilities(self, model: Model) -> Capabilities:
        return choose_capabilities(model, self.dialect)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        client = self._open()
        from anthropic import Anthropic

        parcel = self._pack(client, request, wants_deltas=on_delta is not None)
        if isinstance(client, Anthropic):
            return await _send_in_thread(client, parcel, on_delta)
        with map_anthropic_errors():
            return await _send(client, parcel, on_delta)

    async def close(self) -> None:
        owned, self._owned = self._owned, None
        if owned is not None:
            await owned.close()

    def _open(self) -> AsyncAnthropic | Anthropic:
        if self._client is not None:
            return self._client
        if self._owned is None:
            try:
                from anthropic import AsyncAnthropic
            except ImportError as error:
                raise InputError(_EXTRA) from error
            self._owned = AsyncAnthropic(
                base_url=self._base_url, api_key=self._api_key, auth_token=self._auth_token
            )
        return self._owned

    def _pack(
        self, client: AsyncAnthropic | Anthropic, request: ModelRequest, *, wants_deltas: bool
    ) -> _Parcel:
        most = request.frame.max_tokens
        # A request for no tokens warms the cache, and the API refuses to stream that.
        streams = most > 0 and (wants_deltas or most > MAX_UNSTREAMED_TOKENS)
        data = self._writer.write(request, streams=streams)
        headers = _headers(client, request.frame.betas)
        is_json = needs_json_body(client)
        body, content = (json.loads(data), None) if is_json else (None, data)
        return _Parcel({"body": body, "content": content, "options": {"headers": headers}}, streams)


class _PostArguments(TypedDict):
    body: object | None
    """For a client that has to look into it; else None, and `content` is set."""
    content: bytes | None
    options: RequestOptions


@dataclass(frozen=True, slots=True)
class _Parcel:
    """A request as it goes to the SDK."""

    arguments: _PostArguments
    streams: bool


def needs_json_body(client: AsyncAnthropic | Anthropic) -> bool:
    """Whether something between us and HTTP wants the body as an object: another kind of client, middleware,
    traces that record it. All others are spared parsing a long history on every request."""
    from anthropic import Anthropic, AsyncAnthropic

    if type(client) not in (AsyncAnthropic, Anthropic):
        return True
    traces = getattr(client, "_otel", None)
    return bool(getattr(client, "_middleware", True)) or bool(getattr(traces, "records_content", True))


async def _send(client: AsyncAnthropic, parcel: _Parcel, on_delta: OnDelta | None) -> ModelResponse:
    if not parcel.streams:
        data = await client.post(_PATH, cast_to=bytes, **parcel.arguments)
        return read_messages_response(read_json(data))
    from anthropic import AsyncStream

    assembly = MessagesAssembler()
    stream = await client.post(
        _PATH, cast_to=object, **parcel.arguments, stream=True, stream_cls=AsyncStream[object]
    )
    async with stream:
        async for event in stream:
            for delta in assembly.add(event):
                if on_delta is not None:
                    on_delta(delta)
    return assembly.reply()


async def _send_in_thread(client: Anthropic, parcel: _Parcel, on_delta: OnDelta | None) -> ModelResponse:
    """The same with a sync client. A request that is given up on ends at its next event, or once answered."""
    loop, given_up = asyncio.get_running_loop(), Event()

    def tell(delta: Delta) -> None:
        if on_delta is not None:
            loop.call_soon_threadsafe(on_delta, delta)

    try:
        return await asyncio.to_thread(_send_blocking, client, parcel, tell, given_up)
    except asyncio.CancelledError:
        given_up.set()
        raise


def _send_blocking(client: Anthropic, parcel: _Parcel, tell: OnDelta, given_up: Event) -> ModelResponse:
    with map_anthropic_errors():
        if not parcel.streams:
            data = client.post(_PATH, cast_to=bytes, **parcel.arguments)
            return read_messages_response(read_json(data))
        from anthropic import Stream

        assembly = MessagesAssembler()
        with client.post(
            _PATH, cast_to=object, **parcel.arguments, stream=True, stream_cls=Stream[object]
        ) as stream:
            for event in stream:
                if given_up.is_set():
                    raise ReplyBroken("the request was given up on while it was answered")
                for delta in assembly.add(event):
                    tell(delta)
        return assembly.reply()


def _headers(client: AsyncAnthropic | Anthropic, betas: tuple[str, ...]) -> dict[str, str]:
    """Our betas beside those that the client sends with every request."""
    standing = client.default_headers.get(_BETAS)
    names = [name.strip() for name in standing.split(",")] if isinstance(standing, str) else []
    if not betas:
        return {}
    return {_BETAS: ",".join(dict.fromkeys([name for name in (*names, *betas) if name]))}
