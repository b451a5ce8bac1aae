"""A caller that is restarted goes on with its session, and sends the bytes that it sent before."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sevenfold.core.messages import Text, Thinking
from sevenfold.integrations import conversations
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


# Another's conversation is never taken for the caller's: its summary would be in the request.

EXAMPLE = [{"role": "user", "content": "Classify: I love it."}, {"role": "assistant", "content": "good"}]
STORY = "words of a long story go here and on. " * 400


class Talker(Caller):
    """A loop without tools, that keeps the text of an answer alone."""

    system = "You are brief."

    def turn(self, client: Any, prompt: str) -> None:
        self.messages.append({"role": "user", "content": prompt})
        answer = client.messages.create(
            model=self.model, max_tokens=500, system=self.system, messages=self.messages
        )
        self.messages.append({"role": "assistant", "content": answer.content[0].text})

    def run_compacted(self, *prompts: str, after: tuple[str, ...] = ()) -> None:
        """Compacted between the two, in a process of its own."""
        client: Any = attach(self.sim.client(max_retries=0), **self.options())
        for prompt in prompts:
            self.turn(client, prompt)
        client._run(client.sessions[0].compact())
        for prompt in after:
            self.turn(client, prompt)
        client.close()


def tell(count: int) -> list[str]:
    return [f"SECRET-{number} {STORY}" for number in range(count)]


def test_a_short_list_does_not_go_on_with_a_compacted_session_that_ends_alike(
    sim: Simulator, tmp_path: Path
) -> None:
    sim.reset(lambda _: say("Noted."))
    first, other = Talker(sim, tmp_path), Talker(sim, tmp_path)
    first.run_compacted(*tell(8), after=("Thanks, start over", "Hi"))
    other.messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Noted."}]
    other.run("What is the weather?")
    assert len(first.sessions) == 2
    assert sim.last.usage.prompt < 200
    # Nor one that is as long, and differs only in what was summed up.
    changed = Talker(sim, tmp_path)
    changed.messages = [dict(message) for message in first.messages]
    changed.messages[0]["content"] = "another beginning"
    changed.run("What is the weather?")
    assert len(first.sessions) == 3


@pytest.mark.parametrize("after", [(), ("more", "and more")])
def test_a_compacted_session_is_found_by_all_that_was_said_in_it(
    sim: Simulator, tmp_path: Path, after: tuple[str, ...]
) -> None:
    sim.reset(lambda prompt: say(f"Noted {prompt.number}."))
    caller = Talker(sim, tmp_path)
    caller.run_compacted(*tell(8), after=after)
    caller.run("one")
    caller.run("two")
    assert len(caller.sessions) == 1
    assert sim.last.usage.prompt < 25_000  # of 45,000 without a summary


def test_programs_with_one_example_in_front_have_sessions_of_their_own(
    sim: Simulator, tmp_path: Path
) -> None:
    sim.reset(lambda _: say("good"))
    for number, text in enumerate(("an invoice", "a letter", "a letter"), 1):
        caller = Talker(sim, tmp_path)
        caller.messages = list(EXAMPLE)
        caller.run(f"Classify: {text}")
        assert len(caller.sessions) == number
        assert "HistoryChanged" not in caller.listener.names()


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_a_list_without_the_last_answers_and_another_question_is_a_new_session(
    sim: Simulator, tmp_path: Path, lost: int
) -> None:
    sim.reset(lambda prompt: say(f"answer {prompt.number}"))
    caller, again = Talker(sim, tmp_path), Talker(sim, tmp_path)
    caller.run(*(f"question {number}" for number in range(6)))
    again.messages = caller.messages[: -2 * lost]
    again.run("another way")
    assert len(caller.sessions) == 2


def test_the_question_whose_answer_was_lost_may_be_asked_again(sim: Simulator, tmp_path: Path) -> None:
    sim.reset(lambda prompt: say(f"answer {prompt.number}"))
    caller, again = Talker(sim, tmp_path), Talker(sim, tmp_path)
    caller.run("one", "two", "three")
    again.messages = caller.messages[:-2]
    again.run("three")
    assert len(caller.sessions) == 1
    again.run("four")
    assert len(caller.sessions) == 1


def test_of_two_sessions_with_the_same_words_none_is_taken(sim: Simulator, tmp_path: Path) -> None:
    sim.reset(lambda _: say("Done."))
    first, second = Talker(sim, tmp_path), Talker(sim, tmp_path)
    first.run("one")
    second.run("one")
    second.run("two")
    assert len(first.sessions) == 3


def test_another_system_prompt_or_model_begins_a_session(sim: Simulator, tmp_path: Path) -> None:
    for changed in ({"system": "You review."}, {"model": "claude-opus-4-5"}):
        home = tmp_path / next(iter(changed))
        sim.reset(lambda prompt: say(f"answer {prompt.number}"))
        first, other = Talker(sim, home), Talker(sim, home)
        first.run("one")
        other.messages = list(first.messages)
        for name, value in changed.items():
            setattr(other, name, value)
        other.run("two")
        assert len(first.sessions) == 2


def test_another_result_of_the_same_call_begins_a_session(sim: Simulator, tmp_path: Path) -> None:
    caller = Caller(sim, tmp_path)
    caller.run("one", "two")
    caller.messages[2]["content"][0]["content"] = LONG.replace("build", "trial")
    caller.run("three")
    assert len(caller.sessions) == 2


@pytest.mark.parametrize("what", ["removed", "continued"])
def test_a_session_that_changes_before_it_is_open_is_not_taken(
    sim: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    sim.reset(lambda prompt: say(f"answer {prompt.number}"))
    caller, copy = Talker(sim, tmp_path), Talker(sim, tmp_path)
    caller.run("one")
    copy.messages = list(caller.messages)
    find = conversations.find_earlier_session

    def find_and_wait(*given: Any) -> Any:
        found = find(*given)
        monkeypatch.setattr(conversations, "find_earlier_session", find)
        if what == "continued":
            copy.run("two")
        else:
            next(tmp_path.glob(".sevenfold/projects/*/sessions/*.jsonl")).unlink()
        return found

    monkeypatch.setattr(conversations, "find_earlier_session", find_and_wait)
    caller.run("another two")
    assert len(caller.sessions) == (2 if what == "continued" else 1)
    assert "HistoryChanged" not in caller.listener.names()
