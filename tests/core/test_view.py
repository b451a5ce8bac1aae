"""The messages of a view: found by tool and by entry, and never changed under somebody who has them."""

from __future__ import annotations

from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import ENGINE_ENTRY, ViewMessage, ViewMessages, with_result_texts

ONE, TWO, THREE = (ToolUseId(name) for name in ("one", "two", "three"))
CALLS = Message("assistant", tuple(ToolUse(use, "Bash", EMPTY_OBJECT) for use in (ONE, TWO)))
RESULTS = Message("user", (Text("both"), ToolResult(ONE, "first"), ToolResult(TWO, "second")))


def view_of(*entries: tuple[Message, int]) -> ViewMessages:
    view = ViewMessages()
    for message, entry in entries:
        view.append(ViewMessage(message, 1.0, entry))
    return view


def whole() -> ViewMessages:
    return view_of(
        (Message("user", "go"), 0),
        (CALLS, 1),
        (Message("user", "context"), ENGINE_ENTRY),
        (RESULTS, 2),
        (RESULTS, 2),
    )


def test_results_and_entries_are_found_where_they_stand() -> None:
    view = whole()
    assert len(view) == 5
    assert [item.message for item in view] == list(view.messages())
    assert (view.place(ONE), view.place(TWO), view.place(THREE)) == (4, 4, None)
    assert view.result(TWO) == ToolResult(TWO, "second")
    assert view.result(THREE) is None
    assert [list(view.places_of(entry)) for entry in (0, 1, 2, 3, ENGINE_ENTRY)] == [[0], [1], [3, 4], [], []]


def test_only_a_users_message_holds_results() -> None:
    view = view_of(
        (Message("assistant", (ToolResult(ONE, "of the assistant"),)), 0), (Message("user", "text"), 1)
    )
    assert view.place(ONE) is None


def test_a_swap_changes_one_message_and_nothing_that_was_handed_out() -> None:
    view = whole()
    before = view.messages()
    other = with_result_texts(RESULTS, {ONE: "cleared"})
    view.swap(3, other, 2.5)
    assert before[3] is RESULTS
    assert view.messages()[3] is other
    assert (view.items[3].weight, view.items[3].entry) == (2.5, 2)
    assert not view.messages().shares_list_with(before)


def test_a_message_that_is_added_leaves_what_was_handed_out_as_long_as_it_was() -> None:
    view = whole()
    before = view.messages()
    view.append(ViewMessage(Message("user", "more"), 1.0, 3))
    assert (len(before), len(view.messages())) == (5, 6)
    assert view.messages().shares_list_with(before)


def test_swaps_that_nobody_could_have_seen_copy_nothing() -> None:
    view = whole()
    view.swap(0, Message("user", "other"), 1.0)
    first = view.messages()
    view.swap(0, Message("user", "again"), 1.0)
    second = view.messages()
    view.append(ViewMessage(CALLS, 1.0))
    assert [first[0].content, second[0].content] == ["other", "again"]
    assert second.shares_list_with(view.messages())


def test_a_view_that_starts_over_knows_nothing_of_before() -> None:
    view = whole()
    before = view.messages()
    view.start_over([ViewMessage(CALLS, 1.0, 1)])
    assert view.place(ONE) is None
    assert [list(view.places_of(entry)) for entry in (0, 1, 2)] == [[], [0], []]
    assert list(view.messages()) == [CALLS]
    assert len(before) == 5
    view.swap(0, RESULTS, 1.0)
    assert view.messages()[0] is RESULTS


def test_texts_take_the_place_of_the_results_of_their_tools_alone() -> None:
    changed = with_result_texts(RESULTS, {TWO: "cleared", THREE: "elsewhere"})
    assert changed.content == (Text("both"), ToolResult(ONE, "first"), ToolResult(TWO, "cleared"))
    for message in (Message("user", "words"), CALLS, RESULTS):
        assert with_result_texts(message, {THREE: "elsewhere"}) is message
