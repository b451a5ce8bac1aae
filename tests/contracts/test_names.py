"""Each public name is defined once, long signatures are called by keyword, and folders stay small."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.source_tree import ROOT, parse, relative, source_files, statements

pytestmark = pytest.mark.gate

PACKAGE = "src/sevenfold"
MAX_POSITIONAL = 5
"""Arguments by position: with more, a reader has to open the signature to know which is which."""
VARIADIC = frozenset({"_faint", "choice", "git_in", "rows", "run", "syscall"})
"""Functions that take a list of like things by position: cells, words, values of a statement."""
KEYWORD_FIELDS = 5
"""From this many fields up, a dataclass takes keywords alone."""
MAX_FILES = 25
"""Python files in one folder; a longer listing has no map."""


def public_names(tree: ast.Module) -> Iterator[str]:
    """What a module defines at its top level for others. A name that is assigned twice counts once, and
    `TYPE_CHECKING`, which modules that must load fast do not import from `typing`, not at all."""
    found: dict[str, None] = {}
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = None
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id: None for target in targets for name in _assigned(target)}
    yield from (name for name in found if not name.startswith("_") and name != "TYPE_CHECKING")


def _assigned(target: ast.expr) -> list[ast.Name]:
    elements = target.elts if isinstance(target, ast.Tuple) else [target]
    return [element for element in elements if isinstance(element, ast.Name)]


def defined_twice(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for name in public_names(tree):
            places[name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def wide_dataclasses(tree: ast.Module) -> list[str]:
    """Dataclasses with many fields that can be filled by position."""
    return [
        node.name
        for node in statements(tree)
        if isinstance(node, ast.ClassDef)
        and (decorator := _dataclass(node)) is not None
        and len(_positional_fields(node)) >= KEYWORD_FIELDS
        and not _is_set(decorator, "kw_only")
    ]


def _dataclass(node: ast.ClassDef) -> ast.expr | None:
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Name) and target.id == "dataclass":
            return decorator
    return None


def _positional_fields(node: ast.ClassDef) -> list[str]:
    fields = [
        line for line in node.body if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    ]
    return [
        ast.unparse(line.target)
        for line in fields
        if "ClassVar" not in ast.unparse(line.annotation)
        and not (
            isinstance(line.value, ast.Call)
            and (_is_set(line.value, "kw_only") or _is_unset(line.value, "init"))
        )
    ]


def _is_set(call: ast.expr, keyword: str) -> bool:
    return _constant(call, keyword) is True


def _is_unset(call: ast.expr, keyword: str) -> bool:
    return _constant(call, keyword) is False


def _constant(call: ast.expr, keyword: str) -> object:
    for given in call.keywords if isinstance(call, ast.Call) else ():
        if given.arg == keyword and isinstance(given.value, ast.Constant):
            return given.value.value
    return None


def long_calls(tree: ast.Module) -> list[str]:
    """Calls with too many arguments by position."""
    return [
        f"line {node.lineno}: {ast.unparse(node.func)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and sum(not isinstance(argument, ast.Starred) for argument in node.args) > MAX_POSITIONAL
        and ast.unparse(node.func).rpartition(".")[2] not in VARIADIC
    ]


def full_folders(root: Path) -> dict[str, int]:
    folders = {path.parent for path in root.rglob("*.py")}
    counts = {folder.relative_to(root).as_posix(): len(list(folder.glob("*.py"))) for folder in folders}
    return {folder: count for folder, count in counts.items() if count > MAX_FILES}


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Parsed once for all of them, which takes longer than any look at it."""
    return {relative(path): parse(path) for path in source_files(PACKAGE)}


def test_a_public_name_is_defined_once(trees: dict[str, ast.Module]) -> None:
    assert defined_twice(trees) == {}


def test_a_name_that_is_defined_twice_is_found() -> None:
    first = ast.parse("LIMIT = 1\ndef read(): ...\ndef _own(): ...\n")
    second = ast.parse("class read: ...\nA, LIMIT = 1, 2\ndef _own(): ...\n")
    assert defined_twice({"a": first, "b": second}) == {"LIMIT": ["a", "b"], "read": ["a", "b"]}


def test_dataclasses_with_many_fields_take_keywords_alone(trees: dict[str, ast.Module]) -> None:
    found = {path: wide_dataclasses(tree) for path, tree in trees.items()}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("decorator", "found"),
    [("@dataclass", ["Wide"]), ("@dataclass(frozen=True)", ["Wide"]), ("@dataclass(kw_only=True)", [])],
    ids=["bare", "called", "keyword-only"],
)
def test_a_dataclass_with_many_fields_by_position_is_found(decorator: str, found: list[str]) -> None:
    fields = "".join(f"    field_{number}: int\n" for number in range(KEYWORD_FIELDS))
    assert wide_dataclasses(ast.parse(f"{decorator}\nclass Wide:\n{fields}")) == found


def test_no_call_has_more_than_five_arguments_by_position(trees: dict[str, ast.Module]) -> None:
    found = {path: long_calls(tree) for path, tree in trees.items()}
    assert {path: calls for path, calls in found.items() if calls} == {}


def test_a_call_with_more_than_five_arguments_by_position_is_found() -> None:
    assert long_calls(ast.parse("f(1, 2, 3, 4, 5, *rest, key=6)")) == []
    assert long_calls(ast.parse("f(1, 2, 3, 4, 5, 6)")) == ["line 1: f"]


def test_no_folder_has_more_than_25_files() -> None:
    assert full_folders(ROOT / PACKAGE) == {}


def test_a_full_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    for number in range(MAX_FILES + 1):
        (tmp_path / "full" / f"module_{number}.py").touch()
    assert full_folders(tmp_path) == {"full": MAX_FILES + 1}
