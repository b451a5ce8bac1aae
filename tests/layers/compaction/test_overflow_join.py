"""One compaction at a time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import CompactionBusy
from sevenfold.core.messages import Message, Thinking
from sevenfold.core.requests import ModelRequest
from sevenfold.layers.compaction.compactor import Compactor
from sevenfold.layers.compaction.job import Compacted, CompactionJob
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.providers.scripted import ScriptedProvider
from tests.layers.compaction.overflows import GOOD, NEWER, count, has_thinking, job, talk


class Slow:
    """A provider whose summary comes when it is let, and an overflow over it."""

    def __init__(self, settings: CompactSettings | None = None) -> None:
        self.asked, self.let = asyncio.Event(), asyncio.Event()
        self.clock = ManualClock()
        self.provider = ScriptedProvider(self.answer)
        self.overflow = Compactor(self.provider, settings or CompactSettings(), clock=self.clock)

    async def answer(self, _: ModelRequest) -> str:
        self.asked.set()
        await self.let.wait()
        return GOOD

    async def begin(self, wanted: CompactionJob) -> asyncio.Task[Compacted]:
        task = asyncio.create_task(self.overflow.compact(wanted))
        await self.asked.wait()
        return task


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_second_asker_uses_the_result_of_the_first() -> None:
    async def run() -> None:
        slow, wanted = Slow(), job(talk())
        first = await slow.begin(wanted)
        second = asyncio.create_task(slow.overflow.compact(wanted))
        await settle()
        slow.let.set()
        one, other = await asyncio.gather(first, second)
        assert one.view == other.view
        assert len(slow.provider.requests) == 1
        assert (len(one.replies), len(other.replies)) == (1, 0), "it is paid for once"

    asyncio.run(run())


def test_what_was_added_meanwhile_is_kept() -> None:
    async def run() -> None:
        slow, messages = Slow(CompactSettings(blocks_enabled=False)), talk()
        first = await slow.begin(job(messages, NEWER))
        grown = [*messages, Message("assistant", (Thinking("Hm.", "s"),)), Message("user", "More.")]
        second = asyncio.create_task(slow.overflow.compact(job(grown, NEWER)))
        await settle()
        slow.let.set()
        one, other = await asyncio.gather(first, second)
        assert other.view[-1] is grown[-1]
        assert len(other.kept) == len(one.kept) + 2
        assert not has_thinking(other.kept)
        assert other.tokens_after == one.tokens_after + sum(count(grown, NEWER)[-2:])

    asyncio.run(run())


def test_another_view_is_asked_to_come_back() -> None:
    async def run() -> None:
        slow = Slow()
        first = await slow.begin(job(talk()))
        second = asyncio.create_task(slow.overflow.compact(job(talk(5))))
        await settle()
        slow.let.set()
        await first
        with pytest.raises(CompactionBusy, match="another view"):
            await second

    asyncio.run(run())


def test_nobody_waits_for_ever() -> None:
    async def run() -> None:
        slow, wanted = Slow(CompactSettings(wait_seconds=0)), job(talk())
        first = await slow.begin(wanted)
        with pytest.raises(CompactionBusy, match="still under way after 0 s"):
            await slow.overflow.compact(wanted)
        slow.let.set()
        assert (await first).rung == "summary"

    asyncio.run(run())


def test_after_its_time_a_compaction_can_be_overtaken() -> None:
    async def run() -> None:
        slow, wanted = Slow(), job(talk())
        first = await slow.begin(wanted)
        slow.clock.pass_time(timedelta(seconds=61))
        second = asyncio.create_task(slow.overflow.compact(wanted))
        await settle()
        slow.let.set()
        with pytest.raises(CompactionBusy, match="overtook"):
            await first
        assert (await second).rung == "summary"

    asyncio.run(run())


def test_when_the_first_is_cancelled_the_second_is_told() -> None:
    async def run() -> None:
        slow, wanted = Slow(), job(talk())
        first = await slow.begin(wanted)
        second = asyncio.create_task(slow.overflow.compact(wanted))
        await settle()
        first.cancel()
        with pytest.raises(CompactionBusy, match="cancelled or failed"):
            await second
        slow.let.set()
        assert (await slow.overflow.compact(wanted)).rung == "summary"

    asyncio.run(run())


def test_a_second_asker_that_is_cancelled_leaves_the_first_alone() -> None:
    async def run() -> None:
        slow, wanted = Slow(), job(talk())
        first = await slow.begin(wanted)
        second = asyncio.create_task(slow.overflow.compact(wanted))
        await settle()
        second.cancel()
        slow.let.set()
        assert (await first).rung == "summary"

    asyncio.run(run())


def test_a_summary_that_takes_too_long_is_given_up() -> None:
    async def run() -> None:
        slow = Slow(CompactSettings(summary_timeout_seconds=0))
        result = await slow.overflow.compact(replace(job(talk())))
        assert (result.rung, result.calls) == ("structural", 1)

    asyncio.run(run())
