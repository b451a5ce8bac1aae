"""A streamed answer on its way to the caller, read along as it passes."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from sevenfold.core.errors import SevenfoldError
from sevenfold.core.requests import Reply
from sevenfold.providers.anthropic_reply import Assembly

if TYPE_CHECKING:
    import httpx2

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


def passed_on(original: httpx2.Response, ended: Callable[[Reply], None]) -> httpx2.Response:
    """The same response, read along as it passes; `ended` is told the answer once it is whole."""
    import httpx2

    class Passing(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            reader, is_told = Reader(), False
            for data in original.iter_bytes():
                reader.feed(data)
                reply = None if is_told else reader.reply()
                if reply is not None:
                    # Before the last bytes are handed on: whoever has them may ask for the next view at once.
                    is_told = True
                    ended(reply)
                yield data

        def close(self) -> None:
            original.close()

    return _with_stream(original, Passing())


def passed_on_async(original: httpx2.Response, ended: Callable[[Reply], Awaitable[None]]) -> httpx2.Response:
    """The same for an async client."""
    import httpx2

    class Passing(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            reader, is_told = Reader(), False
            async for data in original.aiter_bytes():
                reader.feed(data)
                reply = None if is_told else reader.reply()
                if reply is not None:
                    is_told = True
                    await ended(reply)
                yield data

        async def aclose(self) -> None:
            await original.aclose()

    return _with_stream(original, Passing())


def _with_stream(
    original: httpx2.Response, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream
) -> httpx2.Response:
    import httpx2

    headers = [(name, value) for name, value in original.headers.multi_items() if name.lower() not in CODED]
    return httpx2.Response(
        original.status_code,
        headers=headers,
        stream=stream,
        request=original.request,
        extensions=original.extensions,
    )
