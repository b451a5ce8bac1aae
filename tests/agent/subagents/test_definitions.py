"""Agents that markdown files define."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.agent.subagents.definition_files import (
    list_definition_folders,
    parse_definition,
    read_definitions,
)
from sevenfold.agent.subagents.definitions import (
    BUILT_IN_AGENTS,
    MAX_DEFINITION_CHARS,
    AgentDefinition,
    choose_agent_mode,
    choose_agent_model,
    render_definitions,
)
from sevenfold.core.errors import InputError
from sevenfold.core.events import DefinitionSkipped, Event
from sevenfold.core.prices import CATALOG
from sevenfold.core.settings.sections import PERMISSION_MODES, PermissionMode

HERE = Path("reviewer.md")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_of_ours_says_all_there_is_to_say() -> None:
    text = (
        "---\nname: reviewer\ndescription: Reviews a change.\ntools: [read, grep]\nmodel: claude-haiku-5-5\n"
        "mode: read-only\nmemory: project\n---\n\nYou review.\n"
    )
    assert parse_definition(text, "user", HERE) == AgentDefinition(
        name="reviewer",
        description="Reviews a change.",
        prompt="You review.",
        tools=("read", "grep"),
        model="claude-haiku-5-5",
        mode="read-only",
        memory="project",
        origin="user",
        path="reviewer.md",
    )


def test_a_file_for_claude_code_is_understood_as_it_is() -> None:
    text = (
        "---\nname: tester\ndescription: Use after a change. Examples follow.\n"
        "tools: Read, Bash(pytest:*), MultiEdit, Edit, WebFetch, mcp__github__get_issue\nmodel: inherit\n"
        "permissionMode: acceptEdits\ncolor: green\n---\nYou test."
    )
    found = parse_definition(text, "project", HERE)
    assert found.tools == ("read", "shell", "edit", "web_fetch", "mcp__github__get_issue")
    assert (found.model, found.mode) == ("", "accept-edits")


def test_a_file_without_a_name_is_called_as_it_is_and_has_all_tools() -> None:
    found = parse_definition("---\ndescription: Reviews.\n---\nYou review.", "user", HERE)
    assert (found.name, found.tools, found.mode, found.memory) == ("reviewer", None, None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("You review.", "needs a description"),
        ("---\ndescription: Reviews.\n---\n", "a prompt below"),
        ("---\ndescription: Reviews.\nmode: root\n---\nx", "its mode is 'root'"),
        ("---\ndescription: Reviews.\nmemory: mine\n---\nx", "its memory is 'mine'"),
        ("---\nname: ../up\ndescription: Reviews.\n---\nx", "names no agent"),
        ("---\ndescription: Reviews.\nx", "does not end with ---"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_definition(text, "user", HERE)


def test_definitions_come_from_the_user_and_the_project_and_bad_ones_are_told(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "repo"
    write(home / "agents" / "a.md", "---\nname: a\ndescription: The user's.\n---\nx")
    write(root / ".claude" / "agents" / "b.md", "---\nname: b\ndescription: Claude's.\n---\nx")
    write(root / ".sevenfold" / "agents" / "b.md", "---\nname: b\ndescription: Ours.\n---\nx")
    write(root / ".sevenfold" / "agents" / "notes.txt", "not an agent")
    bad = write(root / ".sevenfold" / "agents" / "bad.md", "no head")
    events: list[Event] = []
    found = read_definitions(list_definition_folders(home, root), events.append)
    assert [(item.name, item.origin) for item in found] == [
        ("a", "user"),
        ("b", "project"),
        ("explore", "built-in"),
        ("general", "built-in"),
    ]
    assert found[1].description == "Ours."
    assert [event.path for event in events if isinstance(event, DefinitionSkipped)] == [str(bad)]


def test_a_link_out_of_the_folder_defines_nothing(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.md", "---\nname: s\ndescription: Secret.\n---\nx")
    folder = tmp_path / "repo" / ".sevenfold" / "agents"
    folder.mkdir(parents=True)
    (folder / "s.md").symlink_to(secret)
    events: list[Event] = []
    assert read_definitions(
        list_definition_folders(tmp_path / "home", tmp_path / "repo"), events.append
    ) == tuple(sorted(BUILT_IN_AGENTS, key=lambda item: item.name))
    assert "leads out of" in str(events[0])


def test_the_listing_names_a_repositorys_own_agents_and_stays_short() -> None:
    listed = render_definitions(
        [
            AgentDefinition(name="a", description="Does. " * 200, prompt="x", origin="project"),
            *BUILT_IN_AGENTS,
        ]
    )
    assert "(defined by this repository)" in listed.splitlines()[0]
    assert max(map(len, listed.splitlines())) < MAX_DEFINITION_CHARS + 50


@pytest.mark.parametrize("starter", PERMISSION_MODES)
@pytest.mark.parametrize("wanted", PERMISSION_MODES)
def test_no_agent_may_do_more_than_who_started_it(wanted: PermissionMode, starter: PermissionMode) -> None:
    order = ["read-only", "plan", "ask", "accept-edits", "bypass"]
    chosen = choose_agent_mode(wanted, starter)
    assert order.index(chosen) <= order.index(starter)
    assert chosen in (wanted, starter)
    assert choose_agent_mode(None, starter) == starter


@pytest.mark.parametrize(
    ("wanted", "starter", "model"),
    [
        ("", "claude-opus-5-5", "claude-opus-5-5"),
        ("haiku", "claude-opus-5-5", "claude-haiku-5-5"),
        ("Sonnet", "claude-opus-5-5", "claude-sonnet-5-5"),
        ("haiku", "gpt-6", "gpt-6"),
        ("gpt-6-mini", "gpt-6", "gpt-6-mini"),
    ],
)
def test_an_agent_runs_on_its_own_model_or_its_starters(wanted: str, starter: str, model: str) -> None:
    assert choose_agent_model(wanted, starter, CATALOG) == model
