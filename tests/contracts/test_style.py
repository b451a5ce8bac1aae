"""One format, no lint, small files, small functions, plain names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.contracts.source_tree import CODE, ROOT, parse, relative, run, source_files, statements, tool

pytestmark = pytest.mark.gate

MOST_LINES = 500
MOST_WORDS = 3
NO_NAMES = frozenset(
    [
        *("manager", "service", "handler", "helper", "util", "utils", "common"),
        *("base", "impl", "processor", "runtime", "data", "info"),
    ]
)
"""Words that say nothing about what a thing does."""
SIZE_RULES = frozenset({"C901", "PLR0915"})


def words(name: str) -> list[str]:
    """`HTTPServerError` and `http_server_error` are the same three words."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]


def ruff(*arguments: str, code: str | None = None) -> str:
    """What ruff complains of, nothing when it is content."""
    planted = [] if code is None else ["--stdin-filename", str(ROOT / "src/sevenfold/core/planted.py"), "-"]
    done = run([tool("ruff"), *arguments, "--no-cache", *planted], stdin=code or "")
    return f"exit {done.returncode}\n{done.stdout}{done.stderr}" if done.returncode else ""


DEFINITION = re.compile(r"\b(class|def)\s+(\w+)")
"""Also in strings and comments: what is found is parsed to be sure, and parsing all files takes longest."""


def may_be_out_of_bounds(text: str) -> bool:
    """False where no definition of a file has such a name."""
    return any(
        (kind == "class" and len(words(name)) > MOST_WORDS) or NO_NAMES & set(words(name))
        for kind, name in DEFINITION.findall(text)
    )


def names_out_of_bounds(tree: ast.Module) -> list[str]:
    """Classes of too many words, and classes or functions named with a word that says nothing."""
    found: list[str] = []
    for node in statements(tree):
        if isinstance(node, ast.ClassDef) and len(words(node.name)) > MOST_WORDS:
            found.append(node.name)
        if isinstance(
            node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        ) and not node.name.startswith("test_"):
            found += [node.name] if NO_NAMES & set(words(node.name)) else []
    return found


def long_files(files: list[Path]) -> list[str]:
    sizes = ((path, len(path.read_text(encoding="utf-8").splitlines())) for path in files)
    return [f"{path}: {lines} lines" for path, lines in sizes if lines > MOST_LINES]


SILENCING = re.compile(
    r"#\s*(?:(?:ruff|flake8):\s*)?(?:noqa(?::\s*([A-Z0-9, ]+))?|(?<=:)\s*(?:file-)?ignore\s*\[([^\]]*)\])",
    re.IGNORECASE,
)
"""Every spelling that ruff obeys."""


def silenced_sizes(text: str) -> list[str]:
    """Comments that turn a size gate off, or turn everything off."""
    comments = re.findall(SILENCING, text)
    found = [(rules or listed).upper() for rules, listed in comments]
    return [rules or "all" for rules in found if not rules or SIZE_RULES & set(re.findall(r"\w+", rules))]


def test_the_code_has_its_one_format() -> None:
    assert ruff("format", "--check", *CODE) == ""


def test_the_code_has_no_lint() -> None:
    assert ruff("check", *CODE) == ""


def test_bad_format_and_lint_are_found() -> None:
    assert ruff("format", "--check", code='x = {"a": 1}\n') == ""
    assert ruff("format", "--check", code="x = { 'a':1 }\n").startswith("exit 1")
    assert "F401" in ruff("check", code="import os\n")


def test_a_function_of_more_than_40_statements_is_found() -> None:
    def function(statements: int) -> str:
        return "def planted() -> None:\n" + "".join(f"    print_{i} = {i}\n" for i in range(statements))

    assert "PLR0915" not in ruff("check", code=function(40))
    assert "PLR0915" in ruff("check", code=function(41))


def test_a_function_of_more_than_10_paths_is_found() -> None:
    def function(branches: int) -> str:
        body = "".join(f"    if x == {i}:\n        x += 1\n" for i in range(branches))
        return f"def planted(x: int) -> int:\n{body}    return x\n"

    assert "C901" not in ruff("check", code=function(9))
    assert "C901" in ruff("check", code=function(10))


def test_no_comment_turns_a_size_gate_off() -> None:
    found = {relative(path): silenced_sizes(path.read_text(encoding="utf-8")) for path in source_files()}
    assert {path: rules for path, rules in found.items() if rules} == {}


def test_a_comment_that_turns_a_size_gate_off_is_found() -> None:
    mark = "# no" + "qa"
    assert silenced_sizes(f"def f():  {mark}: E501, C901\n") == ["E501, C901"]
    assert silenced_sizes(f"def f():  {mark}\n") == ["all"]
    assert silenced_sizes(f"import os  {mark}: F401 - wanted here\n") == []
    for silencing in (f"{mark.upper()}: C901", f"# flake8: {mark[2:]}", "# ruff: ig" + "nore[C901]"):
        assert silenced_sizes(f"def f():  {silencing}\n") != []


def test_no_file_is_longer_than_500_lines() -> None:
    assert long_files(source_files()) == []


def test_a_file_longer_than_500_lines_is_found(tmp_path: Path) -> None:
    fits, planted = tmp_path / "fits.py", tmp_path / "planted.py"
    fits.write_text("x = 1\n" * MOST_LINES, encoding="utf-8")
    planted.write_text("x = 1\n" * (MOST_LINES + 1), encoding="utf-8")
    assert long_files([fits, planted]) == [f"{planted}: 501 lines"]


def test_names_are_short_and_say_something() -> None:
    files = [path for path in source_files() if may_be_out_of_bounds(path.read_text(encoding="utf-8"))]
    found = {relative(path): names_out_of_bounds(parse(path)) for path in files}
    assert {path: names for path, names in found.items() if names} == {}
    assert [relative(path) for path in source_files() if NO_NAMES & set(words(path.stem))] == []


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("class ContextManager: ...", ["ContextManager"]),
        ("class VeryLongClassName: ...", ["VeryLongClassName"]),
        ("class JSONInfo: ...", ["JSONInfo"]),
        ("def common_path(): ...", ["common_path"]),
        ("class HTTPServerError: ...", []),
        ("class Database: ...", []),
    ],
    ids=["manager", "four words", "info", "function", "three words", "a word within a word"],
)
def test_a_name_out_of_bounds_is_found(code: str, names: list[str]) -> None:
    assert names_out_of_bounds(ast.parse(code)) == names
    assert may_be_out_of_bounds(code) == bool(names)
