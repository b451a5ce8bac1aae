"""Memories that say when they apply: read from a project, shown before an action, and known in a view."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.core.events import ConditionRefused, Event
from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.memories import Origin, RuleCondition, change_field, write_memory
from sevenfold.core.messages import Image, Message, Text, ToolResult, ToolUseId
from sevenfold.layers.memory.rule_policy import (
    DueRule,
    MemoryRule,
    RuleSettings,
    VisibleRule,
    find_visible_rules,
    fit_rule_text,
    render_rule_gate,
    render_rule_hold,
    render_rule_note,
)
from sevenfold.layers.memory.rule_reader import MemoryRuleReader, parse_memory_rule
from sevenfold.store.memory.changes import ANYTHING, Write
from sevenfold.store.memory.directory import MemoryDir

PUSH = RuleCondition("command", "git push")
RULE = MemoryRule(
    memory="team/pushing.md",
    name="Pushing",
    text="Never push on a Friday.",
    conditions=(PUSH,),
    is_gate=False,
    source="saved 2026-11-02, the user's words",
)
GATE = replace(RULE, memory="gates.md", text="Ask first.", is_gate=True)


@pytest.fixture
def memory(tmp_path: Path) -> Generator[MemoryDir]:
    with MemoryDir.for_project(tmp_path, environ={"HOME": str(tmp_path)}) as memory:
        yield memory


def save(memory: MemoryDir, name: str, *applies_to: str, gate: str = "", said_by: str = "user") -> None:
    text = write_memory(name, "About it", "feedback", f"The text of {name}.", applies_to=applies_to)
    text = change_field(text, "gate", gate) if gate else text
    origin = Origin(who="agent", why="asked", said_by="user" if said_by == "user" else "model")
    memory.commit([Write(f"{name}.md", text, ANYTHING)], origin)


def reader(memory: MemoryDir, events: list[Event], **settings: object) -> MemoryRuleReader:
    return MemoryRuleReader(memories=memory, settings=replace(RuleSettings(), **settings), emit=events.append)


def test_a_memory_with_conditions_is_a_rule_with_its_text_and_source(memory: MemoryDir) -> None:
    save(memory, "plain")
    save(memory, "pushing", "command:git push", "tool:shell", gate="acknowledge")
    events: list[Event] = []
    (rule,) = reader(memory, events).read()
    stored = memory.read("pushing.md")
    assert (rule.memory, rule.name, rule.text) == ("pushing.md", "pushing", "The text of pushing.")
    assert rule.conditions == (PUSH, RuleCondition("tool", "shell"))
    assert rule.is_gate
    assert rule.source == f"saved {stored.modified:%Y-%m-%d}, the user's words"
    assert events == []


def test_rules_are_read_again_when_a_memory_changed_and_faults_are_told_once(memory: MemoryDir) -> None:
    events: list[Event] = []
    read = reader(memory, events)
    save(memory, "odd", "always", "tool:shell")
    (first,) = read.read()
    assert not first.is_gate
    assert read.read() == (first,)
    assert [type(event) for event in events] == [ConditionRefused]
    save(memory, "pushing", "command:git push")
    assert [rule.memory for rule in read.read()] == ["pushing.md", "odd.md"]
    assert len(events) == 1
    memory.remove("odd.md")
    assert [rule.memory for rule in read.read()] == ["pushing.md"]
    save(memory, "none", "never")
    assert [rule.memory for rule in read.read()] == ["pushing.md"]
    assert [event.memory for event in events if isinstance(event, ConditionRefused)] == ["odd.md", "none.md"]


def test_rules_that_are_switched_off_are_none(memory: MemoryDir) -> None:
    save(memory, "pushing", "command:git push")
    assert reader(memory, [], enabled=False).read() == ()


def test_an_unreadable_gate_is_a_gate_and_is_told(memory: MemoryDir) -> None:
    save(memory, "pushing", "command:git push", gate="maybe")
    parsed = parse_memory_rule(memory.read("pushing.md"), RuleSettings())
    assert parsed.rule is not None
    assert parsed.rule.is_gate
    assert [(one.text, one.reason) for one in parsed.refused] == [
        ("gate: maybe", "expected acknowledge, or no gate")
    ]


def test_a_rule_is_called_by_its_name_its_key_or_its_file() -> None:
    assert RULE.names == ("Pushing", "team/pushing", "pushing")


def test_a_long_text_is_cut_at_a_line_and_says_where_the_rest_is() -> None:
    body = "\n".join(f"line {n}" for n in range(20))
    assert fit_rule_text("a.md", f"\n{body}\n", 1_000) == body
    cut = fit_rule_text("a.md", body, 60)
    assert cut.startswith("line 0\nline 1\n")
    assert cut.endswith("\n[cut here: read the memory a.md for the rest]")
    assert len(cut) < 120


def test_a_call_that_is_held_says_why_and_what_has_to_be_acknowledged() -> None:
    due = DueRule(RULE, PUSH)
    held = render_rule_hold([due])
    assert "team/pushing.md, for command:git push; saved 2026-11-02, the user's words:" in held
    assert "Never push on a Friday." in held
    assert "acknowledged" not in held
    gated = render_rule_hold([due, DueRule(GATE, PUSH)])
    assert gated.startswith(held)
    assert gated.endswith("and name it: gates.")
    beside = render_rule_hold([], [RULE, GATE])
    assert beside.startswith("Not run yet: ")
    assert "team/pushing.md, gates.md." in beside
    assert beside.endswith("and name it: gates.")
    assert render_rule_gate([GATE, RULE]).startswith("Not run: gates, team/pushing has to be acknowledged")
    note = render_rule_note([due])
    assert note.startswith("What is remembered")
    assert note.endswith(held.partition("\n\n")[2])


def test_rules_that_stand_in_a_view_are_found_in_results_alone() -> None:
    text = render_rule_note([DueRule(RULE, PUSH), DueRule(GATE, PUSH)])
    both = {VisibleRule("team/pushing.md", RULE.text), VisibleRule("gates.md", GATE.text)}
    use = ToolUseId("t")
    for content in (text, (Image(EMPTY_OBJECT), Text("done"), Text(text))):
        assert (
            find_visible_rules([Message("user", "go"), Message("user", (ToolResult(use, content),))]) == both
        )
    for content in (None, "done", (Image(EMPTY_OBJECT),)):
        assert find_visible_rules([Message("user", (ToolResult(use, content),))]) == frozenset()
    assert find_visible_rules([Message("user", text), Message("assistant", (Text(text),))]) == frozenset()
