"""Limits on what an endpoint may send: bytes, length of one event, calls, time without progress, redirects.

An endpoint is not trusted with the memory of this process, nor with its time. `limit_reply` and
`limit_reply_async` replace the body of a response that was not read yet by one that is unpacked in small
pieces and counted. `watch_stall` ends an answer in which nothing new has come for too long; pings do not
count. `send_with_retries` sends a request again after a failure that may pass.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from typing import TYPE_CHECKING, TypeVar, cast

from sevenfold.core.errors import Overloaded, ProviderError, ProviderUnreachable, RateLimited, ReplyBroken
from sevenfold.core.events import Emit, RetryScheduled, ignore_event

if TYPE_CHECKING:
    import httpx2

    from sevenfold.core.requests import ModelResponse


_MIB = 1024 * 1024

BASE_REPLY_BYTES = 16 * _MIB
"""For what is no output: results of server tools, and instructions that the Responses API repeats."""

REPLY_BYTES_PER_TOKEN = 1024
"""Of an answer on the wire. A token comes as an event of its own, and those of OpenAI take 350 bytes."""

MAX_ERROR_BYTES = _MIB
"""Of an answer that is an error, or leads elsewhere: it is shown to a person."""

MAX_EVENT_BYTES = 8 * _MIB
"""Of one event of a stream. The longest repeats a whole answer, or holds a page that a server tool read."""

MAX_EVENT_LINES = 256
"""Of one event: real ones have two, and the SDKs copy an event for each of its lines."""

MAX_REPLY_CALLS = 128
"""Of tools, in one answer. Models ask for a few dozen at once; each is run, and its result is sent back."""

MAX_REPLY_TIME = timedelta(hours=2)
"""For one whole answer, however steadily it comes: 128,000 tokens take 45 minutes at 50 a second."""

_PIECE_BYTES = 64 * 1024
"""What is unpacked at once: a packed chunk may hold a thousand times its own size."""

IDENTITY_HEADERS: Mapping[str, str] = {"accept-encoding": "identity"}
"""Sent with every request: what is not packed cannot be a bomb."""

_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")


def limit_reply_bytes(max_tokens: int) -> int:
    """How long an answer of so many tokens may be on the wire."""
    return BASE_REPLY_BYTES + REPLY_BYTES_PER_TOKEN * max(0, max_tokens)


def check_calls(reply: ModelResponse) -> ModelResponse:
    """`ReplyBroken` for an answer that asks for more calls than anybody would wait for; none is run."""
    calls = len(reply.tool_uses)
    if calls > MAX_REPLY_CALLS:
        raise ReplyBroken(
            f"the answer asks for {calls:,} tool calls, and at most {MAX_REPLY_CALLS} of one answer are run; "
            "none was; ask for less at once, or check the address of the provider"
        )
    return reply


class BodyDecoder:
    """Unpacks a body piece by piece, so that a reader can stop before all of it is in memory."""

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower() or "identity"
        if name not in ("identity", "gzip", "x-gzip", "deflate"):
            raise ReplyBroken(f"the answer is encoded as {name!r:.80}, which was not asked for")
        # 32: gzip and zlib are told apart by their headers.
        self._unpack = None if name == "identity" else zlib.decompressobj(zlib.MAX_WBITS | 32)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What a chunk unpacks to, in pieces of 64 KiB at most."""
        if self._unpack is None:
            yield data
            return
        try:
            while data:
                piece = self._unpack.decompress(data, _PIECE_BYTES)
                data = self._unpack.unconsumed_tail
                if piece:
                    yield piece
                if self._unpack.eof:
                    return
        except zlib.error as error:
            raise ReplyBroken(f"the answer cannot be unpacked: {error}") from error


@dataclass(slots=True)
class _EventGauge:
    """How long the event is that has not ended yet, and how many lines it has."""

    size: int = 0
    lines: int = 0
    tail: bytes = b""

    def add(self, piece: bytes) -> None:
        seen = self.tail + piece
        self.tail = seen[-3:]
        end = max(seen.rfind(mark) for mark in _ENDS)
        if end >= 0:
            self.size = self.lines = 0
            piece = seen[end + 2 :]
        self.size += len(piece)
        self.lines += max(piece.count(b"\n"), piece.count(b"\r"))
        if self.size > MAX_EVENT_BYTES or self.lines > MAX_EVENT_LINES:
            raise ReplyBroken(
                f"the answer holds an event of more than {MAX_EVENT_BYTES // _MIB} MiB or {MAX_EVENT_LINES} "
                "lines; check the address of the provider"
            )


@dataclass(slots=True, kw_only=True)
class ReplyGauge:
    """Unpacks and counts one body. `max_bytes` None: a stream without an end, whose events are counted."""

    decoder: BodyDecoder
    max_bytes: int | None
    events: _EventGauge | None = None
    given_up: Event = field(default_factory=Event)
    """Set from outside: nobody waits for this answer any more."""
    taken: int = 0

    @classmethod
    def of(
        cls, response: httpx2.Response, max_bytes: int | None, given_up: Event | None = None
    ) -> ReplyGauge:
        """For a body that was not read yet. Whoever reads the response finds it unpacked."""
        encoding = response.headers.get("content-encoding", "")
        if encoding:
            del response.headers["content-encoding"]
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        events = _EventGauge() if kind == "text/event-stream" else None
        return cls(
            decoder=BodyDecoder(encoding), max_bytes=max_bytes, events=events, given_up=given_up or Event()
        )

    def feed(self, data: bytes) -> Iterator[bytes]:
        for piece in self.decoder.feed(data):
            if self.given_up.is_set():
                raise ReplyBroken("the request was given up on while it was answered")
            self.taken += len(piece)
            if self.max_bytes is not None and self.taken > self.max_bytes:
                raise ReplyBroken(
                    f"the answer is longer than {self.max_bytes:,} bytes, more than max_tokens allows; "
                    "check the address of the provider"
                )
            if self.events is not None:
                self.events.add(piece)
            yield piece


def limit_reply_async(response: httpx2.Response, max_bytes: int | None) -> None:
    """Have the body of a response counted and unpacked as it is read."""
    import httpx2

    inner, gauge = cast("httpx2.AsyncByteStream", response.stream), ReplyGauge.of(response, max_bytes)

    class Limited(httpx2.AsyncByteStream):
        stream_observer: object = getattr(inner, "stream_observer", None)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in inner:
                for piece in gauge.feed(chunk):
                    yield piece

        async def aclose(self) -> None:
            await inner.aclose()

    response.stream = Limited()


def limit_reply(response: httpx2.Response, max_bytes: int | None, given_up: Event) -> None:
    """The same for a sync client, whose reader ends once `given_up` is set."""
    import httpx2

    inner = cast("httpx2.SyncByteStream", response.stream)
    gauge = ReplyGauge.of(response, max_bytes, given_up)

    class Limited(httpx2.SyncByteStream):
        stream_observer: object = getattr(inner, "stream_observer", None)

        def __iter__(self) -> Iterator[bytes]:
            for chunk in inner:
                yield from gauge.feed(chunk)

        def close(self) -> None:
            inner.close()

    response.stream = Limited()


async def limit_error_body(response: httpx2.Response) -> None:
    """A hook for a client of ours: an SDK reads the body of an error before anybody else can."""
    if not response.is_success:
        limit_reply_async(response, MAX_ERROR_BYTES)


_FRAMING = frozenset({"message_start", "message_stop", "error"})
_IDLE_RESPONSES = frozenset({"response.queued", "response.in_progress"})
"""Sent again and again while nothing happens. Of the Responses API, all other events carry something."""


def shows_progress(event: object) -> bool:
    """Whether an event of a stream brings the answer on: no ping, no delta or block without content, and
    nothing of a kind that we do not know."""
    if not isinstance(event, Mapping):
        return False
    wire = cast("Mapping[str, object]", event)
    if "choices" in wire:
        choices = wire["choices"]
        return any(map(_grows, cast("list[object]", choices))) if isinstance(choices, list) else False
    if "delta" in wire:
        return _has_content(wire["delta"])
    kind = wire.get("type")
    if kind == "content_block_start":
        return _has_content(wire.get("content_block"))
    is_response = isinstance(kind, str) and kind.startswith("response.")
    return kind in _FRAMING or (is_response and kind not in _IDLE_RESPONSES)


def _grows(choice: object) -> bool:
    if not isinstance(choice, Mapping):
        return False
    wire = cast("Mapping[str, object]", choice)
    return wire.get("finish_reason") is not None or _has_content(wire.get("delta"))


def _has_content(delta: object) -> bool:
    if not isinstance(delta, Mapping):
        return bool(delta)
    fields = cast("Mapping[str, object]", delta)
    return any(bool(value) for key, value in fields.items() if key not in ("type", "role"))


@dataclass(frozen=True, slots=True)
class StallWatch:
    """Ends an answer that does not come on."""

    progressed: Callable[[], None]
    """Call it, on the event loop, with each event that shows progress."""


@asynccontextmanager
async def watch_stall(stall: timedelta) -> AsyncGenerator[StallWatch]:
    """Waits twice as long for the first event, in which a slow machine reads the prompt."""
    loop = asyncio.get_running_loop()
    end, has_begun = loop.time() + MAX_REPLY_TIME.total_seconds(), Event()

    def progressed() -> None:
        has_begun.set()
        limit.reschedule(min(end, loop.time() + stall.total_seconds()))

    limit = asyncio.timeout(2 * stall.total_seconds())
    try:
        async with limit:
            yield StallWatch(progressed)
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise _stalled(stall, has_begun=has_begun.is_set()) from error


def _stalled(stall: timedelta, *, has_begun: bool) -> ReplyBroken | ProviderUnreachable:
    hint = "send it again, or raise agent.stall_seconds for a slow server"
    seconds = stall.total_seconds()
    if has_begun:
        return ReplyBroken(f"nothing new of the answer came for {seconds:g} seconds; {hint}")
    error = ProviderUnreachable(f"no answer came within {2 * seconds:g} seconds; {hint}")
    error.should_retry = False  # three times as long would help nobody
    return error


# Retries: each wait is an event, and none is long. The SDKs would wait as long as an endpoint asks, in
# silence; so they are told not to retry, and this does.

_FIRST_DELAY = 0.5
_CONFLICT = 409
"""The SDKs try again after a lock that was not had."""

MAX_ASKED_WAIT = timedelta(minutes=1)
"""Of one wait that a provider asks for, also where a person watches: beyond it they decide."""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """How often a request is sent again, and how long all of that may take."""

    retries: int | None = None
    """None: as often as the SDK would."""
    max_wait: timedelta = timedelta(minutes=1)
    """For all retries of one request. Who is asked to wait longer is told so, and decides."""
    max_delay: timedelta = timedelta(seconds=8)
    """Before one retry, where the provider named no time."""


DEFAULT_RETRIES = RetryLimits()
PATIENT_RETRIES = RetryLimits(10, timedelta(minutes=5), timedelta(seconds=30))
"""For a person who sees the countdown and can interrupt it: an overloaded provider mostly recovers within
minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """How a provider waits, and who is told."""

    emit: Emit = ignore_event
    stall: timedelta = timedelta(minutes=5)
    """How long an answer may bring nothing new."""
    unstreamed: timedelta = timedelta(minutes=10)
    """How long an answer may take that comes whole: what the SDKs wait."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Cancelled with the request."""
    limits: RetryLimits = DEFAULT_RETRIES


DEFAULT_CALL_OPTIONS = CallOptions()


async def send_with_retries(
    attempt: Callable[[], Awaitable[_Answer]], model: str, max_retries: int, options: CallOptions
) -> _Answer:
    """The answer, or the error of the last attempt. Nothing is sent again once an answer has begun."""
    limits = options.limits
    left, most = limits.max_wait.total_seconds(), max_retries if limits.retries is None else limits.retries
    for retry in range(most):
        try:
            return await attempt()
        except ProviderError as error:
            wait = plan_wait(error, retry, left, limits.max_delay)
            if wait is None:
                raise
            left -= wait
            options.emit(
                RetryScheduled(
                    model=model,
                    retry=retry + 1,
                    of=most,
                    seconds=round(wait, 1),
                    reason=_first_line(error),
                )
            )
            await options.sleep(wait)
    return await attempt()


def plan_wait(
    error: ProviderError, retry: int, left_seconds: float, max_delay: timedelta = DEFAULT_RETRIES.max_delay
) -> float | None:
    """How long to wait before the next attempt; None: no attempt would help, or not within the limit."""
    if error.should_retry is False or not (error.should_retry or _may_pass(error)):
        return None
    asked = error.retry_after
    if asked is not None and asked > timedelta():
        seconds = asked.total_seconds()
        return seconds if seconds <= min(left_seconds, MAX_ASKED_WAIT.total_seconds()) else None
    # Several clients that failed together do not come back together.
    delay = min(_FIRST_DELAY * 2.0**retry, max_delay.total_seconds()) * (1 - 0.25 * random.random())
    return delay if delay <= left_seconds else None


def _may_pass(error: ProviderError) -> bool:
    return isinstance(error, RateLimited | Overloaded | ProviderUnreachable) or error.status == _CONFLICT


def _first_line(error: ProviderError) -> str:
    said = str(error).partition("\n")[0] or type(error).__name__
    return (f"{error.status}: {said}" if error.status else said)[:200]
