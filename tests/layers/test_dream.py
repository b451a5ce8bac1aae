"""When a dream is due, and what its fork is told and allowed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.layers.dream import (
    DreamFacts,
    DreamSettings,
    DreamStep,
    DreamTask,
    build_dream_brief,
    choose_dream_step,
)
from sevenfold.layers.fences import Fence, find_fences

NOW = ManualClock().now()
ON = DreamSettings(enabled=True)
HOUR = timedelta(hours=1)
DAY_AGO = NOW - timedelta(days=1)


@pytest.mark.parametrize(
    ("facts", "step"),
    [
        (DreamFacts(NOW), "count sessions"),
        (DreamFacts(NOW, NOW - 23 * HOUR, sessions_since=9, last_count=NOW), "wait"),
        (DreamFacts(NOW, DAY_AGO), "count sessions"),
        (DreamFacts(NOW, DAY_AGO, spread=HOUR), "wait"),
        (DreamFacts(NOW, DAY_AGO, last_count=NOW - HOUR / 2, sessions_since=4), "count sessions"),
        (DreamFacts(NOW, DAY_AGO, last_count=NOW - HOUR / 10, sessions_since=4), "wait"),
        (DreamFacts(NOW, DAY_AGO, last_count=NOW - HOUR, sessions_since=5), "take lock"),
        (DreamFacts(NOW, DAY_AGO, NOW - HOUR / 2, 1, last_count=NOW, sessions_since=9), "wait"),
        (DreamFacts(NOW, DAY_AGO, NOW - HOUR, 1, last_count=NOW, sessions_since=9), "take lock"),
        (DreamFacts(NOW, DAY_AGO, NOW - 7 * HOUR, 4, last_count=NOW, sessions_since=9), "wait"),
        (DreamFacts(NOW, DAY_AGO, NOW - 24 * HOUR, 99, last_count=NOW, sessions_since=9), "take lock"),
        (DreamFacts(NOW, DAY_AGO, NOW, 0, last_count=NOW, sessions_since=9), "take lock"),
    ],
)
def test_the_cheapest_question_comes_first(facts: DreamFacts, step: DreamStep) -> None:
    assert choose_dream_step(facts, ON) == step


def test_nothing_dreams_by_itself_unless_that_was_switched_on() -> None:
    facts = DreamFacts(NOW, None, last_count=NOW, sessions_since=100)
    assert not DreamSettings().enabled
    assert choose_dream_step(facts, DreamSettings()) == "wait"
    assert choose_dream_step(facts, replace(ON, sessions=101)) == "wait"


def test_the_fork_may_read_and_write_memories_and_nothing_else() -> None:
    task = DreamTask(date(2026, 11, 15), "- [user] {index}.md", "index", {"logs/a.md": "it"}, "/s", "/c")
    told = build_dream_brief(task, "{today} {manifest} {index} {logs} {unknown}", ON)
    assert told.directive.startswith("2026-11-15 <memories ")
    assert told.directive.endswith(" {unknown}")
    assert find_fences("memories", told.directive) == (Fence("", "- [user] {index}.md"),)
    assert find_fences("log", told.directive) == (Fence("logs/a.md", "it"),)
    assert told.max_rounds == ON.rounds
    allowed = {name: told.denial(call(name)) is None for name in ("read", "memory", "shell", "edit", "write")}
    assert allowed == {"read": True, "memory": True, "shell": False, "edit": False, "write": False}


def call(name: str) -> ToolUse:
    return ToolUse(ToolUseId("t"), name, JsonObject({}))
