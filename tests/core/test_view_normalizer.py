"""A view that grows message by message: each shows its entry, and what is put between shows none."""

from __future__ import annotations

from sevenfold.core.events import Event, HistoryRepaired
from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import Message, ToolUse, ToolUseId
from sevenfold.core.normalize import NO_OPENING, NO_SOURCE, NormalizeRules, ViewNormalizer
from sevenfold.core.requests import ENGINE_ENTRY

ASKED = Message("user", "go")
CALL = Message("assistant", (ToolUse(ToolUseId("t"), "Bash", EMPTY_OBJECT),))


def test_each_message_shows_its_entry_and_repairs_are_told() -> None:
    events: list[Event] = []
    rules = NormalizeRules()
    view = ViewNormalizer(rules, events.append)
    assert view.rules is rules
    assert view.last == NO_SOURCE
    (asked,) = view.add(ASKED, 7)
    assert (asked.message, asked.entry, asked.source, view.last) == (ASKED, 7, 0, 0)
    (called,) = view.add(CALL, 8)
    assert (called.message, called.entry, called.source) == (CALL, 8, 1)
    assert events == []
    lost, said = view.add(Message("user", "stop"), 9)
    assert (lost.entry, lost.source) == (ENGINE_ENTRY, NO_SOURCE)
    assert (said.entry, said.source, view.last) == (9, 2, 2)
    assert [(event.message, event.repair) for event in events if isinstance(event, HistoryRepaired)] == [
        (2, "lost result")
    ]
    assert view.finish() == []


def test_a_view_that_starts_over_counts_from_its_own_beginning() -> None:
    events: list[Event] = []
    view = ViewNormalizer(NormalizeRules(), events.append)
    view.add(ASKED, 0)
    view.add(CALL, 1)
    opening, done, asked = view.start_over([Message("assistant", "Done."), ASKED], [4, ENGINE_ENTRY])
    assert (opening.message.content, opening.entry) == (NO_OPENING, ENGINE_ENTRY)
    assert (done.entry, done.source) == (4, 0)
    assert (asked.entry, asked.source, view.last) == (ENGINE_ENTRY, 1, 1)
    assert view.finish() == [], "nothing is open from before"
    (more,) = view.add(Message("user", "more"), 5)
    assert (more.entry, more.source) == (5, 2)


def test_what_a_view_lacks_is_added_at_its_end() -> None:
    view = ViewNormalizer(NormalizeRules(), lambda _: None)
    view.add(ASKED, 0)
    view.add(CALL, 1)
    (lost,) = view.finish()
    assert (lost.message.role, lost.entry, lost.source) == ("user", ENGINE_ENTRY, NO_SOURCE)
