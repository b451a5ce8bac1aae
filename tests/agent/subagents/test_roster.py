"""Who there is by name, and what agents remember."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from sevenfold.agent.subagents.definitions import (
    AGENT_MEMORY_SCOPES,
    MAX_INDEX_LINES,
    AgentMemoryPaths,
    AgentMemoryScope,
    read_agent_memory,
)
from sevenfold.agent.subagents.messaging import Roster, RosterEntry
from sevenfold.core.errors import KeyRefused, LockBusy
from sevenfold.store.files.folder import Folder

ADA = RosterEntry(
    name="ada",
    kind="fresh",
    session="agent-1",
    definition="general",
    description="a task",
    cwd="/p",
    model="claude-opus-5-5",
)


def test_a_name_is_held_by_one_and_known_after_it(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as control:
        roster = Roster(control)
        assert roster.find("ada") is None
        with ExitStack() as held:
            roster.claim(ADA, held)
            assert roster.is_running("ada")
            with ExitStack() as other, pytest.raises(LockBusy):
                roster.claim(ADA, other)
        assert not roster.is_running("ada")
        assert roster.find("ada") == ADA
        assert roster.names() == ["ada"]


def test_an_entry_that_cannot_be_read_is_nobody(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as control:
        roster = Roster(control)
        roster.write(ADA)
        (tmp_path / "agents" / "ada.json").write_text('{"name": "ada"}')
        assert roster.find("ada") is None


@pytest.fixture
def places(tmp_path: Path) -> AgentMemoryPaths:
    return AgentMemoryPaths(tmp_path / "home", tmp_path / "repo", tmp_path / "home" / "projects" / "p")


@pytest.mark.parametrize("scope", AGENT_MEMORY_SCOPES)
def test_each_scope_has_a_folder_of_its_own_and_an_index_that_is_shown(
    places: AgentMemoryPaths, scope: AgentMemoryScope
) -> None:
    empty = read_agent_memory(places, scope, "keeper")
    assert "It is empty so far." in empty.render()
    (empty.folder / "MEMORY.md").write_text("- [Builds](builds.md) — how to build\n")
    assert "[Builds](builds.md)" in read_agent_memory(places, scope, "keeper").render()
    others = {read_agent_memory(places, each, "keeper").folder for each in AGENT_MEMORY_SCOPES}
    assert len(others) == len(AGENT_MEMORY_SCOPES)


def test_a_long_index_is_cut_and_says_so(places: AgentMemoryPaths) -> None:
    folder = read_agent_memory(places, "user", "keeper").folder
    (folder / "MEMORY.md").write_text("".join(f"- line {n}\n" for n in range(500)))
    shown = read_agent_memory(places, "user", "keeper").index
    assert f"- line {MAX_INDEX_LINES - 1}\n" in shown
    assert f"- line {MAX_INDEX_LINES}\n" not in shown
    assert "shorten it" in shown


def test_a_repository_cannot_show_an_agent_what_lies_outside_it(
    places: AgentMemoryPaths, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    link = places.root / ".sevenfold" / "agent-memory" / "keeper"
    link.parent.mkdir(parents=True)
    os.symlink(secret, link)
    with pytest.raises(KeyRefused, match="leads out of"):
        read_agent_memory(places, "project", "keeper")
