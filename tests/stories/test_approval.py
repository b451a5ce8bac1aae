"""A person answers what an agent asks for with one key, at a real terminal of any width."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from sevenfold.testing import Prompt, Reply, Simulator, say
from tests.stories.living import Place
from tests.stories.stage import Stage

pytestmark = pytest.mark.story


def brain(prompt: Prompt) -> Reply | str:
    if prompt.results:
        is_denied = any("did not allow" in str(result.content) for result in prompt.results)
        return "Then I leave it." if is_denied else "It is done."
    asked = prompt.last_text.rpartition("\n")[2]
    if asked.startswith("write"):
        return say(calls={"write": {"file_path": asked.removeprefix("write "), "content": "The dog ran.\n"}})
    if asked.startswith("run"):
        return say(calls={"shell": {"command": asked.removeprefix("run "), "access": "open"}})
    return f"You said: {asked}"


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with Simulator(brain) as sim:
        yield Place(tmp_path, sim)


def wait_for_menu(stage: Stage) -> None:
    stage.wait_until(lambda: "allow it?" in stage.shown and stage.is_drawn, "a question is asked")


def wait_for_answer(stage: Stage, text: str, times: int = 1) -> None:
    stage.wait_until(
        lambda: stage.everything.count(text) == times and "allow it?" not in stage.shown, f"{text} is said"
    )


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_one_key_answers_and_edits_are_accepted_from_then_on(place: Place, columns: int) -> None:
    with place.chat(columns=columns, SEVENFOLD_CHAT_NOTIFY="osc9") as stage:
        stage.enter("write a.txt")
        wait_for_menu(stage)
        assert b"\x1b]2;? sevenfold project\x07" in stage.raw, "the title says that it waits"
        assert b"\x1b]9;sevenfold project: a question waits\x07" in stage.raw, "the person is called"
        stage.type("n")
        wait_for_answer(stage, "Then I leave it.")
        stage.enter("write b.txt")
        wait_for_menu(stage)
        stage.type("y")
        wait_for_answer(stage, "It is done.")
        told = stage.everything.partition("write b.txt")[2]
        assert told.count("+The dog ran.") == 1, "what the question showed is not shown again"
        assert "write b.txt" in told, "the question has no path that is longer than needed"
        stage.enter("write c.txt")
        wait_for_menu(stage)
        stage.type("\x1b[B\r")
        wait_for_answer(stage, "It is done.", 2)
        stage.wait_until(lambda: "accept-edits" in stage.shown.split("\n")[-1], "the mode has changed")
        stage.enter("write d.txt")
        wait_for_answer(stage, "It is done.", 3)
        stage.enter("/quit")
        assert stage.wait_for_end() == 0
        titles = re.findall(rb"\x1b\]2;([^\x07]*)\x07|(\x1b\[23;2t)", bytes(stage.raw))
        assert titles[-1][1], "the terminal has its own title again"
    written = [name for name in "abcd" if (place.project / f"{name}.txt").exists()]
    assert written == ["b", "c", "d"]


def test_always_by_a_pattern_is_kept_out_of_git_and_covers_nothing_but_words(place: Place) -> None:
    with place.chat(columns=100) as stage:
        stage.enter("run git log --oneline")
        wait_for_menu(stage)
        assert "always: shell(git log *)" in stage.shown
        stage.type("p")
        stage.wait_for("kept in .sevenfold/settings.local.toml")
        stage.type("\r")
        wait_for_answer(stage, "It is done.")
        stage.enter("run git log -1")
        wait_for_answer(stage, "It is done.", 2)
        stage.enter("run git log -1 | cat")
        wait_for_menu(stage)
        assert "always: shell(git log *)" not in stage.shown
        stage.type("\tdo not pipe it\r")
        wait_for_answer(stage, "Then I leave it.")
        stage.enter("/quit")
        assert stage.wait_for_end() == 0
    kept = (place.project / ".sevenfold/settings.local.toml").read_text()
    assert 'allow = ["shell(git log *)"]' in kept
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=place.project, capture_output=True, check=True
    )
    assert status.stdout == b""
    assert "do not pipe it" in place.transcripts()[0].read_text()
