"""What goes wrong, and what a person stops, at each width: the screen says it, and the chat goes on."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.testing import DropFault, Prompt, Reply, Simulator, SlowFault, StatusFault, StreamFault, say
from tests.stories.living import Place
from tests.stories.stage import CTRL_C, CTRL_O, ENTER, ESCAPE, Stage
from tests.stories.test_chat_screens import MAX_WAITING_BYTES, read_clock
from tests.stories.walk import WIDTHS, Walk, flatten, wait_for_input

pytestmark = pytest.mark.story

SLOW = SlowFault(first=timedelta(minutes=1))
STOPPED = "interrupted; what was done stays done"
PROGRAM = "".join(f"line {number}\n" for number in range(1, 31))
CHANGE = {"file_path": "long.txt", "old_string": "line 20\n", "new_string": "line twenty\n"}
CALLS = {
    "read": {"read": {"file_path": "nope.txt"}},
    "list": {"shell": {"command": "sleep 1.1; seq 1 50", "access": "read"}},
    "sleep": {"shell": {"command": "echo here; sleep 60", "access": "read"}},
    "never": {"edit": {"file_path": "long.txt", "old_string": "line 99", "new_string": "line"}},
    "compute": {"shell": {"command": f"echo {'one two three ' * 80}| wc -w", "access": "read"}},
    "look": {"read": {"file_path": "long.txt"}},
}


ASKED: list[str] = []
"""What has reached the model."""


def brain(prompt: Prompt) -> Reply | str:
    asked = prompt.last_text.rpartition("\n")[2]
    ASKED.append(asked)
    if asked.startswith("change") and "line twenty" not in str(prompt.messages):
        return say(calls={"edit": CHANGE} if prompt.results else CALLS["look"])
    if prompt.results:
        return "It is over."
    if asked.startswith("talk"):
        return " ".join(f"word{number}" for number in range(200))
    calls = CALLS.get(asked.partition(" ")[0])
    return say(calls=calls) if calls else f"You said: {asked}"


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    ASKED.clear()
    with Simulator(brain) as sim:
        place = Place(tmp_path, sim)
        (place.project / "long.txt").write_text(PROGRAM, encoding="utf-8")
        yield place


def stop(walk: Walk, *, gives_back: str = "") -> None:
    """Press Ctrl-C once: the turn is over, and a prompt that nothing came of is in the input again."""
    before = walk.stage.everything.count(STOPPED[:11])
    walk.stage.type(CTRL_C)
    walk.stage.wait_until(lambda: walk.stage.everything.count(STOPPED[:11]) > before, "it is interrupted")
    walk.stage.wait_until(lambda: "Esc interrupts" not in walk.stage.shown, "the turn is over")
    if gives_back:
        wait_for_input(walk.stage, gives_back)
        walk.stage.type("\x15")
    walk.rest()


@WIDTHS
def test_an_answer_that_fails_says_how_and_enter_tries_again(place: Place, columns: int) -> None:
    with place.chat(columns=columns, SEVENFOLD_AGENT_STALL_SECONDS="1") as stage:
        walk, fail = Walk(stage, columns, []), place.sim.fail
        fail(SlowFault(first=timedelta(seconds=20)))
        walk.enter("one", "no answer came within 2 seconds", "agent.stall_seconds", "Enter tries again")
        assert "ANTHROPIC_BASE_URL" not in stage.everything, "the address was reached"
        walk.enter("", "(once more)", "You said: one")
        fail(StreamFault(after_events=3))
        walk.enter("three", "error overloaded_error: Overloaded; /model chooses another model")
        walk.enter("", "(once more)", "You said: three")
        fail(DropFault(after_events=5))
        walk.enter("talk four", "the answer broke off", "Enter tries again")
        for _ in range(11):
            fail(StatusFault(status=529, message="It is full", retry_after=timedelta(milliseconds=20)))
        walk.enter("five", "error 529 overloaded_error: It is full (11 attempts);", "Enter tries again")
        assert stage.everything.count("then retry") == 1, "one line for all attempts"
        assert "retry" not in stage.shown.rpartition("›")[2], "and none is left in the status line"
        walk.enter("", "(once more)", "You said: five")
        walk.check_end()


def test_an_answer_that_does_not_come_on_ends(place: Place) -> None:
    with place.chat(columns=60, SEVENFOLD_AGENT_STALL_SECONDS="3") as stage:
        walk = Walk(stage, 60, [])
        place.sim.fail(SlowFault(each=timedelta(seconds=4)))
        walk.enter("talk to me", "nothing new of the answer came for 3 seconds", "Enter tries again")
        walk.check_end()


@WIDTHS
def test_a_connection_that_brings_nothing_is_seen_to_wait_and_can_be_left(place: Place, columns: int) -> None:
    with place.chat(columns=columns, SEVENFOLD_AGENT_STALL_SECONDS="20") as stage:
        walk = Walk(stage, columns, [])
        place.sim.fail(SLOW)
        stage.enter("wait for it")
        stage.wait_until(
            lambda: re.search(r"no answer for \d+ s, waits at most 40 s", flatten(stage.shown)) is not None,
            "it is said how long nothing came, and how long that may last",
        )
        walk.see_now("Esc interrupts")
        began, before, first, frames = time.monotonic(), len(stage.raw), read_clock(stage), set[str]()
        stage.wait_until(
            lambda: has_moved(stage, frames) and read_clock(stage) >= first + 3, "the line goes on"
        )
        assert len(stage.raw) - before <= MAX_WAITING_BYTES * (time.monotonic() - began)
        stage.type(ESCAPE)
        walk.see("interrupted; what was done stays done")
        wait_for_input(stage, "wait for it")
        stage.type("\x15")
        walk.rest()
        walk.check_end()


@WIDTHS
def test_an_answer_that_stops_half_way_is_seen_to_wait_and_can_be_left(place: Place, columns: int) -> None:
    with place.chat(columns=columns, SEVENFOLD_AGENT_STALL_SECONDS="12") as stage:
        walk = Walk(stage, columns, [])
        place.sim.fail(SlowFault(each=timedelta(seconds=2.5)))
        stage.enter("talk to me")
        walk.see_now("word1")
        stage.wait_until(
            lambda: (
                re.search(r"writing, nothing new for \d+ s, waits at most 12 s", flatten(stage.shown))
                is not None
            ),
            "it is said how long nothing came, and how long that may last",
        )
        stop(walk)
        assert "word1" in stage.everything, "what has come stays"
        walk.enter("and now", "You said: and now")
        walk.check_end()


def has_moved(stage: Stage, frames: set[str]) -> bool:
    """Whether the sign of the line that says what is done has been several ones by now."""
    found = re.search(r"(\S) working \d+ s", stage.shown)
    frames |= {found[1]} if found else set[str]()
    return len(frames) >= 3


@WIDTHS
def test_ctrl_c_ends_each_phase_and_the_chat_goes_on(place: Place, columns: int) -> None:
    with place.chat(columns=columns) as stage:
        walk, fail = Walk(stage, columns, []), place.sim.fail
        fail(SLOW)
        stage.enter("wait for it")
        walk.see_now("waiting for the model")
        stage.wait_until(lambda: "wait for it" in ASKED, "it is sent")
        stop(walk, gives_back="wait for it")
        fail(StatusFault(status=529, message="It is full", retry_after=timedelta(seconds=40)))
        stage.enter("count down")
        walk.see_now("retry 1 of 10 in")
        stop(walk, gives_back="count down")
        fail(SlowFault(each=timedelta(milliseconds=100)))
        stage.enter("talk to me")
        walk.see_now("word3")
        stop(walk)
        stage.enter("sleep well")
        walk.see_now("running shell")
        stop(walk)
        walk.see("✗ shell echo here; sleep 60 interrupted")
        stage.enter("change it")
        walk.see_now("allow it?")
        stage.wait_until(lambda: stage.is_drawn, "the question is drawn")
        stop(walk)
        assert "allow it?" not in stage.shown.rpartition("✗")[2]
        walk.enter("and now", "You said: and now")
        walk.check_end()
    assert (place.project / "long.txt").read_text() == PROGRAM


@WIDTHS
def test_ctrl_c_at_the_start_leaves_the_terminal_in_order(place: Place, columns: int) -> None:
    with place.open_chat(columns=columns) as stage:
        stage.wait_for("›")
        stage.type(CTRL_C + CTRL_C)
        assert stage.wait_for_end() in (0, 130)
        assert "Traceback" not in stage.everything
        assert "None" not in stage.everything


@WIDTHS
def test_tools_say_how_they_ended_and_what_they_change(place: Place, columns: int) -> None:
    with place.chat(columns=columns) as stage:
        walk = Walk(stage, columns, [])
        walk.enter("read it", "✗ read nope.txt failed")
        walk.enter("list all", "● shell", "… 45 more (ctrl-o or /expand)", "It is over.")
        assert re.search(r"\(1\.\d s\)", flatten(stage.everything)), "it says how long it took"
        assert "\n  25\n" not in stage.everything
        stage.type(CTRL_O)
        stage.wait_until(lambda: "\n  25\n" in stage.everything, "it is unfolded")
        see_long_command(walk, stage)
        walk.enter("never change it", "✗ edit long.txt failed", "It is over.")
        assert "allow it?" not in stage.everything, "nobody is asked about what cannot be done"
        see_change(walk, stage)
        walk.check_end()
        assert re.search(r"\nthis session cost \$0\.\d", stage.everything), "what it cost"
        assert "sevenfold chat --resume" in flatten(stage.everything)


def see_long_command(walk: Walk, stage: Stage) -> None:
    """It takes few rows, and can be read whole."""
    walk.enter("compute", "● shell echo one two three", "… (ctrl-o or /expand)", "240", "It is over.")
    said = stage.everything.rpartition("› compute")[2]
    assert sum("two" in line for line in said.split("\n")) <= 4
    stage.type(CTRL_O)
    stage.wait_until(
        lambda: "three | wc -w" in flatten(stage.everything.rpartition("› compute")[2]), "it is unfolded"
    )


def see_change(walk: Walk, stage: Stage) -> None:
    """A diff with numbers and the lines around it, before it is allowed by one key."""
    began = time.monotonic()
    stage.enter("change it")
    walk.see_now("allow it?")
    for line in ("19 line 19", "20 -line 20", "20 +line twenty", "21 line 21"):
        assert line in flatten(stage.everything), line
    stage.wait_until(lambda: stage.is_drawn, "the question is drawn")
    asked_until = time.monotonic() + 1.5
    stage.settle(lambda: time.monotonic() > asked_until, "a person thinks about it")
    stage.type("y")
    walk.see("● edit long.txt", "It is over.")
    walk.rest()
    took = re.search(r"● edit long.txt \(([\d.]+) s\)", flatten(stage.everything))
    whole = time.monotonic() - began
    assert took is None or float(took[1]) < whole - 1.4, "the time of a tool is without that of a person"
    assert stage.everything.count("+line twenty") == 1, "what was shown is not shown again"


def test_the_menu_of_sessions_has_what_tells_them_apart(place: Place) -> None:
    for asked in ("the first question of all", "how does the parser work?"):
        place.run("chat", "-p", asked)
    for columns in (40, 60, 100, 160):
        with place.open_chat("--resume", columns=columns) as stage:
            walk = Walk(stage, columns, [])
            for text in ("type to filter", "$0.", "master", "the parser work?", "You said: "):
                walk.see_now(text)
            stage.wait_until(
                lambda stage=stage: "just now" in stage.shown or " min" in stage.shown, "the age is shown"
            )
            stage.type("first")
            stage.wait_until(
                lambda stage=stage: stage.is_drawn and "the parser" not in stage.shown, "it is filtered"
            )
            stage.type(ENTER)
            walk.see("› the first question of all", "You said: the first question of all", "goes on:")
            walk.rest()
            assert "the parser work?" not in stage.shown, "the other session stays where it is"
            walk.check_end()
