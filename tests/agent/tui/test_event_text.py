"""Every event can be told, and what is told names what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import cast

import pytest

from sevenfold.agent.tui.event_text import find_undo, render_event_text
from sevenfold.core.events import (
    EVENT_TYPES,
    Event,
    GuardedLeft,
    HistoryCompacted,
    LockRebuilt,
    MemoryChanged,
    ResultSpilled,
    TempSwept,
)
from sevenfold.core.messages import ToolUseId


def sample(kind: type[Event]) -> Event:
    values = {"int": 7, "bool": True, "float": 0.5}
    make = cast("Callable[..., Event]", kind)
    return make(**{item.name: values.get(str(item.type), "word") for item in fields(kind)})


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_an_event_is_told_in_one_line_or_not_at_all(kind: type[Event]) -> None:
    told = render_event_text(sample(kind))
    assert told is None or (told.text and "\n" not in told.text and "{" not in told.text)


def test_a_layers_act_names_its_number() -> None:
    told = render_event_text(ResultSpilled(ToolUseId("t"), "/x", 212_000))
    assert told is not None
    assert (told.layer, told.is_warning) == (1, False)
    assert "212,000 bytes" in told.text


def test_a_compaction_says_what_it_saved() -> None:
    told = render_event_text(
        HistoryCompacted(
            rung="notes",
            trigger="auto",
            tokens_before=180_000,
            tokens_after=21_000,
            kept_messages=6,
            calls=0,
            milliseconds=12,
        )
    )
    assert told is not None
    assert "180,000 → 21,000" in told.text


def test_an_event_without_a_sentence_of_its_own_is_told_by_its_fields() -> None:
    told = render_event_text(LockRebuilt("dream", 4, "torn"))
    assert told is not None
    assert told.text == "LockRebuilt: lock dream, token 4, reason torn"


def test_housekeeping_is_not_told_at_work() -> None:
    assert render_event_text(TempSwept("/x", 2)) is None


def test_what_was_left_for_programs_to_obey_is_a_warning() -> None:
    told = render_event_text(GuardedLeft("/project/.husky", "not permitted"))
    assert told is not None
    assert told.is_warning
    assert "/project/.husky" in told.text
    assert told.text.endswith("could not be moved aside: not permitted")


def test_a_change_of_memories_says_whose_it_is_and_is_undone_by_its_name() -> None:
    changed = MemoryChanged(transaction="6a1336a1", kind="commit", who="fork", keys="tests.md", count=1)
    told = render_event_text(changed)
    assert told is not None
    assert told.text == "tests.md changed by the search of the turn"
    assert find_undo(changed) == "/memory diff 6a1336a1 shows it, /memory revert 6a1336a1 takes it back"
