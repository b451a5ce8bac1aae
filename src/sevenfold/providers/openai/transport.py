"""Carrying bytes to OpenAI, or to a server that speaks like it, with the official SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Protocol

from sevenfold.core.errors import InputError, ReplyBroken
from sevenfold.core.json import Json, read_json
from sevenfold.core.requests import ModelResponse
from sevenfold.providers.openai.errors import map_openai_errors
from sevenfold.providers.provider import Delta, OnDelta

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

_EXTRA = "ChatProvider and ResponsesProvider need the openai package: install sevenfold[openai]"
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

    def body(self, client: AsyncOpenAI | OpenAI) -> object | None:
        """For a client of another class, which looks into it (Azure's does); else None."""
        return None if _is_plain(client) else json.loads(self.data)

    def content(self, client: AsyncOpenAI | OpenAI) -> bytes | None:
        return self.data if _is_plain(client) else None


class OpenaiTransport:
    """One client, handed in or made on first use. Only one that was made here is closed here."""

    def __init__(
        self, client: AsyncOpenAI | OpenAI | None, base_url: str | None, api_key: str | None
    ) -> None:
        self._client, self._base_url, self._api_key = client, base_url, api_key
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

    async def fetch(self, parcel: HttpPayload) -> Json:
        """The whole answer, as JSON."""
        client = self._open()
        body, content = parcel.body(client), parcel.content(client)
        from openai import OpenAI

        with map_openai_errors():
            if isinstance(client, OpenAI):
                text = await asyncio.to_thread(
                    client.post, parcel.path, cast_to=str, body=body, content=content
                )
            else:
                text = await client.post(parcel.path, cast_to=str, body=body, content=content)
            return read_json(text)

    async def stream(
        self, parcel: HttpPayload, assembly: StreamAssembler, on_delta: OnDelta
    ) -> ModelResponse:
        """The answer as it is written."""
        client = self._open()
        from openai import AsyncStream, OpenAI

        with map_openai_errors():
            if isinstance(client, OpenAI):
                return await _stream_in_thread(client, parcel, assembly, on_delta)
            stream = await client.post(
                parcel.path,
                cast_to=object,
                body=parcel.body(client),
                content=parcel.content(client),
                stream=True,
                stream_cls=AsyncStream[object],
            )
            with map_openai_errors(is_answering=True):
                async with stream:
                    async for event in stream:
                        for delta in assembly.add(event):
                            on_delta(delta)
                return assembly.reply()

    def _open(self) -> AsyncOpenAI | OpenAI:
        if self._client is not None:
            return self._client
        if self._owned is None:
            try:
                from openai import AsyncOpenAI
            except ImportError as error:
                raise InputError(_EXTRA) from error
            key = self._api_key or (LOCAL_KEY if self._base_url else None)
            with map_openai_errors():
                self._owned = AsyncOpenAI(api_key=key, base_url=self._base_url)
        return self._owned


def _is_plain(client: AsyncOpenAI | OpenAI) -> bool:
    """Whether a client is the SDK's own for OpenAI, and sends bytes as they are."""
    from openai import AsyncOpenAI, OpenAI

    return type(client) in (AsyncOpenAI, OpenAI)


async def _stream_in_thread(
    client: OpenAI, parcel: HttpPayload, assembly: StreamAssembler, on_delta: OnDelta
) -> ModelResponse:
    """The same with a sync client. A request that is given up on ends at its next event."""
    from openai import Stream

    loop, given_up = asyncio.get_running_loop(), Event()

    def run() -> ModelResponse:
        stream = client.post(
            parcel.path,
            cast_to=object,
            body=parcel.body(client),
            content=parcel.content(client),
            stream=True,
            stream_cls=Stream[object],
        )
        with map_openai_errors(is_answering=True), stream:
            for event in stream:
                if given_up.is_set():
                    raise ReplyBroken("the request was given up on while it was answered")
                for delta in assembly.add(event):
                    loop.call_soon_threadsafe(on_delta, delta)
            return assembly.reply()

    try:
        return await asyncio.to_thread(run)
    except asyncio.CancelledError:
        given_up.set()
        raise
