"""The input line of a chat that still starts."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

from sevenfold.agent.tui.early_input import EarlyInput


def test_a_prompt_that_takes_the_first_cancel_for_its_own_ends_all_the_same() -> None:
    async def read() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async def stop() -> bool:
        early = EarlyInput(sys.stdin, is_full=False)
        reading = early._reading = asyncio.create_task(read())  # pyright: ignore[reportPrivateUsage]
        await asyncio.sleep(0)
        await early.stop_prompt()
        return reading.cancelled()

    assert asyncio.run(asyncio.wait_for(stop(), timeout=60))
