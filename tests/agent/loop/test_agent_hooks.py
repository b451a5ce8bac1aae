"""Hooks in a turn: what they refuse, add and hold back, through real commands."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.agent.loop.agent import MAX_STOP_BLOCKS, PROMPT_DROPPED_NOTICE, Agent
from sevenfold.agent.loop.turn import LayerActed, NoticePosted, TurnEnd, TurnEvent
from sevenfold.core.errors import CompactionStopped
from sevenfold.core.events import WriterFailed
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.agent.loop.test_agent import said
from tests.agent.workshop import Plain, Shop
from tests.layers.compaction.overflows import GOOD


def summarise(_request: ModelRequest) -> ModelResponse:
    return make_response(GOOD)


def write_hooks(home: Path, **commands: str) -> None:
    """Hooks of the user's own, by event."""
    hooks = {
        event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in commands.items()
    }
    (home / ".sevenfold").mkdir(exist_ok=True)
    (home / ".sevenfold" / "hooks.json").write_text(json.dumps({"hooks": hooks}))


def test_a_prompt_that_a_hook_blocks_never_reaches_the_model(tmp_path: Path) -> None:
    write_hooks(tmp_path, UserPromptSubmit="echo 'no secrets here' >&2; exit 2")

    async def tell() -> TurnEnd:
        with ScriptedProvider([]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            end = await agent.run_turn("My password is 123.")
            assert len(agent.session.history) == 0
            await agent.close()
        return end

    assert asyncio.run(tell()) == TurnEnd("no secrets here", 0, "refused")


def test_a_prompt_that_no_hook_has_passed_is_not_taken_in_and_that_is_said(tmp_path: Path) -> None:
    write_hooks(tmp_path, UserPromptSubmit="echo > began; sleep 60")

    async def tell() -> list[str]:
        with ScriptedProvider([]) as models:
            shop = Shop(home=tmp_path, provider=models)
            os.mkfifo(shop.project / "began")
            agent = await shop.open()
            shown: list[TurnEvent] = []
            turn = asyncio.create_task(agent.run_turn("Mend it.", shown.append))
            await asyncio.to_thread((shop.project / "began").read_text)
            agent.interrupt()
            assert (await turn).reason == "interrupted"
            assert len(agent.session.history) == 0
            await agent.close()
        return [seen.text for seen in shown if isinstance(seen, NoticePosted)]

    assert asyncio.run(tell()) == [PROMPT_DROPPED_NOTICE]


def test_a_face_hears_what_happened_before_it_watched(tmp_path: Path) -> None:
    async def tell() -> list[str]:
        with ScriptedProvider([make_response("Yes.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open(model="a-model-of-my-own")
            shown: list[TurnEvent] = []
            await agent.run_turn("Ready?", shown.append)
            await agent.close()
        return [type(seen.event).__name__ for seen in shown if isinstance(seen, LayerActed)]

    assert asyncio.run(tell()).count("ModelUnknown") == 1


def test_what_hooks_add_is_said_by_the_program_after_the_prompt(tmp_path: Path) -> None:
    write_hooks(tmp_path, SessionStart="echo the build is red", UserPromptSubmit="echo be brief")

    async def tell() -> list[str]:
        with ScriptedProvider([make_response("Yes.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            await agent.run_turn("Ready?")
            await agent.close()
        return said(models.requests[0].messages)

    told = asyncio.run(tell())
    assert told[0] == "user: Ready?"
    assert told[1].startswith("system: ")
    assert "SessionStart hook additional context: the build is red" in told[1]
    assert "UserPromptSubmit hook additional context: be brief" in told[1]


def test_a_stop_hook_has_a_turn_go_on_but_not_for_ever(tmp_path: Path) -> None:
    write_hooks(tmp_path, Stop='cat >> asked.jsonl; printf \'{"decision":"block","reason":"run the tests"}\'')

    async def tell() -> TurnEnd:
        with ScriptedProvider(
            [make_response(f"Done {number}.") for number in range(MAX_STOP_BLOCKS + 1)]
        ) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            end = await agent.run_turn("Go.")
            await agent.close()
        assert "run the tests" in said(models.requests[-1].messages)[-1]
        return end

    end = asyncio.run(tell())
    assert (end.reason, end.rounds) == ("answered", MAX_STOP_BLOCKS + 1)
    asked = (tmp_path / "project" / "asked.jsonl").read_text()
    assert asked.count('"stop_hook_active":true') == MAX_STOP_BLOCKS
    assert '"last_assistant_message":"Done 0."' in asked


def test_hooks_speak_to_the_person_and_may_halt_the_turn(tmp_path: Path) -> None:
    answer = '{"continue":false,"stopReason":"out of hours","systemMessage":"go home"}'
    write_hooks(tmp_path, PostToolUse=f"printf '{answer}'")
    seen: list[TurnEvent] = []

    async def tell() -> TurnEnd:
        with ScriptedProvider([make_response("I look.", calls={"look": {"n": 1}})]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            end = await agent.run_turn("Go.", seen.append)
            await agent.close()
        return end

    assert asyncio.run(tell()).rounds == 1
    assert NoticePosted("go home") in seen


class Listed(Plain):
    def extras(self) -> list[Extra]:
        return [Extra("todo", "list", "mend the parser")]


async def compacted(agent: Agent) -> None:
    for number in range(3):
        await agent.run_turn(f"{number} " + "word " * 6_000)
    await agent.compact("the parser")
    await agent.run_turn("What is left?")


def test_after_a_compaction_tools_hooks_and_surroundings_say_again_what_they_hold(tmp_path: Path) -> None:
    write_hooks(
        tmp_path,
        SessionStart='grep -q \'"source":"compact"\' && echo the build is green || true',
        PreCompact="echo mind the tests",
        PostCompact="cat > after.json",
        SessionEnd="cat > end.json",
    )

    async def tell() -> list[str]:
        steps = [make_response("ok") for _ in range(4)]
        with ScriptedProvider(steps, by_purpose={"summary": summarise}) as models:
            agent = await Shop(home=tmp_path, provider=models, tools=[Listed()]).open(model="claude-opus-5")
            await compacted(agent)
            await agent.close("done")
        asked = next(request for request in models.requests if request.purpose == "summary")
        assert "mind the tests" in str(asked.messages[-1]) + str(asked.frame.params)
        return said(models.requests[-1].messages)

    told = "\n".join(asyncio.run(tell()))
    assert "mend the parser" in told
    assert "the build is green" in told
    assert "Working folder" in told
    project = tmp_path / "project"
    assert json.loads((project / "after.json").read_text())["trigger"] == "manual"
    assert json.loads((project / "end.json").read_text())["reason"] == "done"


def test_a_hook_may_speak_first_in_the_name_of_the_user(tmp_path: Path) -> None:
    answer = json.dumps({"hookSpecificOutput": {"initialUserMessage": "Look at the open issues."}})
    write_hooks(tmp_path, SessionStart=f"echo '{answer}'")

    async def tell() -> list[str]:
        with ScriptedProvider([make_response("Three.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            await agent.inbox.wait()
            assert (await agent.run_turn()).text == "Three."
            await agent.close()
        return said(models.requests[0].messages)

    assert any("Look at the open issues." in text for text in asyncio.run(tell()))


def test_a_hook_may_refuse_a_compaction_by_hand(tmp_path: Path) -> None:
    write_hooks(tmp_path, PreCompact="echo not now >&2; exit 2")

    async def tell() -> None:
        with ScriptedProvider([make_response("ok")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            await agent.run_turn("Go.")
            with pytest.raises(CompactionStopped, match="not now"):
                await agent.compact()
            await agent.close()

    asyncio.run(tell())


def test_a_writer_that_fails_costs_nothing_but_its_work(tmp_path: Path) -> None:
    written: list[str] = []

    async def broken(_end: TurnEnd) -> None:
        raise RuntimeError("no ink")

    async def working(end: TurnEnd) -> None:
        written.append(end.text)

    async def tell() -> Shop:
        with ScriptedProvider([make_response("One."), make_response("Two.")]) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await shop.open()
            agent.add_writer("broken", broken)
            agent.add_writer("working", working)
            await agent.run_turn("First.")
            await agent.settle()
            await agent.run_turn("Second.")
            await agent.close()
        return shop

    shop = asyncio.run(tell())
    assert written == ["One.", "Two."]
    assert shop.noted.of("WriterFailed") == [WriterFailed("broken", "RuntimeError: no ink")] * 2


def test_nothing_is_finished_beside_a_writer_that_still_runs(tmp_path: Path) -> None:
    done: list[str] = []

    async def tell() -> None:
        gate = asyncio.Event()

        async def write(_end: TurnEnd) -> None:
            await gate.wait()
            done.append("written")

        async def finish() -> None:
            done.append("finished")

        with ScriptedProvider([make_response("One.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            agent.add_writer("slow", write, finish)
            await agent.run_turn("First.")
            await agent.finish(timedelta())
            assert done == []
            gate.set()
            await agent.finish()
            assert done == ["written", "finished"]
            await agent.close()

    asyncio.run(tell())


def test_a_writer_finishes_though_another_had_to_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    async def tell() -> Shop:
        async def hang(_end: TurnEnd) -> None:
            await asyncio.Event().wait()

        async def write(end: TurnEnd) -> None:
            done.append(end.text)

        async def finish() -> None:
            done.append("finished")

        with ScriptedProvider([make_response("One.")]) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await shop.open()
            agent.add_writer("hung", hang, finish)
            agent.add_writer("other", write, finish)
            await agent.run_turn("First.")
            monkeypatch.setattr("sevenfold.agent.loop.agent.WRITERS_TIMEOUT", timedelta(milliseconds=50))
            await agent.close()
            return shop

    shop = asyncio.run(tell())
    assert done == ["One.", "finished"]
    (stopped,) = shop.noted.of("WriterFailed")
    assert isinstance(stopped, WriterFailed)
    assert stopped.writer == "hung"
