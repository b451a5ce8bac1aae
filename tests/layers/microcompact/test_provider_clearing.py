"""Layer 2 where the provider clears: whole sessions with thinking, against the strict simulator."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from sevenfold.core.events import CacheMissed, CutRegistered, PrefixBroken, ResultsCleared
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import ModelRequest, ModelResponse, PreparedRequest, RequestParams
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.session import Session
from sevenfold.simulator.simulator_state import VirtualClock
from sevenfold.testing import Choices, Prompt, Reply, Simulator, call_tool, say
from tests.session.talk import Listener, reply

SIGNED, UNKNOWN = "claude-fable-5-2", "claude-next"
TOOLS = ("Read", "Bash", "deploy", "Grep")


def declare(name: str) -> JsonObject:
    return JsonObject({"name": name, "input_schema": JsonObject({"type": "object"})})


FRAME = RequestParams(
    model=SIGNED, max_tokens=2_000, system="You read. " * 600, tools=tuple(declare(name) for name in TOOLS)
)


def find_cleared(request: ModelRequest) -> frozenset[ToolUseId]:
    """The uses that a request has the provider clear, as the provider counts them."""
    management = request.frame.params.get("context_management")
    assert management is None or isinstance(management, JsonObject)
    edits = management["edits"] if management is not None else ()
    assert isinstance(edits, tuple)
    if not edits:
        return frozenset()
    (edit,) = edits
    assert isinstance(edit, JsonObject)
    keep, spared = edit["keep"], edit.get("exclude_tools", ())
    assert isinstance(keep, JsonObject)
    assert isinstance(spared, tuple)
    tools = {
        block.id: block.name
        for message in request.messages
        for block in message.blocks
        if isinstance(block, ToolUse)
    }
    uses = [
        block.tool_use_id
        for message in request.messages
        for block in message.blocks
        if isinstance(block, ToolResult)
    ]
    count = keep["value"]
    assert isinstance(count, int)
    return frozenset(use for use in uses[: len(uses) - count] if tools[use] not in spared)


@dataclass
class Story:
    """A session of random rounds, pauses and restarts, and what was sent in each."""

    home: Path
    rolls: Random
    clock: VirtualClock = field(default_factory=VirtualClock)
    listener: Listener = field(default_factory=Listener)
    sent: list[PreparedRequest] = field(default_factory=list[PreparedRequest])
    _calls: int = 0

    def answer(self, _: Prompt) -> Reply:
        said = say("next", think="the last one says where to look")
        calls = [self._call() for _ in range(self.rolls.choice((1, 1, 1, 3)))]
        return Reply((*said.blocks, *calls))

    def _call(self) -> ToolUse:
        self._calls += 1
        name = self.rolls.choices(TOOLS, (6, 3, 1, 2))[0]
        return call_tool(name, {"file_path": f"/src/{self._calls}.py"}, f"toolu_{self._calls}")

    async def open(self, provider: AnthropicProvider, session: str | None) -> Session:
        return await Session.open(
            FRAME,
            project=self.home,
            session=session,
            environ={"HOME": str(self.home)},
            provider=provider,
            emit=self.listener,
            clock=self.clock,
            settings={"models": {SIGNED: PRICES}, "recall": {"enabled": False}},
        )

    async def play(self, sim: Simulator, rounds: int) -> None:
        async with sim.async_client() as client:
            provider = AnthropicProvider(client)
            session = await self.open(provider, None)
            session.history.append(Message("user", "read them all"))
            for _ in range(rounds):
                self.clock.advance(timedelta(seconds=self.rolls.choice((5, 20, 60))))
                if self.rolls.random() < 0.04:
                    self.clock.advance(timedelta(minutes=20))
                if self.rolls.random() < 0.1:
                    await session.close()
                    session = await self.open(provider, session.id)
                await self._round(session, provider)
            await session.close()

    async def _round(self, session: Session, provider: AnthropicProvider) -> None:
        view = await session.prepare()
        assert await session.prepare() is view
        self.sent.append(view)
        answer = await provider.send(view.request)
        await session.record(answer)
        results = tuple(ToolResult(use.id, self._output()) for use in answer.tool_uses)
        session.history.append(Message("user", results))

    def _output(self) -> str:
        return "def look(at: str) -> None: ...\n" * self.rolls.choice((1, 20, 120, 400))


PRICES = {
    "input_usd_per_mtok": 3,
    "output_usd_per_mtok": 15,
    "cache_read_usd_per_mtok": 0.3,
    "cache_write_5m_usd_per_mtok": 3.75,
}


@pytest.mark.parametrize(
    ("seed", "sticky"),
    [
        pytest.param(1, False, marks=pytest.mark.story),
        (2, True),
        pytest.param(3, False, marks=pytest.mark.story),
    ],
)
def test_the_cleared_set_changes_with_registered_cuts_alone_and_the_cache_is_read_exactly(
    tmp_path: Path, seed: int, sticky: bool
) -> None:
    story = Story(tmp_path, Random(seed))
    choices = Choices(sticky_clearing=sticky)
    with Simulator(story.answer, choices=choices, clock=story.clock) as sim:
        asyncio.run(story.play(sim, 60))
        entries = list(sim.ledger.entries)
    assert {entry.status for entry in entries} == {200}
    assert not any(entry.dropped_thinking for entry in entries)
    steps = 0
    for before, after, old, new in zip(story.sent, story.sent[1:], entries, entries[1:], strict=False):
        kept = len(before.request.messages)
        assert after.request.messages[:kept] == tuple(before.request.messages)
        gone, now = find_cleared(before.request), find_cleared(after.request)
        assert gone <= now
        if gone == now:
            assert not after.cuts
            is_warm = new.at - old.at <= timedelta(minutes=5)
            assert new.usage.read == (old.usage.read + old.usage.written if is_warm else 0)
        else:
            steps += 1
            (cut,) = after.cuts
            assert cut.layer == 2
            assert cut.detail["depth"]
    assert steps >= 3
    events = story.listener.events
    assert sum(isinstance(event, CutRegistered) for event in events) == steps
    assert sum(isinstance(event, ResultsCleared) for event in events) == steps
    missed = [event for event in events if isinstance(event, CacheMissed) and event.cause != "idle"]
    assert not missed
    assert not [event for event in events if isinstance(event, PrefixBroken)]
    assert not any(tool == "deploy" for tool in cleared_tools(story.sent[-1].request))


def cleared_tools(request: ModelRequest) -> list[str]:
    gone = find_cleared(request)
    blocks = [block for message in request.messages for block in message.blocks]
    return [block.name for block in blocks if isinstance(block, ToolUse) and block.id in gone]


def think(number: int, tokens: int, signature: str | None) -> ModelResponse:
    use = ToolUse(ToolUseId(f"t{number}"), "Read", JsonObject({"path": f"/{number}"}))
    thought = (Thinking("hm", signature),) if signature else ()
    return reply(Message("assistant", (*thought, Text("next"), use)), number, tokens)


async def go_on(model: str, signature: str | None, *, home: Path, lines: int = 400) -> list[PreparedRequest]:
    """A session in which the cache goes cold once, without a provider."""
    clock, views = VirtualClock(), list[PreparedRequest]()
    async with await Session.open(
        RequestParams(model=model, max_tokens=100), project=home, clock=clock, environ={"HOME": str(home)}
    ) as session:
        session.history.append(Message("user", "go"))
        for number in range(20):
            if number == 19:
                clock.advance(timedelta(hours=2))
            views.append(await session.prepare())
            await session.record(think(number, views[-1].tokens, signature))
            session.history.append(Message("user", (ToolResult(ToolUseId(f"t{number}"), "line\n" * lines),)))
    return views


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", SIGNED])
def test_a_cold_cache_is_used_on_every_model_that_signs(tmp_path: Path, model: str) -> None:
    views = asyncio.run(go_on(model, "signed", home=tmp_path))
    assert find_cleared(views[-2].request) < find_cleared(views[-1].request)
    (cut,) = views[-1].cuts
    assert "the cache is cold" in cut.reason


def test_an_unknown_model_is_cleared_here_until_it_has_signed_its_thinking(tmp_path: Path) -> None:
    plain = asyncio.run(go_on(UNKNOWN, None, home=tmp_path))
    assert len(plain[-1].cuts) == 1
    assert "cleared" in plain[-1].cuts[0].detail
    signed = asyncio.run(go_on(UNKNOWN, "signed", home=tmp_path))
    assert not signed[-1].cuts
    full = asyncio.run(go_on(UNKNOWN, "signed", home=tmp_path, lines=5_000))
    cuts = [cut for view in full for cut in view.cuts if cut.layer == 2]
    assert cuts
    assert all("depth" in cut.detail for cut in cuts)
