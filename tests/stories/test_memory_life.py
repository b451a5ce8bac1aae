"""The life of `bench/memory_life.py`, short: the same bars. And what a person taught a session that was
killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from sevenfold.testing import Prompt, Reply, Simulator, say
from tests.contracts.source_tree import ROOT
from tests.stories.living import Place

pytestmark = pytest.mark.story

RULE = "From now on always use pnpm in this project, never npm."
TALK = " ".join(f"word{number}" for number in range(4_000))
ASKED = "memory-index"
"""In what a fork that looks for memories is asked."""


def brain(prompt: Prompt) -> Reply | str:
    """Answers, sums up, and keeps the one rule where it is shown it."""
    if ASKED in prompt.last_text:
        if RULE not in str(prompt.messages):
            return "Nothing."
        kept = {"name": "pnpm", "type": "feedback", "description": "which package manager", "content": RULE}
        return say(calls={"memory": {"action": "write", **kept}})
    if prompt.purpose == "summary" or "<summary>" in prompt.last_text:
        return "<analysis>x</analysis><summary>The parser was looked at.</summary>"
    return TALK if "talk" in prompt.last_text.rpartition("\n")[2] else "I will."


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with Simulator(brain) as sim:
        place = Place(tmp_path, sim)
        place.environ |= {
            "SEVENFOLD_EXTRACTION_WRITER": "auto",
            "SEVENFOLD_EXTRACTION_SESSION_PERCENT": "1",
        }
        # So dear that the first look takes more than its share of the session.
        prices = {f"{name}_usd_per_mtok": 50.0 for name in ("input", "cache_read", "output")}
        prices["cache_write_5m_usd_per_mtok"] = 50.0
        lines = "\n".join(f"{name} = {price}" for name, price in prices.items())
        (place.home / ".sevenfold").mkdir(mode=0o700)
        settings = place.home / ".sevenfold" / "settings.toml"
        settings.write_text(f'[models."claude-opus-5-5"]\n{lines}\n', encoding="utf-8")
        yield place


def turns_waiting(place: Place) -> int | None:
    """As the only session has written them down; None: nothing yet."""
    files = list((place.home / ".sevenfold" / "projects").glob("*/sessions/*/extraction.json"))
    return int(json.loads(files[0].read_text(encoding="utf-8"))["turns"]) if files else None


def test_what_was_taught_before_a_compaction_is_learnt_though_the_session_was_killed(place: Place) -> None:
    with place.chat() as stage:
        stage.enter("Please have a look at the parser.")
        stage.wait_until(lambda: turns_waiting(place) == 0, "the first turn is looked through")
        stage.enter(RULE)
        stage.wait_until(lambda: turns_waiting(place) == 1, "the turn waits")
        stage.enter("Please talk about the lexer too.")
        stage.wait_until(lambda: turns_waiting(place) == 2, "two turns wait")
        stage.enter("/compact")
        stage.wait_for("layer 4: compacted")
        stage.kill()
    assert "pnpm" not in place.run("memory", "list").stdout
    done = place.run("chat", "-p", "Please go on with the lexer.", "--continue")
    assert (done.returncode, done.stdout.strip()) == (0, "I will.")
    assert "pnpm" in place.run("memory", "list").stdout
    assert RULE in place.run("memory", "show", "pnpm").stdout


def test_memories_taught_again_and_again_stay_few_and_the_index_whole() -> None:
    command = [sys.executable, str(ROOT / "bench" / "memory_life.py"), "--sessions", "16", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sessions"] == 16
    assert found["memories"] > 0
    assert found["dreams"]
    assert {"extraction", "dream"} <= set(found["micro_usd"])
