"""Forks of a session, of any kind: what they cost is booked, what they miss is told."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.core.errors import InputError
from sevenfold.core.events import CacheMissed, PrefixBroken, PromptTrimmed
from sevenfold.core.messages import Message, Text, Thinking
from sevenfold.core.models import Model
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import Capabilities, Dialect, ModelRequest, ModelResponse, RequestParams
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.provider import OnDelta, Provider
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session import Session, blocking
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import UsageRecord
from sevenfold.testing import Prompt, Simulator, call_tool, say
from sevenfold.testing import Reply as Said
from tests.layers.compaction.overflows import GOOD
from tests.providers.asking import tool
from tests.session.talk import FRAME, Listener
from tests.session.working import SYSTEM, frame_of, results

BRIEF = ForkBrief(kind="extract", directive="What is worth remembering?")
TOOLS = (tool("Look"), tool("Edit"))


@pytest.fixture
def sim() -> Generator[Simulator]:
    with Simulator() as running:
        yield running


@pytest.fixture
def heard() -> Listener:
    return Listener()


def brain(prompt: Prompt) -> Said:
    if "<sevenfold-fork>" in prompt.last_text:
        return say(GOOD)
    thought = (Thinking("Where is it?"),) if prompt.thinks else ()
    return Said((*thought, Text("I look."), call_tool("Look", {"file_path": "/a.py"})))


async def talk(session: Session, provider: Provider, rounds: int = 3) -> None:
    session.history.append(Message("user", "Mend the parser. " * 300))
    for number in range(rounds):
        view = await session.prepare()
        reply = await provider.send(view.request)
        await session.record(reply)
        session.history.append(results(number, reply, words=400))


class Careless:
    """A provider through which forks are sent with fewer tools than they were given."""

    def __init__(self, inner: AnthropicProvider) -> None:
        self._inner = inner

    @property
    def dialect(self) -> Dialect:
        return self._inner.dialect

    def capabilities(self, model: Model) -> Capabilities:
        return self._inner.capabilities(model)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        if request.purpose != "main":
            request = replace(request, frame=replace(request.frame, tools=()))
        return await self._inner.send(request, on_delta)

    async def close(self) -> None:
        await self._inner.close()


def test_a_fork_of_any_kind_reads_its_parents_cache_and_is_billed_under_its_kind(
    sim: Simulator, tmp_path: Path, heard: Listener
) -> None:
    sim.reset(brain)

    async def story() -> Session:
        async with sim.async_client() as client:
            provider = AnthropicProvider(client)
            session = await Session.open(
                replace(FRAME, system=SYSTEM, tools=TOOLS),
                project=tmp_path,
                provider=provider,
                environ={"HOME": str(tmp_path)},
                settings={"notes": {"writer": "model", "first_update_tokens": 500, "growth_tokens": 500}},
                emit=heard,
            )
            async with session:
                await talk(session, provider)
                result = await session.run_fork(BRIEF)
                assert result.is_done
                await session.compact("Look at the parser")
            return session

    session = asyncio.run(story())
    spent = {one.who: one for one in session.spent}
    assert set(spent) == {"main", "notes", "extract", "summary"}
    assert all(one.usage.read > 1_000 for one in spent.values())
    assert sum(one.calls for one in session.spent) == len(sim.ledger.entries)
    assert not [event for event in heard.events if isinstance(event, (PrefixBroken, CacheMissed))]
    (transcript,) = tmp_path.rglob(f"{session.id}.jsonl")
    with Folder.open(transcript.parent) as sessions:
        lines = [line for line in scan_transcript(sessions, session.id) if isinstance(line, StoredRecord)]
    written = [line.record.body.who for line in lines if isinstance(line.record.body, UsageRecord)]
    assert {who: written.count(who) for who in spent} == {who: one.calls for who, one in spent.items()}


@pytest.mark.moves_prefix(reason="a provider that drops the tools of forks is what this test is about")
def test_a_fork_that_reads_less_than_its_parent_had_cached_is_told(sim: Simulator, heard: Listener) -> None:
    sim.reset(brain)

    async def story() -> None:
        async with sim.async_client() as client:
            provider = Careless(AnthropicProvider(client))
            frame = replace(FRAME, system=SYSTEM, tools=TOOLS)
            async with await Session.open(frame, project=None, provider=provider, emit=heard) as session:
                await talk(session, provider)
                await session.run_fork(BRIEF)

    asyncio.run(story())
    (missed,) = (event for event in heard.events if isinstance(event, CacheMissed))
    assert (missed.who, missed.cause) == ("extract", "unexplained")
    assert missed.read_tokens < missed.expected_tokens


@pytest.mark.moves_prefix(reason="this model leaves out old thinking when the user speaks")
@pytest.mark.parametrize("name", ["claude-sonnet-4-5", "claude-haiku-4-5"])
def test_where_a_model_drops_old_thinking_nothing_is_called_a_break(
    sim: Simulator, heard: Listener, name: str
) -> None:
    sim.reset(brain)

    async def story() -> None:
        frame = replace(frame_of(CATALOG.find(name)), tools=TOOLS)
        async with sim.async_client() as client:
            provider = AnthropicProvider(client)
            async with await Session.open(frame, project=None, provider=provider, emit=heard) as session:
                for _ in range(3):
                    await talk(session, provider, 2)
                await session.run_fork(BRIEF)

    asyncio.run(story())
    assert not [event for event in heard.events if isinstance(event, (PrefixBroken, CacheMissed))]
    trimmed = [event.who for event in heard.events if isinstance(event, PromptTrimmed)]
    assert trimmed == ["main", "main"], "a fork finds the request that wrote what it can still read"


def test_a_fork_can_be_run_without_await() -> None:
    provider = ScriptedProvider(by_purpose={"extract": [make_response("nothing")]})
    with blocking.BlockingSession.open(FRAME, project=None, provider=provider) as session:
        session.history.append(Message("user", "go"))
        session.prepare()
        assert session.run_fork(BRIEF).text == "nothing"
        assert [spent.who for spent in session.spent] == ["extract"]


def test_a_fork_needs_a_model() -> None:
    async def story() -> None:
        async with await Session.open(
            RequestParams(model="claude-opus-5", max_tokens=100), project=None
        ) as session:
            await session.run_fork(BRIEF)

    with pytest.raises(InputError, match="open the session with a provider"):
        asyncio.run(story())
