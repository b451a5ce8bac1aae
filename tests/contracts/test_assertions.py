"""Every test says what it expects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

import pytest

from tests.contracts.source_tree import parse, relative, source_files, statements

pytestmark = pytest.mark.gate

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

EXPECTING = ("raises", "warns", "fail")
"""What pytest offers beside `assert`."""
PROMISING = ("assert_", "check_", "expect_")
"""How a function of another module must be named to count as an assertion."""


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in statements(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def called_name(call: ast.Call) -> str:
    target = call.func
    return (
        target.attr
        if isinstance(target, ast.Attribute)
        else target.id
        if isinstance(target, ast.Name)
        else ""
    )


def is_playwright_assertion(call: ast.Call) -> bool:
    """Whether it is `expect(...).to_have_text(...)` or another of that kind."""
    target = call.func
    return (
        isinstance(target, ast.Attribute)
        and target.attr.startswith(("to_", "not_to_"))
        and isinstance(target.value, ast.Call)
        and called_name(target.value) == "expect"
    )


def asserts(function: Function, known: dict[str, Function], seen: frozenset[str] = frozenset()) -> bool:
    """Whether it asserts itself, or calls what does."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant):
            return True
        if not isinstance(node, ast.Call):
            continue
        name = called_name(node)
        if name in EXPECTING or name.startswith(PROMISING) or is_playwright_assertion(node):
            return True
        if name in known and name not in seen and asserts(known[name], known, seen | {name}):
            return True
    return False


def silent_tests(tree: ast.Module) -> list[str]:
    found = list(functions(tree))
    known = {function.name: function for function in found}
    tests = (function for function in found if function.name.startswith("test_"))
    return [test.name for test in tests if not asserts(test, known, frozenset({test.name}))]


def test_every_test_asserts_something() -> None:
    files = [path for path in source_files("tests") if path.name.startswith("test_")]
    found = {relative(path): silent_tests(parse(path)) for path in files}
    assert {path: names for path, names in found.items() if names} == {}
    assert any(any(functions(parse(path))) for path in files)


@pytest.mark.parametrize(
    "body",
    ["run()", "assert True", "x = 1 == 2", "helper()", "test_planted()"],
    ids=["calls", "constant", "compares", "calls a silent function", "calls itself"],
)
def test_a_test_that_asserts_nothing_is_found(body: str) -> None:
    tree = ast.parse(f"def helper():\n    run()\n\ndef test_planted():\n    {body}\n")
    assert silent_tests(tree) == ["test_planted"]


@pytest.mark.parametrize(
    "body",
    [
        "assert x",
        "helper()",
        "self.helper()",
        "with pytest.raises(ValueError):\n        run()",
        "check_all(x)",
    ],
    ids=["asserts", "calls", "calls a method", "raises", "promises"],
)
def test_a_test_that_asserts_something_passes(body: str) -> None:
    tree = ast.parse(f"def helper():\n    assert x\n\ndef test_planted():\n    {body}\n")
    assert silent_tests(tree) == []
