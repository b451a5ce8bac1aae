"""A fork reads its parent's cache, does only what its brief allows, and is billed apart."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from sevenfold.core.errors import Overloaded
from sevenfold.core.events import Event, ForkEnded, ForkStarted, ToolDenied
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, freeze_object
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import Breakpoint, ModelRequest, ModelResponse, RequestParams
from sevenfold.layers.forks.policy import ForkBrief, ToolPermit
from sevenfold.layers.forks.runner import build_fork_params, plan_fork_breakpoints, run_fork
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.testing import Prompt, Simulator, say
from sevenfold.testing import Reply as Said

PROSE = "The parser reads a line, splits it at the first colon, and keeps what follows. " * 40
TOOLS = (
    JsonObject(
        {"name": "Edit", "description": "Edits a file.", "input_schema": JsonObject({"type": "object"})}
    ),
)
MODELS = ("claude-opus-4-8", "claude-opus-5-5", "claude-fable-5-2")


def frame(model: str = MODELS[0], **params: JsonObject) -> RequestParams:
    return RequestParams(model=model, max_tokens=4_000, system=PROSE, tools=TOOLS, params=JsonObject(params))


def history(rounds: int) -> list[Message]:
    """A conversation whose last answer waits for two results."""
    messages = [Message("user", f"Begin. {PROSE}")]
    for number in range(rounds):
        ids = [ToolUseId(f"t{number}{half}") for half in "ab"]
        messages.append(Message("assistant", tuple(ToolUse(use, "Edit", EMPTY_OBJECT) for use in ids)))
        messages.append(Message("user", tuple(ToolResult(use, f"{use} {PROSE}") for use in ids)))
    return messages[:-1] if rounds else messages


def request(messages: Sequence[Message], model: str = MODELS[0]) -> ModelRequest:
    end = len(messages) - 1
    marks = (Breakpoint("system", 0), Breakpoint("messages", end, len(messages[end].blocks) - 1))
    return ModelRequest(frame(model), tuple(messages), marks)


def answer(prompt: Prompt) -> Said:
    return say("A summary." if "<sevenfold-fork>" in prompt.last_text else "Go on.")


def ask(parent: ModelRequest, briefs: Sequence[ForkBrief], simulator: Simulator) -> list[ModelResponse]:
    """The parent's own request, then its forks, all at once."""

    async def run() -> list[ModelResponse]:
        async with simulator.async_client() as client:
            provider = AnthropicProvider(client)
            await provider.send(ModelRequest(parent.frame, parent.messages[:-1], shorter(parent)))
            results = await asyncio.gather(*(run_fork(parent, brief, provider) for brief in briefs))
            return [result.last for result in results]

    return asyncio.run(run())


def shorter(parent: ModelRequest) -> tuple[Breakpoint, ...]:
    """The markers of the request before, whose messages end one answer earlier."""
    at = len(parent.messages) - 2
    return (parent.breakpoints[0], Breakpoint("messages", at, len(parent.messages[at].blocks) - 1))


@pytest.mark.parametrize("model", MODELS)
def test_a_fork_reads_all_that_its_parent_cached(model: str) -> None:
    with Simulator(answer) as simulator:
        ask(request(history(6), model), [ForkBrief(kind="summary", directive="Sum up.")], simulator)
        parent, fork = simulator.ledger.entries
    cached = parent.usage.written + parent.usage.read
    assert cached > 5_000
    assert fork.usage.read >= 0.99 * cached


@pytest.mark.parametrize("model", MODELS)
def test_parallel_forks_each_read_all_that_their_parent_cached(model: str) -> None:
    briefs = [ForkBrief(kind=kind, directive=f"Work on {kind}.") for kind in ("summary", "notes", "recall")]
    with Simulator(answer) as simulator:
        replies = ask(request(history(6), model), briefs, simulator)
        parent, *forks = simulator.ledger.entries
    assert [reply.text for reply in replies] == ["A summary."] * 3
    assert len(forks) == 3
    for fork in forks:
        assert fork.usage.read >= 0.99 * (parent.usage.written + parent.usage.read)


def test_the_fork_sends_the_parents_own_objects_and_then_its_directive() -> None:
    parent = request(history(2))
    with ScriptedProvider(by_purpose={"summary": ["Fine."]}) as provider:
        asyncio.run(run_fork(parent, ForkBrief(kind="summary", directive="Sum up."), provider))
    (sent,) = provider.requests
    assert sent.frame is parent.frame
    assert all(
        one is other
        for one, other in zip(sent.messages[: len(parent.messages)], parent.messages, strict=True)
    )
    assert len(sent.messages) == len(parent.messages) + 1
    last = sent.messages[-1].blocks[-1]
    assert isinstance(last, Text)
    assert last.text.endswith("Sum up.")


def test_a_denied_call_gets_an_error_back_and_the_fork_goes_on() -> None:
    heard: list[Event] = []
    steps = [make_response(calls={"Bash": {"command": "rm -r ."}}), "Very well."]
    with ScriptedProvider(by_purpose={"notes": steps}) as provider:
        brief = ForkBrief(
            kind="notes", directive="Write.", allow=(ToolPermit("Edit", "/n.md"),), max_rounds=2
        )
        result = asyncio.run(run_fork(request(history(1)), brief, provider, emit=heard.append))
    assert result.text == "Very well."
    assert result.is_done
    assert [denial.tool for denial in result.denials] == ["Bash"]
    (refused,) = provider.requests[1].messages[-1].blocks
    assert isinstance(refused, ToolResult)
    assert refused.is_error
    assert provider.requests[1].frame.tools == TOOLS, "the list of tools is part of the prefix"
    assert [type(event) for event in heard] == [ForkStarted, ToolDenied, ForkEnded]


def test_an_allowed_call_is_run() -> None:
    ran: list[ToolUse] = []

    async def run_tool(use: ToolUse) -> ToolResult:
        ran.append(use)
        return ToolResult(use.id, "edited")

    steps = [make_response(calls={"Edit": {"file_path": "/n.md"}}), "Done."]
    with ScriptedProvider(by_purpose={"notes": steps}) as provider:
        brief = ForkBrief(
            kind="notes", directive="Write.", allow=(ToolPermit("Edit", "/n.md"),), max_rounds=2
        )
        result = asyncio.run(run_fork(request(history(1)), brief, provider, run_tool=run_tool))
    assert [use.input["file_path"] for use in ran] == ["/n.md"]
    assert result.denials == ()
    assert result.usage.requests == 2


WRITES = make_response(calls={"memory": {"action": "write"}, "Write": {"file_path": "/m.md"}})
LOOKS = make_response(calls={"memory": {"action": "list"}})


@pytest.mark.parametrize(
    ("steps", "failing", "asked"),
    [
        ([WRITES], 0, 1),
        ([LOOKS, WRITES], 0, 2),
        ([WRITES, WRITES], 1, 2),
        ([WRITES, "I leave it."], 2, 2),
    ],
)
def test_a_fork_ends_with_the_writes_that_are_its_work(
    steps: list[ModelResponse | str], failing: int, asked: int
) -> None:
    ran: list[ToolUse] = []

    async def run_tool(use: ToolUse) -> ToolResult:
        ran.append(use)
        return ToolResult(use.id, "heard", is_error=len(ran) <= failing or None)

    with ScriptedProvider(by_purpose={"notes": steps}) as provider:
        brief = ForkBrief(
            kind="notes",
            directive="Write.",
            allow=(ToolPermit("memory"), ToolPermit("Write")),
            max_rounds=5,
            ends_when_written=True,
        )
        result = asyncio.run(run_fork(request(history(1)), brief, provider, run_tool=run_tool))
    assert result.is_done
    assert len(provider.requests) == asked


@pytest.mark.parametrize(
    "params",
    [{"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, {"parallel_tool_calls": False}],
)
def test_a_fork_that_may_make_one_call_an_answer_goes_on_after_a_write(params: dict[str, Json]) -> None:
    async def run_tool(use: ToolUse) -> ToolResult:
        return ToolResult(use.id, "heard")

    parent = request(history(1))
    parent = replace(parent, frame=replace(parent.frame, params=freeze_object(params)))
    one = make_response(calls={"memory": {"action": "write"}})
    with ScriptedProvider(by_purpose={"notes": [one, one, "Done."]}) as provider:
        brief = ForkBrief(
            kind="notes", directive="", allow=(ToolPermit("memory"),), max_rounds=5, ends_when_written=True
        )
        asyncio.run(run_fork(parent, brief, provider, run_tool=run_tool))
    assert len(provider.requests) == 3


def test_an_allowed_call_that_nobody_can_run_is_denied() -> None:
    with ScriptedProvider(by_purpose={"notes": [make_response(calls={"Edit": {}})]}) as provider:
        result = asyncio.run(
            run_fork(
                request(history(1)),
                ForkBrief(kind="notes", directive="Write.", allow=(ToolPermit("Edit"),)),
                provider,
            )
        )
    assert [denial.reason for denial in result.denials] == ["Edit cannot be run here"]


def test_a_fork_ends_with_its_last_round_though_it_would_go_on() -> None:
    heard: list[Event] = []
    with ScriptedProvider(by_purpose={"notes": [make_response(calls={"Bash": {}})] * 3}) as provider:
        brief = ForkBrief(kind="notes", directive="Write.", max_rounds=3)
        result = asyncio.run(run_fork(request(history(1)), brief, provider, emit=heard.append))
    assert not result.is_done
    ended = heard[-1]
    assert isinstance(ended, ForkEnded)
    assert (ended.outcome, ended.rounds) == ("out of rounds", 3)


def test_a_failed_round_goes_through_and_what_was_paid_is_told() -> None:
    heard: list[Event] = []
    provider = ScriptedProvider(by_purpose={"notes": [make_response(calls={"Bash": {}}), Overloaded("busy")]})
    brief = ForkBrief(kind="notes", directive="", max_rounds=2)
    with pytest.raises(Overloaded):
        asyncio.run(run_fork(request(history(1)), brief, provider, emit=heard.append))
    ended = heard[-1]
    assert isinstance(ended, ForkEnded)
    assert (ended.outcome, ended.rounds) == ("failed", 1)
    assert ended.fresh_tokens > 0


def test_a_fork_is_cancelled_with_its_parent() -> None:
    heard: list[Event] = []

    async def run() -> None:
        asked = asyncio.Event()

        async def never(_: ModelRequest) -> str:
            asked.set()
            await asyncio.Event().wait()
            return ""

        provider = ScriptedProvider(by_purpose={"notes": never})
        brief = ForkBrief(kind="notes", directive="Write.")
        task = asyncio.create_task(run_fork(request(history(1)), brief, provider, emit=heard.append))
        await asked.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    ended = heard[-1]
    assert isinstance(ended, ForkEnded)
    assert ended.outcome == "cancelled"


def test_markers_stand_where_the_parents_do_with_one_more_at_the_shared_end() -> None:
    hour = timedelta(hours=1)
    messages = history(2)
    marks = (Breakpoint("system", 0, ttl=hour), Breakpoint("messages", 0, ttl=hour))
    parent = ModelRequest(frame(), messages, marks)
    assert plan_fork_breakpoints(parent) == (*marks, Breakpoint("messages", len(messages) - 1, 1, ttl=hour))
    assert plan_fork_breakpoints(request(messages)) == request(messages).breakpoints


def test_no_marker_is_added_where_four_stand_or_none_do() -> None:
    four = tuple(Breakpoint("messages", index) for index in range(4))
    assert plan_fork_breakpoints(ModelRequest(frame(), history(3), four)) == four
    assert plan_fork_breakpoints(ModelRequest(frame(), history(3))) == ()
    automatic = frame(cache_control=JsonObject({"type": "ephemeral"}))
    assert plan_fork_breakpoints(ModelRequest(automatic, history(3), four[:3])) == four[:3]


def test_a_parent_that_marks_no_message_is_not_marked_for_a_single_use() -> None:
    marks = (Breakpoint("system", 0),)
    assert plan_fork_breakpoints(ModelRequest(frame(), history(2), marks)) == marks


def test_later_rounds_of_a_parent_without_breakpoints_or_with_nothing_to_mark_add_none() -> None:
    own = [Message("user", "directive")]
    assert plan_fork_breakpoints(ModelRequest(frame(), history(2)), own) == ()
    marks = (Breakpoint("system", 0),)
    assert plan_fork_breakpoints(ModelRequest(frame(), history(2), marks), [Message("user", ())]) == marks


def test_three_breakpoints_leave_room_for_one() -> None:
    three = tuple(Breakpoint("messages", index) for index in range(3))
    assert len(plan_fork_breakpoints(ModelRequest(frame(), history(3), three))) == 4


def test_later_rounds_mark_the_forks_own_end() -> None:
    parent = ModelRequest(frame(), history(1), (Breakpoint("system", 0),))
    own = [*parent.messages, Message("user", "directive"), Message("assistant", "x"), Message("user", "y")]
    assert plan_fork_breakpoints(parent, own)[-1] == Breakpoint("messages", len(own) - 1, 0)


def test_an_answer_has_room_beside_its_thinking() -> None:
    thinking = JsonObject({"type": "enabled", "budget_tokens": 8_000})
    brief = ForkBrief(kind="summary", directive="", max_tokens=2_000)
    assert build_fork_params(frame(thinking=thinking), brief).max_tokens > 8_000
    assert build_fork_params(frame(), brief).max_tokens == 2_000
    assert build_fork_params(frame(), ForkBrief(kind="summary", directive="")).max_tokens == 4_000
