"""The rig of hostile endpoints notices an answer that takes too much; `test_adversary` runs the rig."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from sevenfold.providers.reply_limits import BASE_REPLY_BYTES
from tests.torture import endpoint
from tests.torture.endpoint import Case, run_case
from tests.torture.endpoint_stage import serve_harm

pytestmark = pytest.mark.torture


def test_the_rig_sees_an_answer_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def attack() -> list[str]:
        async with serve_harm() as hostile:
            return await run_case(Case("chat", "one-line", False), hostile, timedelta(seconds=1))

    with monkeypatch.context() as patched:
        patched.setattr(endpoint, "SLACK_BYTES", -BASE_REPLY_BYTES)
        [wrong] = asyncio.run(attack())
    assert "bytes" in wrong
