"""The toolbox: every call gets a result in its place, whatever happens to it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.agent.permissions.guard import ForkGuard, Guard, PermissionRequest, PermissionResponse, Reach
from sevenfold.agent.permissions.rules import PermissionRules, parse_permission_rules
from sevenfold.agent.tool import OnProgress, Tool, ToolEnded, ToolEvent, ToolOutput, ToolPrinted, ToolStarted
from sevenfold.agent.tools.executor import INTERRUPTED_RESULT, MAX_PARALLEL_CALLS, ToolBatch, ToolExecutor
from sevenfold.agent.tools.file_changes import EditTool
from sevenfold.agent.tools.read import ReadTool
from sevenfold.core.clock import ManualClock
from sevenfold.core.events import Event
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import ToolResult, ToolUse, ToolUseId
from sevenfold.core.settings.sections import PermissionMode
from sevenfold.core.tool_kinds import ToolContext
from tests.agent.workshop import Noted, Plain

HERE = Path("/nowhere")


def box(
    tools: Sequence[Tool],
    *,
    mode: PermissionMode = "ask",
    rules: PermissionRules | None = None,
    noted: Noted | None = None,
) -> ToolExecutor:
    place = ToolContext(root=HERE, cwd=HERE, emit=noted or Noted())
    return ToolExecutor(tools, place, Guard(mode=mode, rules=rules or PermissionRules(), root=HERE))


def use(number: int, tool: str = "look", **given: object) -> ToolUse:
    return ToolUse(ToolUseId(f"t{number}"), tool, freeze_object({"n": number, **given}))


def contents(results: Sequence[ToolResult]) -> list[object]:
    return [result.content for result in results]


CALLS = st.lists(st.tuples(st.sampled_from(["look", "dig", "gone"]), st.integers(0, 5)), max_size=25)


@given(CALLS)
def test_results_come_in_the_order_of_the_calls_however_long_each_takes(calls: list[tuple[str, int]]) -> None:
    uses = [use(number, tool, waits=waits) for number, (tool, waits) in enumerate(calls)]
    results = asyncio.run(box([Plain(), Plain(name="dig", is_parallel=False)]).run(uses))
    assert [result.tool_use_id for result in results] == [one.id for one in uses]
    for one, result in zip(uses, results, strict=True):
        if one.name == "gone":
            assert result.is_error
        else:
            assert result.content == f"{one.name} {one.input['n']}"


@given(CALLS)
def test_a_call_that_changes_something_has_the_tools_for_itself(calls: list[tuple[str, int]]) -> None:
    dig = Plain(name="dig", is_parallel=False)
    log = dig.log
    look = Plain(log=log)
    uses = [use(number, tool, waits=waits) for number, (tool, waits) in enumerate(calls)]
    asyncio.run(box([look, dig]).run(uses))
    assert dig.most_at_once <= 1
    for number, (tool, _) in enumerate(calls):
        if tool == "dig":
            start = log.index(f"start {number}")
            assert log[start + 1] == f"end {number}"
            before = [one for one in log[:start] if one.startswith("start")]
            assert all(f"end {one.split()[1]}" in log[:start] for one in before)


def test_calls_that_only_read_run_side_by_side_and_not_too_many() -> None:
    look = Plain(waits=5)
    asyncio.run(box([look]).run([use(number) for number in range(30)]))
    assert look.most_at_once == MAX_PARALLEL_CALLS


def test_what_a_tool_raises_is_a_result_and_an_event() -> None:
    noted = Noted()
    results = asyncio.run(box([Plain(fails=ZeroDivisionError("by zero"))], noted=noted).run([use(1)]))
    assert results[0].is_error
    assert "by zero" in str(results[0].content)
    assert len(noted.of("ToolFailed")) == 1


def test_bad_input_answers_the_model_and_runs_nothing() -> None:
    look = Plain()
    results = asyncio.run(box([look]).run([use(1, is_bad=True)]))
    assert "is_bad" in str(results[0].content)
    assert look.log == []


def test_a_denied_call_answers_with_the_reason_and_the_others_run() -> None:
    noted = Noted()
    dig = Plain(name="dig", kind="run")
    rules = parse_permission_rules((), (), ("dig",))
    results = asyncio.run(box([Plain(), dig], rules=rules, noted=noted).run([use(1, "dig"), use(2)]))
    assert "dig" in str(results[0].content)
    assert results[0].is_error
    assert results[1].content == "look 2"
    assert dig.log == []
    assert len(noted.of("ToolDenied")) == 1


def test_a_person_is_asked_one_thing_at_a_time() -> None:
    asked: list[str] = []
    waiting = 0

    async def ask(question: PermissionRequest) -> PermissionResponse:
        nonlocal waiting
        waiting += 1
        assert waiting == 1
        await asyncio.sleep(0)
        asked.append(question.use.id)
        waiting -= 1
        return PermissionResponse(is_allowed=question.use.id != "t2", words="not this one")

    guard = Guard(mode="ask", rules=PermissionRules(), root=HERE, ask=ask)
    toolbox = ToolExecutor([Plain(name="run", kind="run")], ToolContext(root=HERE, cwd=HERE), guard)
    results = asyncio.run(toolbox.run([use(number, "run") for number in range(4)]))
    assert len(asked) == 4
    assert [bool(result.is_error) for result in results] == [False, False, True, False]
    assert "not this one" in str(results[2].content)


def test_a_cancelled_run_has_answers_for_every_call() -> None:
    async def tell() -> ToolBatch:
        toolbox = box([Plain(), Plain(name="dig", is_parallel=False)])
        uses = (use(1), use(2, waits=100_000), use(3, "dig"))
        answers = ToolBatch(uses=uses)
        first = asyncio.Event()

        def watch(seen: ToolEvent) -> None:
            if isinstance(seen, ToolEnded):
                first.set()

        running = asyncio.create_task(toolbox.run(uses, watch, answers))
        await first.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return answers

    results = asyncio.run(tell()).results()
    assert contents(results) == ["look 1", INTERRUPTED_RESULT, INTERRUPTED_RESULT]
    assert [result.tool_use_id for result in results] == ["t1", "t2", "t3"]


def test_whoever_watches_sees_each_call_start_print_and_end() -> None:
    seen: list[ToolEvent] = []
    asyncio.run(box([Plain()]).run([use(1)], seen.append))
    assert [type(one) for one in seen] == [ToolStarted, ToolPrinted, ToolEnded]


def test_a_fork_runs_what_its_brief_allows_with_nobody_asked_and_commands_only_reading() -> None:
    places: list[ToolContext] = []

    class Where(Plain):
        async def run(self, given: JsonObject, place: ToolContext, on_progress: OnProgress) -> ToolOutput:
            places.append(place)
            return await super().run(given, place, on_progress)

    toolbox = box([Where()], mode="read-only")
    elsewhere = replace(toolbox.place, cwd=Path("/elsewhere"))
    result = asyncio.run(_run_one(toolbox, elsewhere))
    assert result.content == "look 1"
    assert places[0].cwd == Path("/elsewhere")
    assert places[0].confined_to == "read-only"


async def _run_one(toolbox: ToolExecutor, place: ToolContext) -> ToolResult:
    return await toolbox.runner(place)(use(1))


def test_a_toolbox_under_a_forks_guard_denies_what_is_out_of_reach() -> None:
    toolbox = box([Plain(name="run", kind="run")]).at(
        ToolContext(root=HERE, cwd=HERE), ForkGuard(Reach()), who="writer"
    )
    results = asyncio.run(toolbox.run([use(1, "run")]))
    assert results[0].is_error


def test_declarations_stay_in_their_order() -> None:
    toolbox = box([Plain(name="b"), Plain(name="a")])
    assert [one["name"] for one in toolbox.declared()] == ["b", "a"]
    events: list[Event] = []
    assert toolbox.at(replace(toolbox.place, emit=events.append)).declared() == toolbox.declared()


class Asked:
    """A person who takes their time and allows everything."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.questions: list[PermissionRequest] = []

    async def __call__(self, question: PermissionRequest) -> PermissionResponse:
        self.questions.append(question)
        self.clock.pass_time(timedelta(seconds=20))
        return PermissionResponse(True)


async def run_edit(root: Path, asked: Asked, **given: object) -> ToolEnded:
    seen: list[ToolEvent] = []
    place = ToolContext(root=root, cwd=root, clock=asked.clock)
    guard = Guard(mode="ask", rules=PermissionRules(), root=root, ask=asked)
    toolbox = ToolExecutor([EditTool(), ReadTool()], place, guard)
    read = ToolUse(ToolUseId("r"), "read", freeze_object({"file_path": "a.txt"}))
    edit = ToolUse(ToolUseId("e"), "edit", freeze_object({"file_path": "a.txt", **given}))
    await toolbox.run([read])
    await toolbox.run([edit], seen.append)
    (ended,) = (event for event in seen if isinstance(event, ToolEnded))
    return ended


def test_a_person_sees_what_an_edit_changes_and_where_before_it_is_made(tmp_path: Path) -> None:
    tmp_path.joinpath("a.txt").write_text("".join(f"line {number}\n" for number in range(1, 21)))
    asked = Asked(ManualClock())
    ended = asyncio.run(run_edit(tmp_path, asked, old_string="line 10\n", new_string="ten\n"))
    (question,) = asked.questions
    assert "@@ -7,7 +7,7 @@" in question.need.diff
    assert question.need.diff == ended.output.diff, ended.output
    assert ended.took < timedelta(seconds=20), "the time that the person took is not the tool's"


def test_nobody_is_asked_for_an_edit_that_cannot_be_made(tmp_path: Path) -> None:
    tmp_path.joinpath("a.txt").write_text("one\n")
    asked = Asked(ManualClock())
    ended = asyncio.run(run_edit(tmp_path, asked, old_string="two", new_string="three"))
    assert asked.questions == []
    assert ended.output.is_error
    assert "old_string is not in" in str(ended.output.content)


def test_a_file_outside_the_project_is_not_looked_at_before_a_person_allows_it(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    tmp_path.joinpath("secret.txt").write_text("x\n")
    place = ToolContext(root=root, cwd=root)
    for name in ("secret.txt", "missing.txt"):
        given = freeze_object({"file_path": str(tmp_path / name), "old_string": "a", "new_string": "b"})
        assert EditTool().preview(given, place) is None
