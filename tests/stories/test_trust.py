"""A person at a terminal says no to what a repository wants to run, and works on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sevenfold.testing import Prompt, Simulator
from tests.stories.living import SEVENFOLD, Place
from tests.stories.stage import CTRL_C, staged

pytestmark = pytest.mark.story


def answer(prompt: Prompt) -> str:
    return f"You said: {prompt.last_text.rpartition(chr(10))[2]}"


def add_hooks(place: Place) -> None:
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}
    (place.project / ".claude").mkdir()
    (place.project / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))


def test_a_no_to_hooks_holds_for_new_sessions_and_nobody_asks_past_the_terminal(tmp_path: Path) -> None:
    with Simulator(answer) as sim:
        place = Place(tmp_path, sim)
        add_hooks(place)
        with staged([*SEVENFOLD, "chat"], place.project, place.environ) as stage:
            stage.wait_for("[y/N]")
            stage.enter("n")
            stage.wait_for("opus-5-5")
            stage.enter("/clear")
            stage.wait_for("a new session")
            stage.enter("hello")
            stage.wait_for("You said: hello")
            stage.enter("/quit")
            assert stage.wait_for_end() == 0
        assert not (place.project / "ran").exists()


def test_whoever_is_asked_can_leave_at_once(tmp_path: Path) -> None:
    with Simulator(answer) as sim:
        place = Place(tmp_path, sim)
        add_hooks(place)
        with staged([*SEVENFOLD, "chat"], place.project, place.environ) as stage:
            stage.wait_for("[y/N]")
            stage.type(CTRL_C)
            assert stage.wait_for_end() == 130
        assert not (place.project / "ran").exists()
