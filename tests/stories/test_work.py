"""Commands, background work and other agents at a real terminal: nothing is orphaned, nothing is lost."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from sevenfold.testing import Prompt, Reply, Simulator, say
from tests.stories.living import Place, processes_with
from tests.stories.stage import CTRL_C, Stage

pytestmark = pytest.mark.story

NUMBER = "86399"
"""Seconds that a command sleeps which only ever ends because somebody ends it; nobody else sleeps as long."""


def brain(prompt: Prompt) -> Reply | str:
    """An agent that counts, one that is told of counts, and one that does what the last line says."""
    asked = prompt.last_text
    if found := re.search(r"count the (\w+)", asked):
        return f"There are seven {found[1]}."
    counted = re.findall(r"seven (\w+)", asked)
    if counted:
        return f"I hear that {' and '.join(sorted(set(counted)))} were counted."
    if "a word from elsewhere" in asked:
        return "Heard from elsewhere."
    last = asked.rpartition("\n")[2]
    if prompt.results:
        return "Sent." if last.startswith("send") else f"It says: {str(prompt.results[-1].content)[:60]}"
    return _begin(last)


def _begin(line: str) -> Reply | str:
    if line.startswith("run"):
        is_behind = line == "run behind"
        return say(calls={"shell": {"command": f"sleep {NUMBER}", "access": "open", "background": is_behind}})
    if line.startswith("two agents"):
        return _two_agents()
    if line.startswith("send to "):
        given = {"to": line.removeprefix("send to "), "summary": "a word", "message": "a word from elsewhere"}
        return say(calls={"send_message": given})
    return f"You said: {line}"


def _two_agents() -> Reply:
    replies = [
        say(
            calls={
                "agent": {
                    "description": f"count {what}",
                    "prompt": f"Please count the {what}.",
                    "name": what,
                    "background": True,
                }
            }
        )
        for what in ("cats", "dogs")
    ]
    return Reply(tuple(block for reply in replies for block in reply.blocks))


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with Simulator(brain) as sim:
        yield Place(tmp_path, sim)


def approve(stage: Stage) -> None:
    stage.wait_for("allow it?")
    stage.enter("y")


def leave(stage: Stage) -> None:
    stage.enter("/quit")
    assert stage.wait_for_end() == 0


def test_a_command_that_is_interrupted_leaves_no_process_and_the_session_goes_on(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("run long")
        approve(stage)
        stage.wait_until(lambda: bool(processes_with(NUMBER)), "the command runs")
        stage.type(CTRL_C)
        stage.wait_for("interrupted; what was done stays done")
        stage.wait_until(lambda: not processes_with(NUMBER), "the command is ended")
        stage.enter("and now?")
        stage.wait_for("You said: and now?")
        leave(stage)
    assert "[interrupted by the user]" in place.transcripts()[0].read_text()


def test_kill_9_in_the_middle_of_a_command_leaves_no_process_and_a_session_that_goes_on(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("run long")
        approve(stage)
        stage.wait_until(lambda: bool(processes_with(NUMBER)), "the command runs")
        stage.kill()
        stage.settle(lambda: not processes_with(NUMBER), "the command is ended with its agent")
    with place.chat("--continue") as stage:
        stage.enter("and now?")
        stage.wait_for("You said: and now?")
        leave(stage)
    assert all(entry.error is None for entry in place.sim.ledger.entries)
    assert place.leftovers() == []


def test_a_background_command_is_listed_and_can_be_killed(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("run behind")
        approve(stage)
        stage.wait_for("It says: task-1")
        stage.wait_for("1 task")
        stage.enter("/tasks")
        stage.wait_for("task-1 (sleep 86399): running")
        stage.type("\r")
        stage.wait_for("leave it running")
        stage.type("2")
        stage.wait_for("task-1 was ended")
        stage.wait_until(lambda: not processes_with(NUMBER), "the command is ended")
        leave(stage)


def test_leaving_ends_what_runs_in_the_background(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("run behind")
        approve(stage)
        stage.wait_until(lambda: bool(processes_with(NUMBER)), "the command runs")
        leave(stage)
    assert processes_with(NUMBER) == []
    assert place.leftovers() == []


def test_two_agents_in_the_background_are_heard_of_when_they_end(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("two agents")
        stage.wait_until(
            lambda: {"cats", "dogs"} <= set(re.findall(r"(cats|dogs)", " ".join(_heard(stage)))),
            "both are heard of",
        )
        stage.enter("/agents")
        stage.wait_for("cats: ")
        leave(stage)
    assert place.leftovers() == []


def _heard(stage: Stage) -> list[str]:
    return re.findall(r"I hear that [\w\s]+were counted", stage.everything)


@pytest.mark.parametrize("way", ["mailbox", "socket"])
def test_a_message_reaches_another_process(place: Place, way: str) -> None:
    # A socket's path has to be short, and those of tests are not.
    with tempfile.TemporaryDirectory(prefix="story") as short:
        place.environ["XDG_RUNTIME_DIR"] = short
        with place.chat() as first:
            first.enter("hello")
            first.wait_for("You said: hello")
            (mine,) = place.transcripts()
            name = f"main-{mine.stem[:8]}"
            socket = next(Path(short).rglob(f"{name}.sock"))
            with place.chat() as second:
                second.enter(f"send to {name if way == 'mailbox' else f'uds:{socket}'}")
                second.wait_for("Sent.")
                leave(second)
            first.wait_for("Heard from elsewhere.")
            leave(first)
        assert list(Path(short).rglob("*.sock")) == []
    assert place.leftovers() == []
    assert "a word from elsewhere" in mine.read_text()
