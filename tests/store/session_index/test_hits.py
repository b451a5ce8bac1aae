"""A turn that was found: what is shown of it, and the command that goes on with its session."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sevenfold.store.session_index.finder import (
    MARK_END,
    MARK_START,
    SessionHit,
    describe_hit,
    resume_command,
)

HIT = SessionHit(
    path=Path("/home/me/.claude/projects/work/s1.jsonl"),
    agent="claude-code",
    session="s1-2",
    project="/home/me/my work",
    title="A title",
    turn=3,
    conversation="",
    at=datetime(2026, 3, 2, 12, tzinfo=UTC),
    snippet=f"the {MARK_START}build{MARK_END} of the {MARK_START}build{MARK_END}",
    context="the build of the build",
    more=2,
)


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        ({}, "cd -- '/home/me/my work' && claude --resume s1-2"),
        ({"agent": "codex"}, "cd -- '/home/me/my work' && codex resume s1-2"),
        ({"agent": "sevenfold", "project": ""}, "sevenfold chat --resume s1-2"),
        ({"agent": "messages"}, "sevenfold replay /home/me/.claude/projects/work/s1.jsonl"),
        ({"session": "--help"}, "sevenfold replay -- /home/me/.claude/projects/work/s1.jsonl"),
        ({"project": "/home/me\nrm"}, "sevenfold replay -- /home/me/.claude/projects/work/s1.jsonl"),
    ],
)
def test_the_command_that_goes_on_with_a_session(changes: dict[str, str], command: str) -> None:
    assert resume_command(replace(HIT, **changes)) == command


def test_a_hit_is_described_without_marks_and_without_secrets() -> None:
    found = describe_hit(HIT)
    assert found["snippet"] == "the build of the build"
    assert found["found"] == ["build"]
    assert (found["at"], found["sub_agent"], found["more"]) == ("2026-03-02T12:00:00+00:00", None, 2)
    assert found["resume"] == resume_command(HIT)
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" * 2
    hidden = describe_hit(replace(HIT, context=f"token {secret}", at=None, conversation="agent-1"))
    assert "not shown, it seems to hold a secret" in str(hidden["snippet"])
    assert secret not in str(hidden)
    assert (hidden["at"], hidden["sub_agent"], hidden["title"]) == (None, "agent-1", "A title")
    titled = describe_hit(replace(HIT, title=f"token {secret}"))
    assert "not shown" in str(titled["title"])
    assert titled["snippet"] == "the build of the build"
