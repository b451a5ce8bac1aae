"""A person at the keys: goes back, takes back, edits, pastes, and sees what runs beside, at any width."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.testing import Prompt, Reply, Simulator, SlowFault, say
from tests.stories.living import Place
from tests.stories.stage import CTRL_O, CTRL_R, ESCAPE, Stage
from tests.stories.walk import WIDTHS, Walk, flatten, wait_for_input

pytestmark = pytest.mark.story

UP, SHIFT_TAB, CTRL_J, CTRL_V, CLEAR = "\x1b[A", "\x1b[Z", "\n", "\x16", "\x15"


def brain(prompt: Prompt) -> Reply | str:
    if prompt.results:
        return "It is done."
    asked = prompt.last_text.rpartition("\n")[2]
    if asked.startswith("write"):
        return say(calls={"write": {"file_path": asked.removeprefix("write "), "content": "The dog ran.\n"}})
    if asked.startswith("start"):
        command = "for n in 1 2 3 4 5 6 7 8 9; do echo step $n; sleep 5; done"
        return say(calls={"shell": {"command": command, "access": "read", "background": True}})
    return f"You said: {asked}"


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with Simulator(brain) as sim:
        yield Place(tmp_path, sim)


def leave(stage: Stage) -> None:
    stage.enter("/quit")
    assert stage.wait_for_end() == 0


def read_input(stage: Stage) -> str:
    """The line that is typed in."""
    return next((line for line in reversed(stage.shown.split("\n")) if line.startswith("›")), "")


def is_idle(stage: Stage) -> bool:
    """Whether the status line of an idle chat is there; a narrow one has no room for the model."""
    return re.search(r"\$\d+\.\d\d", stage.shown) is not None and "working" not in stage.shown


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_going_back_with_the_files_and_undoing_it(place: Place, columns: int) -> None:
    with place.chat("--mode", "accept-edits", columns=columns) as stage:
        for name in ("a.txt", "b.txt"):
            stage.enter(f"write {name}")
            stage.wait_until(
                lambda name=name: (place.project / name).exists() and is_idle(stage), f"{name} is written"
            )
        stage.type(ESCAPE)
        stage.type(ESCAPE)
        stage.wait_for("go back to before which")
        stage.type("1")
        stage.wait_for("what goes back?")
        stage.type("\r")
        stage.wait_for("/rewind undo undoes it")
        assert not (place.project / "b.txt").exists()
        wait_for_input(stage, "write b.txt")
        stage.type("\x15/rewind undo\r")
        stage.wait_until((place.project / "b.txt").exists, "the file is back")
        leave(stage)
    with place.chat("--continue", columns=columns) as stage:
        stage.wait_for("› write b.txt")
        leave(stage)


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_tab_takes_a_file_or_a_command_out_of_the_menu_and_enter_sends_it(place: Place, columns: int) -> None:
    with place.chat(columns=columns) as stage:
        stage.type("look at @ca")
        stage.wait_until(lambda: "  cat.txt" in stage.shown, "the menu is open")
        stage.type("\t")
        stage.wait_until(lambda: read_input(stage) == "› look at @cat.txt", "the file is in the input")
        stage.type("\r")
        stage.wait_for("You said: look at @cat.txt")
        stage.wait_until(lambda: is_idle(stage), "the turn is over")
        stage.type("/cos")
        stage.wait_until(lambda: " /cost  " in stage.shown, "the menu is open")
        stage.type("\t\r")
        stage.wait_for("without caching")
        leave(stage)


def test_what_waits_is_taken_back_and_an_unanswered_prompt_returns(place: Place) -> None:
    with place.chat(columns=60) as stage:
        place.sim.fail(SlowFault(first=timedelta(seconds=30)))
        stage.enter("first words")
        stage.wait_for("working")
        stage.enter("second words")
        stage.wait_for("takes the last one back")
        stage.type(UP)
        stage.wait_until(lambda: "takes the last one back" not in stage.shown, "nothing waits")
        wait_for_input(stage, "second words")
        stage.type("\x15")
        stage.type(ESCAPE)
        stage.wait_until(lambda: is_idle(stage) and read_input(stage) == "› first words", "it is back")
        stage.enter("")
        stage.wait_for("You said: first words")
        leave(stage)
    assert len(place.sim.ledger.entries) <= 3


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_a_long_paste_leaves_nothing_stale_in_scrollback(place: Place, columns: int) -> None:
    with place.chat(columns=columns) as stage:
        stage.type("\x1b[200~" + "\n".join(f"row {number}" for number in range(200)) + "\x1b[201~")
        stage.wait_for("[pasted text 1: 200 lines]")
        stage.type(CTRL_O)
        stage.wait_until(lambda: "row 199" in stage.shown, "it is opened")
        assert "/help commands" in " ".join(stage.shown.split()), "and scrolls in a part of the screen"
        stage.enter("")
        stage.wait_for("You said: row 199")
        stage.wait_until(lambda: is_idle(stage), "the turn is over")
        leave(stage)
        above = stage.everything
    assert "row 150" not in above
    assert "[pasted text" not in above, "the input is no part of what was said"
    assert above.count("› row 0") == 1


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_a_background_task_is_a_line_that_lives_and_can_be_opened_and_ended(
    place: Place, columns: int
) -> None:
    with place.chat(columns=columns) as stage:
        stage.enter("start it")
        stage.wait_for("○ task-1")
        stage.wait_for("step 1")
        stage.wait_until(lambda: is_idle(stage) and "○ task-1" in stage.shown, "it runs beside the chat")
        stage.enter("/tasks")
        stage.wait_for("background tasks and agents")
        stage.type("\r")
        stage.wait_for("leave it running")
        stage.type("2")
        stage.wait_for("task-1 was ended")
        stage.wait_until(lambda: "○ task-1" not in stage.shown, "its line is gone")
        leave(stage)


@WIDTHS
def test_a_chat_begins_with_what_is_in_use_and_its_keys_do_what_they_are_said_to(
    place: Place, columns: int
) -> None:
    with place.chat(columns=columns, PATH=f"{add_clipboard(place)}:{os.environ['PATH']}") as stage:
        walk = Walk(stage, columns, [])
        walk.see("sevenfold", "claude-opus-5-5 mode ask session", "project on master")
        walk.see("? shows keys, /help commands")
        stage.type("?")
        walk.see("Shift-Tab the next permission mode", "!command run it and show the model")
        for mode in ("accept-edits", "plan", "read-only", "ask"):
            stage.type(SHIFT_TAB)
            stage.wait_until(lambda mode=mode: mode in stage.shown.split("\n")[-1], f"the mode is {mode}")
        stage.type(f"one\\\rtwo{CTRL_J}three{ESCAPE}\rfour\r")
        walk.see("› one two three four", "You said: four")
        walk.rest()
        stage.type("look at @alp")
        stage.wait_until(lambda: "  src/deep/alpha.py" in stage.shown, "it is found by a part of its name")
        stage.type("\t")
        stage.wait_until(lambda: read_input(stage) == "› look at @src/deep/alpha.py", "it is in the input")
        stage.type(CLEAR + CTRL_V)
        walk.see_now("PNG, 3 kB]")
        stage.type(CLEAR)
        walk.rest()
        see_paste_that_comes_back(walk)
        walk.check_end()


def add_clipboard(place: Place) -> Path:
    """A folder with a program that prints a clipboard's image; and a file to be found by part of its name."""
    (place.project / "src" / "deep").mkdir(parents=True)
    (place.project / "src" / "deep" / "alpha.py").write_text("one = 1\n", encoding="utf-8")
    (place.root / "shot").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(3_000))
    program = place.root / "bin" / "wl-paste"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat {place.root / 'shot'}\n", encoding="utf-8")
    program.chmod(0o755)
    return program.parent


def see_paste_that_comes_back(walk: Walk) -> None:
    """An image that is missing sends nothing, and what was pasted is a token again; the list of what was
    typed before stays on the screen beside it."""
    stage, pasted = walk.stage, "\n".join(f"row {number}" for number in range(200))
    stage.type(f"\x1b[200~{pasted}\x1b[201~")
    walk.see_now("› [pasted text 1: 200 lines]")
    stage.type(" @gone.png")
    walk.see_now("[gone.png: there is no such file]")
    stage.type(CTRL_O)
    stage.wait_until(lambda: "row 199 @gone.png" in flatten(stage.shown), "it is opened")
    stage.type("\r")
    walk.see("gone.png: there is no such file")
    walk.see_now("› [pasted text 1: 200 lines] @gone.png")
    stage.type(CLEAR)
    walk.rest()
    stage.type(CTRL_R)
    walk.see_now("what you typed before")
    walk.see_now("row 0 row 1 row 2")
    walk.see_now("type to filter")
    assert "row 100" not in stage.shown
    stage.type("\r")
    walk.see_now("› [pasted text 1: 200 lines] @gone.png")
    stage.type(CLEAR)
    walk.rest()
