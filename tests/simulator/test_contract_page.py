"""The page of the contract and the tests that prove it name the same rules."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.contracts.source_tree import ROOT, parse, source_files

pytestmark = pytest.mark.gate

PAGE = ROOT / "docs" / "simulator-contract.md"
SECTIONS = [
    *("Transport", "Validation", "Roles and pairing", "Prompt cache", "Thinking", "Context editing"),
    *("Compaction", "Overflow", "Streaming", "Counting", "Diagnostics", "Threads", "Errors"),
    "Choices where the contract is unknown",
]
FEWEST_TESTS = 150


def listed_rules(text: str) -> list[str]:
    """Every rule of a page, in its order."""
    return re.findall(r"^[-*|\s]*[*`]*R-([a-z]+-\d+)\b", text, re.MULTILINE)


def marked_rules(tree: ast.AST) -> list[str]:
    """Every rule that a test of this module is marked with."""
    return [
        str(argument.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "rule"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    ]


def all_marks() -> list[str]:
    files = [path for path in source_files("tests") if path != Path(__file__)]
    marked = [path for path in files if "mark.rule(" in path.read_text(encoding="utf-8")]
    return [rule for path in marked for rule in marked_rules(parse(path))]


def test_every_rule_has_a_test_and_every_mark_a_rule() -> None:
    page, marks = set(listed_rules(PAGE.read_text(encoding="utf-8"))), set(all_marks())
    assert page - marks == set(), "rules without a test"
    assert marks - page == set(), "marks without a rule"


def test_there_is_a_test_for_each_of_many_rules() -> None:
    assert len(listed_rules(PAGE.read_text(encoding="utf-8"))) >= FEWEST_TESTS
    assert len(all_marks()) >= FEWEST_TESTS


def test_rules_are_numbered_from_one_without_a_gap() -> None:
    rules = listed_rules(PAGE.read_text(encoding="utf-8"))
    assert [rule for rule, count in Counter(rules).items() if count > 1] == []
    numbers: dict[str, list[int]] = {}
    for rule in rules:
        family, _, number = rule.rpartition("-")
        numbers.setdefault(family, []).append(int(number))
    assert {family: sorted(found) for family, found in numbers.items()} == {
        family: list(range(1, len(found) + 1)) for family, found in numbers.items()
    }


def test_the_page_has_its_sections() -> None:
    found = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(found) == sorted(SECTIONS)


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("- **R-cache-7** text", ["cache-7"]),
        ("R-cache-8 text", ["cache-8"]),
        ("see R-cache-9", []),
        ("- `R-cache-10`: text", ["cache-10"]),
    ],
)
def test_a_rule_stands_at_the_start_of_its_line(line: str, rules: list[str]) -> None:
    assert listed_rules(line) == rules


def test_a_mark_is_found_wherever_it_stands() -> None:
    tree = ast.parse('@pytest.mark.rule("a-1")\n@mark.rule("b-2", "c-3")\ndef test_x(): ...\n')
    assert marked_rules(tree) == ["a-1", "b-2", "c-3"]
