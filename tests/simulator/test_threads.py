"""Message threads: refused in the way that makes clients do without."""

from __future__ import annotations

import pytest
from anthropic import Anthropic, beta_tool

from sevenfold.testing import Prompt, Reply, Simulator, call_tool, say
from tests.simulator.asking import MODEL, Asker

THREADS = "message-threads-2026-08-12"


@beta_tool
def look(place: str) -> str:
    """Look at a place.

    Args:
        place: Where to look.
    """
    return f"There is nothing at {place}."


def looking(prompt: Prompt) -> Reply:
    if prompt.results:
        return say("Nothing there.")
    return Reply((call_tool("look", {"place": "home"}), call_tool("look", {"place": "work"})))


@pytest.mark.rule("threads-1")
@pytest.mark.parametrize("thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}])
def test_a_thread_is_refused_with_its_own_code(ask: Asker, thread: dict[str, str]) -> None:
    answer = ask.create("Hi", betas=[THREADS], thread=thread)
    assert (answer.status, answer.code) == (400, "thread_unsupported_request")
    assert answer.at("error", "details", "unsupported") == ("thread",)
    assert ask.create("Hi", thread=thread).message == "thread: Extra inputs are not permitted"
    assert ask.create("Hi", betas=[THREADS], thread={"type": "fork"}).code is None


@pytest.mark.rule("threads-2")
def test_the_tool_runner_goes_on_without_threads(sim: Simulator, client: Anthropic) -> None:
    sim.reset(looking)
    runner = client.beta.messages.tool_runner(
        model=MODEL, max_tokens=500, tools=[look], messages=[{"role": "user", "content": "Look around."}]
    )
    final = runner.until_done()
    assert final.content[0].type == "text"
    assert final.content[0].text == "Nothing there."
    assert [entry.status for entry in sim.ledger.entries] == [400, 200, 200]


@pytest.mark.rule("threads-2")
def test_the_streaming_tool_runner_does_too(sim: Simulator, client: Anthropic) -> None:
    sim.reset(looking)
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=500,
        tools=[look],
        stream=True,
        messages=[{"role": "user", "content": "Look around."}],
    )
    replies = [stream.get_final_message().stop_reason for stream in runner]
    assert replies == ["tool_use", "end_turn"]


@pytest.mark.rule("threads-2")
def test_the_tool_runner_can_be_told_to_do_without(sim: Simulator, client: Anthropic) -> None:
    sim.reset(looking)
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=500,
        tools=[look],
        thread=False,
        messages=[{"role": "user", "content": "Look around."}],
    )
    assert runner.until_done().stop_reason == "end_turn"
    assert [entry.status for entry in sim.ledger.entries] == [200, 200]


@pytest.mark.rule("threads-2")
def test_the_tool_runner_compacts_between_turns(sim: Simulator, client: Anthropic) -> None:
    def brain(prompt: Prompt) -> Reply:
        return say("They looked.") if prompt.purpose == "summary" else looking(prompt)

    sim.reset(brain)
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=500,
        tools=[look],
        thread=False,
        betas=["compact-2026-09-04"],
        max_iterations=4,
        messages=[{"role": "user", "content": "Look around."}],
    )
    reasons: list[str | None] = []
    for message in runner:
        if message.stop_reason == "tool_use" and not reasons:
            runner.compact_before_next_turn()
        reasons.append(message.stop_reason)
    assert reasons[:2] == ["tool_use", "compaction"]


@pytest.mark.rule("threads-3")
def test_a_thread_cannot_be_counted(ask: Asker) -> None:
    answer = ask.count("Hi", betas=[THREADS], thread={"type": "create"})
    assert (answer.status, answer.code) == (400, "thread_unsupported_request")
