"""The threat model: each promise of the page links to a test that is there."""

from __future__ import annotations

import re

import pytest

from tests.contracts.source_tree import ROOT

PAGE = ROOT / "docs" / "security.md"
LINK = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")
HEADS = (
    "Who is trusted",
    "What each mode promises",
    "What is not protected",
    "How to report a problem",
)


def find_promises(text: str) -> list[str]:
    """The rows of every table of promises."""
    rows: list[str] = []
    is_promised = False
    for line in text.splitlines():
        if not line.startswith("|"):
            is_promised = False
        elif line.startswith("| promise |"):
            is_promised = True
        elif is_promised and not line.startswith("|---"):
            rows.append(line)
    return rows


def find_missing(row: str) -> list[str]:
    """What is wrong with the links of a promise."""
    found = LINK.findall(row)
    if not found:
        return [f"no test: {row}"]
    wrong: list[str] = []
    for name, path in found:
        file = ROOT / path
        if not file.is_file() or f"def {name}(" not in file.read_text(encoding="utf-8"):
            wrong.append(f"{path} has no {name}")
    return wrong


@pytest.mark.parametrize("row", find_promises(PAGE.read_text(encoding="utf-8")))
def test_each_promise_links_to_a_test_that_is_there(row: str) -> None:
    assert find_missing(row) == []


def test_the_page_has_its_parts_and_promises() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [head for head in HEADS if f"\n## {head}\n" not in text] == []
    assert len(find_promises(text)) >= 20


@pytest.mark.parametrize(
    "row",
    [
        "| All is well | |",
        "| x | [`test_x`](../tests/nowhere.py) |",
        "| x | [`test_x`](../tests/conftest.py) |",
    ],
)
def test_a_promise_without_a_test_is_found(row: str) -> None:
    assert len(find_missing(row)) == 1
