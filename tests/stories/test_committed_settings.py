"""A repository that brings settings along: nothing of the user's protection or thrift is given up unasked."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from sevenfold.testing import Prompt, Reply, Simulator, say
from tests.stories.living import Place
from tests.stories.stage import Stage

pytestmark = pytest.mark.story

SECTIONS = ("hooks", "rules", "sandbox", "cache", "memory", "notes", "tool_results")
OFF = "".join(f"[{name}]\nenabled = false\n" for name in SECTIONS) + "[spend]\nbackground = false\n"
KEYS = [f"{name}.enabled" for name in SECTIONS] + ["spend.background"]


def brain(prompt: Prompt) -> Reply | str:
    if prompt.results:
        return "Done."
    calls = {"read": {"file_path": "cat.txt"}, "grep": {"pattern": "mat"}}
    return say(calls={**calls, "shell": {"command": "true", "access": "read"}})


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with Simulator(brain) as sim:
        made = Place(tmp_path, sim)
        (made.project / "large.txt").write_text("The cat sat on the mat, and stayed there.\n" * 2_500)
        (made.project / ".sevenfold").mkdir()
        (made.project / ".sevenfold/settings.toml").write_text(OFF)
        hook = {"type": "command", "command": "echo 'not the cat' >&2; exit 2"}
        hooks = {"PreToolUse": [{"matcher": "read", "hooks": [hook]}]}
        (made.home / ".sevenfold").mkdir(mode=0o700)
        (made.home / ".sevenfold/hooks.json").write_text(json.dumps({"hooks": hooks}))
        yield made


def values(place: Place) -> dict[str, bool]:
    """What holds in the project now."""
    shown = json.loads(place.run("settings", "--json").stdout)["settings"]
    return {item["key"]: item["value"] for item in shown if item["key"] in KEYS}


def doctor(place: Place) -> list[str]:
    """What it says of the repository's file, and how grave that is."""
    found = cast("list[dict[str, str]]", json.loads(place.run("doctor", "--json").stdout))
    return [
        f"{each['level']}: {each['said']}" for each in found if ".sevenfold/settings.toml" in each["said"]
    ]


@dataclass(frozen=True, slots=True)
class Run:
    """What a script saw of one turn."""

    lines: list[dict[str, object]]
    noted: str

    @classmethod
    def of(cls, place: Place) -> Run:
        limit = {"SEVENFOLD_TOOL_RESULTS_LIMIT_CHARS": "5000"}
        done = place.run("chat", "-p", "Look.", "--output", "stream-json", **limit)
        assert done.returncode == 0, done.stderr
        return cls([json.loads(line) for line in done.stdout.splitlines()], done.stderr)

    def told(self, name: str) -> list[dict[str, object]]:
        return [line for line in self.lines if line.get("event") == name]

    @property
    def denied(self) -> set[object]:
        return {event["tool"] for event in self.told("ToolDenied")}


def test_a_script_ignores_them_and_says_so_until_somebody_agrees(place: Place) -> None:
    assert values(place) == dict.fromkeys(KEYS, True)
    ignored = Run.of(place)
    assert ignored.denied == {"read"}, "the user's own hook"
    assert ignored.told("SandboxFailed") == []
    assert place.sim.last.usage.read > 0
    assert len(ignored.told("ResultSpilled")) == 1
    refused = ignored.told("SettingRefused")
    assert [event["key"] for event in refused] == KEYS
    for text in (*(str(event["reason"]) for event in refused), *ignored.noted.splitlines()):
        assert "sevenfold settings --trust" in text
    assert all(key in ignored.noted for key in KEYS)
    (log,) = place.home.rglob("events.jsonl")
    assert log.read_text().count('"SettingRefused"') == len(KEYS)
    (worry,) = doctor(place)
    assert worry.startswith("worry: ")
    assert worry.endswith(f"is ignored since nobody has agreed to it: {', '.join(KEYS)}")

    agreed = place.run("settings", "--trust")
    assert (agreed.returncode, all(key in agreed.stdout for key in KEYS)) == (0, True)
    assert values(place) == dict.fromkeys(KEYS, False)
    obeyed = Run.of(place)
    assert obeyed.denied == set()
    assert obeyed.told("SandboxFailed") != []
    usage = place.sim.last.usage
    assert (usage.read, usage.written_5m) == (0, 0)
    assert obeyed.told("ResultSpilled") == obeyed.told("SettingRefused") == []
    assert obeyed.noted == ""
    (fine,) = doctor(place)
    assert fine.endswith(f"sets, as you have agreed: {', '.join(KEYS)}")


def test_a_person_is_asked_once_and_again_when_the_file_changes(place: Place) -> None:
    with place.open_chat() as stage:
        stage.wait_for("[y/N]")
        assert all(key in stage.everything.replace("\n", "") for key in KEYS)
        stage.enter("n")
        stage.wait_for("opus-5-5")
        leave(stage)
    assert values(place) == dict.fromkeys(KEYS, True)
    (refused,) = doctor(place)
    assert refused.endswith(f"wants, and you have refused: {', '.join(KEYS)}")
    with place.chat() as stage:  # comes to the prompt without a question
        leave(stage)
    file = place.project / ".sevenfold/settings.toml"
    file.write_text("[cache]\nenabled = false\n")
    with place.open_chat() as stage:
        stage.wait_for("[y/N]")
        stage.enter("y")
        stage.wait_for("opus-5-5")
        leave(stage)
    assert values(place) == dict.fromkeys(KEYS, True) | {"cache.enabled": False}
    with place.chat() as stage:
        leave(stage)


def leave(stage: Stage) -> None:
    stage.enter("/quit")
    assert stage.wait_for_end() == 0
