"""Forks that start together: one goes first where the prefix is cold, all at once where it is warm."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from sevenfold.core.messages import Message
from sevenfold.core.requests import Breakpoint, ModelRequest, RequestParams
from sevenfold.layers.forks.runner import ForkBatch, is_prefix_warm
from sevenfold.providers.provider import TextDelta

FRAME = RequestParams(model="claude-opus-5-5", max_tokens=1_000)
HELLO = (Message("user", "Hello."),)


def marked(ttl: timedelta) -> ModelRequest:
    return ModelRequest(FRAME, HELLO, (Breakpoint("messages", 0, ttl=ttl),))


def test_a_prefix_is_warm_for_as_long_as_it_surely_lives() -> None:
    short, long = marked(timedelta(minutes=5)), marked(timedelta(hours=1))
    assert is_prefix_warm(short, timedelta(minutes=3))
    assert not is_prefix_warm(short, timedelta(minutes=5))
    assert is_prefix_warm(long, timedelta(minutes=40))
    assert not is_prefix_warm(long, timedelta(minutes=55))
    assert is_prefix_warm(ModelRequest(FRAME, HELLO), timedelta(days=1)), "nothing is cached, so nobody waits"


async def _fork(wave: ForkBatch, name: str, log: list[str], *, warm: bool, speaks: bool = True) -> None:
    async with wave.join(warm=warm) as on_delta:
        log.append(f"start {name}")
        await asyncio.sleep(0)
        if on_delta is not None and speaks:
            log.append(f"token {name}")
            on_delta(TextDelta("x"))
        await asyncio.sleep(0)
        log.append(f"end {name}")


def run_wave(*forks: bool, warm: bool) -> list[str]:
    """The log of forks, each of which speaks or not."""
    log: list[str] = []

    async def run() -> None:
        wave = ForkBatch()
        await asyncio.gather(
            *(_fork(wave, str(n), log, warm=warm, speaks=speaks) for n, speaks in enumerate(forks))
        )

    asyncio.run(run())
    return log


def test_on_a_cold_prefix_the_others_start_after_the_first_token() -> None:
    log = run_wave(True, True, True, warm=False)
    assert log[:2] == ["start 0", "token 0"]
    assert sorted(log[2:]) == ["end 0", "end 1", "end 2", "start 1", "start 2"]


def test_on_a_warm_prefix_all_start_at_once() -> None:
    assert run_wave(True, True, True, warm=True)[:3] == ["start 0", "start 1", "start 2"]


def test_a_first_fork_that_ends_without_a_token_hands_over_to_the_next() -> None:
    log = run_wave(False, True, True, warm=False)
    assert log[:4] == ["start 0", "end 0", "start 1", "token 1"]
    assert "end 2" in log
