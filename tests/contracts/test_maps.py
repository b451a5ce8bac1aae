"""The docstring of each `__init__.py` is the map of its folder: it names what is there, and nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.contracts.source_tree import ROOT, parse, relative, source_files

pytestmark = pytest.mark.gate

FOLDERS = tuple(path.parent for path in source_files("src") if path.name == "__init__.py")


def read_map(folder: Path) -> str:
    return ast.get_docstring(parse(folder / "__init__.py")) or ""


def list_contents(folder: Path) -> set[str]:
    """The modules of a folder, and its subfolders with files, of code or of data."""
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    subfolders = {
        path.name
        for path in folder.iterdir()
        if path.is_dir() and path.name != "__pycache__" and has_files(path)
    }
    return modules | subfolders


def has_files(folder: Path) -> bool:
    """Git keeps no empty folder: one that holds nothing but caches was left behind when its files moved."""
    return any(path.is_file() and path.suffix != ".pyc" for path in folder.rglob("*"))


def quoted_names(text: str) -> list[str]:
    """Names in backticks. A folder may be written with a slash at its end."""
    return [name.removesuffix("/") for name in re.findall(r"`([^`\n]+)`", text)]


def find_unnamed(folder: Path) -> list[str]:
    """Modules and subfolders that the map of their folder does not name."""
    return sorted(list_contents(folder) - set(quoted_names(read_map(folder))))


def find_missing(folder: Path) -> list[str]:
    """Names at the start of a list line, before the colon, that are neither a module nor a subfolder."""
    heads = re.findall(r"^- ([^:]*)", read_map(folder), re.MULTILINE)
    return sorted({name for head in heads for name in quoted_names(head)} - list_contents(folder))


@pytest.mark.parametrize("folder", FOLDERS, ids=relative)
def test_a_map_names_every_module_and_subfolder(folder: Path) -> None:
    assert find_unnamed(folder) == [], "add a line to the docstring of its `__init__.py`"


@pytest.mark.parametrize("folder", FOLDERS, ids=relative)
def test_every_name_in_the_list_of_a_map_exists(folder: Path) -> None:
    assert find_missing(folder) == [], "remove the line from the docstring of its `__init__.py`"


def test_every_folder_of_modules_has_a_map() -> None:
    folders = {path.parent for path in source_files("src")}
    assert ROOT / "src/sevenfold" in folders
    assert sorted(folders - set(FOLDERS)) == []
    assert [relative(folder) for folder in FOLDERS if not read_map(folder)] == []


def plant(folder: Path, text: str, *files: str) -> Path:
    for name in ("__init__.py", *files):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""{text}"""\n' if name == "__init__.py" else "", encoding="utf-8")
    return folder


def test_what_a_map_leaves_out_is_found(tmp_path: Path) -> None:
    text = "A folder of plain reads.\n\n- `read`: reads.\n- `cache/`: keeps.\n"
    files = (
        "read.py",
        "plain.py",
        "cache/__init__.py",
        "prompts/one.md",
        "__pycache__/read.pyc",
        "left/x.pyc",
    )
    assert find_unnamed(plant(tmp_path, text, *files)) == ["plain", "prompts"]


def test_what_a_map_lists_and_the_folder_lacks_is_found(tmp_path: Path) -> None:
    text = "A folder.\n\n- `read`, `gone`: the `read` tool: `other`.\n- `moved/`: keeps.\n  `more` of it.\n"
    assert find_missing(plant(tmp_path, text, "read.py")) == ["gone", "moved"]


def test_a_folder_without_other_modules_needs_no_list(tmp_path: Path) -> None:
    folder = plant(tmp_path, "All of it is here.")
    assert (find_unnamed(folder), find_missing(folder)) == ([], [])
