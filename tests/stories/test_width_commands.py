"""Commands with something to show, and chats for people who see no colours or no screen, at each width."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.testing import Prompt, Reply, Simulator, SlowFault, say
from tests.stories.living import Place
from tests.stories.stage import ESCAPE, Stage
from tests.stories.walk import WIDTHS, Walk, flatten, wait_for_input

pytestmark = pytest.mark.story

UP = "\x1b[A"
LONG_COMMAND = "git log --oneline --graph --decorate --all --since=2026-01-01 -- src/package/module/file.py"
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    version = asked.get("params", {}).get("protocolVersion")
    info = {"name": "weather", "version": "1"}
    tools = [
        {"name": name, "description": "Tell the weather of a city", "inputSchema": {"type": "object"}}
        for name in ("forecast", "warnings")
    ]
    answer = {
        "initialize": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info},
        "tools/list": {"tools": tools},
    }.get(asked["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""


def brain(prompt: Prompt) -> Reply | str:
    if prompt.results:
        is_denied = any("did not allow" in str(result.content) for result in prompt.results)
        return "Then I leave it." if is_denied else "It is done."
    asked = next((line for line in reversed(prompt.last_text.split("\n")) if line[:1].isalpha()), "")
    if asked.startswith("write"):
        return say(calls={"write": {"file_path": "dog.txt", "content": "The dog ran.\n"}})
    if asked.startswith("run "):
        return say(calls={"shell": {"command": asked.removeprefix("run "), "access": "open"}})
    if asked.startswith("read"):
        return say(calls={"read": {"file_path": "long.txt"}})
    if asked.startswith("have it"):
        return say(calls={"agent": {"description": "Look it up", "prompt": "look with simulated eyes"}})
    if asked.startswith("table"):
        return "| animal | food |\n|---|---|\n| cat | fish |"
    return f"You said: {asked}"


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with Simulator(brain) as sim:
        yield Place(tmp_path, sim)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def furnish(place: Place) -> Path:
    """A server, a hook, a rule, a skill and a command of the user's; the file that the hook writes."""
    home, seen = place.home / ".sevenfold", place.root / "seen"
    write(place.root / "server.py", SERVER)
    arguments = json.dumps([str(place.root / "server.py")])
    write(
        home / "settings.toml",
        f"[mcp.weather]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n"
        '[permissions]\ndeny = ["read(secrets/**)"]\n'
        # On a busy machine a search may take longer than a chat waits for it.
        "[recall]\nbudget_ms = 30000\n",
    )
    hook = {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": f"touch {seen}"}]}
    write(home / "hooks.json", json.dumps({"hooks": {"PostToolUse": [hook]}}))
    write(
        home / "skills" / "changelog" / "SKILL.md",
        "---\nname: changelog\ndescription: How to write an entry of the changelog\n---\nDo it.\n",
    )
    write(place.home / ".claude" / "commands" / "shout.md", "Say it loud: $1\n")
    write(home / "commands" / "child.md", "Explain $ARGUMENTS as to a child\n")
    return seen


@WIDTHS
def test_commands_show_what_is_in_use_and_what_layers_did(place: Place, columns: int) -> None:
    seen = furnish(place)
    place.run("memory", "add", "parser-tests", "--text=Tests of the parser run with make parser-test")
    write(place.project / "long.txt", "A line about the parser and its tests.\n" * 400)
    # A busy machine may find later than a person's would, and then tells it with the next prompt.
    with place.chat(columns=columns, SEVENFOLD_RECALL_BUDGET_MS="60000") as stage:
        walk = Walk(stage, columns, [])
        stage.enter("how do I run the tests of the parser")
        walk.see("layer 5: recalled parser-tests.md", "You said:")
        walk.rest()
        see_what_is_in_use(walk)
        stage.enter("write a dog")
        walk.see_now("allow it?")
        stage.wait_until(lambda: stage.is_drawn, "the question is drawn")
        stage.type("y")
        walk.see("It is done.")
        walk.rest()
        assert seen.exists(), "the hook that /hooks shows has run"
        see_recalled(walk)
        see_break_and_cuts(place, walk)
        see_pattern(walk)
        see_learning(walk)
        walk.check_end()
    kept = (place.project / ".sevenfold/settings.local.toml").read_text(encoding="utf-8")
    assert 'allow = ["shell(git log *)"]' in kept
    listed = subprocess.run(
        ["git", "status", "--porcelain", "--", ".sevenfold"],
        cwd=place.project,
        capture_output=True,
        check=True,
    )
    assert listed.stdout == b"", "the file of rules is kept out of git"


def see_what_is_in_use(walk: Walk) -> None:
    walk.enter("/mcp", "weather 2 tools: forecast, warnings")
    walk.enter("/hooks", "PostToolUse", "for Edit|Write: touch", "(from ~/.sevenfold/hooks.json)")
    walk.enter("/permissions", "mode ask: asks before it changes anything", "deny read(secrets/**)")
    walk.enter("/skills", "changelog How to write an entry of the changelog")
    walk.enter("/agents", "explore Questions about a code base", "general Any task")
    walk.enter("/shout now", "› Say it loud: now", "You said: Say it loud: now")
    walk.enter("/child the moon", "› Explain the moon as to a child", "You said: Explain the moon")
    walk.enter("/status", "hooks 1 MCP servers 1")


def see_learning(walk: Walk) -> None:
    """What a layer did is looked at and taken back by its name, whatever came after it."""
    walk.enter("Remember: we never deploy on fridays", "changed by the search of the turn")
    walk.enter("#the cat sleeps on the mat by day", "remembered as")
    walk.enter("/layers", "changed by the search of the turn", "shows it, /memory revert")
    found = re.search(r"/memory diff (\w+) shows it, /memory revert \1", flatten(walk.stage.everything))
    assert found is not None
    walk.enter(f"/memory diff {found[1]}", "+We never deploy on fridays")
    walk.enter(f"/memory revert {found[1]}", f"change {found[1]} is taken back")
    walk.enter("/memory", "sleeps")
    assert "never deploy" not in flatten(walk.stage.everything[walk.mark :]), "it is gone, the other is not"


def see_recalled(walk: Walk) -> None:
    walk.stage.enter("/recalled")
    walk.see_now("Enter forgets one")
    walk.see_now("Tests of the parser run with make parser-test found by the words")
    walk.see_now("for: how do I run the tests of the parser")
    walk.stage.type("\r")
    walk.see("forgotten: parser-tests.md", "/memory revert", "brings it back")
    walk.rest()
    found = re.search(r"/memory revert (\w+) brings it back", flatten(walk.stage.everything))
    assert found is not None
    walk.enter(f"/memory revert {found[1]}", f"change {found[1]} is taken back")
    walk.enter("/layers", "layer 5: recalled parser-tests.md", "/recalled shows why, and forgets it")


def see_break_and_cuts(place: Place, walk: Walk) -> None:
    place.sim.advance(timedelta(minutes=10))
    walk.stage.enter("after a pause of the provider's own")
    walk.see("tokens back (the provider dropped them)", "You said: after a pause")
    walk.rest()
    walk.enter(
        "/why",
        "cause the request was the same as before: the provider dropped its entry",
        "tokens written to the cache again: about $",
        "to do nothing; the prompt after it is read from the cache again",
    )
    walk.enter("read what is long", "read long.txt 400 lines", "It is done.")
    walk.enter("/compact the dog", "layer 4: compacted by", "/expand shows the summary")
    walk.enter("/why", "cause /compact asked for it", "the transcript keeps all of it")
    walk.stage.enter("/model claude-haiku-4-5")
    walk.see("a switch bills the", "of the context again, for about $", "the model is claude-haiku-4-5")
    walk.stage.enter("on another model")
    walk.see("You said: on another model")
    walk.stage.wait_until(lambda: "haiku-4-5" in walk.stage.shown and walk.stage.is_drawn, "it is idle")
    walk.stage.enter("/model claude-opus-5-5")
    walk.see("the model is claude-opus-5-5")
    walk.rest()
    walk.enter("/why", "the model changed from claude-opus-5-5 to claude-haiku-4-5", "changed from")
    walk.enter("/cost", "conversation $", "layer 4, compaction $", "in all $", "saved", "at least $")
    for word in ("rung", "trigger", "milliseconds", "$-", "0.0%", "1 calls"):
        assert word not in flatten(walk.stage.everything), "no word or figure of a program is shown"


def see_pattern(walk: Walk) -> None:
    walk.stage.enter(f"run {LONG_COMMAND}")
    walk.see_now("allow it?")
    walk.stage.wait_until(lambda: walk.stage.is_drawn, "the question is drawn")
    walk.stage.type("p")
    walk.see_now("kept in .sevenfold/settings.local.toml, which git does not list; matches git log -x")
    walk.see_now("still asks for git log | sh")
    walk.stage.type("\r")
    walk.see("shell(git log *) is allowed from now on", "It is done.")
    walk.rest()
    walk.stage.enter("run git log | cat")
    walk.see_now("allow it?")
    walk.stage.wait_until(lambda: walk.stage.is_drawn, "the question is drawn")
    assert "shell(git log *)" not in walk.stage.shown.rpartition("allow it?")[2], "a pattern covers no pipe"
    walk.stage.type("\tno pipes, please\r")
    walk.see("✗ shell git log | cat denied", "no pipes, please", "Then I leave it.")
    walk.rest()
    assert flatten(walk.stage.everything).count("no pipes, please") == 1, "a denial is shown once"


@WIDTHS
def test_a_session_that_goes_on_has_its_bill_its_cache_and_its_past(place: Place, columns: int) -> None:
    with place.chat(columns=columns) as stage:
        walk = Walk(stage, columns, [])
        walk.enter("have it looked up", "● fresh agent general: Look it up", "It is done.")
        walk.enter("a second prompt", "You said: a second prompt")
        walk.enter("/cost", "layer 7, agent $", "for this conversation and its agents")
        walk.check_end()
    billed = place.sim.ledger.total_cost()
    assert billed is not None
    bill = f"${billed.total:.4f}"
    place.sim.advance(timedelta(minutes=6))
    with place.open_chat("--continue", columns=columns) as stage:
        walk = Walk(stage, columns, [])
        walk.see("goes on:")
        walk.rest()
        # The clock of the chat is not the provider's: for us the cache is warm.
        assert re.search(r"\d+%", stage.shown), "how full the context is"
        assert "warm 5 min" in stage.shown
        status = stage.shown.split("\n")[-1]
        assert f"${billed.total:.2f}" in status
        assert ("+$" in status) == (columns >= 60), "what the next pause costs"
        walk.enter("/cost", f"in all {bill}", "layer 7, agent $")
        walk.enter("/status", "warm until ", f"spent {bill}")
        walk.enter("/layers", "layer 7: the agent general-", "has answered")
        stage.enter("/model claude-haiku-4-5")
        walk.see("a switch bills the", "tokens of the context again, for about $")
        stage.enter("/model claude-opus-5-5")
        walk.see("the model is claude-opus-5-5")
        walk.rest()
        stage.enter("go on")
        walk.see("tokens back (the session was resumed)", "You said: go on")
        walk.rest()
        walk.enter("/why", "settings or tools have changed since, or the provider dropped its entry", "more")
        walk.enter("/export talk.md", "written to", "left out, as likely secrets:")
        walk.check_end()
    exported = (place.project / "talk.md").read_text(encoding="utf-8")
    assert "## You\n\nhave it looked up" in exported
    assert "### Tool agent\n\n```\ndescription: Look it up\nprompt: look" in exported
    assert "simulated" not in exported, "the value of the key"


@WIDTHS
def test_editor_and_queue_work_without_colours(place: Place, columns: int) -> None:
    editor = place.root / "editor"
    write(editor, '#!/bin/sh\nprintf "from the editor @shot.png" > "$1"\n')
    editor.chmod(0o755)
    (place.project / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(3_000))
    with place.chat(columns=columns, EDITOR=str(editor), VISUAL=str(editor), NO_COLOR="1") as stage:
        walk = Walk(stage, columns, [])
        stage.type("half a\x07")
        stage.wait_until(lambda: "› from the editor @shot.png" in stage.shown, "the editor's text is there")
        walk.see_now("[shot.png: PNG, 3 kB]")
        stage.type("\x15")
        walk.rest()
        place.sim.fail(SlowFault(first=timedelta(seconds=60)))
        stage.enter("first words")
        walk.see_now("working")
        stage.enter("second words")
        walk.see_now("› second words read at the next round; ↑ takes the last one back")
        stage.type(UP)
        stage.wait_until(lambda: "the last one back" not in flatten(stage.shown), "nothing waits")
        wait_for_input(stage, "second words")
        stage.type("\x15")
        stage.type(ESCAPE)
        walk.see("interrupted; what was done stays done")
        stage.wait_until(lambda: read_input(stage) == "› first words", "the prompt is back")
        stage.type("\r")
        walk.see("You said: first words")
        walk.rest()
        stage.enter("write a dog")
        walk.see_now("allow it?")
        stage.wait_until(lambda: stage.is_drawn, "the question is drawn")
        stage.type("\x1b[B\r")
        walk.see("● write dog.txt", "It is done.")
        walk.check_end()
        colours = set(re.findall(rb"\x1b\[([\d;]*)m", bytes(stage.raw)))
        assert colours <= {b"", b"0"}, "neither colours nor bold, dim or underlined text"


def read_input(stage: Stage) -> str:
    return next((line for line in reversed(stage.shown.split("\n")) if line.startswith("›")), "")


@WIDTHS
def test_a_screen_reader_reads_every_state_in_words_and_once(place: Place, columns: int) -> None:
    with place.open_chat("--screen-reader", columns=columns, TERM="xterm-256color") as stage:
        walk = Walk(stage, columns, [])
        walk.see("/help commands >")
        stage.enter("write a dog")
        walk.see("allow it? y: yes e: yes, and accept edits from now on", "a letter, or say what")
        stage.enter("y")
        walk.see("done: write dog.txt", "It is done. >")
        stage.enter("!echo four$((1+1))")
        walk.see("run echo four$((1+1))? 1 n: no 2 y: yes a number, or Enter for none of them")
        assert "four2" not in stage.everything, "a pasted line may look like this"
        stage.enter("y")
        walk.see("done: shell echo four$((1+1)) four2 >")
        stage.enter("table")
        walk.see("animal: cat food: fish >")
        place.sim.fail(SlowFault(first=timedelta(seconds=6)))
        stage.enter("think for long")
        walk.see("working: waiting for the model; Ctrl-C interrupts", "You said: think for long >")
        stage.enter("/mode")
        walk.see("2: accept-edits: edits files")
        stage.enter("2")
        walk.see("the mode is accept-edits >")
        stage.enter("/context")
        walk.see("What fills it", "Cache and cost so far")
        walk.check_end()
        told = flatten(stage.everything)
        for once in ("You said: think for long", "working: waiting for the model", "done: write dog.txt"):
            assert told.count(once) == 1, f"{once!r} is read out once"
        assert b"\x1b" not in stage.raw, "nothing is drawn, moved or coloured"
        drawn = re.findall("[^\x00-\x7f]", stage.everything.replace("→", ""))
        assert drawn == [], "signs have names that a screen reader spells out"
