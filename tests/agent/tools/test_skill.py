"""Skills are found where they lie, listed by name, loaded when asked for, and remembered."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.agent.tools.planning import SkillTool
from sevenfold.core.errors import InputError
from sevenfold.core.events import Event
from sevenfold.core.events.agent import SkillSkipped, ToolStateLost
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.store.project import instructions
from sevenfold.store.project.instructions import find_skills, list_skill_folders
from tests.agent.tools.places import call, make_place, text_of


@pytest.fixture
def place(tmp_path: Path) -> ToolContext:
    return make_place(tmp_path)


def put(folder: Path, name: str, body: str, description: str = "Does things.") -> None:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n")


def test_skills_of_user_and_project_are_listed_and_loaded(place: ToolContext, tmp_path: Path) -> None:
    put(tmp_path / "home/skills", "review", "Look twice.", "Reviews code.")
    put(place.root / ".sevenfold/skills", "deploy", "Deploy $ARGUMENTS.")
    put(place.root / ".claude/skills", "pdf", "Use scripts/x.py", "x" * 500)
    tool = SkillTool(skills=find_skills(list_skill_folders(place.root, tmp_path / "home")))
    [source] = tool.sources()
    assert source.text.split("\n")[0] == "- deploy: Does things."
    assert "- review: Reviews code." in source.text
    assert max(map(len, source.text.split("\n"))) < 310
    loaded = text_of(call(tool, place, name="deploy", arguments="v2"))
    assert "Deploy v2." in loaded
    assert str(place.root / ".sevenfold/skills/deploy") in loaded
    assert "To be used on: all" in text_of(call(tool, place, name="review", arguments="all"))
    text_of(call(tool, place, name="deploy"))
    assert [extra.title for extra in tool.extras()] == ["deploy", "review"]
    assert {extra.kind for extra in tool.extras()} == {"skill"}


def test_a_skill_that_is_not_there_is_answered_with_those_that_are(place: ToolContext) -> None:
    with pytest.raises(InputError, match="there are: none"):
        call(SkillTool(skills=()), place, name="../x")
    assert SkillTool(skills=()).sources() == ()


def test_a_resumed_session_remembers_what_it_loaded(place: ToolContext, tmp_path: Path) -> None:
    put(tmp_path / "skills", "gone", "Soon.")
    put(tmp_path / "skills", "one", "First.")
    put(tmp_path / "skills", "two", "Of $ARGUMENTS.")
    folders = list_skill_folders(place.root, tmp_path)
    tool = SkillTool(skills=find_skills(folders))
    tool.begin(place)
    for name in ("two", "gone", "one"):
        call(tool, place, name=name, arguments="all")
    shutil.rmtree(tmp_path / "skills/gone")
    events: list[Event] = []
    later = SkillTool(skills=find_skills(folders))
    later.begin(replace(place, emit=events.append))
    assert [extra.title for extra in later.extras()] == ["one", "two"]
    assert "Of all." in later.extras()[1].text
    [lost] = events
    assert isinstance(lost, ToolStateLost)
    assert "gone" in lost.reason


def test_what_is_not_offered_is_told(
    place: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = tmp_path / "home/skills", place.root / ".claude/skills"
    put(mine, "same", "mine")
    put(theirs, "same", "theirs")
    put(tmp_path / "outside", "out", "secret")
    (theirs / "out").symlink_to(tmp_path / "outside/out")
    (theirs / "empty").mkdir()
    (theirs / "not a name").mkdir()
    (theirs / "long").mkdir()
    (theirs / "long/SKILL.md").write_text("---\n" + "x: y\n" * 2_000)
    put(theirs, "zzz", "one too many")
    monkeypatch.setattr(instructions, "MAX_SKILLS", 1)
    events: list[Event] = []
    found = find_skills(list_skill_folders(place.root, tmp_path / "home"), events.append)
    assert [skill.path for skill in found] == [str(mine / "same/SKILL.md")]
    told = {Path(event.path).parent.name for event in events if isinstance(event, SkillSkipped)}
    assert told == {"same", "out", "empty", "long", "zzz"}
