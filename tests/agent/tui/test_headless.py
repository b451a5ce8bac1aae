"""One prompt for a script: what is printed can be parsed, and the exit code tells how it went."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from sevenfold.agent.loop.turn import TurnEnd
from sevenfold.agent.tui.headless import HeadlessOptions, OutputFormat, run_headless
from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import Overloaded
from sevenfold.core.usage import Usage
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.providers.scripted import ScriptedProvider, ScriptedStep, make_response
from tests.agent.workshop import Plain, Shop

Fields = dict[str, object]


def shoot(
    folder: Path, steps: Sequence[ScriptedStep], shot: HeadlessOptions, max_rounds: int = 9
) -> tuple[int, list[str]]:
    """The exit code and the lines."""

    async def tell(models: ScriptedProvider) -> tuple[int, list[str]]:
        tools = [Plain(), Plain(name="shell", kind="run")]
        agent = await Shop(home=folder, provider=models, tools=tools).open(max_rounds=max_rounds)
        lines: list[str] = []
        try:
            facts = await run_headless(agent, "Go.", lines.append, shot, ManualClock())
            return facts.exit_code, lines
        finally:
            await agent.close()

    with ScriptedProvider(steps) as models:
        return asyncio.run(tell(models))


def test_the_result_comes_last_with_what_was_paid_after_the_turn(tmp_path: Path) -> None:
    async def tell(models: ScriptedProvider) -> list[str]:
        agent = await Shop(home=tmp_path, provider=models, tools=[Plain()]).open()

        async def write(_end: TurnEnd) -> None:
            await agent.session.run_fork(ForkBrief(kind="notes", directive="Say more."))

        agent.add_writer("a writer", write)
        lines: list[str] = []
        try:
            await run_headless(agent, "Go.", lines.append, HeadlessOptions("stream-json"), ManualClock())
        finally:
            await agent.close()
        assert parsed(lines)[-1]["total_cost_usd"] == agent.spent_usd
        return lines

    with ScriptedProvider([make_response("Hi."), make_response("More.")]) as models:
        told = parsed(asyncio.run(tell(models)))
    events = [line.get("event") for line in told]
    assert "ForkEnded" in events
    assert (told[-1]["type"], told[-1]["is_error"]) == ("result", False)


def parsed(lines: list[str]) -> list[Fields]:
    return [cast("Fields", json.loads(line)) for line in lines]


def test_text_is_the_answer_and_nothing_else(tmp_path: Path) -> None:
    steps = [make_response("I look.", calls={"look": {}}), make_response("On the mat.")]
    assert shoot(tmp_path, steps, HeadlessOptions()) == (0, ["On the mat."])


def test_json_is_one_object_with_the_bill(tmp_path: Path) -> None:
    code, lines = shoot(
        tmp_path, [make_response("Hi.", usage=Usage(fresh=10, read=20, output=3))], HeadlessOptions("json")
    )
    (result,) = parsed(lines)
    assert code == 0
    assert result["type"] == "result"
    assert (result["subtype"], result["is_error"], result["result"]) == ("success", False, "Hi.")
    assert (result["num_turns"], result["stop_reason"]) == (1, "answered")
    assert result["usage"] == {
        "input_tokens": 10,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 0,
        "output_tokens": 3,
    }
    assert isinstance(result["total_cost_usd"], float)


def test_stream_json_tells_everything_in_order(tmp_path: Path) -> None:
    _, lines = shoot(
        tmp_path,
        [make_response("I look.", calls={"look": {"n": 1}}), make_response("Done.")],
        HeadlessOptions("stream-json"),
    )
    told = parsed(lines)
    kinds = [line["type"] for line in told if line.get("subtype") != "sevenfold_event"]
    assert kinds == ["system", "assistant", "user", "assistant", "result"]
    init = told[0]
    assert (init["subtype"], init["permissionMode"], init["model"]) == ("init", "ask", "claude-opus-5-5")
    assert init["tools"] == ["look", "shell"]
    assert len({line["session_id"] for line in told}) == 1
    user = next(line for line in told if line["type"] == "user")
    content = cast("list[Fields]", cast("Fields", user["message"])["content"])
    assert (content[0]["type"], content[0]["content"]) == ("tool_result", "look 1")


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_a_failure_is_told_in_the_result(tmp_path: Path, form: OutputFormat) -> None:
    code, lines = shoot(tmp_path, [Overloaded("too busy")], HeadlessOptions(form))
    result = parsed(lines)[-1]
    assert code == 1
    assert (result["subtype"], result["is_error"]) == ("error_during_execution", True)
    assert "too busy" in str(result["result"])


def test_as_text_a_failure_is_raised_for_the_command_line_to_tell(tmp_path: Path) -> None:
    with pytest.raises(Overloaded, match="too busy"):
        shoot(tmp_path, [Overloaded("too busy")], HeadlessOptions())


def test_a_turn_out_of_rounds_is_no_success(tmp_path: Path) -> None:
    code, lines = shoot(tmp_path, [make_response(calls={"look": {}})], HeadlessOptions("json"), max_rounds=1)
    assert code == 1
    assert parsed(lines)[0]["subtype"] == "error_max_turns"


def test_a_turn_ends_with_the_round_that_reaches_its_budget(tmp_path: Path) -> None:
    dear = make_response("So far.", calls={"look": {}}, usage=Usage(fresh=1_000_000, output=10))
    code, lines = shoot(tmp_path, [dear], HeadlessOptions("json", max_usd=0.5))
    (result,) = parsed(lines)
    assert code == 1
    assert (result["subtype"], result["is_error"]) == ("error_max_budget_usd", True)


def test_where_nobody_can_be_asked_a_tool_is_denied_and_the_turn_goes_on(tmp_path: Path) -> None:
    steps = [make_response(calls={"shell": {"command": "make"}}), make_response("I could not.")]
    code, lines = shoot(tmp_path, steps, HeadlessOptions("json"))
    (result,) = parsed(lines)
    assert (code, result["result"]) == (0, "I could not.")
    denials = cast("list[Fields]", result["permission_denials"])
    assert [denial["tool_name"] for denial in denials] == ["shell"]
