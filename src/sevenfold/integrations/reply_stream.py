"""Answers on their way to the caller: a stream is read along as it passes."""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from sevenfold.core.errors import SevenfoldError
from sevenfold.core.requests import ModelResponse
from sevenfold.providers.provider import Delta

if TYPE_CHECKING:
    import httpx2

ENCODING_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers of the bytes as they were sent; what we pass on is decoded."""


STREAM_LEFT_REASON = "the stream ended, or was left, before the answer was whole"


EVENT_STREAM_TYPE = "application/vnd.amazon.eventstream"
"""How Bedrock frames events."""
END_TYPES = frozenset(
    {"message_stop", "response.completed", "response.incomplete", "response.failed", "response.cancelled"}
)
"""Types of the last event of an answer."""
_DONE = b"[DONE]"
"""The last line of a chat completion."""
_FRAME_BYTES = 16
"""Of a frame, around its headers and its payload: two lengths before them, a checksum before and behind."""


class ReplyAssembler(Protocol):
    """Takes the events of a stream, and then makes a reply of them."""

    def add(self, event: object) -> Iterator[Delta]: ...

    def reply(self) -> ModelResponse: ...


class StreamedReplyReader:
    """Puts an answer together from the bytes of its events: server-sent, or in frames of Bedrock."""

    def __init__(
        self, assembly: ReplyAssembler, lost: Callable[[str], None], *, is_framed: bool = False
    ) -> None:
        self._assembly, self._is_framed = assembly, is_framed
        self._rest = b""
        self._is_over = self._is_told = False
        self._lost = lost
        self._problem = ""

    def feed(self, data: bytes) -> ModelResponse | None:
        """The next bytes; the answer, with those that make it whole."""
        if self._problem or self._is_told:
            return None
        try:
            self._read(data)
            if not self._is_over:
                return None
            reply = self._assembly.reply()
        except (ValueError, SevenfoldError) as error:
            # The caller's own client reads the same bytes, and says what is wrong with them if they are.
            self._problem = f"{type(error).__name__}: {error}"
            return None
        self._is_told = True
        return reply

    def end(self) -> None:
        """No more will come. Again does nothing."""
        if not self._is_told:
            self._is_told = True
            self._lost(self._problem or STREAM_LEFT_REASON)

    def _read(self, data: bytes) -> None:
        self._rest += data
        for data_line in self._frames() if self._is_framed else self._lines():
            if data_line == _DONE:
                self._is_over = True
                continue
            event = json.loads(data_line)
            deque(self._assembly.add(event), maxlen=0)
            self._is_over = self._is_over or event.get("type") in END_TYPES

    def _lines(self) -> Iterator[bytes]:
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()

    def _frames(self) -> Iterator[bytes]:
        while len(self._rest) >= _FRAME_BYTES:
            size, header_size = (int.from_bytes(self._rest[at : at + 4]) for at in (0, 4))
            if len(self._rest) < size:
                return
            payload = self._rest[12 + header_size : size - 4]
            self._rest = self._rest[max(size, _FRAME_BYTES) :]
            encoded = json.loads(payload or b"{}").get("bytes")
            if isinstance(encoded, str):
                yield base64.b64decode(encoded)


def tee_response(
    original: httpx2.Response, reader: StreamedReplyReader, ended: Callable[[ModelResponse], None]
) -> httpx2.Response:
    """The same response, read along as it passes; `ended` is told the answer once it is whole. Where it never
    is, the reader says why."""
    import httpx2

    class Passing(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for data in original.iter_bytes():
                reply = reader.feed(data)
                if reply is not None:
                    # Before the last bytes are handed on: whoever has them may ask for the next view at once.
                    ended(reply)
                yield data

        def close(self) -> None:
            reader.end()
            original.close()

    return _with_stream(original, Passing())


def tee_response_async(
    original: httpx2.Response, reader: StreamedReplyReader, ended: Callable[[ModelResponse], Awaitable[None]]
) -> httpx2.Response:
    """The same for an async client."""
    import httpx2

    class Passing(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for data in original.aiter_bytes():
                reply = reader.feed(data)
                if reply is not None:
                    await ended(reply)
                yield data

        async def aclose(self) -> None:
            reader.end()
            await original.aclose()

    return _with_stream(original, Passing())


def _with_stream(
    original: httpx2.Response, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream
) -> httpx2.Response:
    import httpx2

    headers = [
        (name, value)
        for name, value in original.headers.multi_items()
        if name.lower() not in ENCODING_HEADERS
    ]
    return httpx2.Response(
        original.status_code,
        headers=headers,
        stream=stream,
        request=original.request,
        extensions=original.extensions,
    )
