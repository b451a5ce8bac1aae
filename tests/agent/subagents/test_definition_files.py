"""Whose definition of an agent counts: the user's, then the built-in one, then the project's."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sevenfold.agent.subagents.definition_files import (
    ask_definitions,
    list_definition_folders,
    list_definition_requests,
    read_definitions,
)
from sevenfold.agent.subagents.definitions import BUILT_IN_AGENTS, AgentDefinition
from sevenfold.core.events import DefinitionLimited, DefinitionSkipped, Event
from sevenfold.core.tool_kinds import EXPLORERS
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.trust import TrustStore, decline_confirmation

PROJECT_FOLDERS = (".claude/agents", ".sevenfold/agents")


@dataclass
class Machine:
    """A user's home and a stranger's repository."""

    top: Path
    events: list[Event] = field(default_factory=list[Event])
    questions: list[str] = field(default_factory=list[str])

    @property
    def trust(self) -> TrustStore:
        return TrustStore(Folder.open(self.top / "control", create=True))

    def user(self, name: str, more: str = "") -> Path:
        return self._write(self.top / "home" / "agents" / f"{name}.md", name, "The user's.", more)

    def project(self, name: str, more: str = "", folder: str = ".sevenfold/agents") -> Path:
        return self._write(self.top / "repo" / folder / f"{name}.md", name, "Obey the repository.", more)

    def _write(self, path: Path, name: str, prompt: str, more: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {name}\ndescription: Works.\n{more}---\n{prompt}")
        return path

    def ask(self, *, answer: bool | None) -> None:
        async def confirm(question: str) -> bool | None:
            self.questions.append(question)
            return answer

        folders = list_definition_folders(self.top / "home", self.top / "repo")
        asyncio.run(ask_definitions(folders, self.trust, confirm))

    def read(self) -> dict[str, AgentDefinition]:
        self.events.clear()
        folders = list_definition_folders(self.top / "home", self.top / "repo")
        found = read_definitions(folders, self.events.append, self.trust)
        return {definition.name: definition for definition in found}

    @property
    def skipped(self) -> list[DefinitionSkipped]:
        return [event for event in self.events if isinstance(event, DefinitionSkipped)]

    @property
    def limited(self) -> list[str]:
        return [event.part for event in self.events if isinstance(event, DefinitionLimited)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("folder", PROJECT_FOLDERS)
@pytest.mark.parametrize("built_in", BUILT_IN_AGENTS, ids=lambda item: item.name)
def test_a_repository_takes_no_built_in_name_unasked(
    machine: Machine, built_in: AgentDefinition, folder: str
) -> None:
    path = machine.project(built_in.name, "model: expensive\n", folder)
    assert machine.read()[built_in.name] == built_in
    (told,) = machine.skipped
    assert told.path == str(path)
    assert f"sevenfold settings --trust {folder}/{built_in.name}.md" in told.reason


@pytest.mark.parametrize("name", ["reviewer", "explore", "general"])
def test_a_repository_never_takes_a_name_of_the_users(machine: Machine, name: str) -> None:
    machine.user(name)
    path = machine.project(name)
    machine.ask(answer=True)
    assert machine.questions == [], "there is nothing to agree to"
    machine.trust.trust(f".sevenfold/agents/{name}.md", path.read_bytes())
    assert machine.read()[name].prompt == "The user's."
    assert "of your own" in machine.skipped[0].reason


def test_the_users_definition_takes_a_built_in_name_with_its_model_tools_and_mode(machine: Machine) -> None:
    machine.user("explore", "model: haiku\ntools: shell\nmode: bypass\nmemory: user\n")
    found = machine.read()["explore"]
    assert (found.origin, found.model, found.tools, found.mode, found.memory) == (
        "user", "haiku", ("shell",), "bypass", "user",
    )  # fmt: skip
    assert machine.events == []


@pytest.mark.parametrize("name", ["Explore", "EXPLORE", "General"])
def test_a_name_that_differs_in_case_alone_is_the_same_name(machine: Machine, name: str) -> None:
    machine.project(name)
    assert name not in machine.read()
    machine.user("Reviewer")
    machine.project("reviewer")
    assert "reviewer" not in machine.read()


@pytest.mark.parametrize("answer", [True, False])
def test_an_answer_is_kept_until_the_file_changes(machine: Machine, answer: bool) -> None:
    path = machine.project("explore")
    for _ in range(3):
        machine.ask(answer=answer)
    assert len(machine.questions) == 1
    assert "Obey the repository." in machine.questions[0]
    assert (machine.read()["explore"].origin == "project") is answer
    if not answer:
        assert "you have refused it" in machine.skipped[0].reason
    path.write_text(path.read_text() + " And more.")
    assert machine.read()["explore"].origin == "built-in"
    machine.ask(answer=answer)
    assert len(machine.questions) == 2


def test_where_nobody_can_be_asked_nothing_is_kept(machine: Machine) -> None:
    machine.project("explore")
    folders = list_definition_folders(machine.top / "home", machine.top / "repo")
    asyncio.run(ask_definitions(folders, machine.trust, decline_confirmation))
    assert machine.read()["explore"].origin == "built-in"
    machine.ask(answer=True)
    assert len(machine.questions) == 1


def test_a_file_agreed_to_under_one_name_does_not_count_under_another(machine: Machine) -> None:
    machine.project("explore")
    machine.ask(answer=True)
    (machine.top / "repo/.sevenfold/agents/explore.md").rename(
        machine.top / "repo/.sevenfold/agents/other.md"
    )
    assert machine.read()["explore"].origin == "built-in"


def test_what_replaces_a_built_in_agent_has_no_more_tools_and_no_freer_mode(machine: Machine) -> None:
    machine.project("explore", "tools: read, shell, edit\nmode: bypass\nmodel: expensive\nmemory: user\n")
    machine.ask(answer=True)
    found = machine.read()["explore"]
    assert (found.tools, found.mode, found.model, found.memory) == (("read", "shell"), "read-only", "", None)
    assert sorted(machine.limited) == ["memory", "mode", "model", "tools"]


def test_one_that_leaves_tools_and_mode_out_has_those_of_the_built_in_agent(machine: Machine) -> None:
    machine.project("explore")
    machine.ask(answer=True)
    found = machine.read()["explore"]
    assert (found.tools, found.mode) == (EXPLORERS, "read-only")
    assert sorted(machine.limited) == ["mode", "tools"]


def test_a_repositorys_own_agent_keeps_its_tools_and_loses_its_model(machine: Machine) -> None:
    machine.project("linter", "model: expensive\ntools: read, shell\nmode: plan\nmemory: project\n")
    found = machine.read()["linter"]
    assert (found.model, found.tools, found.mode, found.memory) == (
        "", ("read", "shell"), "plan", "project",
    )  # fmt: skip
    assert machine.limited == ["model"]


def test_in_the_users_home_folder_the_agents_are_the_users(tmp_path: Path) -> None:
    folder = tmp_path / ".sevenfold" / "agents"
    folder.mkdir(parents=True)
    (folder / "explore.md").write_text("---\ndescription: Mine.\n---\nMine.")
    folders = list_definition_folders(tmp_path / ".sevenfold", tmp_path)
    assert list_definition_requests(folders) == ()
    assert {item.name: item.origin for item in read_definitions(folders)}["explore"] == "user"


def test_a_folder_of_agents_that_leads_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "repo"
    elsewhere.mkdir()
    (root / ".sevenfold").mkdir(parents=True)
    (elsewhere / "private.md").write_text("---\ndescription: words of another project\n---\nText.")
    (root / ".sevenfold" / "agents").symlink_to(elsewhere)
    events: list[Event] = []
    found = read_definitions(list_definition_folders(tmp_path / "home", root), events.append)
    assert [one for one in found if one.origin == "project"] == []
    (skipped,) = events
    assert isinstance(skipped, DefinitionSkipped)
    assert skipped.path == str(root / ".sevenfold" / "agents")
    assert "leads out of" in skipped.reason
