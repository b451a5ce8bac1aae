"""What later calls use of earlier results."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Image, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.replay.policies.fidelity import Quote, TextIndex, extract_block_text, find_quotes

LONG = "return compute_the_total(of_all_the_items, with_tax=True)"


def quotes(tool: str, **given_: object) -> set[Quote]:
    return set(find_quotes(ToolUse(ToolUseId("use"), tool, JsonObject(given_))))  # pyright: ignore[reportArgumentType]


def test_an_edit_quotes_the_long_lines_it_replaces_and_nothing_of_what_it_brings() -> None:
    found = quotes("Edit", file_path="/src/a.py", old_string=f"    {LONG}\n  pass", new_string=f"{LONG} or 1")
    assert {each.text for each in found if each.kind == "span"} == {LONG}
    assert Quote("path", "/src/a.py") in found
    assert {"compute_the_total", "of_all_the_items", "with_tax"} == {
        each.text for each in found if each.kind == "name"
    }


def test_every_edit_of_many_is_read() -> None:
    edits = (JsonObject({"old_string": LONG, "new_string": "x"}),)
    found = quotes("MultiEdit", file_path="/src/a.py", edits=edits)
    assert Quote("span", LONG) in found


def test_a_patch_quotes_the_lines_it_takes_out() -> None:
    patch = f"*** Update File: a.py\n-{LONG}\n+{LONG} + 1\n context"
    assert [each.text for each in quotes("apply_patch", input=patch)] == [LONG]


@pytest.mark.parametrize(
    ("command", "paths", "names"),
    [
        ("go test ./cmd/entire/cli/... -run TestResume", {"./cmd/entire/cli/..."}, {"TestResume"}),
        ("grep -n parse_header setup.py", {"setup.py"}, {"parse_header"}),
        ("make test && echo finished", set[str](), set[str]()),
    ],
)
def test_a_command_uses_paths_and_names(command: str, paths: set[str], names: set[str]) -> None:
    found = quotes("Bash", command=command)
    assert {each.text for each in found if each.kind == "path"} == paths
    assert {each.text for each in found if each.kind == "name"} == names


def test_what_is_written_anew_is_no_use() -> None:
    assert quotes("Write", file_path="/src/b.py", content=f"{LONG}\nuse_of(some_name)") == {
        Quote("path", "/src/b.py")
    }


def test_blocks_are_read_as_a_model_reads_them() -> None:
    use = ToolUse(ToolUseId("use"), "Bash", JsonObject({"command": "make", "more": ("x", 1)}))
    assert extract_block_text(use) == "make\nx"
    assert extract_block_text(Thinking("hm")) == "hm"
    assert (
        extract_block_text(ToolResult(ToolUseId("use"), (Text("one"), Image(JsonObject({})), Text("two"))))
        == "one\n\ntwo"
    )
    assert extract_block_text(ToolResult(ToolUseId("use"), None)) == ""


@given(st.lists(st.text("ab", max_size=6), max_size=8), st.text("ab", min_size=1, max_size=3))
def test_the_index_finds_just_the_blocks_that_hold_a_text(texts: list[str], text: str) -> None:
    index = TextIndex(texts)
    expected = tuple(at for at, each in enumerate(texts) if text in each)
    assert index.find(text) == index.find(text) == expected
