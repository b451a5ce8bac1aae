"""What is put back beside files: on every rung it comes back, or is said to be left out."""

from __future__ import annotations

import pytest

from sevenfold.core.errors import PromptTooLong
from sevenfold.core.events import ExtraRestored, RestoreSkipped
from sevenfold.core.messages import Message
from sevenfold.layers.compaction.job import Compacted, CompactionJob, CompactionNotes
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.compaction.policy import COMPACTION_STRATEGIES, CompactionStrategy
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.providers.scripted import ScriptedSteps
from tests.layers.compaction.overflows import GOOD, NEWER, OLDER, Rig, job, talk, texts
from tests.layers.compaction.test_compactor import block_reply

EXTRAS = (
    Extra("todo", "todo list", "[>] mend the parser"),
    Extra("plan", "/sessions/one/plan.md", "# Mend it\n" * 900),
    Extra("skill", "review", "Look twice.\n" * 3_000),
)

STEPS: dict[CompactionStrategy, ScriptedSteps] = {
    "block": [block_reply()],
    "summary": [GOOD],
    "trimmed": [PromptTooLong(), GOOD],
    "structural": [PromptTooLong()] * 3,
    "clip": [PromptTooLong()] * 3,
}


def climb(rung: CompactionStrategy, target: int, extras: tuple[Extra, ...] = EXTRAS) -> tuple[Rig, Compacted]:
    rig = Rig(steps=STEPS.get(rung, ()), notes=NotesSettings(keep_tokens=3_000, keep_messages=1))
    return rig, rig.compact(wanted(rung, target, extras))


def wanted(rung: CompactionStrategy, target: int, extras: tuple[Extra, ...]) -> CompactionJob:
    messages = talk(target // 700)
    changes: dict[str, object] = {"target": target, "extras": extras}
    if rung == "notes":
        template = "# Title\n_nothing yet_\n"
        changes["notes"] = CompactionNotes("# Title\nMending.\n", noted=len(messages) - 3, template=template)
    if rung == "clip":
        changes["structural"] = ""
    return job(messages, NEWER if rung == "block" else OLDER, **changes)


@pytest.mark.parametrize("target", [4_000, 20_000, 150_000])
@pytest.mark.parametrize("rung", COMPACTION_STRATEGIES)
def test_each_extra_comes_back_or_is_said_to_be_left_out(rung: CompactionStrategy, target: int) -> None:
    rig, result = climb(rung, target)
    shown = texts(result.head)
    back = {(event.kind, event.title) for event in rig.heard if isinstance(event, ExtraRestored)}
    told = {event.what for event in rig.heard if isinstance(event, RestoreSkipped)}
    assert result.rung == rung
    assert result.tokens_after < target
    for extra in EXTRAS:
        is_back = f"{extra.kind}: {extra.title}" in shown
        assert ((extra.kind, extra.title) in back) is is_back
        assert (f"{extra.kind} {extra.title}" in told) is not is_back


@pytest.mark.parametrize("rung", COMPACTION_STRATEGIES)
def test_a_short_list_comes_back_on_every_rung_of_a_small_window(rung: CompactionStrategy) -> None:
    _, result = climb(rung, 20_000, EXTRAS[:1])
    assert "[>] mend the parser" in texts(result.head)


def test_when_kept_rounds_have_to_go_extras_take_their_room() -> None:
    messages = [Message("user", "Begin."), *talk(6, words=2_000)[1:]]
    summary = f"<summary>{'many words of a summary ' * 1_700}</summary>"
    rig = Rig(steps=[summary])
    result = rig.compact(job(messages, extras=EXTRAS[:2], target=15_000))
    assert result.rung == "summary"
    assert result.kept == ()
    assert "[>] mend the parser" in texts(result.head)
