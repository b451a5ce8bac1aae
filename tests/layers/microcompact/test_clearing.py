"""Layer 2 on the provider's side, over real HTTP: old results go, the prefix stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.events import CacheMissed, ClearingRefused, CutRegistered, PrefixBroken, ResultsCleared
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolResult
from sevenfold.core.requests import RequestParams
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.provider import Provider
from sevenfold.session import Session
from sevenfold.session.blocking import BlockingSession
from sevenfold.simulator.wire.messages_request import CacheEditingProvider
from sevenfold.testing import Choices, Prompt, Reply, Simulator, say
from tests.session.talk import FRAME, Listener, call, result

SIGNED, PLAIN = "claude-opus-5-5", "claude-opus-5"
READ = JsonObject({"name": "Read", "input_schema": JsonObject({"type": "object"})})
WINDOW = 100_000


def reader() -> Callable[[Prompt], Reply]:
    count = 0

    def answer(_: Prompt) -> Reply:
        nonlocal count
        count += 1
        return say(f"step {count}", think="hm", calls={"Read": {"file_path": f"/src/{count}.py"}})

    return answer


async def work(
    sim: Simulator,
    home: Path,
    listener: Listener,
    rounds: int,
    model: str = SIGNED,
    wrap: Callable[[Provider], Provider] | None = None,
    **given: object,
) -> Session:
    """So many rounds of reading files of some 3,500 tokens."""
    async with sim.async_client() as client:
        provider: Provider = AnthropicProvider(client)
        provider = wrap(provider) if wrap else provider
        session = await Session.open(
            RequestParams(model=model, max_tokens=2_000, system="You read. " * 200, tools=(READ,)),
            project=home,
            environ={"HOME": str(home)},
            provider=provider,
            emit=listener,
            settings={"models": {model: {"window_tokens": WINDOW}}, "server_edits": given},
        )
        session.history.append(Message("user", "read them all"))
        for number in range(rounds):
            reply = await provider.send((await session.prepare()).request)
            await session.record(reply)
            (use,) = reply.tool_uses
            session.history.append(Message("user", (ToolResult(use.id, f"def f{number}(): ...\n" * 400),)))
        await session.prepare()
        await session.close()
        return session


@pytest.mark.parametrize("sticky", [pytest.param(False, marks=pytest.mark.story), True])
def test_what_the_provider_clears_stays_the_same_until_the_next_step(tmp_path: Path, sticky: bool) -> None:
    listener = Listener()
    with Simulator(reader(), choices=Choices(sticky_clearing=sticky)) as sim:
        asyncio.run(work(sim, tmp_path, listener, 40))
        entries = [entry for entry in sim.ledger.entries if entry.usage]
    steps = [event for event in listener.events if isinstance(event, CutRegistered) and event.layer == 2]
    assert 2 <= len(steps) <= 8
    small = [entry for entry in entries[1:] if entry.usage and entry.usage.written > entry.usage.read]
    assert len(small) <= len(steps) + 1
    assert max(entry.usage.prompt for entry in entries if entry.usage) < WINDOW - 20_000
    assert not [event for event in listener.events if isinstance(event, (CacheMissed, PrefixBroken))]
    assert [event for event in listener.events if isinstance(event, ResultsCleared)]


def test_a_session_taken_up_again_knows_what_the_provider_clears(tmp_path: Path) -> None:
    listener = Listener()
    with Simulator(reader()) as sim:
        session = asyncio.run(work(sim, tmp_path, listener, 30))
        sent = asyncio.run(again(tmp_path, session.id))
    management = sent.params.get("context_management")
    assert isinstance(management, JsonObject)
    assert "clear_tool_uses_20250919" in str(management)


async def again(home: Path, name: str) -> RequestParams:
    frame = RequestParams(model=SIGNED, max_tokens=2_000, system="You read. " * 200, tools=(READ,))
    settings = {"models": {SIGNED: {"window_tokens": WINDOW}}}
    async with await Session.open(
        frame, project=home, session=name, environ={"HOME": str(home)}, settings=settings
    ) as session:
        return (await session.prepare()).request.frame


def test_a_model_that_may_be_rewritten_is_not_asked_to_clear(tmp_path: Path) -> None:
    with Simulator(reader()) as sim:
        asyncio.run(work(sim, tmp_path, Listener(), 12, PLAIN))
        assert not [entry for entry in sim.ledger.entries if entry.applied_edits]


def test_cache_edits_delete_old_results_and_the_prefix_is_still_read(tmp_path: Path) -> None:
    listener = Listener()
    with Simulator(reader(), choices=Choices(cache_edits=True)) as sim:
        deleting = work(
            sim,
            tmp_path,
            listener,
            24,
            wrap=lambda provider: CacheEditingProvider(
                provider, cached_results=8, recent_results=4, emit=listener
            ),
            clear_results="never",
        )
        asyncio.run(deleting)
        usages = [entry.usage for entry in sim.ledger.entries if entry.usage]
    assert max(usage.prompt for usage in usages) < 60_000
    assert all(usage.read > usage.written for usage in usages[3:])
    assert {event.by for event in listener.events if isinstance(event, ResultsCleared)} == {"cache edits"}
    assert [event for event in listener.events if isinstance(event, CutRegistered) and event.layer == 2]
    assert not [event for event in listener.events if isinstance(event, (CacheMissed, PrefixBroken))]


def test_cache_edits_are_refused_with_a_reason_where_nobody_offers_them(tmp_path: Path) -> None:
    listener = Listener()
    asyncio.run(ask_for_cache_edits(tmp_path, listener))
    refused = [event for event in listener.events if isinstance(event, ClearingRefused)]
    assert [event.setting for event in refused] == ["server_edits.cache_edits"]
    assert "no public provider" in refused[0].reason


async def ask_for_cache_edits(home: Path, listener: Listener) -> None:
    settings = {"server_edits": {"cache_edits": True}}
    async with await Session.open(
        RequestParams(model=PLAIN, max_tokens=100),
        project=home,
        environ={"HOME": str(home)},
        settings=settings,
        emit=listener,
    ) as session:
        for text in ("one", "two"):
            session.history.append(Message("user", text))
            await session.prepare()


def find_cleared_tools(declared: Mapping[str, bool] | None = None, **settings: list[str]) -> set[str]:
    """The tools whose results are cleared when the cache has gone cold."""
    tools = ("Read", "lookup", "mcp__db__query", "deploy")
    clock = ManualClock()
    with BlockingSession.open(
        FRAME, project=None, clock=clock, settings={"microcompact": settings}, clearable=declared
    ) as session:
        session.history.append(Message("user", "go"))
        for number in range(16):
            view = session.prepare()
            session.record(call(number, tools[number % 4], tokens=view.tokens, path=f"/{number}"))
            session.history.append(result(number, f"what {number} says\n" * 400))
        clock.pass_time(timedelta(hours=2))
        (cut,) = session.prepare().cuts
        cleared = cut.detail["cleared"]
        assert isinstance(cleared, JsonObject)
        return {tools[int(use[1:]) % 4] for use in cleared}


def test_a_setting_or_the_caller_makes_results_of_other_tools_clearable() -> None:
    assert find_cleared_tools() == {"Read"}
    assert find_cleared_tools(clearable=["lookup", "mcp__db__*"]) == {"Read", "lookup", "mcp__db__query"}
    assert find_cleared_tools({"lookup": True, "mcp__*": True}) == {"Read", "lookup", "mcp__db__query"}
    assert find_cleared_tools({"lookup": True}, never_clear=["Read"]) == {"lookup"}
