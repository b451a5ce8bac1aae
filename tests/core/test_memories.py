"""A memory is read from whatever a person or another agent wrote, and changed without touching the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import InputError
from sevenfold.core.memories import (
    Origin,
    change_body,
    change_field,
    is_indexed,
    join_taint,
    read_memory,
    write_memory,
)

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
