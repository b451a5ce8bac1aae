"""Extraction in an agent: after a turn, beside it, and with its own words about what waits."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.rewind import list_rewind_points
from sevenfold.agent.tools.file_changes import WriteTool
from sevenfold.agent.tools.read import ReadTool
from sevenfold.core.events import ExtractionEnded
from sevenfold.core.memories import Origin, write_memory
from sevenfold.core.requests import ModelRequest
from sevenfold.core.system import run_blocking
from sevenfold.layers.compaction.job import Part
from sevenfold.layers.memory.extraction.settings import EXTRACTION_KIND
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.store.memory.changes import Write as Change
from sevenfold.store.memory.directory import MemoryDir
from tests.agent.workshop import Shop
from tests.layers.learning import written

TABS = "From now on, indent with tabs, never with spaces."


BY_DEFAULT = {"extraction": {"writer": "auto"}}
CHEAP = {"claude-opus-5-5": {"input_usd_per_mtok": 0.01, "output_usd_per_mtok": 0.01}}
"""So that no look takes more than its share of the session."""


def memories(home: Path) -> MemoryDir:
    return MemoryDir.for_project(home / "project", environ={"HOME": str(home)})


def kept(home: Path) -> list[str]:
    with memories(home) as memory:
        return [stored.memory.body.strip() for stored in memory.scan()]


def is_same_prefix(requests: list[ModelRequest]) -> bool:
    return len({(request.frame.tools, request.frame.system) for request in requests}) == 1


def test_a_turn_that_teaches_something_is_followed_by_a_fork_that_writes_it(tmp_path: Path) -> None:
    async def tell() -> None:
        steps_of = {
            EXTRACTION_KIND: [
                make_response(calls={"write": {"file_path": "", "content": ""}}),
                make_response("Done."),
            ]
        }
        with ScriptedProvider([make_response("I will.")], by_purpose=steps_of) as models:
            shop = Shop(home=tmp_path, provider=models, tools=(ReadTool(), WriteTool()))
            agent = await shop.open(settings=BY_DEFAULT)
            await agent.run_turn(TABS)
            await agent.settle()
            assert agent.session.unsaved_records == 0, "what the fork was billed is written too"
            await agent.close()
        assert is_same_prefix(models.requests)
        assert "nothing yet" in str(models.requests[1].messages[-1])
        assert shop.noted.of("ExtractionEnded") == [
            ExtractionEnded(session=agent.session.id, writer="model", written=0, waiting=0, refused=0)
        ]

    asyncio.run(tell())


def test_what_is_written_is_there_for_the_next_session_and_knows_its_messages(tmp_path: Path) -> None:
    async def tell() -> None:
        text = written("tabs", "Indent with tabs, never with spaces.")
        steps = [make_response("I will."), make_response(calls={"memory": text})]
        with ScriptedProvider(steps[:1], by_purpose={EXTRACTION_KIND: steps[1:]}) as models:
            agent = await Shop(home=tmp_path, provider=models).open(tools=None, settings=BY_DEFAULT)
            await agent.run_turn(TABS)
            await agent.settle()
            entries = [entry.id for entry in agent.session.entries]
            await agent.close()
        with memories(tmp_path) as memory:
            (stored,) = memory.scan()
        assert stored.origin.session == agent.session.id
        assert set(stored.origin.messages) <= set(entries)
        assert stored.origin.messages

    asyncio.run(tell())


def test_a_turn_that_was_cut_short_is_looked_at_with_the_next(tmp_path: Path) -> None:
    async def tell() -> None:
        settings = {"extraction": {"writer": "rules"}}
        with ScriptedProvider([make_response(calls={"look": {}}), make_response("Done.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open(settings=settings, max_rounds=1)
            assert (await agent.run_turn(TABS)).reason == "out of rounds"
            await agent.settle()
            assert await run_blocking(lambda: kept(tmp_path)) == []
            assert (await agent.run_turn("Go on.")).reason == "answered"
            await agent.settle()
            await agent.close()
        assert kept(tmp_path) == [TABS]

    asyncio.run(tell())


@pytest.mark.moves_prefix(reason="the view is compacted, and the look is aside")
def test_what_waits_is_looked_at_after_a_compaction_too(tmp_path: Path) -> None:
    async def tell() -> None:
        text = written("tabs", "Indent with tabs, never with spaces.")
        steps_of = {EXTRACTION_KIND: [make_response(calls={"memory": text})]}
        steps = [make_response("I will. " + "Spaces are counted by nobody. " * 2_000), make_response("Done.")]
        with ScriptedProvider(steps, by_purpose=steps_of) as models:
            settings = {"extraction": {"writer": "auto", "every_turns": 3}}
            agent = await Shop(home=tmp_path, provider=models).open(tools=None, settings=settings)
            await agent.run_turn(TABS)
            await agent.settle()
            await agent.compact()
            await agent.run_turn("Please go on with it.")
            await agent.settle()
            await agent.close()
        look = models.requests[-1]
        assert TABS in str(look.messages[0])
        assert len(look.messages) == 3
        assert [one.who for one in agent.session.spent if one.calls] == ["main", EXTRACTION_KIND]
        assert kept(tmp_path) == ["Indent with tabs, never with spaces."]

    asyncio.run(tell())


@pytest.mark.parametrize("more", [{}, {"extraction": {"writer": "rules"}}, {"dream": {"daily_logs": True}}])
def test_where_no_memory_is_wanted_nothing_is_asked_nor_written_after_a_turn(
    tmp_path: Path, more: dict[str, dict[str, object]]
) -> None:
    async def tell() -> None:
        with ScriptedProvider([make_response("I will.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open(
                tools=None, settings={"memory": {"enabled": False}, **more}
            )
            await agent.run_turn(TABS)
            await agent.settle()
            await agent.close()
        assert len(models.requests) == 1

    asyncio.run(tell())
    with memories(tmp_path) as memory:
        assert memory.keys() == ()


def test_what_was_recalled_does_not_come_back_as_the_users_own(tmp_path: Path) -> None:
    rule = "The retrier makes seven attempts before it gives up."

    async def tell() -> list[str]:
        again, more = written("again", rule), written("again", f"{rule} Attempts are logged.")
        steps = [
            make_response(calls={"memory": again}),
            make_response(calls={"memory": more}),
            make_response("Done."),
        ]
        with ScriptedProvider([make_response("Seven.")], by_purpose={EXTRACTION_KIND: steps}) as models:
            shop = Shop(home=tmp_path, provider=models)
            # However slow the machine is: what is found later would come with the next request.
            agent = await shop.open(tools=None, settings={"recall": {"budget_ms": 60_000}, **BY_DEFAULT})
            await agent.run_turn(
                "How many attempts does the retrier make? Remember that attempts are logged."
            )
            assert "seven attempts" in str(models.requests[0].messages)
            await agent.settle()
            await agent.close()
        return [str(event) for event in shop.noted.of("DraftRefused")]

    with memories(tmp_path) as memory:
        by_team = Origin(who="sync", why="from the team", taint=frozenset(["team"]))
        text = write_memory("retries", "how often the retrier tries", "project", rule)
        memory.commit([Change("team/retries.md", text, None)], by_team)
    refused = asyncio.run(tell())
    assert len(refused) >= 1
    with memories(tmp_path) as memory:
        assert [stored.memory.key for stored in memory.scan() if stored.is_trusted] == []


def test_a_short_rule_in_the_last_turn_is_followed_by_a_fork_when_the_agent_closes(tmp_path: Path) -> None:
    async def tell() -> None:
        text = written("pnpm", "Use pnpm")
        steps_of = {EXTRACTION_KIND: [make_response(calls={"memory": text})]}
        with ScriptedProvider([make_response("I will.")], by_purpose=steps_of) as models:
            agent = await Shop(home=tmp_path, provider=models).open(tools=None, settings=BY_DEFAULT)
            await agent.run_turn("Use pnpm")
            await agent.settle()
            assert len(models.requests) == 1
            await agent.close()
        assert len(models.requests) == 2

    asyncio.run(tell())
    assert kept(tmp_path) == ["Use pnpm"]


async def kill(agent: Agent, home: Path) -> None:
    """End it as kill -9 does: on the disk is what was there before."""
    aside = home.with_name(f"{home.name}-aside")
    ignored = shutil.ignore_patterns("*.sock", ".tmp-*")
    await run_blocking(lambda: shutil.copytree(home, aside, symlinks=True, ignore=ignored))
    await agent.close()
    await run_blocking(lambda: shutil.rmtree(home))
    await run_blocking(lambda: aside.rename(home))


LONG = "I will. " + "Spaces are counted by nobody. " * 2_000


@pytest.mark.moves_prefix(reason="the view is compacted, and the look is aside")
@pytest.mark.parametrize("side", ["", "from", "up_to"])
def test_what_waits_is_looked_at_after_a_compaction_and_a_kill(tmp_path: Path, side: str) -> None:
    async def tell() -> None:
        text = written("tabs", "Indent with tabs, never with spaces.")
        # The second is that of the process that was killed, whose end is undone.
        looks = [make_response("Nothing."), make_response("Nothing."), make_response(calls={"memory": text})]
        summaries = [make_response("<summary>The parser was looked at.</summary>")] if side else []
        steps = [make_response(LONG) for _ in range(4)]
        by_purpose = {EXTRACTION_KIND: looks, "summary": summaries}
        home = tmp_path / "home"
        with ScriptedProvider(steps, by_purpose=by_purpose) as models:
            shop = Shop(home=home, provider=models)
            agent = await shop.open(tools=None, settings=BY_DEFAULT)
            await agent.run_turn("Please have a look at the parser.")
            await agent.close()
            waits = {"extraction": {"writer": "auto", "every_turns": 9}}
            agent = await shop.open(agent.session.id, tools=None, settings=waits)
            await agent.run_turn(TABS)
            await agent.run_turn("Please go on with the lexer.")
            await agent.settle()
            view = agent.session.parent.messages
            taught = next(at for at, one in enumerate(view) if TABS in str(one))
            last = next(at for at, one in enumerate(view) if "the lexer" in str(one))
            parts = {"from": Part("from", taught), "up_to": Part("up_to", last)}
            await agent.session.compact(part=parts.get(side))
            assert all(TABS not in point.text for point in list_rewind_points(agent))
            await kill(agent, home)
            agent = await shop.open(agent.session.id, tools=None, settings=BY_DEFAULT)
            assert all(TABS not in str(entry.message) for entry in agent.session.entries)
            await agent.run_turn("Please go on with the tests.")
            await agent.settle()
            await agent.close()
        look = models.requests[-1]
        assert TABS in str(look.messages[0])
        assert "have a look at the parser" not in str(look.messages[0]), "it was looked through already"
        assert kept(home) == ["Indent with tabs, never with spaces."]
        with memories(home) as memory:
            (stored,) = memory.scan()
        assert (stored.origin.said_by, len(stored.origin.messages)) == ("user", 1)

    asyncio.run(tell())


def test_a_fork_of_a_session_starts_where_the_session_was_looked_through(tmp_path: Path) -> None:
    async def tell() -> None:
        looks = [make_response("Nothing."), make_response("Nothing.")]
        steps = [make_response("I will.") for _ in range(2)]
        with ScriptedProvider(steps, by_purpose={EXTRACTION_KIND: looks}) as models:
            shop = Shop(home=tmp_path, provider=models)
            first = await shop.open(tools=None, settings=BY_DEFAULT)
            await first.run_turn(TABS)
            await first.close()
            again = await shop.open(first.session.id, tools=None, settings=BY_DEFAULT, is_fork=True)
            await again.run_turn("Please go on with the lexer.")
            await again.close()
        assert again.session.id != first.session.id
        assert "last 2 messages" in str(models.requests[-1].messages[-1])

    asyncio.run(tell())


@pytest.mark.moves_prefix(reason="the session goes back")
def test_what_was_looked_through_is_not_again_when_the_session_goes_back(tmp_path: Path) -> None:
    async def tell() -> None:
        looks = [make_response("Nothing."), make_response("Nothing."), make_response("Nothing.")]
        steps = [make_response("I will.") for _ in range(3)]
        with ScriptedProvider(steps, by_purpose={EXTRACTION_KIND: looks}) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await shop.open(tools=None, settings={**BY_DEFAULT, "models": CHEAP})
            await agent.run_turn(TABS)
            await agent.settle()
            await agent.run_turn("Please have a look at the parser.")
            await agent.settle()
            await agent.session.rewind(2, "the user went back")
            await agent.run_turn("Please have a look at the lexer.")
            await agent.close()
        assert "last 2 messages" in str(models.requests[-1].messages[-1])

    asyncio.run(tell())
