"""A person works with an agent at a real terminal, and nothing is lost whatever happens."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from sevenfold.testing import Prompt, Reply, Simulator, SlowFault, say
from tests.stories.living import Place
from tests.stories.stage import CTRL_C, CTRL_D, CTRL_O, CTRL_R, ENTER, ESCAPE, Stage

pytestmark = pytest.mark.story

WORDS = " ".join(f"word{number}" for number in range(400))


def brain(prompt: Prompt) -> Reply | str:
    """Does what the last line says, then says what came of it."""
    if prompt.purpose == "summary" or "<summary>" in prompt.last_text:
        return "<analysis>x</analysis><summary>The cat was looked for.</summary>"
    results = prompt.results
    if results:
        is_denied = any("did not allow" in str(result.content) for result in results)
        return "Then I leave it." if is_denied else "It is **done**."
    asked = prompt.last_text.rpartition("\n")[2]
    if asked.startswith("read"):
        return say("I read it.", calls={"read": {"file_path": "cat.txt"}})
    if asked.startswith("write"):
        return say(calls={"write": {"file_path": "dog.txt", "content": "The dog ran.\n"}})
    if asked.startswith("talk"):
        return WORDS
    return f"You said: {asked}"


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with Simulator(brain) as sim:
        yield Place(tmp_path, sim)


def leave(stage: Stage) -> None:
    stage.enter("/quit")
    assert stage.wait_for_end() == 0


def is_idle(stage: Stage) -> bool:
    return "opus-5-5" in stage.shown and "working" not in stage.shown


def test_type_stream_approve_and_quit(place: Place) -> None:
    with place.chat() as stage:
        stage.type("hello\\\rthere")
        stage.wait_for("  there")
        stage.enter("")
        stage.wait_for("You said: there")
        stage.enter("write a dog")
        stage.wait_for("allow it?")
        assert "+The dog ran." in stage.everything
        assert not (place.project / "dog.txt").exists(), "nothing is written before a yes"
        stage.enter("y")
        stage.wait_for("It is done.")
        assert (place.project / "dog.txt").read_text() == "The dog ran.\n"
        stage.enter("read the cat")
        stage.wait_for("● read cat.txt  1 line")
        stage.type(CTRL_O)
        stage.wait_for("The cat sat on the mat.")
        leave(stage)
        assert "sevenfold chat --resume" in stage.everything
    assert place.leftovers() == []


def test_a_no_in_words_reaches_the_model_and_nothing_is_written(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("write a dog")
        stage.wait_for("allow it?")
        stage.enter("cats only, please")
        stage.wait_for("Then I leave it.")
        leave(stage)
    assert not (place.project / "dog.txt").exists()
    assert "cats only, please" in place.transcripts()[0].read_text()


def test_what_was_half_typed_when_a_question_came_is_there_again(place: Place) -> None:
    with place.chat() as stage:
        place.sim.fail(SlowFault(first=timedelta(seconds=2)))
        stage.enter("write a dog")
        stage.wait_for("working")
        stage.type("half a")
        stage.wait_for("› half a")
        stage.wait_for("allow it?")
        stage.wait_until(lambda: "› half a" not in stage.shown, "the input is empty for the answer")
        stage.enter("y")
        stage.wait_for("It is done.")
        stage.wait_until(lambda: "› half a" in stage.shown and is_idle(stage), "what was half typed is back")
        stage.type(CTRL_C)
        stage.wait_until(lambda: "› half a" not in stage.shown, "it is taken back")
        leave(stage)


def test_an_answer_that_is_interrupted_goes_on_after_a_resume(place: Place) -> None:
    with place.chat() as stage:
        place.sim.fail(SlowFault(each=timedelta(milliseconds=50)))
        stage.enter("talk to me")
        stage.wait_for("word3")
        stage.type(CTRL_C)
        stage.wait_for("interrupted; what was done stays done")
        stage.enter("and now?")
        stage.wait_for("You said: and now?")
        leave(stage)
    with place.chat("--continue") as stage:
        stage.enter("still there?")
        stage.wait_for("You said: still there?")
        leave(stage)
    assert len(place.transcripts()) == 1
    assert all(entry.status == 200 for entry in place.sim.ledger.entries if entry.error is None)


def test_nothing_that_was_answered_is_lost_by_kill_9(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("remember the mat")
        stage.wait_for("You said: remember the mat")
        place.sim.fail(SlowFault(each=timedelta(milliseconds=50)))
        stage.enter("talk to me")
        stage.wait_for("word3")
        stage.kill()
    with place.chat("--continue") as stage:
        stage.enter("/context")
        stage.wait_for("messages in all")
        stage.enter("go on")
        stage.wait_for("You said: go on")
        leave(stage)
    (transcript,) = place.transcripts()
    assert "remember the mat" in transcript.read_text()
    assert place.leftovers() == []


def test_a_compaction_by_hand_leaves_a_session_that_goes_on(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("talk to me")
        stage.wait_for("word399")
        stage.wait_until(lambda: is_idle(stage), "the turn is over")
        stage.enter("/compact the cat")
        stage.wait_for("layer 4: compacted")
        stage.enter("and then?")
        stage.wait_for("You said: and then?")
        stage.enter("/cost")
        stage.wait_for("in all  ")
        leave(stage)


def test_ctrl_c_twice_leaves_and_the_terminal_is_as_it_was(place: Place) -> None:
    with place.chat() as stage:
        stage.type(CTRL_C)
        stage.wait_for("Ctrl-C again leaves")
        stage.type(CTRL_C)
        assert stage.wait_for_end() == 0
        assert stage.raw.rstrip().rfind(b"\x1b[?25h") > stage.raw.rfind(b"\x1b[?25l"), "the cursor is shown"
        assert stage.raw.rfind(b"\x1b[?2004l") > stage.raw.rfind(b"\x1b[?2004h"), "pasting is plain again"
        assert b"\x1b[?1049h" not in stage.raw, "the screen was never taken over"
        assert b"\x1b[6n" not in stage.raw, "the terminal was asked nothing"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_supervisor_or_a_closed_terminal_ends_the_session_in_order(
    place: Place, number: signal.Signals
) -> None:
    with place.chat() as stage:
        place.sim.fail(SlowFault(each=timedelta(milliseconds=50)))
        stage.enter("talk to me")
        stage.wait_for("word3")
        stage.process.send_signal(number)
        assert stage.wait_for_end() == 0
    assert "interrupted by the user" in place.transcripts()[0].read_text()
    assert place.leftovers() == []


def test_what_was_typed_in_another_session_is_found_again(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("a very particular question")
        stage.wait_for("You said: a very particular question")
        stage.type(CTRL_D)
        assert stage.wait_for_end() == 0
    with place.chat() as stage:
        stage.type(CTRL_R + "particul")
        stage.wait_for("a very particular question")
        stage.wait_until(lambda: "filter: particul" in stage.shown, "it is searched")
        stage.type(ENTER)
        stage.wait_until(lambda: "› a very particular question\n" in stage.shown, "it is in the input")
        stage.type(ENTER)
        stage.wait_for("You said: a very particular question")
        leave(stage)
    assert len(place.transcripts()) == 2


def test_a_fork_leaves_its_parent_as_it_was(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("one")
        stage.wait_for("You said: one")
        leave(stage)
    before = place.transcripts()[0].read_bytes()
    with place.chat("--continue", "--fork") as stage:
        stage.enter("two")
        stage.wait_for("You said: two")
        leave(stage)
    old, new = sorted(place.transcripts(), key=lambda path: b"You said: two" in path.read_bytes())
    assert old.read_bytes() == before
    assert b"You said: one" in new.read_bytes()


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_torn(place: Place, columns: int) -> None:
    place.sim.fail(SlowFault(each=timedelta(milliseconds=10)))
    seen: set[str] = set()

    def is_over() -> bool:
        if stage.is_drawn:
            above = stage.shown.partition("working")[0]
            seen.add(" ".join(word for word in above.split() if "word".startswith(word[:4])))
        return "word399" in stage.shown

    with place.chat(columns=columns) as stage:
        stage.enter("talk to me")
        stage.wait_until(is_over, "all is said")
        stage.enter("/help")
        stage.wait_for("Ctrl-R")
        leave(stage)
        said = [word for word in stage.everything.split() if word.startswith("word")]
        assert said == WORDS.split(), stage.everything
    assert len(seen) > 3
    assert [words for words in seen if words and f"{words} " not in f"{WORDS} "] == []


def test_alt_enter_makes_a_new_line_and_a_paste_is_not_sent(place: Place) -> None:
    with place.chat() as stage:
        stage.type(f"one{ESCAPE}\rtwo")
        stage.wait_for("  two")
        stage.type("\x1b[200~three\nfour\x1b[201~")
        stage.wait_for("  four")
        assert "You said" not in stage.everything
        stage.enter("")
        stage.wait_for("You said: four")
        leave(stage)


def test_a_dumb_terminal_gets_lines_and_not_one_escape(place: Place) -> None:
    with place.chat_plain() as stage:
        stage.enter("hello")
        stage.wait_for("You said: hello")
        stage.enter("write a dog")
        stage.wait_for("allow it?")
        stage.enter("y")
        stage.wait_for("It is done.")
        leave(stage)
        assert b"\x1b" not in stage.raw
    assert (place.project / "dog.txt").exists()


def test_without_colour_there_is_no_colour(place: Place) -> None:
    with place.chat(NO_COLOR="1") as stage:
        stage.enter("read the cat")
        stage.wait_for("It is done.")
        leave(stage)
        codes = {code for found in re.findall(rb"\x1b\[([0-9;]*)m", stage.raw) for code in found.split(b";")}
        assert {code for code in codes if 30 <= int(code or 0) <= 48 or int(code or 0) >= 90} == set()


def test_a_script_gets_an_answer_and_can_go_on_from_it(place: Place) -> None:
    done = place.run("chat", "-p", "hello")
    assert (done.returncode, done.stdout) == (0, "You said: hello\n")
    piped = place.run("chat", "-p", "--continue", "--output", "json", stdin="from a pipe")
    result = cast("dict[str, object]", json.loads(piped.stdout))
    assert (result["result"], result["is_error"]) == ("You said: from a pipe", False)
    assert result["session_id"] == place.transcripts()[0].stem


def test_a_script_changes_what_its_mode_allows_and_nothing_else(place: Place) -> None:
    denied = place.run("chat", "-p", "write a dog", "--output", "stream-json")
    lines = [cast("dict[str, object]", json.loads(line)) for line in denied.stdout.splitlines()]
    assert denied.returncode == 0
    assert lines[0]["subtype"] == "init"
    assert lines[-1]["permission_denials"]
    assert not (place.project / "dog.txt").exists()
    allowed = place.run("chat", "-p", "write a dog", "--mode", "accept-edits")
    assert (allowed.returncode, allowed.stdout) == (0, "It is **done**.\n")
    assert (place.project / "dog.txt").exists()


def test_without_a_model_it_says_what_it_looked_for_and_how_to_begin(place: Place) -> None:
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"):
        del place.environ[name]
    done = place.run("chat", "-p", "hello")
    assert done.returncode == 2
    assert done.stdout == ""
    for word in ("ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "GGUF", "sevenfold tour", "settings.toml"):
        assert word in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-p",), "-p has nothing to say"),
        (("-p", "x", "--fork"), "--fork needs a session"),
        (("-p", "x", "--continue"), "no session is kept"),
        (("-p", "x", "--max-usd", "0"), "not an amount of dollars"),
        (("x", "--max-usd", "1"), "for one answer: add -p"),
        (("-p", "x", "--max-rounds", "none"), "not a number of rounds"),
    ],
)
def test_what_is_asked_for_wrongly_is_said(place: Place, arguments: tuple[str, ...], told: str) -> None:
    done = place.run("chat", *arguments)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_long_paste_is_folded_and_sent_whole(place: Place) -> None:
    with place.chat() as stage:
        stage.type("\x1b[200~" + "\n".join(f"row {number}" for number in range(200)) + "\x1b[201~")
        stage.wait_for("[pasted text 1: 200 lines]")
        stage.enter("")
        stage.wait_for("You said: row 199")
        assert "row 100" not in stage.everything
        leave(stage)


def test_a_command_of_the_person_runs_and_the_model_hears_of_it(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("!echo four$((1+1))")
        stage.wait_for("four2")
        stage.enter("hello")
        stage.wait_for("You said: hello")
        leave(stage)
    assert "four2" in place.transcripts()[0].read_text()


def test_menus_open_while_typing_and_keys_are_shown(place: Place) -> None:
    with place.chat() as stage:
        stage.type("/con")
        stage.wait_for("what fills the window")
        stage.type("\x15?")
        stage.wait_for("the next permission mode")
        stage.type("\x1b[Z")
        stage.wait_until(lambda: "accept-edits" in stage.shown, "the mode changed")
        leave(stage)


def test_escape_interrupts_a_turn(place: Place) -> None:
    with place.chat() as stage:
        place.sim.fail(SlowFault(each=timedelta(milliseconds=50)))
        stage.enter("talk to me")
        stage.wait_for("word3")
        stage.type(ESCAPE)
        stage.wait_for("interrupted; what was done stays done")
        leave(stage)


def test_the_status_line_stands_below_the_input_also_after_a_menu(place: Place) -> None:
    with place.chat() as stage:

        def is_close() -> bool:
            return re.search(r"›[^\n]*\nask ", stage.shown) is not None

        stage.wait_until(is_close, "the status line is there")
        stage.type("/")
        stage.wait_until(lambda: "/compact" in stage.shown and not is_close(), "a menu opens")
        stage.type("\x7f")
        stage.wait_until(is_close, "its rows are given back")
        leave(stage)


def test_a_resumed_chat_shows_how_the_session_ended(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("remember the moon")
        stage.wait_for("You said: remember the moon")
        leave(stage)
    with place.open_chat("--resume") as stage:
        stage.wait_for("go on with a session")
        stage.wait_until(lambda: "remember the moon" in stage.shown, "the session is listed")
        stage.type(ENTER)
        stage.wait_for("goes on:")
        assert "You said: remember the moon" in stage.everything
        leave(stage)
