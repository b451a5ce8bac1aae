"""Rules in an agent: a memory is put before the action that needs it, in the session it happens in."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sevenfold.agent.loop.turn import NoticePosted, TurnEvent
from sevenfold.core.memories import MEMORY_USE_KINDS, Origin, change_field, write_memory
from sevenfold.core.messages import Message
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.store.memory.changes import ANYTHING, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.sidecars import UseStore
from sevenfold.store.project.project import Project
from sevenfold.store.transcript.transcript import read_events
from tests.agent.loop.test_agent import said
from tests.agent.workshop import Plain, Shop

BODY = "Tag the release before you push."
PUSH = {"run": {"command": "git push origin main"}}
BY_HAND = Origin(who="user", why="told so", said_by="user")


@contextmanager
def project(shop: Shop) -> Generator[Project]:
    with Project.open(shop.project, home=shop.home / ".sevenfold") as found:
        yield found


def remember(shop: Shop, *applies_to: str, origin: Origin = BY_HAND, gate: str | None = None) -> None:
    text = write_memory("release", "before pushing", "feedback", BODY, applies_to=applies_to)
    with project(shop) as found, MemoryDir(found) as memory:
        memory.commit([Write("release.md", change_field(text, "gate", gate), ANYTHING)], origin)


def counts(shop: Shop) -> dict[str, int]:
    with project(shop) as found:
        uses = UseStore(found.control).read()["release.md"]
    # Recall counts its own.
    return {kind: uses.count(kind) for kind in MEMORY_USE_KINDS if kind != "recalled" and uses.count(kind)}


def open_shop(home: Path, models: ScriptedProvider) -> Shop:
    return Shop(home=home, provider=models, tools=[Plain(), Plain(name="run", is_parallel=False, kind="run")])


def results(messages: Sequence[Message]) -> list[str]:
    return [line.removeprefix("result: ") for line in said(messages) if line.startswith("result: ")]


def test_a_push_waits_for_the_rule_and_goes_through_when_it_is_called_again(tmp_path: Path) -> None:
    async def tell() -> None:
        steps = [
            make_response("I push.", calls=PUSH),
            make_response("Tagged; now.", calls=PUSH),
            make_response("Done."),
        ]
        with ScriptedProvider(steps) as models:
            shop = open_shop(tmp_path, models)
            remember(shop, "command:git push")
            agent = await shop.open(mode="bypass")
            end = await agent.run_turn("Push it.")
            await agent.close()
        assert end.text == "Done."
        held, done = results(models.requests[-1].messages)
        assert held.startswith("Not run yet")
        assert BODY in held
        assert done == "run "
        assert counts(shop) == {"shown": 1, "unchanged": 1}
        assert len(shop.noted.of("RuleShown")) == 1
        with project(shop) as found, found.sessions.subfolder(agent.session.id) as folder:
            kept = [told.name for told in read_events(folder)]
        assert kept.count("RuleShown") == 1, "what the agent tells is written down with its session, once"

    asyncio.run(tell())


def test_a_resumed_session_is_not_told_again_and_a_new_one_is(tmp_path: Path) -> None:
    async def tell() -> None:
        steps = [
            make_response(calls=PUSH),
            make_response("I stop."),
            make_response(calls=PUSH),
            make_response("Pushed."),
            make_response(calls=PUSH),
            make_response("Hm."),
        ]
        with ScriptedProvider(steps) as models:
            shop = open_shop(tmp_path, models)
            remember(shop, "command:git push")
            first = await shop.open(mode="bypass")
            await first.run_turn("Push it.")
            await first.close()
            again = await shop.open(first.session.id, mode="bypass")
            await again.run_turn("Push it after all.")
            await again.close()
            assert [BODY in text for text in results(models.requests[-1].messages)] == [True, False]
            other = await shop.open(mode="bypass")
            await other.run_turn("Push it.")
            await other.close()
            assert [BODY in text for text in results(models.requests[-1].messages)] == [True]
        assert counts(shop) == {"shown": 2, "given up": 2}

    asyncio.run(tell())


def test_after_a_compaction_the_rule_is_put_before_the_action_again(tmp_path: Path) -> None:
    async def tell() -> None:
        steps = [make_response(calls=PUSH), make_response(calls=PUSH), make_response("Pushed.")]
        steps += [
            *(make_response("I see.") for _ in range(6)),
            make_response(calls=PUSH),
            make_response("Wait."),
        ]
        with ScriptedProvider(
            steps, by_purpose={"summary": lambda _: make_response("<summary>pushed once</summary>")}
        ) as models:
            shop = open_shop(tmp_path, models)
            remember(shop, "command:git push")
            agent = await shop.open(mode="bypass")
            await agent.run_turn("Push it.")
            for _ in range(6):
                await agent.run_turn("word " * 12_000)
            await agent.compact()
            await agent.run_turn("Push again.")
            await agent.close()
        assert BODY in results(models.requests[-1].messages)[-1]
        assert counts(shop)["shown"] == 2

    asyncio.run(tell())


def test_a_gate_hears_what_the_model_says_beside_its_call(tmp_path: Path) -> None:
    async def tell() -> None:
        steps = [
            make_response("I push.", calls=PUSH),
            make_response("Again.", calls=PUSH),
            make_response("As release asks, v1 is tagged.", calls=PUSH),
            make_response("Done."),
        ]
        with ScriptedProvider(steps) as models:
            shop = open_shop(tmp_path, models)
            remember(shop, "command:git push", gate="acknowledge")
            agent = await shop.open(mode="bypass")
            await agent.run_turn("Push it.")
            await agent.close()
        held = [text.startswith("Not run") for text in results(models.requests[-1].messages)]
        assert held == [True, True, False]
        assert counts(shop) == {"shown": 1, "acknowledged": 1, "unchanged": 1}

    asyncio.run(tell())


def test_what_nobody_has_accepted_never_fires(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider([make_response(calls=PUSH), make_response("Done.")]) as models:
            shop = open_shop(tmp_path, models)
            remember(
                shop, "command:git push", origin=Origin(who="sync", why="pulled", taint=frozenset(["team"]))
            )
            agent = await shop.open(mode="bypass")
            await agent.run_turn("Push it.")
            await agent.close()
        assert results(models.requests[-1].messages) == ["run "]

    asyncio.run(tell())


def test_a_condition_that_cannot_be_read_is_told_once_and_the_others_fire(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider(
            [make_response(calls=PUSH), make_response(calls=PUSH), make_response("Done.")]
        ) as models:
            shop = open_shop(tmp_path, models)
            remember(shop, "when pushing", "command:git push")
            agent = await shop.open(mode="bypass")
            await agent.run_turn("Push it.")
            await agent.close()
        assert results(models.requests[-1].messages)[0].startswith("Not run yet")
        assert len(shop.noted.of("ConditionRefused")) == 1

    asyncio.run(tell())


def test_settings_can_switch_rules_off(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider([make_response(calls=PUSH), make_response("Done.")]) as models:
            shop = open_shop(tmp_path, models)
            remember(shop, "command:git push")
            agent = await shop.open(mode="bypass", settings={"rules": {"enabled": False}})
            await agent.run_turn("Push it.")
            await agent.close()
        assert results(models.requests[-1].messages) == ["run "]

    asyncio.run(tell())


def test_a_person_is_told_at_the_start_what_waits_for_them(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider([make_response("Hello."), make_response("Again.")]) as models:
            shop = open_shop(tmp_path, models)
            with project(shop) as found, MemoryDir(found) as memory:
                memory.propose([Write("deploy.md", "Run curl.\n", None)], BY_HAND, "it came from a page")
            agent = await shop.open()
            seen: list[TurnEvent] = []
            await agent.run_turn("Hello.", seen.append)
            await agent.run_turn("Hello again.", seen.append)
            await agent.close()
        told = [one.text for one in seen if isinstance(one, NoticePosted)]
        assert len(told) == 1
        assert "deploy.md" in told[0]
        assert "Run curl" not in str(models.requests[-1].messages)

    asyncio.run(tell())
