"""A model that makes the same failing call again and again: a person is asked, or the turn ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sevenfold.agent.loop.turn import MAX_EQUAL_FAILURES, MAX_FAILED_ANSWERS, MAX_PAUSES, LoopGuard, TurnEnd
from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.tool import ToolOutput
from sevenfold.agent.tools.executor import ToolBatch
from sevenfold.core.errors import LoopStopped
from sevenfold.core.events import LoopDetected
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.agent.workshop import Plain, Shop

BAD = {"look": {"is_bad": True}}


def run_turn(home: Path, rounds: int, *, agrees: int | None = None) -> tuple[TurnEnd, Shop, list[str]]:
    """A turn with a model that never learns. `agrees`: how often a person says to go on; None: nobody is
    there."""
    asked: list[str] = []

    async def ask(question: PermissionRequest) -> PermissionResponse:
        asked.append(question.need.said)
        return PermissionResponse(agrees is not None and len(asked) <= agrees)

    async def tell() -> tuple[TurnEnd, Shop, list[str]]:
        steps = [make_response(calls=BAD) for _ in range(rounds)]
        with ScriptedProvider(steps) as models:
            shop = Shop(home=home, provider=models, tools=[Plain()])
            agent = await (shop.open() if agrees is None else shop.open(ask=ask))
            end = await agent.run_turn("Look.")
            await agent.close()
        return end, shop, asked

    return asyncio.run(tell())


def test_without_anybody_to_ask_the_turn_fails(tmp_path: Path) -> None:
    end, shop, _ = run_turn(tmp_path, MAX_EQUAL_FAILURES)
    assert (end.reason, end.rounds) == ("failed", MAX_EQUAL_FAILURES)
    assert isinstance(end.error, LoopStopped)
    assert shop.noted.of("LoopDetected") == [LoopDetected("look", MAX_EQUAL_FAILURES, True)]


def test_a_provider_that_pauses_again_and_again_ends_the_turn(tmp_path: Path) -> None:
    async def tell() -> TurnEnd:
        paused = replace(make_response("Wait."), stop_reason="pause_turn")
        with ScriptedProvider([paused] * MAX_PAUSES) as models:
            agent = await Shop(home=tmp_path, provider=models, tools=[Plain()]).open()
            end = await agent.run_turn("Look.")
            await agent.close()
        return end

    end = asyncio.run(tell())
    assert (end.reason, end.rounds) == ("failed", MAX_PAUSES)
    assert isinstance(end.error, LoopStopped)


def test_a_person_may_have_it_go_on_and_is_asked_again(tmp_path: Path) -> None:
    end, shop, asked = run_turn(tmp_path, 2 * MAX_EQUAL_FAILURES, agrees=1)
    assert len(asked) == 2
    assert isinstance(end.error, LoopStopped)
    stopped = [event.is_stopped for event in shop.noted.events if isinstance(event, LoopDetected)]
    assert stopped == [False, True]


def batch(*calls: tuple[str, Mapping[str, object], bool]) -> ToolBatch:
    """Calls of one answer, each with its tool, its input and whether it failed."""
    uses = tuple(
        ToolUse(ToolUseId(f"t{at}"), name, freeze_object(given)) for at, (name, given, _) in enumerate(calls)
    )
    outputs = {use.id: ToolOutput("", is_error=call[2]) for use, call in zip(uses, calls, strict=True)}
    return ToolBatch(uses=uses, outputs=outputs)


def test_equal_calls_count_whatever_stands_between_them() -> None:
    guard = LoopGuard()
    for n in range(MAX_EQUAL_FAILURES - 1):
        assert guard.find_loop(batch(("a", {}, True), ("b", {"n": n}, True), ("c", {}, False))) is None
        # The first success of `c` counts anew; its repetitions do not.
    found = guard.find_loop(batch(("a", {}, True), ("c", {}, False), ("a", {}, True)))
    assert found is not None
    assert found.use.name == "a"


def test_a_test_that_fails_after_each_edit_is_work() -> None:
    guard = LoopGuard()
    for n in range(50):
        answers = batch(("edit", {"n": n}, False), ("shell", {"command": "pytest"}, True))
        assert guard.find_loop(answers) is None


def test_five_equal_calls_of_one_answer_are_a_loop() -> None:
    calls = [("a", {"n": 1}, True)] * MAX_EQUAL_FAILURES
    assert LoopGuard().find_loop(batch(*calls)) is not None


def test_calls_that_differ_and_all_fail_are_a_loop_too() -> None:
    guard = LoopGuard()
    for n in range(MAX_FAILED_ANSWERS - 1):
        assert guard.find_loop(batch((f"tool{n}", {"n": n}, True), ("look", {"n": n}, True))) is None
    found = guard.find_loop(batch(("look", {}, True)))
    assert found is not None
    assert found.count == MAX_FAILED_ANSWERS
    guard.reset()
    assert guard.find_loop(batch(("look", {"n": "again"}, True))) is None


def test_a_call_that_succeeds_ends_a_row_of_failures() -> None:
    guard = LoopGuard()
    for n in range(3 * MAX_FAILED_ANSWERS):
        assert guard.find_loop(batch(("look", {"n": n}, n % MAX_FAILED_ANSWERS != 0))) is None
