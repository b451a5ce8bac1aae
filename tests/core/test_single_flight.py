"""One run at a time, the newest request wins, and nothing that fails reaches whoever asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from sevenfold.core.system import SingleFlight

LONG = timedelta(seconds=60)
AT_ONCE = timedelta(0)


class Runs:
    """A job that waits at a gate, and what it was asked for."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.gate = asyncio.Event()
        self.started = asyncio.Event()
        self.at_once = 0
        self.most = 0

    async def run(self, request: str) -> None:
        self.began.append(request)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        self.started.set()
        try:
            if request == "fail":
                raise ValueError("no luck")
            await self.gate.wait()
        finally:
            self.at_once -= 1


def play(story: Callable[[Runs, SingleFlight[str], list[str]], Awaitable[None]]) -> None:
    async def tell() -> None:
        runs, heard = Runs(), list[str]()
        await story(runs, SingleFlight("notes", runs.run, heard.append), heard)

    asyncio.run(tell())


def test_what_is_asked_for_during_a_run_waits_and_the_newest_wins() -> None:
    async def story(runs: Runs, flight: SingleFlight[str], heard: list[str]) -> None:
        flight.ask("first")
        await runs.started.wait()
        for name in ("second", "third", "fourth"):
            flight.ask(name)
        assert flight.is_running
        runs.gate.set()
        assert await flight.settle(LONG)
        assert runs.began == ["first", "fourth"]
        assert runs.most == 1
        assert heard == []

    play(story)


def test_a_run_that_fails_is_an_event_and_the_next_one_still_runs() -> None:
    async def story(runs: Runs, flight: SingleFlight[str], heard: list[str]) -> None:
        runs.gate.set()
        flight.ask("fail")
        assert await flight.settle(LONG)
        flight.ask("next")
        assert await flight.settle(LONG)
        assert runs.began == ["fail", "next"]
        assert heard == ["ValueError: no luck"]

    play(story)


def test_closing_waits_for_the_run_and_for_the_one_that_follows() -> None:
    async def story(runs: Runs, flight: SingleFlight[str], heard: list[str]) -> None:
        flight.ask("first")
        await runs.started.wait()
        flight.ask("second")
        runs.gate.set()
        assert await flight.close(LONG)
        flight.ask("too late")
        assert await flight.settle(LONG)
        assert runs.began == ["first", "second"]

    play(story)


def test_closing_stops_what_does_not_end_in_time_and_says_so() -> None:
    async def story(runs: Runs, flight: SingleFlight[str], heard: list[str]) -> None:
        flight.ask("first")
        await runs.started.wait()
        flight.ask("second")
        assert not await flight.close(AT_ONCE)
        assert heard == ["stopped: it still ran 0 s after closing"]
        assert not flight.is_running
        assert runs.began == ["first"]

    play(story)


def test_waiting_for_a_bounded_time_stops_nothing() -> None:
    async def story(runs: Runs, flight: SingleFlight[str], heard: list[str]) -> None:
        assert await flight.settle(AT_ONCE)
        flight.ask("first")
        await runs.started.wait()
        assert not await flight.settle(AT_ONCE)
        runs.gate.set()
        assert await flight.settle(LONG)
        assert runs.began == ["first"]

    play(story)
