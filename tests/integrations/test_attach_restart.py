"""A caller that is restarted goes on with its session, and sends the bytes that it sent before."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sevenfold.core.messages import Text, Thinking
from sevenfold.integrations.attached_client import attach
from sevenfold.testing import Prompt, Reply, Simulator, call_tool, say
from tests.session.talk import Listener

SIGNED, UNSIGNED = "claude-opus-5-5", "claude-opus-4-5"
TOOLS: list[Any] = [{"name": "Bash", "description": "Runs it.", "input_schema": {"type": "object"}}]
LONG = "one line of the log of a build\n" * 3_000


@pytest.fixture
def sim() -> Generator[Simulator]:
    with Simulator(work) as running:
        yield running


def work(prompt: Prompt) -> Reply:
    """Asks for a command, thinks where it may, and ends the turn with words that say nothing."""
    thought = (Thinking("Where is it?"),) if prompt.thinks else ()
    if prompt.results:
        return Reply((*thought, Text("Done.")))
    return Reply((*thought, Text("I look."), call_tool("Bash", {"command": f"make {prompt.number}"})))


class Caller:
    """A loop with a list of its own, in a process that may end."""

    def __init__(self, sim: Simulator, home: Path, model: str = SIGNED) -> None:
        self.sim, self.home, self.model = sim, home, model
        self.messages: list[Any] = []
        self.listener = Listener()

    def run(self, *prompts: str) -> None:
        """In a process of its own."""
        with attach(self.sim.client(max_retries=0), **self.options()) as client:
            for prompt in prompts:
                self.turn(client, prompt)

    def options(self) -> dict[str, Any]:
        return {"project": self.home, "environ": {"HOME": str(self.home)}, "emit": self.listener}

    def turn(self, client: Any, prompt: str) -> None:
        self.messages.append({"role": "user", "content": prompt})
        for _ in range(2):
            answer = client.messages.create(
                model=self.model,
                max_tokens=3_000,
                system="You mend builds. " * 300,
                tools=TOOLS,
                messages=self.messages,
                thinking={"type": "enabled", "budget_tokens": 1_024}
                if self.model == UNSIGNED
                else {"type": "adaptive"},
            )
            self.messages.append({"role": "assistant", "content": answer.content})
            uses = [block for block in answer.content if block.type == "tool_use"]
            if uses:
                results = [{"type": "tool_result", "tool_use_id": use.id, "content": LONG} for use in uses]
                self.messages.append({"role": "user", "content": results})

    @property
    def sessions(self) -> list[str]:
        return [path.stem for path in self.home.glob(".sevenfold/projects/*/sessions/*.jsonl")]


@pytest.mark.parametrize("model", [SIGNED, UNSIGNED])
def test_a_restart_reads_the_whole_prompt_from_the_cache(sim: Simulator, tmp_path: Path, model: str) -> None:
    caller = Caller(sim, tmp_path, model)
    caller.run("one", "two")
    written = sim.last.usage
    caller.run("three")
    caller.run("four")
    assert [entry.status for entry in sim.ledger.entries] == [200] * 8
    assert sim.ledger.entries[4].usage.read == written.read + written.written
    assert len(caller.sessions) == 1
    # Stored once each, in the folder of the one session.
    assert caller.listener.names().count("ResultSpilled") == 4
    assert {"CutRegistered", "HistoryChanged", "CacheMissed"}.isdisjoint(caller.listener.names())


def test_an_answer_that_was_lost_with_the_process_is_asked_for_again(sim: Simulator, tmp_path: Path) -> None:
    caller = Caller(sim, tmp_path)
    caller.run("one", "two")
    del caller.messages[-1]
    with attach(sim.client(max_retries=0), **caller.options()) as client:
        client.messages.create(
            model=SIGNED,
            max_tokens=500,
            messages=caller.messages,
            tools=TOOLS,
            system="You mend builds. " * 300,
        )
    assert sim.last.status == 200
    assert len(caller.sessions) == 1


def test_another_conversation_that_ends_with_the_same_words_is_a_session_of_its_own(
    sim: Simulator, tmp_path: Path
) -> None:
    sim.reset(lambda _: say("Done."))
    first, other = Caller(sim, tmp_path), Caller(sim, tmp_path)
    first.run("one")
    other.messages = [{"role": "user", "content": "else"}, {"role": "assistant", "content": "Done."}]
    other.run("and now?")
    assert len(first.sessions) == 2


def test_an_older_state_of_a_conversation_starts_a_session_of_its_own(sim: Simulator, tmp_path: Path) -> None:
    caller, again = Caller(sim, tmp_path), Caller(sim, tmp_path)
    caller.run("one")
    again.messages = list(caller.messages)
    caller.run("two", "three")
    again.run("another two")
    assert len(caller.sessions) == 2


def test_a_session_that_is_open_elsewhere_is_not_taken(sim: Simulator, tmp_path: Path) -> None:
    caller, copy = Caller(sim, tmp_path), Caller(sim, tmp_path)
    with ExitStack() as exits:
        client = exits.enter_context(attach(sim.client(), **caller.options()))
        caller.turn(client, "one")
        copy.messages = list(caller.messages)
        copy.run("two")
        assert len(caller.sessions) == 2


def test_without_a_project_nothing_is_looked_for(sim: Simulator, tmp_path: Path) -> None:
    caller = Caller(sim, tmp_path)
    caller.run("one")
    with attach(sim.client(), project=None, environ={"HOME": str(tmp_path)}) as client:
        caller.turn(client, "two")
    assert len(caller.sessions) == 1
