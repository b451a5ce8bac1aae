"""What a person does without care: pastes at the wrong time, resizes, interrupts commands of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.agent.tui.input_keys import BURST_SECONDS
from sevenfold.core.messages import Text
from sevenfold.testing import Prompt, Reply, Simulator, SlowFault
from tests.stories.living import SEVENFOLD, Place
from tests.stories.stage import CTRL_C, ENTER, ESCAPE, staged
from tests.stories.test_widths import read_input
from tests.stories.walk import WIDTHS, Walk, flatten

pytestmark = pytest.mark.story

UP, CLEAR = "\x1b[A", "\x15"
PASTED = "".join(f"pasted line {number}\r" for number in range(1, 61))


def brain(prompt: Prompt) -> Reply | str:
    if prompt.last_text.endswith("talk"):
        return "word " * 4_000
    return f"You said: {prompt.last_text.rpartition(chr(10))[2]}"


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with Simulator(brain) as sim:
        yield Place(tmp_path, sim)


def pause_is_over() -> Callable[[], bool]:
    over = time.monotonic() + BURST_SECONDS
    return lambda: time.monotonic() > over


@WIDTHS
def test_a_command_of_the_users_own_is_seen_to_run_and_can_be_stopped(place: Place, columns: int) -> None:
    with place.chat(columns=columns, SEVENFOLD_NOTES_ENABLED="false") as stage:
        walk = Walk(stage, columns, [])
        stage.enter("!echo tick; sleep 60; echo tock")
        walk.see_now("○ shell echo tick")
        walk.see_now("tick")
        walk.see_now("Esc interrupts")
        stage.enter("this waits")
        walk.see_now("› this waits")
        walk.see_now("takes the last one back")
        stage.type(UP)
        stage.wait_until(lambda: read_input(stage) == "› this waits", "it is edited again")
        stage.type(CLEAR + ESCAPE)
        walk.see("interrupted")
        walk.rest()
        walk.enter("!sleep 1.1; echo over", "● shell sleep 1.1; echo over (1.", "over")
        walk.enter("!", "!command runs a command, and #text remembers the text")
        walk.enter("#", "!command runs a command, and #text remembers the text")
        assert "You said" not in stage.everything, "none of it was sent"
        walk.enter("talk", "word word")
        place.sim.fail(SlowFault(first=timedelta(minutes=1)))
        stage.enter("/compact")
        walk.see_now("/compact Esc interrupts")
        stage.type(ESCAPE)
        walk.see("/compact was interrupted")
        walk.rest()
        walk.check_end()


@WIDTHS
def test_text_that_is_pasted_while_the_chat_starts_is_a_token_and_not_sent(
    place: Place, columns: int
) -> None:
    with place.open_chat(columns=columns) as stage:
        stage.wait_until(lambda: b"\x1b[?2004h" in stage.raw, "pastes are marked")
        stage.type(f"\x1b[200~{PASTED}\x1b[201~ see")
        stage.wait_for("opus-5-5")
        walk = Walk(stage, columns, [])
        walk.see_now("[pasted text 1: 61 lines] see")
        stage.type(ENTER)
        walk.see("pasted line 1", "… 56 more lines", "You said: see")
        walk.rest()
        assert "pasted line 20" not in stage.everything
        walk.check_end()


def test_a_paste_that_the_terminal_does_not_mark_is_not_sent_line_by_line(place: Place) -> None:
    with place.chat(columns=60) as stage:
        walk = Walk(stage, 60, [])
        walk.rest()
        stage.type(PASTED)
        stage.wait_until(lambda: "pasted line 60" in stage.shown, "all of it is in the input")
        assert "You said" not in stage.everything
        stage.type("see")
        stage.wait_until(lambda: "see" in stage.shown, "it is typed")
        # An Enter right behind a paste is part of it; a person takes longer.
        stage.settle(pause_is_over(), "a person has paused")
        stage.type(ENTER)
        walk.see("… 56 more lines", "You said: see")
        assert stage.everything.count("You said") == 1
        walk.check_end()


def test_ctrl_c_that_empties_the_input_twice_does_not_leave(place: Place) -> None:
    with place.chat(columns=60) as stage:
        for text in ("one", "two", "three"):
            stage.type(text)
            stage.wait_until(lambda text=text: read_input(stage) == f"› {text}", "it is typed")
            stage.type(CTRL_C)
            stage.wait_until(lambda: read_input(stage) == "›", "the input is empty")
        stage.type(CTRL_C + CTRL_C)
        assert stage.wait_for_end() == 0


def test_a_menu_in_a_terminal_that_is_narrowed_leaves_nothing_behind(place: Place) -> None:
    environ = {**place.environ, "TMUX": "wraps"}
    with staged([*SEVENFOLD, "chat"], place.project, environ, columns=100, rows=60) as stage:
        stage.wait_for("opus-5-5")
        walk = Walk(stage, 100, [])
        walk.rest()
        stage.enter("/model")
        walk.see_now("type to filter")
        for columns in (80, 63, 52, 40):
            before = len(stage.raw)
            stage.narrow(columns, 60)
            stage.wait_until(
                lambda before=before: (
                    b"type to filter" in stage.raw[before:]
                    and not stage.watch(1)
                    and flatten(stage.everything).count("type to filter") == 1
                ),
                "it is drawn again, once",
            )
        stage.type(ESCAPE)
        walk.see("the model is claude-opus-5-5")
        walk.rest()
        assert "claude-sonnet" not in stage.everything
        assert "models, in dollars" not in stage.everything


def test_an_answer_that_stays_cut_short_is_told_to_a_script(tmp_path: Path) -> None:
    with Simulator(lambda _prompt: Reply((Text("Half"),), stop_reason="max_tokens")) as sim:
        done = Place(tmp_path, sim).run("chat", "-p", "write a book")
    assert (done.returncode, done.stdout) == (0, "Half\n")
    assert "cut short, after going on 3 times: ask for the rest" in " ".join(done.stderr.split())


@pytest.mark.parametrize("options", [(), ("--screen-reader",)])
@pytest.mark.parametrize("doing", ["nothing", "an answer", "a command", "typing"])
def test_a_window_that_is_closed_ends_the_chat(place: Place, doing: str, options: tuple[str, ...]) -> None:
    with place.chat(*options) as stage:
        if doing == "an answer":
            place.sim.fail(SlowFault(each=timedelta(milliseconds=20)))
            stage.enter("talk")
            stage.wait_for("word word")
        elif doing == "a command":
            stage.enter("!echo tick; sleep 60")
            stage.wait_for("tick")
        elif doing == "typing":
            stage.type("half a thou")
        assert stage.hang_up() == 0
    assert place.leftovers() == []


def test_a_window_that_is_closed_while_the_chat_starts_ends_it(place: Place) -> None:
    with place.open_chat() as stage:
        stage.wait_for("starting")
        assert stage.hang_up() != 0
    assert place.leftovers() == []


@WIDTHS
def test_ctrl_c_ends_the_tour_and_leaves_nothing(tmp_path: Path, columns: int) -> None:
    environ = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    with staged([*SEVENFOLD, "tour"], tmp_path, environ, columns=columns) as stage:
        stage.wait_for("2/10")
        stage.type(CTRL_C)
        assert stage.wait_for_end() == 130
        assert "None" not in stage.everything
        assert "Traceback" not in stage.everything
    assert list(tmp_path.iterdir()) == []
