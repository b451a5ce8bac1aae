"""A memory is read from whatever a person or another agent wrote, and changed without touching the rest."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import InputError
from sevenfold.core.memories import (
    HALF_LIFE,
    MAX_CONDITIONS,
    NO_USES,
    RULE_PHASES,
    MemoryUse,
    Origin,
    RuleCondition,
    add_uses,
    change_body,
    change_field,
    is_indexed,
    join_taint,
    parse_conditions,
    read_memory,
    rewrite_memory,
    write_memory,
)
from sevenfold.core.text.markdown import MAX_HEAD_BYTES

NESTED = """---
name: deploys
description: Frozen on Fridays
metadata:
  node_type: memory
  type: project
# a person's remark
---
Never on a Friday.
"""

plain = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=40)


def test_what_is_written_reads_back_the_same() -> None:
    text = write_memory("a", "when:\n it matters", "user", "Body.", applies_to=["tool:shell"])
    memory = read_memory("a.md", text)
    assert (memory.name, memory.description, memory.kind) == ("a", "when: it matters", "user")
    assert memory.applies_to == ("tool:shell",)
    assert memory.body == "\nBody.\n"


def test_both_dialects_say_the_same() -> None:
    memory = read_memory("deploys.md", NESTED)
    assert (memory.name, memory.kind, memory.field("node_type")) == ("deploys", "project", "memory")


def test_without_a_head_the_file_names_itself() -> None:
    memory = read_memory("sub/release-steps.md", "# Release\n\nTag it.\n")
    assert (memory.name, memory.description, memory.kind) == ("release-steps", "Release", "")


def test_a_changed_field_leaves_every_other_line_alone() -> None:
    changed = change_field(NESTED, "description", "Frozen: always")
    assert changed == NESTED.replace("Frozen on Fridays", '"Frozen: always"')
    assert change_field(changed, "description", "Frozen on Fridays") == NESTED


def test_a_list_is_replaced_with_the_lines_below_it() -> None:
    text = "---\nname: a\napplies_to:\n  - tool:shell\n- tool:edit\ntype: user\n---\nx"
    changed = change_field(text, "applies_to", ["path:src/**"])
    assert changed == '---\nname: a\napplies_to: ["path:src/**"]\ntype: user\n---\nx'
    assert change_field(changed, "applies_to", None) == "---\nname: a\ntype: user\n---\nx"


def test_a_file_without_a_head_gets_one() -> None:
    assert change_field("Body\n", "type", "user") == "---\ntype: user\n---\nBody\n"
    assert change_field("Body\n", "type", None) == "Body\n"


def test_a_head_that_cannot_be_read_is_not_changed() -> None:
    with pytest.raises(InputError, match="does not end"):
        change_field("---\nname: a\nno end", "type", "user")
    with pytest.raises(InputError, match="shorten"):
        change_field(NESTED, "description", "x" * 5_000)


@given(plain, plain, plain)
def test_a_changed_field_or_body_reads_back_and_keeps_the_rest(name: str, value: str, body: str) -> None:
    text = write_memory(name, "described", "user", "Body.")
    changed = change_body(change_field(text, "note", value), body)
    memory = read_memory("a.md", changed)
    assert memory.field("note") == value
    assert memory.body == body
    assert memory.name == name


def test_logs_and_what_was_put_aside_are_not_brought_up() -> None:
    shown = [
        key for key in ("a.md", "team/a.md", "logs/2026/11/2026-11-15.md", "archive/a.md") if is_indexed(key)
    ]
    assert shown == ["a.md", "team/a.md"]


def test_taint_is_carried_on_until_a_person_accepts() -> None:
    web = Origin(who="fork", why="", taint=frozenset(["web"]))
    team = Origin(who="sync", why="", taint=frozenset(["team"]), is_accepted=True)
    assert join_taint(web, team, Origin(who="user", why="")) == {"web"}
    assert (web.is_trusted, team.is_trusted) == (False, True)


# A memory that is written again.


def test_a_memory_with_another_text_keeps_the_rest_of_its_head() -> None:
    before = read_memory("deploys.md", NESTED)
    text = rewrite_memory(before, before.description, before.kind, " Never on a Monday. ")
    assert text == NESTED.replace("Never on a Friday.\n", "\nNever on a Monday.\n")
    changed = read_memory(
        "deploys.md", rewrite_memory(before, "Other words", "feedback", "x", applies_to=["tool:shell"])
    )
    assert (changed.name, changed.description, changed.kind) == ("deploys", "Other words", "feedback")
    assert changed.applies_to == ("tool:shell",)
    assert "# a person's remark" in changed.text
    again = rewrite_memory(changed, "Other words", "feedback", "x")
    assert again == changed.text, "what it applies to stays where nobody says otherwise"
    without = read_memory(
        "deploys.md", rewrite_memory(changed, "Other words", "feedback", "x", applies_to=())
    )
    assert without.applies_to == ()
    assert "applies_to" not in without.text


@pytest.mark.parametrize("text", ["Just a body.", "---\n- no: fields\n---\nbody\n"])
def test_a_memory_without_a_readable_head_gets_one(text: str) -> None:
    written = read_memory(
        "notes/plain.md", rewrite_memory(read_memory("notes/plain.md", text), "About", "user", "New.")
    )
    assert (written.name, written.description, written.kind, written.body.strip()) == (
        "plain",
        "About",
        "user",
        "New.",
    )
    named = rewrite_memory(read_memory("a.md", text), "About", "user", "New.", applies_to=["phase:planning"])
    assert read_memory("a.md", named).applies_to == ("phase:planning",)


def test_a_memory_whose_head_has_no_name_is_named_after_its_file() -> None:
    before = read_memory("plain.md", "---\ntype: user\n---\nbody\n")
    assert read_memory("plain.md", rewrite_memory(before, "About", "user", "New.")).field("name") == "plain"


def test_a_head_may_have_so_many_bytes() -> None:
    full = f"---\nname: a\nnote: {'x' * (MAX_HEAD_BYTES - 100)}\n---\nbody\n"
    assert read_memory("a.md", change_field(full, "type", "user")).kind == "user"
    for text in (full, NESTED):
        with pytest.raises(InputError, match="shorten it"):
            change_field(text, "description", "y" * (200 if text == full else 2 * MAX_HEAD_BYTES))


# Uses.

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_uses_are_counted_by_kind_and_those_that_warm_it_halve_with_time() -> None:
    uses = add_uses(
        {},
        [MemoryUse("a.md", "recalled"), MemoryUse("a.md", "recalled"), MemoryUse("b.md", "recalled")],
        NOON,
    )
    assert (uses["a.md"].count("recalled"), uses["b.md"].count("recalled")) == (2, 1)
    assert (uses["a.md"].warmth_at(NOON), uses["a.md"].last) == (2.0, NOON)
    assert uses["a.md"].warmth_at(NOON + HALF_LIFE) == 1.0
    assert uses["a.md"].warmth_at(NOON - HALF_LIFE) == 2.0, "a clock that was set back makes nothing warmer"
    later = uses["a.md"].with_use("recalled", NOON + HALF_LIFE)
    assert (later.warmth, later.last) == (2.0, NOON + HALF_LIFE)
    assert uses["a.md"].with_use("recalled", NOON - HALF_LIFE).last == NOON
    assert add_uses(uses, [], NOON) == uses
    assert (NO_USES.warmth_at(NOON), NO_USES.count("recalled")) == (0.0, 0)


# Conditions.


def test_conditions_are_read_each_once_and_spelled_as_they_were() -> None:
    told = ("tool:mcp__*", " path: src/api/** ", "command:git push", "phase:before-push", "tool:mcp__*")
    parsed = parse_conditions(told)
    assert parsed.refused == ()
    assert [str(one) for one in parsed.found] == [
        "tool:mcp__*",
        "path:src/api/**",
        "command:git push",
        "phase:before-push",
    ]
    assert parsed.found[1] == RuleCondition("path", "src/api/**")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("shell", "expected tool:NAME"),
        ("when:always", "expected tool:NAME"),
        ("tool:", "expected 1 to 200 printable"),
        ("tool:" + "x" * 201, "expected 1 to 200 printable"),
        ("command:a\tb", "expected 1 to 200 printable"),
        ("tool:two words", "expected a tool's name"),
        ("phase:before-lunch", "expected one of planning, before-edit"),
        ("path:/etc/passwd", "expected a path inside"),
        ("path:~/x", "expected a path inside"),
        ("path:src/../../x", "expected a path inside"),
        ("command:rm; ls", "expected the words that a command begins with"),
    ],
)
def test_what_is_no_condition_is_refused_with_the_reason(text: str, reason: str) -> None:
    (refused,) = parse_conditions([text]).refused
    assert refused.reason.startswith(reason)
    assert refused.text == text[:200]


def test_every_phase_and_the_longest_pattern_are_conditions() -> None:
    told = [*(f"phase:{name}" for name in RULE_PHASES), "tool:" + "x" * 200, "path:a..b/c"]
    assert parse_conditions(told).refused == ()
    assert len(parse_conditions(told).found) == len(told)


def test_a_memory_has_so_many_conditions_and_the_rest_is_counted() -> None:
    told = [f"tool:t{n}" for n in range(MAX_CONDITIONS)]
    assert parse_conditions(told).refused == ()
    parsed = parse_conditions([*told, "tool:more", "tool:other"])
    assert len(parsed.found) == MAX_CONDITIONS
    assert [one.text for one in parsed.refused] == ["2 more"]
