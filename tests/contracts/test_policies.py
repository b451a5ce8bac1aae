"""Policies decide: what an import cannot show, their own text can."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import cast

import pytest

from tests.contracts.linter import is_policy
from tests.contracts.source_tree import ROOT, parse, relative, source_files

pytestmark = pytest.mark.gate

ACTING = frozenset({"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"})
"""Built-ins that touch something outside the arguments."""
TELLING_TIME = frozenset({"now", "utcnow", "today"})
WAITING = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)


def acts(tree: ast.Module) -> list[str]:
    """What in this module is no pure decision."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, WAITING):
            found.append(f"line {node.lineno}: {type(node).__name__}")
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found.append(f"line {node.lineno}: state between calls")
        elif isinstance(node, ast.Call):
            target = node.func
            if isinstance(target, ast.Name) and target.id in ACTING:
                found.append(f"line {node.lineno}: {target.id}()")
            if isinstance(target, ast.Attribute) and target.attr in TELLING_TIME:
                found.append(f"line {node.lineno}: .{target.attr}()")
    return found


def policies() -> list[Path]:
    """The modules that the contract on policies holds to."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = cast("list[dict[str, object]]", config["tool"]["importlinter"]["contracts"])
    (contract,) = (contract for contract in contracts if contract["type"] == "pure")
    listed = {
        ROOT / "src" / f"{name.replace('.', '/')}.py" for name in cast("list[str]", contract["modules"])
    }
    return [path for path in source_files("src/sevenfold/layers") if is_policy(path.stem) or path in listed]


def test_no_policy_acts_waits_or_asks_the_time() -> None:
    files = policies()
    assert files
    found = {relative(path): acts(parse(path)) for path in files}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("open('x')", "line 1: open()"),
        ("async def decide(): ...", "line 1: AsyncFunctionDef"),
        ("datetime.now(UTC)", "line 1: .now()"),
        ("def f():\n    global seen", "line 2: state between calls"),
    ],
    ids=["acts", "waits", "tells time", "remembers"],
)
def test_a_policy_that_acts_is_found(code: str, told: str) -> None:
    assert acts(ast.parse(code)) == [told]
