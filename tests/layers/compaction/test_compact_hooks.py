"""What a loop adds to a compaction: words for the summary, things that come back, and a word after it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sevenfold.core.errors import CompactionStopped
from sevenfold.core.events import (
    CompactionRefused,
    Event,
    ExtraRestored,
    HookFailed,
    RestoreSkipped,
)
from sevenfold.core.messages import Message, Text
from sevenfold.layers.compaction.compose import NO_ROOM_REASON
from sevenfold.layers.compaction.hooks import NO_COMPACT_HOOKS, CompactHooks
from sevenfold.layers.compaction.job import Compacted
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.compaction.policy import CompactionTrigger
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session.blocking import BlockingSession
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import BoundaryRecord
from sevenfold.store.transcript.transcript import latest_session
from tests.session.talk import FRAME, Listener, call, result

SUMMARY = "<summary>" + "What was done, at some length. " * 6 + "</summary>"
NO_NOTES: dict[str, dict[str, object]] = {
    "notes": {"compaction_enabled": False},
    "microcompact": {"policy": "keep"},
}


def compacted(
    tmp_path: Path,
    hooks: CompactHooks = NO_COMPACT_HOOKS,
    *,
    provider: ScriptedProvider | None = None,
    settings: dict[str, dict[str, object]] = NO_NOTES,
    instructions: str = "",
) -> tuple[str, list[Event]]:
    """The text of a view after a compaction by hand, and what was told."""
    heard = Listener()
    with BlockingSession.open(
        FRAME,
        project=tmp_path,
        environ={"HOME": str(tmp_path)},
        provider=provider,
        settings=settings,
        hooks=hooks,
        emit=heard,
    ) as session:
        session.history.append(Message("user", "Mend the parser"))
        for number in range(6):
            session.prepare()
            session.record(call(number, "Read", 2_000, file_path=f"src/{number}.py"))
            session.history.append(result(number, "line\n" * 300))
        session.prepare()
        session.compact(instructions)
        messages = session.prepare().request.messages
    texts = [block.text for message in messages for block in message.blocks if isinstance(block, Text)]
    return "\n".join(texts), heard.events


def test_what_a_hook_says_before_a_compaction_is_part_of_the_instruction(tmp_path: Path) -> None:
    seen: list[str] = []

    async def before(trigger: CompactionTrigger) -> str:
        seen.append(trigger)
        return "KEEP THE NAMES OF TESTS"

    provider = ScriptedProvider(by_purpose={"summary": [make_response(SUMMARY)]})
    compacted(tmp_path, CompactHooks(before=before), provider=provider, instructions="LOOK AT THE PARSER")
    asked = provider.requests[-1].messages[-1].blocks[-1]
    assert seen == ["manual"]
    assert isinstance(asked, Text)
    assert "LOOK AT THE PARSER" in asked.text
    assert "KEEP THE NAMES OF TESTS" in asked.text


def test_a_hook_that_speaks_every_time_does_not_keep_the_notes_from_serving(tmp_path: Path) -> None:
    async def before(_: CompactionTrigger) -> str:
        return "keep names"

    done: list[Compacted] = []

    async def after(compaction: Compacted) -> None:
        done.append(compaction)

    notes: dict[str, dict[str, object]] = {
        "notes": {"first_update_tokens": 500, "keep_tokens": 500},
        "microcompact": {"policy": "keep"},
    }
    text, _ = compacted(tmp_path, CompactHooks(before=before, after=after), settings=notes)
    assert [one.rung for one in done] == ["notes"]
    assert "These notes, kept while it went on" in text


def test_what_an_agent_hands_in_is_in_view_again_and_told(tmp_path: Path) -> None:
    async def restoring() -> Sequence[Extra]:
        return (
            Extra("skill", "review", "how to review\n" * 40),
            Extra("plan", "/plan.md", "1. mend it"),
            Extra("tasks", "background tasks", "build: running"),
            Extra("mcp", "tracker", ""),
        )

    text, heard = compacted(tmp_path, CompactHooks(restoring=restoring))
    for kept in ("skill: review", "1. mend it", "build: running"):
        assert kept in text
    assert [(one.kind, one.is_cut) for one in heard if isinstance(one, ExtraRestored)] == [
        ("skill", False),
        ("plan", False),
        ("tasks", False),
    ]
    assert RestoreSkipped("mcp tracker", "it is empty") in heard


def test_files_give_way_before_a_plan_does(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for number in range(5):
        (tmp_path / f"src/{number}.py").write_text("a line of code\n" * 2_000, encoding="utf-8")

    async def restoring() -> Sequence[Extra]:
        return (Extra("plan", "/plan.md", "1. mend it"),)

    small: dict[str, dict[str, object]] = {**NO_NOTES, "models": {FRAME.model: {"window_tokens": 60_000}}}
    text, heard = compacted(tmp_path, CompactHooks(restoring=restoring), settings=small)
    assert "1. mend it" in text
    skipped = {one.what for one in heard if isinstance(one, RestoreSkipped) and one.reason == NO_ROOM_REASON}
    assert "src/4.py" in skipped


@pytest.mark.parametrize("found", [None, ["a plan"]], ids=["nothing", "texts"])
def test_a_hook_that_hands_in_what_is_no_extra_costs_its_own_part(tmp_path: Path, found: Any) -> None:
    async def restoring() -> Sequence[Extra]:
        return found

    _, heard = compacted(tmp_path, CompactHooks(restoring=restoring))
    assert [one.hook for one in heard if isinstance(one, HookFailed)] == ["restoring"]


def test_a_hook_is_told_of_what_it_got_wrong_and_not_of_the_clock(tmp_path: Path) -> None:
    async def before(_: CompactionTrigger) -> Any:
        return None

    async def restoring() -> Sequence[Extra]:
        raise TimeoutError("the server of mine")

    text, heard = compacted(tmp_path, CompactHooks(before, restoring))
    assert "This session goes on" in text
    assert [one for one in heard if isinstance(one, HookFailed)] == [
        HookFailed("before compaction", "TypeError: a NoneType is no text"),
        HookFailed("restoring", "TimeoutError: the server of mine"),
    ]


def test_hooks_that_fail_or_hang_cost_what_they_would_have_added_and_nothing_else(tmp_path: Path) -> None:
    async def before(_: CompactionTrigger) -> str:
        raise OSError("no shell")

    async def restoring() -> Sequence[Extra]:
        await asyncio.Event().wait()
        return ()

    async def after(_: Compacted) -> None:
        raise ValueError("late")

    settings: dict[str, dict[str, object]] = {**NO_NOTES, "compact": {"hook_seconds": 1}}
    text, heard = compacted(tmp_path, CompactHooks(before, restoring, after), settings=settings)
    assert "This session goes on" in text
    assert [one for one in heard if isinstance(one, HookFailed)] == [
        HookFailed("before compaction", "OSError: no shell"),
        HookFailed("restoring", "it took over 1 s (compact.hook_seconds)"),
        HookFailed("after compaction", "ValueError: late"),
    ]


def test_the_boundary_names_the_tools_that_were_looked_up_before_it(tmp_path: Path) -> None:
    async def restoring() -> Sequence[Extra]:
        return (Extra("tools", "mcp__forge__search", "{}"), Extra("todo", "todo", "mend it"))

    compacted(tmp_path, CompactHooks(restoring=restoring))
    [place] = tmp_path.glob(".sevenfold/projects/*/sessions")
    with Folder.open(place) as folder:
        lines = scan_transcript(folder, latest_session(folder), kinds=("boundary",))
        bodies = [line.record.body for line in lines if isinstance(line, StoredRecord)]
    assert [body.tools for body in bodies if isinstance(body, BoundaryRecord)] == [("mcp__forge__search",)]


def test_a_hook_may_put_an_automatic_compaction_off_until_the_window_is_full(tmp_path: Path) -> None:
    asked: list[CompactionTrigger] = []

    async def before(trigger: CompactionTrigger) -> str:
        asked.append(trigger)
        raise CompactionStopped("not now")

    heard = Listener()
    settings = {
        **NO_NOTES,
        "compact": {"auto_compact_pct": Decimal("0.5")},
        "window": {"blocking_margin_tokens": 970_000},
    }
    with BlockingSession.open(
        FRAME,
        project=tmp_path,
        environ={"HOME": str(tmp_path)},
        settings=settings,
        hooks=CompactHooks(before=before),
        emit=heard,
    ) as session:
        session.history.append(Message("user", "Mend the parser"))
        levels = [session.prepare().level]
        while "HistoryCompacted" not in heard.names() and len(levels) < 20:
            number = len(levels)
            session.record(call(number, "Read", 1_000 * number, file_path=f"src/{number}.py"))
            session.history.append(result(number, "line\n" * 400))
            levels.append(session.prepare().level)
    refused = [event for event in heard.events if isinstance(event, CompactionRefused)]
    [failed] = [event for event in heard.events if isinstance(event, HookFailed)]
    assert "blocked" not in levels
    assert refused == [CompactionRefused("auto", "not now")] * (len(asked) - 1)
    assert len(refused) > 2
    assert "the window is full" in failed.reason


def test_a_hook_may_refuse_a_compaction_by_hand(tmp_path: Path) -> None:
    async def before(_: CompactionTrigger) -> str:
        raise CompactionStopped("not now")

    with pytest.raises(CompactionStopped, match="not now"):
        compacted(tmp_path, CompactHooks(before=before))
