"""Whatever happens to a session, each thing that was said is looked through once, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.rewind import list_rewind_points
from sevenfold.core.errors import SevenfoldError
from sevenfold.layers.compaction.job import Part
from sevenfold.layers.memory.extraction import writer
from sevenfold.layers.memory.extraction.drafts import RecordedMessage, split_looks
from sevenfold.layers.memory.extraction.policy import extract_user_words
from sevenfold.layers.memory.extraction.settings import EXTRACTION_KIND
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.agent.test_extraction import kill
from tests.agent.workshop import Shop
from tests.examples import up_to

pytestmark = pytest.mark.moves_prefix(reason="views are compacted, and sessions go back")

MANY = 80
LONG = "I will. " + "Spaces are counted by nobody. " * 600


@dataclass(kw_only=True)
class Life:
    """A session with what was said in it, and how often each thing was looked through."""

    home: Path
    said: list[str] = field(default_factory=list[str])
    dropped: set[str] = field(default_factory=set[str])
    looked: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        purposes = {
            EXTRACTION_KIND: [make_response("Nothing.")] * MANY,
            "summary": [make_response("<summary>The parser was looked at.</summary>")] * MANY,
        }
        models = ScriptedProvider([make_response(LONG)] * MANY, by_purpose=purposes)
        self.shop = Shop(home=self.home, provider=models)

    def split(self, new: Sequence[RecordedMessage]) -> Iterator[Sequence[RecordedMessage]]:
        for part in split_looks(new):
            self.looked.update(own for one in part if (own := extract_user_words(one.message)))
            yield part

    async def open(self, last: Agent | None, *, waits: bool, is_fork: bool = False) -> Agent:
        every = {"extraction": {"writer": "auto", "every_turns": 9 if waits else 1}}
        name = last.session.id if last else None
        return await self.shop.open(name, tools=None, settings=every, is_fork=is_fork)

    async def say(self, agent: Agent) -> None:
        self.said.append(f"Please have a look at module {len(self.said)} of the parser.")
        await agent.run_turn(self.said[-1])
        await agent.settle()

    async def die(self, agent: Agent) -> None:
        looked = self.looked.copy()
        await kill(agent, self.home)
        self.looked = looked  # what the end did, which did not come

    async def go_back(self, agent: Agent, share: float) -> None:
        points = list_rewind_points(agent)
        if points:
            point = points[int(share * (len(points) - 1))]
            gone = await agent.session.rewind(point.place, "the user went back")
            self.dropped |= {extract_user_words(message) for message in gone}

    async def act(self, agent: Agent, name: str, share: float) -> Agent:
        match name:
            case "say":
                await self.say(agent)
            case "compact" | "compact from" | "compact up_to":
                place = max(1, int(share * len(agent.session.parent.messages)))
                part = {"compact from": Part("from", place), "compact up_to": Part("up_to", place)}
                await agent.session.compact(part=part.get(name))
            case "go back":
                await self.go_back(agent, share)
            case "end":
                await agent.close()
                return await self.open(agent, waits=share < 0.7)
            case _:
                await self.die(agent)
                return await self.open(agent, waits=share < 0.7, is_fork=name == "fork")
        return agent

    async def run(self, acts: Sequence[tuple[str, float]]) -> None:
        agent = await self.open(None, waits=True)
        await self.say(agent)
        for name, share in acts:
            try:
                agent = await self.act(agent, name, share)
            except SevenfoldError:
                continue  # there is nothing to compact, or no such part
        await self.die(agent)
        agent = await self.open(agent, waits=False)
        await self.say(agent)
        await agent.close()


ACTS = ("say", "say", "say", "compact", "compact from", "compact up_to", "go back", "end", "kill", "fork")


@settings(max_examples=up_to(40), deadline=None)
@example([("say", 0.0), ("say", 0.0), ("compact", 0.0), ("kill", 0.0), ("say", 0.0), ("compact", 0.0)])
@example([("say", 0.0), ("kill", 0.9), ("say", 0.0), ("kill", 0.0), ("say", 0.0), ("compact from", 0.5)])
@given(st.lists(st.tuples(st.sampled_from(ACTS), st.floats(0, 1)), min_size=3, max_size=12))
def test_each_thing_that_was_said_is_looked_through_once(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, float]]
) -> None:
    life = Life(home=tmp_path_factory.mktemp("life") / "home")
    with patch.object(writer, "split_looks", life.split):
        asyncio.run(life.run(acts))
    stays = [one for one in life.said if one not in life.dropped]
    assert {one: life.looked[one] for one in stays} == dict.fromkeys(stays, 1)
    assert all(count <= 1 for count in life.looked.values())
