"""One person walks through most of a chat at a real terminal, at each width: all is whole and readable."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.testing import Prompt, Reply, Simulator, StatusFault, say
from tests.stories.living import Place
from tests.stories.stage import CTRL_D, CTRL_R, ENTER, ESCAPE, Stage
from tests.stories.walk import WIDTHS, Walk, flatten, wait_for_input

pytestmark = pytest.mark.story

HOUR = timedelta(hours=1)
LIVE_AGENT = r"○ general-\w+ \d+ s [\d,]+ tokens \$0\.\d{4} Look around"
COMMANDS = {
    ".claude/commands/review.md": "Review with care: $ARGUMENTS\n",
    ".sevenfold/commands/ship.md": "Ship $1 to $2\n",
}
LOOK = {"description": "Look around", "prompt": "look slowly", "background": True}


def brain(prompt: Prompt) -> Reply | str:
    if prompt.results:
        is_denied = any("did not allow" in str(result.content) for result in prompt.results)
        return "Then I leave it." if is_denied else "It is done."
    asked = prompt.last_text.rpartition("\n")[2]
    if asked.startswith("write"):
        return say(calls={"write": {"file_path": "dog.txt", "content": "The dog ran.\n"}})
    if asked.startswith("start an agent"):
        return say(calls={"agent": LOOK})
    if asked.startswith(("look slowly", "wait for it")):
        return say(calls={"shell": {"command": "echo looking; sleep 60", "access": "read"}})
    return f"You said: {asked}"


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with Simulator(brain) as sim:
        yield Place(tmp_path, sim)


@WIDTHS
def test_input_tools_and_commands_are_whole(place: Place, columns: int) -> None:
    (place.project / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(3_000))
    for path, text in COMMANDS.items():
        (place.project / path).parent.mkdir(parents=True)
        (place.project / path).write_text(text, encoding="utf-8")
    with place.open_chat(columns=columns) as stage:
        walk = Walk(stage, columns, [])
        stage.enter("typed before it had started")
        walk.see("You said: typed before it had started", "? shows keys, /help commands")
        walk.rest()
        see_images(walk)
        walk.enter("!echo four$((1+1)) and the words of a command", "four2 and the words of a command")
        walk.enter("#the cat sleeps on the mat by day", "remembered as", "/memory undo takes it back")
        assert "sevenfold memory revert" not in flatten(stage.everything)
        see_custom_command(walk)
        see_denial(walk)
        see_reports(walk)
        see_background(walk)
        see_agent(walk)
        walk.check_end()
    assert (place.project / "talk.md").exists()


def see_images(walk: Walk) -> None:
    walk.stage.type("look at @gone.png")
    walk.see_now("[gone.png: there is no such file]")
    walk.stage.type("\x15look at @shot.png")
    walk.see_now("[shot.png: PNG, 3 kB]")
    walk.stage.type("\x15")
    walk.rest()


def see_custom_command(walk: Walk) -> None:
    for name, says, sent in (
        ("review the parser", "Review with care: $ARGUMENTS", "Review with care: the parser"),
        ("ship it home", "Ship $1 to $2", "Ship it to home"),
    ):
        before = walk.stage.everything.count("You said:")
        walk.stage.enter(f"/{name}")
        walk.see("came with the repository and says:", says)
        walk.see_now(f"now and whenever you type /{name.split()[0]}?")
        walk.stage.type("y")
        walk.see(f"› {sent}")
        walk.stage.wait_until(
            lambda before=before: walk.stage.everything.count("You said:") == before + 1, "it is sent"
        )
        walk.rest()


def see_denial(walk: Walk) -> None:
    walk.stage.enter("write a dog")
    walk.see_now("allow it?")
    walk.stage.wait_until(lambda: walk.stage.is_drawn, "the question is drawn")
    walk.stage.type("\tnot without a leash\r")
    walk.see("✗ write dog.txt denied", "not without a leash", "Then I leave it.")
    walk.rest()
    assert flatten(walk.stage.everything).count("not without a leash") == 1, "a denial is shown once"


def see_reports(walk: Walk) -> None:
    walk.enter("/cost", "in all $", "without Sevenfold")
    walk.enter("/why", "the cache was neither broken nor cut in this session")
    walk.enter(
        "/permissions", "mode ask: asks before it changes anything; /mode changes it", "there are no rules;"
    )
    walk.enter("/mcp", "no MCP server is in use; [mcp] in settings and .mcp.json name them")
    walk.enter("/hooks", "no hooks are in use; ~/.sevenfold/hooks.json and")
    walk.enter("/status", "claude-opus-5-5", "tokens", "ANTHROPIC_API_KEY", "context")
    walk.enter("/verbose", "output is shown whole from now on")
    walk.enter("/verbose", "long output is folded again")
    walk.enter("/recalled", "no memory was recalled in this session")
    walk.enter("/export talk.md", "written to")
    walk.enter("/export talk.md", "is there already; /export NAME writes another file")
    walk.enter("/modle", "› /modle there is no command /modle; did you mean /mode?")
    walk.enter("/init", "Keep it under a page.", "You said:")
    walk.stage.enter("/model")
    walk.see_now("type to filter")
    walk.see_now("(now)")
    walk.stage.type(ESCAPE)
    walk.see("the model is claude-opus-5-5")
    walk.rest()
    walk.stage.enter("/mode")
    walk.see_now("accept-edits: edits files of")
    walk.stage.type(ESCAPE)
    walk.see("the mode is ask")
    walk.rest()


def see_background(walk: Walk) -> None:
    walk.stage.enter("wait for it")
    walk.see_now("○ shell")
    walk.see_now("running shell")
    walk.stage.type("\x02")
    walk.see("the user sent it to the background as task-1", "It is done.")
    walk.see_now("○ task-1")
    walk.rest()
    walk.stage.enter("/kill task-1")
    walk.see("task-1 was ended")
    walk.rest()


def see_agent(walk: Walk) -> None:
    walk.stage.enter("start an agent")
    walk.stage.wait_until(
        lambda: re.search(LIVE_AGENT, flatten(walk.stage.shown)) is not None,
        "the agent is a line with its time, tokens, cost and what it does",
    )
    walk.see("It is done.")
    walk.stage.enter("/tasks")
    walk.see_now("background tasks and agents")
    walk.stage.type("2")
    walk.see("○ shell echo looking; sleep 60 running")
    walk.see_now("leave it running")
    walk.stage.type("k\r")
    walk.see("was ended")
    walk.stage.wait_until(lambda: "○ general" not in walk.stage.shown, "its line is gone")
    assert not re.search(r"^general-\w+ was ended", walk.stage.everything, re.MULTILINE), "it is said once"


@WIDTHS
def test_errors_say_code_attempt_countdown_and_remedy(place: Place, columns: int) -> None:
    with place.chat(columns=columns) as stage:
        walk, fail = Walk(stage, columns, []), place.sim.fail
        fail(StatusFault(status=401, message="invalid x-api-key"))
        walk.enter(
            "one",
            "error 401 authentication_error: invalid x-api-key;",
            "set ANTHROPIC_API_KEY to a valid key and start again",
        )
        assert "Enter tries again" not in stage.everything, "the same key is refused again"
        for status, kind in (
            (429, "rate_limit_error"),
            (529, "overloaded_error"),
            (500, "api_error"),
            (504, "timeout_error"),
        ):
            fail(StatusFault(status=status, message="It is full", should_retry=False))
            walk.enter(f"now {status}", f"error {status} {kind}: It is full", "Enter tries again")
            walk.enter("", "(once more)", f"You said: now {status}")
        fail(StatusFault(status=429, message="It is full", retry_after=timedelta(seconds=3)))
        stage.enter("and later")
        walk.see("waiting 3 s, then retry 1 of 10", "429: It is full")
        walk.see_now("retry 1 of 10 in")
        walk.see("You said: and later")
        walk.rest()
        fail(StatusFault(status=429, message="It is full", retry_after=HOUR))
        walk.enter("much later", "the provider asks to wait 3600 s; /model chooses another model")
        walk.check_end()


def read_input(stage: Stage) -> str:
    """The last line with the sign of the input: earlier ones are what was sent."""
    return next((line for line in reversed(stage.shown.split("\n")) if line.startswith("›")), "")


@WIDTHS
def test_a_provider_that_cannot_be_reached_is_named(place: Place, columns: int) -> None:
    place.environ["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:9"
    with place.chat(columns=columns) as stage:
        walk = Walk(stage, columns, [])
        stage.enter("is anybody there")
        walk.see("then retry 1 of 10", "ANTHROPIC_BASE_URL")
        walk.see_now("retry 1 of 10 in")
        stage.type(ESCAPE)
        walk.see("interrupted; what was done stays done")
        wait_for_input(stage, "is anybody there")
        stage.type("\x15")
        walk.rest()
        walk.check_end()


@WIDTHS
def test_a_session_is_found_again_and_redrawn(place: Place, columns: int) -> None:
    place.run("chat", "-p", "remember the moon above the house")
    subprocess.run(["git", "checkout", "-qb", "feature/stars-and-moons"], cwd=place.project, check=True)
    place.run("chat", "-p", "the stars are out tonight")
    with place.open_chat("--resume", columns=columns) as stage:
        walk = Walk(stage, columns, [])
        find_in_picker(walk)
        stage.type(ENTER)
        walk.see(
            "goes on:", "› remember the moon above the house", "You said: remember the moon above the house"
        )
        walk.rest()
        walk.enter("a particular question", "You said: a particular question")
        stage.type(CTRL_R + "particul")
        stage.wait_until(lambda: "particul" in stage.shown.rpartition("You said")[2], "it is searched")
        stage.type(ENTER)
        stage.wait_until(
            lambda: "› a particular question" in stage.shown.rpartition("You said")[2], "it is found"
        )
        stage.type(ENTER)
        stage.wait_until(lambda: stage.everything.count("You said: a particular question") == 2, "it is sent")
        walk.rest()
        walk.check_end(CTRL_D)
        told = flatten(stage.everything)
    session = next(path.stem for path in place.transcripts() if "the moon above" in path.read_text())
    assert f"to go on: sevenfold chat --resume {session[:12]}" in told
    costs = [entry.cost.total for entry in place.sim.ledger.entries if entry.cost]
    assert f"this session cost ${sum(costs) - costs[1]:.4f}" in told, "all of it, and nothing of the other"


def find_in_picker(walk: Walk) -> None:
    """The session is there with title, age, cost, branch and its end; typing finds it, and Esc leaves at
    once: what follows is typed into the input."""
    stage = walk.stage
    walk.see_now("go on with a session")
    walk.see_now("You said: the stars are out tonight")
    walk.see_now("feature/stars-and-moons")
    rows = re.findall(r"(\w[^\n]*?) {2,}(?:just now|\d+ min)  \$0\.0\d", stage.shown)
    assert [row[:9] for row in rows] == ["the stars", "remember "], "the newest first, with age and cost"
    stage.type("moon above")
    walk.see_now("filter: moon above")
    walk.see_now("You said: remember the moon above the house")
    assert "the stars" not in stage.shown
    stage.type(f"{ESCAPE}/resume")
    walk.see("this session goes on")
    stage.wait_until(lambda: read_input(stage) == "› /resume", "what was typed behind Esc is in the input")
    stage.type(ENTER)
    walk.see_now("go on with a session")
    stage.type("moons main")
    walk.see_now("nothing fits; Backspace widens the filter")
    stage.type("\x7f" * len("s main"))
    stage.type(" above")
    walk.see_now("filter: moon above")


@WIDTHS
def test_lines_are_whole_where_nothing_can_be_drawn(place: Place, columns: int) -> None:
    with place.chat_plain(columns) as stage:
        walk = Walk(stage, columns, [])
        stage.enter("hello there")
        walk.see("> hello there You said: hello there >")
        stage.enter("write a dog")
        walk.see("allow it?")
        stage.enter("y")
        walk.see("It is done. >")
        stage.enter("/mcp")
        walk.see("no MCP server is in use; [mcp] in settings and .mcp.json name them >")
        stage.enter("/nothing")
        walk.see("there is no command /nothing; /help lists the commands >")
        walk.check_end()
        assert b"\x1b" not in stage.raw
        assert ">" not in [line.strip() for line in stage.everything.splitlines()], "no prompt is stray"
