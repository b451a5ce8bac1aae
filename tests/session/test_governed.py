"""A session's own forks are held to the caps, and what it tells is still there when it is closed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sevenfold.core.errors import SpendRefused
from sevenfold.core.events import CallCharged, CallRefused
from sevenfold.core.messages import Message
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.providers.scripted import ScriptedProvider
from sevenfold.session import Session
from sevenfold.session.budget import Expense, SpendSettings, SpendState, add_expense
from sevenfold.session.governor import SpendCharge, describe_spend
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.transcript import read_events
from tests.session.talk import FRAME, Listener

BRIEF = ForkBrief(kind="progress", directive="Say in three words what you do.")


async def fork(home: Path, listener: Listener, models: ScriptedProvider, *, cents: int, governs: bool) -> str:
    (home / "project").mkdir(exist_ok=True)
    async with await Session.open(
        FRAME,
        project=home / "project",
        provider=models,
        settings={"spend": {"cents_per_hour": cents}},
        governs=governs,
        emit=listener,
        environ={"HOME": str(home)},
    ) as session:
        session.history.append(Message("user", "hello"))
        await session.prepare()
        await session.run_fork(BRIEF)
        return session.id


def test_a_fork_is_charged_to_the_caps_by_its_kind(tmp_path: Path) -> None:
    listener = Listener()
    with ScriptedProvider(["Mending the parser"]) as models:
        asyncio.run(fork(tmp_path, listener, models, cents=500, governs=True))
    [charged] = [event for event in listener.events if isinstance(event, CallCharged)]
    assert charged.kind == "progress"


def test_a_fork_over_the_cap_is_refused_before_any_model_is_asked(tmp_path: Path) -> None:
    listener = Listener()
    with ScriptedProvider([]) as models, pytest.raises(SpendRefused, match="cents_per_hour"):
        asyncio.run(fork(tmp_path, listener, models, cents=0, governs=True))
    assert [event.kind for event in listener.events if isinstance(event, CallRefused)] == ["progress"]


def test_a_provider_that_sees_to_it_itself_is_not_held_twice(tmp_path: Path) -> None:
    listener = Listener()
    with ScriptedProvider(["Mending the parser"]) as models:
        asyncio.run(fork(tmp_path, listener, models, cents=0, governs=False))
    assert "CallCharged" not in listener.names()


def test_what_a_session_told_is_on_the_disk_when_it_is_closed(tmp_path: Path) -> None:
    listener = Listener()
    with ScriptedProvider(["Mending the parser"]) as models:
        named = asyncio.run(fork(tmp_path, listener, models, cents=500, governs=True))
    [place] = tmp_path.glob(f".sevenfold/projects/*/sessions/{named}")
    with Folder.open(place) as folder:
        told = [each.name for each in read_events(folder)]
    assert told == [name for name in listener.names() if name in told]
    assert {"ForkStarted", "ForkEnded", "CallCharged"} <= set(told)


def test_what_was_spent_is_described_against_both_caps() -> None:
    now = datetime(2026, 5, 4, 12, tzinfo=UTC)
    charge = SpendCharge(at=now, kind="notes", model="m", session="s", tokens=900, read=800, micro_usd=70_000)
    spent = add_expense(SpendState(), Expense(900, 70_000), now - timedelta(hours=3))
    rules = SpendSettings(cents_per_hour=5, tokens_per_hour=6, cents_per_day=7, tokens_per_day=8)
    found = describe_spend(spent, [charge], rules, now)
    assert found["hour"] == {"micro_usd": 0, "tokens": 0, "cap_micro_usd": 50_000, "cap_tokens": 6}
    assert found["day"] == {"micro_usd": 70_000, "tokens": 900, "cap_micro_usd": 70_000, "cap_tokens": 8}
    assert found["kinds"] == {
        "notes": {"calls": 1, "tokens": 900, "cached_tokens": 800, "micro_usd": 70_000, "unpriced_calls": 0}
    }
