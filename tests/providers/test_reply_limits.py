"""What an endpoint may send, and for how long: over a real socket, one case for each limit."""

from __future__ import annotations

import asyncio
import json
import zlib
from datetime import timedelta

import pytest

from sevenfold.core.errors import (
    Overloaded,
    ProviderError,
    ProviderRefused,
    ProviderUnreachable,
    RateLimited,
    ReplyBroken,
)
from sevenfold.core.events import Event, RetryScheduled
from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import Message, ToolUse, ToolUseId
from sevenfold.core.requests import ModelResponse
from sevenfold.core.usage import NO_USAGE
from sevenfold.providers.reply_limits import (
    DEFAULT_RETRIES,
    MAX_REPLY_CALLS,
    PATIENT_RETRIES,
    BodyDecoder,
    CallOptions,
    RetryLimits,
    check_calls,
    limit_reply_bytes,
    plan_wait,
    send_with_retries,
    shows_progress,
    watch_stall,
)
from tests.torture.endpoint import PROVIDERS, Case, run_case
from tests.torture.endpoint_stage import serve_harm

STALL = timedelta(seconds=0.3)


def attack(provider: str, harm: str, *, streams: bool) -> list[str]:
    async def run() -> list[str]:
        async with serve_harm() as endpoint:
            return await run_case(Case(provider, harm, streams), endpoint, STALL)

    return asyncio.run(run())


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "harm", ["endless-pings", "redirect", "wait-an-hour", "wait-a-bit", "deep", "digits", "many-calls"]
)
def test_a_stream_of_harm_ends_in_an_error_that_says_why(provider: str, harm: str) -> None:
    assert attack(provider, harm, streams=True) == []


@pytest.mark.parametrize(
    "harm", ["endless-text", "bomb", "bomb-error", "endless-error", "one-line", "many-calls"]
)
@pytest.mark.parametrize("provider", ["anthropic", "responses"])
def test_a_body_without_an_end_is_not_read_to_its_end(provider: str, harm: str) -> None:
    assert attack(provider, harm, streams=False) == []


@pytest.mark.parametrize("harm", ["one-line", "many-lines", "bomb"])
def test_an_event_without_an_end_is_not_collected(harm: str) -> None:
    assert attack("chat", harm, streams=True) == []


@pytest.mark.parametrize("calls", [MAX_REPLY_CALLS, MAX_REPLY_CALLS + 1])
def test_an_answer_asks_for_so_many_calls_and_no_more(calls: int) -> None:
    uses = tuple(ToolUse(ToolUseId(f"t{number}"), "shell", EMPTY_OBJECT) for number in range(calls))
    reply = ModelResponse(message=Message("assistant", uses), usage=NO_USAGE, usage_wire=EMPTY_OBJECT)
    if calls == MAX_REPLY_CALLS:
        assert check_calls(reply) is reply
    else:
        with pytest.raises(ReplyBroken, match="asks for 129 tool calls, and at most 128"):
            check_calls(reply)


def test_longer_answers_may_take_more_bytes() -> None:
    assert limit_reply_bytes(32_000) - limit_reply_bytes(0) == 32_000 * 1024
    assert limit_reply_bytes(-1) == limit_reply_bytes(0)


def test_a_packed_body_is_unpacked_in_small_pieces() -> None:
    data = zlib.compress(b"x" * 10_000_000)
    sizes = [len(piece) for piece in BodyDecoder("gzip").feed(data)]
    assert sum(sizes) == 10_000_000
    assert max(sizes) <= 64 * 1024


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip"])
def test_an_encoding_that_nobody_asked_for_is_refused(encoding: str) -> None:
    with pytest.raises(ReplyBroken, match="not asked for"):
        BodyDecoder(encoding)


def test_a_body_that_is_not_what_it_says_is_broken() -> None:
    with pytest.raises(ReplyBroken, match="unpacked"):
        list(BodyDecoder("gzip").feed(b"plain text"))


IDLE = (
    '{"type": "ping"}',
    '{"type": "keepalive"}',
    '{"type": "content_block_delta", "delta": {"type": "text_delta", "text": ""}}',
    '{"type": "content_block_start", "index": 7, "content_block": {"type": "text", "text": ""}}',
    '{"type": "content_block_stop", "index": 7}',
    '{"type": "message_delta", "delta": {"stop_reason": null}, "usage": {"output_tokens": 1}}',
    '{"type": "response.in_progress", "response": {"id": "r"}}',
    '{"type": "unheard_of", "filler": "x"}',
    '{"filler": "x"}',
    '{"choices": []}',
    '{"choices": [{"delta": {"role": "assistant", "content": ""}}]}',
    '{"type": "response.output_text.delta", "delta": ""}',
    '"text"',
)
BUSY = (
    '{"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "x"}}',
    '{"type": "message_start", "message": {}}',
    '{"type": "content_block_start", "content_block": {"type": "tool_use", "id": "t", "name": "read"}}',
    '{"type": "message_stop"}',
    '{"type": "response.output_item.done", "item": {"type": "message"}}',
    '{"choices": [{"delta": {}, "finish_reason": "stop"}]}',
    '{"choices": [{"delta": {"tool_calls": [{}]}}]}',
    '{"type": "response.output_text.delta", "delta": "x"}',
)


@pytest.mark.parametrize("event", [*IDLE, *BUSY])
def test_pings_and_empty_deltas_are_no_progress(event: str) -> None:
    assert shows_progress(json.loads(event)) is (event in BUSY)


def test_progress_puts_the_limit_off_and_its_absence_ends_the_answer() -> None:
    seen: list[int] = []

    async def run() -> None:
        async with watch_stall(timedelta(seconds=0.2)) as watch:
            for at in range(6):
                await asyncio.sleep(0)
                watch.progressed()
                seen.append(at)
            await asyncio.Event().wait()

    with pytest.raises(ReplyBroken, match="nothing new"):
        asyncio.run(run())
    assert len(seen) == 6


def test_an_error_of_the_block_is_not_taken_for_a_stall() -> None:
    async def run() -> None:
        async with watch_stall(timedelta(hours=1)):
            raise TimeoutError("of somebody else")

    with pytest.raises(TimeoutError, match="somebody else"):
        asyncio.run(run())


def limited(seconds: float | None) -> RateLimited:
    return RateLimited(retry_after=None if seconds is None else timedelta(seconds=seconds))


def told(error: ProviderError, *, should_retry: bool) -> ProviderError:
    error.should_retry = should_retry
    return error


@pytest.mark.parametrize(
    ("error", "left", "expected"),
    [
        (limited(7), 60.0, 7.0),
        (limited(60), 60.0, 60.0),
        (limited(61), 60.0, None),
        (limited(3_600), 60.0, None),
        (limited(30), 20.0, None),
        (ReplyBroken("half"), 60.0, None),
        (ProviderRefused("no", status=400), 60.0, None),
        (told(limited(1), should_retry=False), 60.0, None),
    ],
)
def test_waits_are_those_asked_for_within_a_minute(
    error: ProviderError, left: float, expected: float | None
) -> None:
    assert plan_wait(error, 0, left) == expected


@pytest.mark.parametrize(
    "error",
    [
        limited(None),
        Overloaded("busy"),
        ProviderUnreachable("gone"),
        ProviderRefused("locked", status=409),
        told(ProviderRefused("odd", status=400), should_retry=True),
    ],
)
def test_failures_that_may_pass_are_tried_again_soon(error: ProviderError) -> None:
    for retry in range(10):
        wait = plan_wait(error, retry, 60.0)
        assert wait is not None
        assert 0.3 < wait <= 8.0


def test_a_wait_can_be_cut_short_and_is_shown_before_it_begins() -> None:
    async def run() -> list[Event]:
        events: list[Event] = []
        waiting = asyncio.Event()

        async def sleep(_seconds: float) -> None:
            waiting.set()
            await asyncio.Event().wait()

        async def attempt() -> None:
            raise limited(59)

        options = CallOptions(emit=events.append, sleep=sleep)
        sending = asyncio.create_task(send_with_retries(attempt, "m", 2, options))
        await waiting.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        return events

    [event] = asyncio.run(run())
    assert event == RetryScheduled(model="m", retry=1, of=2, seconds=59.0, reason="429: rate limited")


@pytest.mark.parametrize(("limits", "most"), [(DEFAULT_RETRIES, 60), (PATIENT_RETRIES, 300)])
def test_a_provider_asks_for_no_wait_over_a_minute_and_for_no_more_than_the_limit(
    limits: RetryLimits, most: int
) -> None:
    def wait(seconds: int) -> list[float]:
        waits: list[float] = []

        async def sleep(taken: float) -> None:
            waits.append(taken)

        async def attempt() -> None:
            raise limited(seconds)

        with pytest.raises(RateLimited):
            asyncio.run(send_with_retries(attempt, "m", 20, CallOptions(sleep=sleep, limits=limits)))
        return waits

    assert wait(61) == []
    assert sum(wait(60)) == most


def test_a_person_who_watches_gets_ten_retries_of_an_overloaded_provider() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def attempt() -> None:
        raise Overloaded("busy", status=529)

    events: list[Event] = []
    options = CallOptions(emit=events.append, sleep=sleep, limits=PATIENT_RETRIES)
    with pytest.raises(Overloaded):
        asyncio.run(send_with_retries(attempt, "m", 2, options))
    assert len(waits) == 10
    assert sum(waits) <= PATIENT_RETRIES.max_wait.total_seconds()
    assert [event.of for event in events if isinstance(event, RetryScheduled)] == [10] * 10
    assert "529" in str(events[0])
