"""When a dream is due, and what its fork is told and allowed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.text.safe_text import Fence, find_fences
from sevenfold.layers.dreams.policy import (
    DreamFacts,
    DreamSettings,
    DreamStep,
    DreamTask,
    build_dream_brief,
    choose_dream_step,
)

NOW = ManualClock().now()
ON = DreamSettings(enabled=True)
HOUR = timedelta(hours=1)
DAY_AGO = NOW - timedelta(days=1)


@pytest.mark.parametrize(
    ("facts", "step"),
    [
        (DreamFacts(now=NOW), "count sessions"),
        (DreamFacts(now=NOW, last_dream=NOW - 23 * HOUR, sessions_since=9, last_count=NOW), "wait"),
        (DreamFacts(now=NOW, last_dream=DAY_AGO), "count sessions"),
        (DreamFacts(now=NOW, last_dream=DAY_AGO, spread=HOUR), "wait"),
        (
            DreamFacts(now=NOW, last_dream=DAY_AGO, last_count=NOW - HOUR / 2, sessions_since=4),
            "count sessions",
        ),
        (DreamFacts(now=NOW, last_dream=DAY_AGO, last_count=NOW - HOUR / 10, sessions_since=4), "wait"),
        (DreamFacts(now=NOW, last_dream=DAY_AGO, last_count=NOW - HOUR, sessions_since=5), "take lock"),
        (
            DreamFacts(
                now=NOW,
                last_dream=DAY_AGO,
                last_attempt=NOW - HOUR / 2,
                strikes=1,
                last_count=NOW,
                sessions_since=9,
            ),
            "wait",
        ),
        (
            DreamFacts(
                now=NOW,
                last_dream=DAY_AGO,
                last_attempt=NOW - HOUR,
                strikes=1,
                last_count=NOW,
                sessions_since=9,
            ),
            "take lock",
        ),
        (
            DreamFacts(
                now=NOW,
                last_dream=DAY_AGO,
                last_attempt=NOW - 7 * HOUR,
                strikes=4,
                last_count=NOW,
                sessions_since=9,
            ),
            "wait",
        ),
        (
            DreamFacts(
                now=NOW,
                last_dream=DAY_AGO,
                last_attempt=NOW - 24 * HOUR,
                strikes=99,
                last_count=NOW,
                sessions_since=9,
            ),
            "take lock",
        ),
        (
            DreamFacts(
                now=NOW, last_dream=DAY_AGO, last_attempt=NOW, strikes=0, last_count=NOW, sessions_since=9
            ),
            "take lock",
        ),
    ],
)
def test_the_cheapest_question_comes_first(facts: DreamFacts, step: DreamStep) -> None:
    assert choose_dream_step(facts, ON) == step


def test_nothing_dreams_by_itself_unless_that_was_switched_on() -> None:
    facts = DreamFacts(now=NOW, last_dream=None, last_count=NOW, sessions_since=100)
    assert not DreamSettings().enabled
    assert choose_dream_step(facts, DreamSettings()) == "wait"
    assert choose_dream_step(facts, replace(ON, sessions=101)) == "wait"


def test_the_fork_may_read_and_write_memories_and_nothing_else() -> None:
    task = DreamTask(
        today=date(2026, 11, 15),
        manifest="- [user] {index}.md",
        index="index",
        logs={"logs/a.md": "it"},
        transcripts="/s",
        copy="/c",
    )
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
