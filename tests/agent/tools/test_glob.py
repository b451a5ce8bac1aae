"""glob names the files that git would show, the newest first, and nothing behind a link."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.agent.tools.search import MAX_GLOB_FILES, GlobTool
from sevenfold.core.errors import InputError
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.store.project import user_files
from sevenfold.store.project.user_files import list_project_files
from tests.agent.tools.places import call, fault_of, make_place, text_of
from tests.examples import up_to

NAMES = st.sampled_from(["a", "b", "a.py", "b.txt", ".x", "a b"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


def spelled(parts: list[str], start: str, end: str) -> str:
    return start + "/".join(parts) + end


PATTERNS = st.builds(
    spelled,
    st.lists(NAMES | st.sampled_from(["*", "**", "*.py", "?", "[ab]", "\\*", "\\a"]), min_size=1, max_size=3),
    st.sampled_from(["", "/", "!", "#", "\\#"]),
    st.sampled_from(["", "/", " ", "\\ "]),
)


@pytest.fixture
def place(tmp_path: Path) -> ToolContext:
    return make_place(tmp_path)


def put(place: ToolContext, *names: str, age: int = 0) -> None:
    for name in names:
        path = place.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        os.utime(path, (10_000 - age, 10_000 - age))


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


def found(place: ToolContext, pattern: str, path: str = ".") -> list[str]:
    return text_of(call(GlobTool(), place, pattern=pattern, path=path)).split("\n")


def test_the_newest_come_first_and_equals_by_name(place: ToolContext) -> None:
    put(place, "old.py", age=9)
    put(place, "b.py", "a/c.py", "a.py", "note.md")
    assert found(place, "*.py") == ["a.py", "a/c.py", "b.py", "old.py"]
    assert found(place, "a/*.py") == ["a/c.py"]
    assert found(place, "*.{md,txt}") == ["note.md"]
    assert found(place, "*.py", path="a") == ["a/c.py"]
    assert found(place, "*.rs") == [f"no file in {place.root} matches *.rs"]


def test_what_git_ignores_is_left_out_where_git_is_there(place: ToolContext) -> None:
    put(place, "src/a.py", "build/a.py", "src/gen/b.py", "src/gen/keep.py")
    (place.root / ".gitignore").write_text("build/\n")
    (place.root / "src/.gitignore").write_text("gen/*\n!keep.py\n")
    assert len(found(place, "*.py")) == 4
    git(place.root, "init", "-q")
    assert sorted(found(place, "*.py")) == ["src/a.py", "src/gen/keep.py"]
    assert found(place, "*.py", path="src/gen") == ["src/gen/keep.py"]


@settings(max_examples=up_to(60), deadline=None)
@given(
    st.lists(PATHS, min_size=1, max_size=8), st.lists(PATTERNS, max_size=5), st.lists(PATTERNS, max_size=2)
)
def test_a_listing_is_what_git_lists(paths: list[str], top: list[str], inner: list[str]) -> None:
    with TemporaryDirectory() as name:
        root = Path(os.path.realpath(name))
        git(root, "init", "-q")
        for path in paths:
            try:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text("")
            except OSError:
                continue  # a name cannot be a file and a folder
        for folder, lines in ((root, top), (root / "a", inner)):
            if folder.is_dir():
                (folder / ".gitignore").write_text("\n".join(lines))
        shown = git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0")[:-1]
        listed = [file.path for file in list_project_files(str(root), lambda _: True).files]
        assert sorted(listed) == sorted(shown)


def test_links_are_not_followed_and_only_plain_files_are_named(place: ToolContext, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("")
    (place.root / "link").symlink_to(outside)
    (place.root / "file.py").symlink_to(outside / "secret.py")
    (place.root / "loop").symlink_to(place.root)
    os.mkfifo(place.root / "fifo.py")
    put(place, "a.py")
    assert found(place, "**/*.py") == ["a.py"]
    assert "outside" in fault_of(call(GlobTool(), place, pattern="*", path="link"))
    assert fault_of(call(GlobTool(), place, pattern="*", path="a.py"))


def test_what_rules_hide_is_not_named(place: ToolContext) -> None:
    put(place, "a.py", ".env")
    shown = text_of(call(GlobTool(lambda real: real.endswith("/.env")), place, pattern="*"))
    assert shown == "a.py"


def test_many_files_are_cut_and_counted(place: ToolContext) -> None:
    put(place, *(f"{number}.py" for number in range(MAX_GLOB_FILES + 5)))
    lines = found(place, "*.py")
    assert len(lines) == MAX_GLOB_FILES + 1
    assert "205 files match" in lines[-1]


def test_a_folder_without_end_is_left_with_what_was_found(
    place: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place, *(f"{number}/a.py" for number in range(20)))
    monkeypatch.setattr(user_files, "MAX_LISTED_ENTRIES", 25)
    assert "too large" in found(place, "*.py")[-1]


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "a/../../*"])
def test_a_pattern_stays_below_its_folder(pattern: str, place: ToolContext) -> None:
    with pytest.raises(InputError, match="below the folder"):
        call(GlobTool(), place, pattern=pattern)
