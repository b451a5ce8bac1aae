"""Which MCP servers are started: those of the settings, and a repository's own once a person has agreed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from sevenfold.agent.mcp.servers import MCP_PROJECT_FILE, find_servers
from sevenfold.core.events import Event, McpSkipped
from sevenfold.core.json import JsonObject
from sevenfold.core.settings import Settings
from sevenfold.core.settings.sections import McpServer, McpSettings
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.settings_files import read_settings
from sevenfold.store.project.trust import TRUSTED_FILE, TrustStore

ONE = {"command": "npx", "args": ["-y", "it"], "env": {"KEY": "${KEY}"}}


def settings(home: Path, **sections: Mapping[str, object]) -> Settings:
    named = {"mcp_client" if name == "client" else name: table for name, table in sections.items()}
    return read_settings(
        [McpSettings, McpServer],
        root=None,
        environ={"HOME": str(home)},
        arguments=named,
        managed_file=home / "none.toml",
    )


class Person:
    def __init__(self, *, agrees: bool) -> None:
        self.agrees = agrees
        self.asked: list[str] = []

    async def confirm(self, question: str) -> bool:
        self.asked.append(question)
        return self.agrees


def find(
    given: Settings, root: Path, trust: TrustStore | None, person: Person, told: list[Event] | None = None
) -> dict[str, McpServer]:
    events: list[Event] = [] if told is None else told
    return asyncio.run(find_servers(given, root, trust, confirm=person.confirm, emit=events.append))


@pytest.fixture
def trust(tmp_path: Path) -> TrustStore:
    return TrustStore(Folder.open(tmp_path / "control", create=True))


def write(root: Path, servers: Mapping[str, object]) -> Path:
    path = root / MCP_PROJECT_FILE
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


def test_servers_of_the_settings_are_used_without_a_question(tmp_path: Path, trust: TrustStore) -> None:
    given = settings(
        tmp_path, mcp={"a": {"command": "x"}, "b": {"url": "https://b"}, "c": {"enabled": False}}
    )
    person = Person(agrees=False)
    assert find(given, tmp_path, trust, person) == {
        "a": McpServer(command="x"),
        "b": McpServer(url="https://b"),
    }
    assert person.asked == []


def test_a_repository_is_asked_about_once_and_again_when_its_file_has_changed(
    tmp_path: Path, trust: TrustStore
) -> None:
    write(tmp_path, {"own": ONE})
    given, person = settings(tmp_path), Person(agrees=True)
    own = McpServer(command="npx", args=("-y", "it"), env=JsonObject({"KEY": "${KEY}"}))
    for _ in range(3):
        assert find(given, tmp_path, trust, person) == {"own": own}
    assert len(person.asked) == 1
    assert "own: npx -y it (with KEY)" in person.asked[0]
    write(tmp_path, {"own": {"command": "evil"}})
    person.agrees = False
    told: list[Event] = []
    assert find(given, tmp_path, trust, person, told) == {}
    assert len(person.asked) == 2
    assert isinstance(told[0], McpSkipped)


def test_the_question_names_the_variables_that_a_server_would_get(tmp_path: Path, trust: TrustStore) -> None:
    headers = {"X-Trace": "v1 ${ANTHROPIC_API_KEY:-none}"}
    write(tmp_path, {"own": {"url": "https://example.org/${USER}", "headers": headers}})
    person = Person(agrees=False)
    find(settings(tmp_path), tmp_path, trust, person)
    assert "variables of yours: USER, ANTHROPIC_API_KEY" in person.asked[0]


def test_a_record_of_trust_that_is_damaged_trusts_nobody(tmp_path: Path, trust: TrustStore) -> None:
    write(tmp_path, {"own": ONE})
    person = Person(agrees=True)
    find(settings(tmp_path), tmp_path, trust, person)
    (tmp_path / "control" / TRUSTED_FILE).write_bytes(b"{")
    assert find(settings(tmp_path), tmp_path, trust, person)
    assert len(person.asked) == 2


def test_settings_win_over_the_repository_and_may_switch_one_of_its_servers_off(
    tmp_path: Path, trust: TrustStore
) -> None:
    write(tmp_path, {"a": ONE, "b": ONE})
    given = settings(tmp_path, mcp={"a": {"command": "mine"}, "b": {"enabled": False}})
    assert find(given, tmp_path, trust, Person(agrees=True)) == {"a": McpServer(command="mine")}


def test_nobody_is_asked_where_it_is_switched_off(tmp_path: Path, trust: TrustStore) -> None:
    write(tmp_path, {"own": ONE})
    person = Person(agrees=True)
    for off in ({"project_file": False}, {"enabled": False}):
        assert find(settings(tmp_path, client=off), tmp_path, trust, person) == {}
    assert person.asked == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "expected a JSON object"),
        ('{"mcpServers": []}', "expected a server for each name"),
        ('{"mcpServers": {"a b": {}}}', "is no server"),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "cannot be read"),
        ('{"mcpServers": {"a": {"command": 5}}}', "cannot be read"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "https://x"}}}', "given up"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_and_costs_nothing_else(
    tmp_path: Path, trust: TrustStore, content: str, reason: str
) -> None:
    (tmp_path / MCP_PROJECT_FILE).write_text(content, encoding="utf-8")
    told: list[Event] = []
    given = settings(tmp_path, mcp={"a": {"command": "mine"}})
    assert list(find(given, tmp_path, trust, Person(agrees=True), told)) == ["a"]
    assert reason in str(told[0])


def test_a_link_that_leads_out_of_the_repository_is_not_read(tmp_path: Path, trust: TrustStore) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    write(tmp_path, {"own": ONE})
    (root / MCP_PROJECT_FILE).symlink_to(tmp_path / MCP_PROJECT_FILE)
    told: list[Event] = []
    assert find(settings(tmp_path), root, trust, Person(agrees=True), told) == {}
    assert "leads out of" in str(told[0])


@pytest.mark.parametrize("server", [{"command": "x", "url": "https://x"}, {"env": {"A": "b"}}])
def test_a_server_has_a_command_or_an_address_and_not_both(
    tmp_path: Path, trust: TrustStore, server: Mapping[str, object]
) -> None:
    told: list[Event] = []
    given = settings(tmp_path, mcp={"own": server})
    assert find(given, tmp_path, trust, Person(agrees=True), told) == {}
    assert "exactly one" in str(told[0])


def test_a_committed_settings_file_names_no_server(tmp_path: Path) -> None:
    (tmp_path / ".sevenfold").mkdir()
    file = tmp_path / ".sevenfold" / "settings.toml"
    file.write_text('[mcp.own]\ncommand = "evil"\n', encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    given = read_settings(
        [McpSettings, McpServer],
        root=tmp_path,
        environ={"HOME": str(home)},
        managed_file=home / "none.toml",
    )
    assert given.each(McpServer) == {}
    assert given.refused[0].reason == "a committed file never adds or changes a MCP server"
