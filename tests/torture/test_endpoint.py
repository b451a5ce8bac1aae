"""Hostile endpoints in the shortest form: every request ends, in time and within its limits."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.providers.reply_limits import BASE_REPLY_BYTES
from tests.torture import endpoint
from tests.torture.endpoint import Case, run_case, run_endpoint
from tests.torture.endpoint_stage import serve_harm
from tests.torture.rig import Orders, Progress

pytestmark = pytest.mark.torture


def test_no_endpoint_takes_more_than_its_share(tmp_path: Path) -> None:
    [line] = run_endpoint(Orders("tiny", 1, tmp_path, Progress(quiet=True)))
    assert line.count == 24
    assert line.shown == []


def test_the_rig_sees_an_answer_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def attack() -> list[str]:
        async with serve_harm() as hostile:
            return await run_case(Case("chat", "one-line", False), hostile, timedelta(seconds=1))

    with monkeypatch.context() as patched:
        patched.setattr(endpoint, "SLACK_BYTES", -BASE_REPLY_BYTES)
        [wrong] = asyncio.run(attack())
    assert "bytes" in wrong
