"""Few places of the package repeat each other line by line.

Two places count as a pair where six lines of code or more are the same but for indentation. Blank lines,
comments and lines without a word are passed over. So are imports: two modules that use the same names of a
third list them alike, and that repeats no decision.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

from tests.contracts.source_tree import parse, relative, source_files, statements

pytestmark = pytest.mark.gate

PACKAGE = "src/sevenfold"
SHARED_LINES = 6
"""Fewer come about by chance: a decorator, a `try`, the end of a call."""
MAX_PAIRS = 10
"""What is left is alike by intent, such as the signatures of `Session.open` and its blocking form."""


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """Six lines of one file, by the place of the first among its lines of code."""

    path: str
    index: int

    def next(self) -> Window:
        return Window(self.path, self.index + 1)


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str


def code_lines(path: Path) -> list[Line]:
    imports = {
        number
        for node in statements(parse(path))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    return [
        Line(number, text)
        for number, line in lines
        if number not in imports
        and not (text := line.strip()).startswith("#")
        and any(char.isalnum() for char in text)
    ]


def repeated(files: dict[str, list[Line]]) -> list[str]:
    """Each pair of places once, with all the lines that they share."""
    places: defaultdict[Sequence[str], list[Window]] = defaultdict(list)
    for path, lines in files.items():
        for index in range(len(lines) - SHARED_LINES + 1):
            texts = tuple(line.text for line in lines[index : index + SHARED_LINES])
            places[texts].append(Window(path, index))
    pairs = {
        (one, other)
        for found in places.values()
        for one, other in combinations(found, 2)
        if one.path != other.path or other.index - one.index >= SHARED_LINES
    }
    continued = {(one.next(), other.next()) for one, other in pairs}
    return [f"{_place(files, one)} ~ {_place(files, other)}" for one, other in sorted(pairs - continued)]


def _place(files: dict[str, list[Line]], window: Window) -> str:
    return f"{window.path}:{files[window.path][window.index].number}"


def test_few_places_of_the_package_repeat_each_other() -> None:
    found = repeated({relative(path): code_lines(path) for path in source_files(PACKAGE)})
    assert len(found) <= MAX_PAIRS, "\n".join(("move what they share to one place:", *found))


STATEMENTS = [f"total_{number} = compute({number})" for number in range(SHARED_LINES)]


def write_module(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_planted_repetition_is_found(tmp_path: Path) -> None:
    """Whatever its indentation, and with blank lines and comments in between."""
    one = write_module(tmp_path / "one.py", *STATEMENTS)
    inner = [text for line in STATEMENTS for text in (f"    {line}", "", "    # a reason")]
    other = write_module(tmp_path / "other.py", "def compute_all() -> None:", *inner)
    assert repeated({"one": code_lines(one), "other": code_lines(other)}) == ["one:1 ~ other:2"]


def test_a_repetition_inside_one_file_is_found(tmp_path: Path) -> None:
    module = write_module(tmp_path / "one.py", *STATEMENTS, "other = 1", *STATEMENTS)
    assert repeated({"one": code_lines(module)}) == [f"one:1 ~ one:{SHARED_LINES + 2}"]


def test_a_longer_repetition_is_one_pair(tmp_path: Path) -> None:
    longer = [*STATEMENTS, "last = 1", "other = 2"]
    files = {name: code_lines(write_module(tmp_path / name, *longer)) for name in ("one.py", "other.py")}
    assert repeated(files) == ["one.py:1 ~ other.py:1"]


def test_five_lines_and_lists_of_imports_are_no_repetition(tmp_path: Path) -> None:
    imported = ["from package import (", *(f"    name_{number}," for number in range(9)), ")"]
    lines = [*imported, *STATEMENTS[1:]]
    files = {name: code_lines(write_module(tmp_path / name, *lines)) for name in ("one.py", "other.py")}
    assert repeated(files) == []
