"""Commands and paths are completed, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.agent.tui.completion import MAX_COMPLETIONS, ProjectFiles, list_completions, rank_names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("src/main.py", "src/.hidden", "README.md", ".git/config", "two words.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return tmp_path


def texts(before: str, folder: Path) -> list[str]:
    return [candidate.text for candidate in list_completions(before, ProjectFiles(folder))]


def test_a_command_is_completed_by_its_beginning(folder: Path) -> None:
    assert texts("/co", folder) == ["/compact", "/context", "/cost"]
    assert texts("/cost ", folder) == []


def test_a_path_is_completed_after_an_at_sign(folder: Path) -> None:
    assert texts("look at @", folder) == ["README.md", "src/", '"two words.txt"']
    assert texts("look at @s", folder) == ["src/", "src/main.py", '"two words.txt"']
    assert texts("@src/", folder) == ["src/main.py"]
    assert list_completions("@src/ma", ProjectFiles(folder))[0].replaces == len("src/ma")


def test_hidden_files_are_for_whoever_asks_for_them(folder: Path) -> None:
    assert texts("@.", folder) == [".git/"]
    assert texts("@src/.", folder) == ["src/.hidden"]


@pytest.mark.parametrize("before", ["", "hello", "a@b.c", "@nowhere/x", "/etc/ho", "@~nobody-of-this-name/"])
def test_other_text_is_left_alone(before: str, folder: Path) -> None:
    assert texts(before, folder) == []


def test_a_large_folder_is_not_listed_whole(tmp_path: Path) -> None:
    for number in range(MAX_COMPLETIONS + 20):
        (tmp_path / f"f{number:03}").touch()
    assert len(texts("@f", tmp_path)) == MAX_COMPLETIONS


def test_a_file_is_found_by_a_part_of_its_name_in_any_folder(folder: Path) -> None:
    assert texts("@main", folder) == ["src/main.py"]
    assert texts("@mnpy", folder) == ["src/main.py"]
    assert texts("@hidden", folder) == []


def test_names_that_begin_with_what_was_typed_come_first() -> None:
    names = ["docs/reading.md", "spread.py", "src/read.py", "readme.md", "r/e/a/d.c", "other"]
    assert rank_names("read", names) == [
        *("readme.md", "docs/reading.md", "src/read.py", "spread.py", "r/e/a/d.c")
    ]


def test_a_file_with_spaces_is_completed_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "my notes").mkdir()
    (tmp_path / "my notes" / "old plan.md").touch()
    files = ProjectFiles(tmp_path)
    (folder, inside) = list_completions("read @my", files)
    assert (folder.text, folder.replaces) == ('"my notes/', 2)
    assert inside.text == '"my notes/old plan.md"'
    (found,) = list_completions('read @"my notes/ol', files)
    assert (found.text, found.replaces) == ('"my notes/old plan.md"', len('"my notes/ol'))


def test_files_that_git_ignores_are_not_offered(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("made/\n*.log\n", encoding="utf-8")
    for name in ("made/parser.py", "src/parser.py", "src/parser.log", "src/.parser.swp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [found.text for found in list_completions("@pars", ProjectFiles(tmp_path))] == ["src/parser.py"]
