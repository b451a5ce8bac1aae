"""A streamed answer on its way to the caller, read along as it passes."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import httpx2

from sevenfold.core.errors import SevenfoldError
from sevenfold.core.requests import Reply
from sevenfold.providers.anthropic_reply import Assembly

CODED = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers of the bytes as they were sent; what we pass on is decoded."""


class Reader:
    """Puts an answer together from the bytes of its events."""

    def __init__(self) -> None:
        self._assembly = Assembly()
        self._rest = b""
        self._is_broken = self._is_over = False

    def feed(self, data: bytes) -> None:
        if self._is_broken:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        try:
            for line in lines:
                if line.startswith(b"data:"):
                    event = json.loads(line[5:])
                    deque(self._assembly.add(event), maxlen=0)
                    self._is_over = self._is_over or event.get("type") == "message_stop"
        except (ValueError, SevenfoldError):
            # The caller's own client reads the same bytes and says what is wrong with them.
            self._is_broken = True

    def reply(self) -> Reply | None:
        """The answer, if all of it passed."""
        if self._is_broken or not self._is_over:
            return None
        try:
            return self._assembly.reply()
        except SevenfoldError:
            return None


class Passing(httpx2.SyncByteStream):
    """The bytes of a response, read along; `ended` is told the answer once it is whole."""

    def __init__(self, original: httpx2.Response, ended: Callable[[Reply], None]) -> None:
        self._original, self._reader = original, Reader()
        self._ended: Callable[[Reply], None] | None = ended

    def __iter__(self) -> Iterator[bytes]:
        for data in self._original.iter_bytes():
            self._reader.feed(data)
            # Before the last bytes are handed on: whoever has them may ask for the next view at once.
            reply = self._reader.reply() if self._ended else None
            if reply is not None and self._ended:
                ended, self._ended = self._ended, None
                ended(reply)
            yield data

    def close(self) -> None:
        self._original.close()


class AsyncPassing(httpx2.AsyncByteStream):
    """The same for an async client."""

    def __init__(self, original: httpx2.Response, ended: Callable[[Reply], Awaitable[None]]) -> None:
        self._original, self._reader = original, Reader()
        self._ended: Callable[[Reply], Awaitable[None]] | None = ended

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._original.aiter_bytes():
            self._reader.feed(data)
            reply = self._reader.reply() if self._ended else None
            if reply is not None and self._ended:
                ended, self._ended = self._ended, None
                await ended(reply)
            yield data

    async def aclose(self) -> None:
        await self._original.aclose()


def passed_on(
    original: httpx2.Response, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream
) -> httpx2.Response:
    """The same response with these bytes."""
    headers = [(name, value) for name, value in original.headers.multi_items() if name.lower() not in CODED]
    return httpx2.Response(
        original.status_code,
        headers=headers,
        stream=stream,
        request=original.request,
        extensions=original.extensions,
    )
