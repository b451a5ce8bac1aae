"""Compaction by notes: what stays beside them, and every reason why not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.layers.compaction.keep_policy import (
    NoNotesPlan,
    NotesCompactFacts,
    NotesKeepPlan,
    choose_notes_start,
    has_message_text,
    plan_notes_compaction,
)
from sevenfold.layers.session_notes.policy import NotesSettings

SETTINGS = NotesSettings(keep_tokens=100, keep_messages=2, keep_limit_tokens=400)


def said(text: str) -> Message:
    return Message("user", text)


def asked(*ids: str) -> Message:
    uses = tuple(ToolUse(ToolUseId(name), "Read", EMPTY_OBJECT) for name in ids)
    return Message("assistant", (Thinking("hm", "sig"), Text("looking"), *uses))


def got(*ids: str) -> Message:
    return Message("user", tuple(ToolResult(ToolUseId(name), "text") for name in ids))


LONG = [said("start"), asked("a"), got("a"), asked("b"), got("b"), Message("assistant", "done"), said("next")]


def facts(**changes: object) -> NotesCompactFacts:
    given = NotesCompactFacts(
        messages=LONG,
        tokens=[50] * 7,
        notes="# Title\nA thing\n",
        template="# Title\n",
        noted=6,
        notes_tokens=500,
        overhead_tokens=1_000,
        target_tokens=10_000,
    )
    return replace(given, **changes)


def test_notes_and_the_newest_messages_are_the_new_view() -> None:
    plan = plan_notes_compaction(facts(), SETTINGS)
    assert plan == NotesKeepPlan(5, tuple(LONG[5:]), 100, 1_600)


@pytest.mark.parametrize(
    ("changes", "settings", "reason"),
    [
        ({}, NotesSettings(enabled=False), "switched off"),
        ({}, NotesSettings(compaction_enabled=False), "switched off"),
        ({"notes": None}, SETTINGS, "no notes were written yet"),
        ({"notes": "# Title\n\n"}, SETTINGS, "the notes are still the empty template"),
        ({"noted": None}, SETTINGS, "the last noted message is not in the view"),
        ({"noted": 7}, SETTINGS, "the last noted message is not in the view"),
        ({}, NotesSettings(), "nothing would be left out"),
        ({"target_tokens": 1_599}, SETTINGS, "the result would still be over the limit"),
    ],
)
def test_every_no_has_its_reason(changes: dict[str, object], settings: NotesSettings, reason: str) -> None:
    assert plan_notes_compaction(facts(**changes), settings) == NoNotesPlan(reason)  # pyright: ignore[reportArgumentType]


def test_what_the_notes_do_not_cover_stays_whatever_its_size() -> None:
    assert choose_notes_start(LONG, [500] * 7, 2, SETTINGS) == 3


def test_going_back_ends_before_the_limit_even_when_there_is_not_enough() -> None:
    assert choose_notes_start(LONG, [50, 50, 50, 390, 50, 10, 10], 6, SETTINGS) == 5


def test_on_models_with_preserved_thinking_no_thinking_is_kept() -> None:
    plan = plan_notes_compaction(facts(drops_thinking=True, tokens=[30] * 7), SETTINGS)
    assert isinstance(plan, NotesKeepPlan)
    assert plan.start == 3
    assert not any(isinstance(block, Thinking) for message in plan.kept for block in message.blocks)
    assert plan.kept[1] is LONG[4]


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Rounds with parallel calls, answers in several pieces, talk, calls nobody answered, stray results."""
    messages: list[Message] = []
    for number in range(draw(st.integers(0, 12))):
        ids = [f"{number}-{place}" for place in range(draw(st.integers(1, 3)))]
        match draw(st.sampled_from(["round", "pieces", "talk", "open", "stray"])):
            case "round":
                messages += [asked(*ids), got(*ids)]
            case "pieces":
                messages += [Message("assistant", (Thinking("hm", "s"),)), asked(*ids), got(*ids)]
            case "open":
                messages += [asked(*ids)]
            case "stray":
                messages += [got("nobody")]
            case _:
                messages += [said("words"), Message("assistant", "answer")]
    return messages


@given(conversations(), st.data())
def test_no_call_is_parted_from_its_result_and_the_limits_hold(
    messages: list[Message], data: st.DataObject
) -> None:
    tokens = [data.draw(st.integers(0, 200)) for _ in messages]
    noted = data.draw(st.integers(-1, len(messages)))
    start = choose_notes_start(messages, tokens, noted, SETTINGS)
    kept = messages[start:]
    asked_before = {b.id for m in messages[:start] for b in m.blocks if isinstance(b, ToolUse)}
    answered = {b.tool_use_id for m in kept for b in m.blocks if isinstance(b, ToolResult)}
    assert not asked_before & answered
    assert not (start and kept and kept[0].role == messages[start - 1].role == "assistant")
    assert start <= noted + 1 or start == 0
    least = max(whole for whole in range(noted + 2) if whole == 0 or is_whole(messages, whole))
    if start < least:
        assert sum(tokens[start:]) <= SETTINGS.keep_limit_tokens
        later = [place for place in range(start + 1, least + 1) if is_whole(messages, place)]
        for place in later:
            spoken = sum(map(has_message_text, messages[place:]))
            assert sum(tokens[place:]) < SETTINGS.keep_tokens or spoken < SETTINGS.keep_messages


def is_whole(messages: list[Message], start: int) -> bool:
    """The same question, asked the slow way."""
    if start > len(messages):
        return False
    before = {b.id for m in messages[:start] for b in m.blocks if isinstance(b, ToolUse)}
    after = {b.tool_use_id for m in messages[start:] for b in m.blocks if isinstance(b, ToolResult)}
    torn = 0 < start < len(messages) and messages[start].role == messages[start - 1].role == "assistant"
    return not before & after and not torn
