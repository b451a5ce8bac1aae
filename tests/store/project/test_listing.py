"""The files of a project are listed as git would list them, by name, and skills beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sevenfold.core.events import Event, SkillSkipped
from sevenfold.store.project import instructions, user_files
from sevenfold.store.project.instructions import SkillFolder, find_skills, list_skill_folders, read_skill
from sevenfold.store.project.user_files import list_project_files, make_name_filter


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


def put(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def listed(folder: Path, pattern: str = "**") -> list[str]:
    return [file.path for file in list_project_files(str(folder), make_name_filter(pattern)).files]


def test_without_git_everything_is_listed_by_name(top: Path) -> None:
    for name in ("b.py", "a/z.py", "a/.gitignore", "a.py", ".hidden/x.py"):
        put(top / name, "*\n")
    assert listed(top) == ["a.py", "b.py", ".hidden/x.py", "a/.gitignore", "a/z.py"]
    assert listed(top, "*.py") == ["a.py", "b.py", ".hidden/x.py", "a/z.py"]
    assert listed(top, "a/*.py") == ["a/z.py"]
    assert listed(top, "{a,b}.py") == ["a.py", "b.py"]


def test_what_git_ignores_is_left_out_wherever_the_walk_starts(top: Path) -> None:
    (top / ".git/info").mkdir(parents=True)
    put(top / ".git/info/exclude", "secret.txt\n")
    put(top / ".git/HEAD", "ref: refs/heads/main\n")
    put(top / ".gitignore", "*.log\nbuild/\n/src/gen.py\n")
    put(top / "src/.gitignore", "!keep.log\n")
    for name in ("a.log", "build/x.py", "src/build/y.py", "src/gen.py", "src/keep.log", "src/deep/keep.log"):
        put(top / name)
    for name in ("src/a.py", "src/deep/gen.py", "secret.txt", "src/secret.txt"):
        put(top / name)
    below = ["a.py", "keep.log", "deep/gen.py", "deep/keep.log"]
    assert listed(top) == [".gitignore", "src/.gitignore", *(f"src/{name}" for name in below)]
    assert listed(top / "src") == [".gitignore", *below]
    assert listed(top / "src/deep") == ["gen.py", "keep.log"]


def test_an_ignore_file_that_is_no_file_ignores_nothing(top: Path) -> None:
    (top / ".git").mkdir()
    os.mkfifo(top / ".gitignore")
    put(top / "a.log")
    assert listed(top) == ["a.log"]


def test_links_are_not_listed_and_not_followed_and_hidden_files_are_left_out(top: Path) -> None:
    put(top / "there/a.py")
    put(top / "there/b.py")
    (top / "link").symlink_to(top / "there")
    (top / "c.py").symlink_to(top / "there/a.py")
    assert listed(top) == ["there/a.py", "there/b.py"]
    hidden = f"{top}/there/b.py"
    found = list_project_files(str(top), make_name_filter("*.py"), lambda real: real == hidden)
    assert [(file.path, file.modified_ns) for file in found.files] == [
        ("there/a.py", (top / "there/a.py").stat().st_mtime_ns)
    ]
    assert not found.is_cut


def test_a_listing_of_too_much_is_cut_and_says_so(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/1", "a/2", "b/3"):
        put(top / name)
    monkeypatch.setattr(user_files, "MAX_LISTED_ENTRIES", 4)
    assert not list_project_files(str(top / "a"), make_name_filter("*")).is_cut
    monkeypatch.setattr(user_files, "MAX_LISTED_ENTRIES", 3)
    cut = list_project_files(str(top), make_name_filter("*"))
    assert (cut.is_cut, [file.path for file in cut.files]) == (True, ["a/1", "a/2"])


# Skills.


def skill(folder: Path, name: str, text: str = "---\ndescription: It helps.\n---\nDo it.\n") -> Path:
    put(folder / name / "SKILL.md", text)
    return folder / name / "SKILL.md"


def test_skills_come_by_name_and_the_users_own_before_a_repositorys(top: Path) -> None:
    home, root = top / "home", top / "root"
    mine = skill(home / "skills", "review")
    other = skill(root / ".sevenfold/skills", "review")
    theirs = skill(root / ".claude/skills", "deploy", "---\nname: review\ndescription: Deploys.\n---\nGo.\n")
    put(home / "skills/no folder/SKILL.md")
    put(home / "skills/file")
    events: list[Event] = []
    found = find_skills(list_skill_folders(root, home), events.append)
    assert [(one.name, one.description, one.path) for one in found] == [
        ("deploy", "Deploys.", str(theirs)),
        ("review", "It helps.", str(mine)),
    ]
    assert events == [SkillSkipped(str(other), f"{mine} has the same name and comes first")]
    assert read_skill(found[1]).body.strip() == "Do it."


def test_a_skill_that_leads_out_or_cannot_be_read_is_told(top: Path) -> None:
    outside = skill(top / "elsewhere", "outside").parent
    folder = top / "root/skills"
    bad = skill(folder, "bad", "---\nno end of the head\n")
    (folder / "out").symlink_to(outside)
    (folder / "empty").mkdir()
    events: list[Event] = []
    assert find_skills([SkillFolder(folder, top / "root")], events.append) == ()
    reasons = {event.path: event.reason for event in events if isinstance(event, SkillSkipped)}
    assert reasons[str(folder / "out/SKILL.md")].startswith("it leads out of the project")
    assert set(reasons) == {str(bad), str(folder / "out/SKILL.md"), str(folder / "empty/SKILL.md")}
    assert [one.name for one in find_skills([SkillFolder(folder)])] == ["out"]


def test_there_are_at_most_so_many_skills(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "MAX_SKILLS", 2)
    paths = [skill(top, name) for name in ("a", "b", "c")]
    events: list[Event] = []
    assert [one.name for one in find_skills([SkillFolder(top)], events.append)] == ["a", "b"]
    assert events == [SkillSkipped(str(paths[2]), "there are more than 2 skills")]
