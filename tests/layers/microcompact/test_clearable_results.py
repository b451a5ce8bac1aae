"""The results in view that may be cleared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import ViewMessage
from sevenfold.layers.microcompact.facts import (
    BARE_MARKER,
    MARKER_TOKENS,
    ClearableResults,
    ResultKind,
    ResultPosition,
    render_cleared_marker,
)
from sevenfold.layers.microcompact.policy import MicrocompactSettings
from sevenfold.layers.microcompact.result_account import ResultAccount
from tests.layers.microcompact.clearings import FRAME_TOKENS, called, logs, stock


@pytest.mark.parametrize(
    ("tool", "given_key", "value", "kind", "path"),
    [
        ("Read", "file_path", "/src/a.py", "read", "/src/a.py"),
        ("read_file", "path", "a.py", "read", "a.py"),
        ("Edit", "file_path", "/src/a.py", "edit", "/src/a.py"),
        ("apply_patch", "input", "*** Begin", "edit", ""),
        ("Write", "file_path", "/src/a.py", "write", "/src/a.py"),
        ("Glob", "pattern", "**/*.py", "list", ""),
        ("Grep", "pattern", "def main", "search", ""),
        ("WebFetch", "url", "https://example.invalid", "search", ""),
        ("Bash", "command", "make test", "shell", ""),
        ("exec_command", "cmd", "make test", "shell", ""),
        ("exec_command", "cmd", "sed -n '1,80p' src/a.py", "read", "src/a.py"),
        ("Bash", "command", "cd src && rg -n main | head -5", "search", ""),
    ],
)
def test_a_call_says_what_kind_of_result_it_has(
    tool: str, given_key: str, value: str, kind: ResultKind, path: str
) -> None:
    found = called(tool, 1, 500, **{given_key: value})
    assert (found.kind, found.path, found.tool) == (kind, path, tool)
    assert found.subject == ("" if given_key == "input" else value)


def test_a_long_subject_keeps_the_end_of_a_path_and_the_beginning_of_a_command() -> None:
    path = "/".join(["deep"] * 40) + "/last.py"
    assert called("Read", 1, 500, file_path=path).subject.endswith("/last.py")
    command = "make first " + "then more " * 20
    assert called("Bash", 2, 500, command=command).subject.startswith("make first")


def test_a_marker_names_the_call_and_the_file_that_keeps_its_result() -> None:
    result = called("Read", 1, 500, file_path="/src/a.py")
    marker = render_cleared_marker(result, "tool-results/use_1.txt")
    assert all(part in marker for part in ("Read", "/src/a.py", "tool-results/use_1.txt"))
    assert render_cleared_marker(result, None) == BARE_MARKER == "[Old tool result content cleared]"


def test_what_is_no_longer_than_its_marker_saves_nothing() -> None:
    assert called("Bash", 1, MARKER_TOKENS, command="true").saved_tokens == 0
    assert called("Bash", 1, MARKER_TOKENS + 1, command="true").saved_tokens == 1


def test_the_last_results_and_those_that_no_request_has_shown_are_not_stale() -> None:
    shelf = stock(*logs(8, 500))
    assert [item.result.id for item in shelf.find_stale(3, before_round=99)] == [
        f"use {number}" for number in (4, 3, 2, 1, 0)
    ]
    assert [item.round for item in shelf.find_stale(3, before_round=3)] == [2, 1]
    assert len(shelf.find_stale(3, before_round=99, most=2)) == 2
    assert shelf.find_stale(8, before_round=99) == []


def test_rounds_of_staleness_are_counted_from_the_result_that_pushed_it_out() -> None:
    shelf = stock(*logs(6, 500))
    first = shelf.live[0]
    assert shelf.count_stale_rounds(first, 3, round_=9) == 9 - 4
    assert shelf.count_stale_rounds(shelf.live[-1], 3, round_=9) == 0


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=12), st.data())
def test_what_stands_behind_a_cut_moves_up_by_what_went(sizes: list[int], data: st.DataObject) -> None:
    results = [called("Bash", number, size, command=str(number)) for number, size in enumerate(sizes)]
    shelf = stock(*results)
    before = {item.result.id: item for item in shelf.live}
    gone = data.draw(st.sets(st.sampled_from(sorted(before)))) if before else set[ToolUseId]()
    shelf.clear(gone)
    assert [item.result.id for item in shelf.live] == [use for use in before if use not in gone]
    for item in shelf.live:
        was = before[item.result.id]
        past = [before[use] for use in gone if before[use].place < was.place]
        assert item.place == was.place - sum(each.result.saved_tokens for each in past)
        early = [each for each in past if each.place < was.edge]
        assert item.edge == was.edge - sum(each.result.saved_tokens for each in early)
        assert FRAME_TOKENS <= item.anchor <= item.edge <= item.place


def test_after_a_cut_the_cache_is_read_up_to_its_marks() -> None:
    shelf = stock(*logs(6, 1_000))
    edges = [item.edge for item in shelf.live]
    shelf.clear({ToolUseId("use 1"), ToolUseId("use 3")})
    first, between, *behind = shelf.live
    assert first.anchor == edges[0], "before the cut nothing changed"
    assert between.anchor == edges[1], "what the cut spoiled is read up to it"
    assert {item.anchor for item in behind} == {behind[0].edge}, "the first one behind the cut is marked"


def test_a_cold_cache_is_written_with_one_mark_before_the_first_result() -> None:
    shelf = stock(*logs(4, 1_000))
    shelf.reset_anchors()
    assert {item.anchor for item in shelf.live} == {shelf.live[0].edge}
    ClearableResults().reset_anchors()


def test_results_no_longer_than_a_marker_are_counted_and_left_where_they_are() -> None:
    shelf = stock(called("Bash", 0, 10, command="true"), *logs(4, 900)[1:])
    assert [item.order for item in shelf.live] == [2, 3, 4]


def test_the_same_call_after_a_cut_brings_its_result_back_once() -> None:
    read = called("Read", 1, 900, file_path="/src/a.py")
    again = called("Read", 2, 900, file_path="/src/a.py")
    other = called("Read", 3, 900, file_path="/src/a.py", offset=50)
    shelf = ClearableResults()
    assert not shelf.add(read, round_=1, place=0, anchor=0)
    assert not shelf.add(again, round_=2, place=0, anchor=0), "nothing was cleared yet"
    shelf.clear({read.id})
    assert not shelf.add(other, round_=3, place=0, anchor=0), "another part of the file"
    assert shelf.add(again, round_=4, place=0, anchor=0)
    assert not shelf.add(again, round_=5, place=0, anchor=0)


def test_the_age_of_a_result_is_how_many_came_since() -> None:
    shelf = stock(called("Read", 0, 900, file_path="/src/a.py"), *logs(5, 500))
    assert [shelf.age(item) for item in shelf.live] == [5, 4, 3, 2, 1, 0]
    shelf.begin_turn()
    shelf.add(called("Edit", 9, 80, file_path="/src/a.py"), round_=7, place=0, anchor=0)
    assert [shelf.age(item) for item in shelf.live] == [6, 5, 4, 3, 2, 1, 0]
    assert [item.turn for item in shelf.live] == [0] * 6 + [1]


def test_a_file_that_is_read_again_supersedes_what_was_read_before() -> None:
    first = called("Read", 0, 900, file_path="/src/a.py")
    shelf = stock(first, called("Read", 1, 900, file_path="/src/b.py"))
    assert not shelf.is_superseded(shelf.live[0])
    shelf.add(called("Read", 2, 300, file_path="/src/a.py", offset=7), round_=3, place=0, anchor=0)
    assert [shelf.is_superseded(item) for item in shelf.live] == [True, False, False]


def test_nothing_is_left_after_a_compaction() -> None:
    shelf = stock(*logs(4, 500))
    shelf.clear({shelf.live[0].result.id})
    shelf.start_over()
    assert shelf.live == []
    assert not shelf.add(logs(1, 500)[0], round_=9, place=0, anchor=0), "it was summarised, not cleared"


def test_a_turn_begins_with_what_the_user_says() -> None:
    clearing = ResultAccount(settings=MicrocompactSettings(), is_clearable=lambda _: True)
    use = ToolUse(ToolUseId("use 1"), "Read", JsonObject({"file_path": "a.py"}))
    said = [
        ViewMessage(Message("user", "read it"), 10),
        ViewMessage(Message("assistant", (use,)), 10),
        ViewMessage(Message("user", (ToolResult(use.id, "x" * 900),)), 300),
        ViewMessage(Message("user", "<reminder>"), 10, origin="attachment"),
        ViewMessage(Message("user", "a memory"), 10, origin="memory"),
        ViewMessage(Message("user", "now change it"), 10),
    ]
    for item in said:
        clearing.add(item, {use.id: use}, ResultPosition(1, 0, 0), round)
    assert clearing.results.turn == 2
    assert [item.turn for item in clearing.results.live] == [1]
