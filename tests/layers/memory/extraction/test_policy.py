"""When a turn is looked through, and what a fork is told."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from sevenfold.core.json import JsonObject
from sevenfold.core.memories import read_memory, write_memory
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.text.safe_text import render_reminder
from sevenfold.layers.memory.extraction.policy import (
    ExtractionFacts,
    ExtractionStep,
    ExtractionTask,
    ListedMemory,
    build_extraction_brief,
    choose_extraction_step,
    extract_user_words,
    has_memory_write,
    has_substance,
    render_memory_manifest,
)
from sevenfold.layers.memory.extraction.settings import EXTRACTION_KIND, ExtractionSettings

FOLDER = "/srv/a/memory"
EDITOR = "str_replace_based_edit_tool"


@pytest.mark.parametrize(
    ("facts", "settings", "step"),
    [
        (ExtractionFacts(turns=1), ExtractionSettings(), "fork"),
        (ExtractionFacts(turns=1), ExtractionSettings(enabled=False), "wait"),
        (ExtractionFacts(turns=1), ExtractionSettings(every_turns=2), "wait"),
        (ExtractionFacts(turns=2), ExtractionSettings(every_turns=2), "fork"),
        (ExtractionFacts(turns=1, wrote_memory=True), ExtractionSettings(), "skip"),
        (ExtractionFacts(turns=1, has_words=False), ExtractionSettings(), "pass"),
        (ExtractionFacts(turns=1, has_substance=False), ExtractionSettings(), "pass"),
        (ExtractionFacts(turns=1, has_substance=False), ExtractionSettings(writer="model"), "fork"),
        (ExtractionFacts(turns=1, has_substance=False), ExtractionSettings(writer="rules"), "rules"),
        (ExtractionFacts(turns=1, has_model=False), ExtractionSettings(writer="model"), "rules"),
    ],
)
def test_the_next_step(facts: ExtractionFacts, settings: ExtractionSettings, step: ExtractionStep) -> None:
    assert choose_extraction_step(facts, settings) == step


@pytest.mark.parametrize(
    "own",
    [
        "Please add a test for the parser.",
        "Use tabs, not spaces.",
        "Ab jetzt bitte immer pnpm benutzen, nie npm.",
        "De ahora en adelante usa siempre pnpm.",
        "Désormais, toujours pnpm.",
        "A partir de agora, sempre pnpm.",
        "以后都用pnpm，不要用npm",
        "请始终用制表符缩进",
        "これからは常にpnpmを使ってください",
        "앞으로는 항상 pnpm을 사용하세요",
        "ต่อไปนี้ใช้ pnpm เสมอ",
    ],
)
def test_a_turn_of_substance_is_looked_at_in_any_language(own: str) -> None:
    assert has_substance(own)


@pytest.mark.parametrize(
    "own",
    [
        "",
        "go on",
        "Exactly.",
        "yes!",
        "weiter",
        "sí, gracias",
        "继续",
        "はい",
        "계속",
        "ok 👍",
        "let's go",
        "v1.2.3",
    ],
)
def test_a_go_ahead_is_not(own: str) -> None:
    assert not has_substance(own)


def test_only_a_person_has_words() -> None:
    assert extract_user_words(Message("user", "Use tabs.")) == "Use tabs."
    assert extract_user_words(Message("user", render_reminder("Use tabs."))) == ""
    assert extract_user_words(Message("assistant", "Use tabs.")) == ""
    assert extract_user_words(Message("user", (ToolResult(ToolUseId("u"), "Use tabs."),))) == ""


@pytest.mark.parametrize(
    ("use", "is_error", "wrote"),
    [
        (("memory", {"action": "write", "name": "a"}), False, True),
        (("memory", {"action": "write", "name": "a"}), True, False),
        (("memory", {"action": "read", "name": "a"}), False, False),
        (("memory", {"command": "create", "path": "/memories/a.md"}), False, True),
        (("write", {"file_path": f"{FOLDER}/a.md"}), False, True),
        (("edit", {"file_path": f"{FOLDER}_evil/a.md"}), False, False),
        (("read", {"file_path": f"{FOLDER}/a.md"}), False, False),
        (("read_file", {"absolute_path": f"{FOLDER}/a.md"}), False, False),
        ((EDITOR, {"command": "view", "path": f"{FOLDER}/a.md"}), False, False),
        ((EDITOR, {"command": "create", "path": f"{FOLDER}/a.md"}), False, True),
    ],
)
def test_the_agents_own_memories_are_noticed(
    use: tuple[str, dict[str, str]], is_error: bool, wrote: bool
) -> None:
    call = ToolUse(ToolUseId("u1"), use[0], JsonObject(use[1]))
    said = [Message("assistant", (call,)), Message("user", (ToolResult(call.id, "", is_error=is_error),))]
    assert has_memory_write(said, FOLDER) is wrote


def test_a_fork_is_told_what_is_known_and_may_read_and_write_drafts() -> None:
    memory = read_memory("a.md", write_memory("a", "when {tool} matters", "project", "x"))
    manifest = render_memory_manifest([ListedMemory(memory, datetime(2026, 11, 2, 8, 30, tzinfo=UTC))])
    assert manifest == "- [project] a.md (2026-11-02T08:30): when {tool} matters"
    task = ExtractionTask(
        messages=4,
        manifest=manifest,
        tool="memory",
        today=date(2026, 11, 15),
        tools=("read", "shell", "memory"),
    )
    found = build_extraction_brief(task, "{messages} {today} {tool}\n{manifest}\n{other}")
    assert found.kind == EXTRACTION_KIND
    assert found.directive.startswith("4 2026-11-15 memory\n")
    assert "when {tool} matters" in found.directive
    assert found.directive.endswith("{other}")
    assert [permit.tool for permit in found.allow] == ["read", "memory"]
    assert found.max_rounds == 5
    assert render_memory_manifest(()) == "nothing yet"
