"""A person can type before most of the program is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest
from bench.startup import make_tree, time_libraries, time_prompt

from sevenfold.testing import Simulator
from tests.stories.living import Place

LOADED = """
import sys
import sevenfold.cli.commands, sevenfold.cli.options, sevenfold.cli.chat_start
import sevenfold.agent.tui.early_input
print(*(name for name in sys.modules))
"""
HEAVY = (
    "anthropic",
    "openai",
    "httpx",
    "rich",
    "sevenfold.session",
    "sevenfold.layers",
    "sevenfold.core.events",
)


def test_what_the_first_input_line_needs_is_little() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert [name for name in HEAVY if name in loaded.stdout.split()] == []


@pytest.mark.story
def test_the_first_input_line_takes_three_times_its_libraries_at_most(tmp_path: Path) -> None:
    tree = make_tree("this", Path(__file__).parents[2], tmp_path)
    pairs = [(time_prompt(tree), time_libraries(tree)) for _ in range(5)]
    ratio = median(prompt for prompt, _ in pairs) / median(libraries for _, libraries in pairs)
    assert ratio < 3.0, pairs


@pytest.mark.story
def test_what_is_typed_while_the_program_starts_is_sent_and_the_rest_stays_in_the_input(
    tmp_path: Path,
) -> None:
    with Simulator(lambda prompt: f"You said: {prompt.last_text}") as sim:
        place = Place(tmp_path, sim)
        with place.open_chat() as stage:
            stage.wait_for("›")
            stage.type("early bird\rhalf a wo")
            stage.wait_for("You said: early bird")
            stage.wait_until(lambda: "› half a wo" in stage.shown, "the rest stands in the input")
            stage.type("rd\r")
            stage.wait_for("You said: half a word")
            stage.enter("/quit")
            assert stage.wait_for_end() == 0
        with place.open_chat() as stage:
            stage.wait_for("›")
            stage.type("\x03")
            assert stage.wait_for_end() in (0, 130)
