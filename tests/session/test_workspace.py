"""A workspace is opened once: whoever opens an agent, a client or a chat reads each settings file once."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from sevenfold import attach
from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.cli import main
from sevenfold.core.errors import SettingsError
from sevenfold.core.events import Event, SettingRefused
from sevenfold.core.prices import build_catalog
from sevenfold.core.requests import RequestParams
from sevenfold.core.settings.sections import AgentSettings
from sevenfold.session import Session
from sevenfold.session.opening import Workspace, WorkspaceOptions
from sevenfold.session.pipeline import SessionResources
from sevenfold.store.project.git import find_project_root
from sevenfold.store.project.project import Project
from sevenfold.store.project.settings_files import find_checkout
from sevenfold.store.transcript.transcript import read_events
from sevenfold.testing import Prompt, Reply, Simulator, call_tool
from tests.store.repos import git

ONCE = {
    "user settings.toml": 1,
    "project settings.toml": 1,
    "project settings.local.toml": 1,
    "find_checkout": 1,
    "find_project_root": 1,
    "open_root": 1,
    "build_catalog": 1,
}
MODEL = "claude-opus-5-5"


class Openings:
    """Counts what an opening does, wherever it is called from."""

    def __init__(self, home: Path, patch: pytest.MonkeyPatch) -> None:
        self.counts, self._home = Counter[str](), home
        patch.setattr(os, "open", self._counting_files(os.open))
        for function in (find_checkout, find_project_root, build_catalog):
            self._count(function, patch)
        patch.setattr(Project, "open_root", self._counted(Project.open_root))

    def take(self) -> dict[str, int]:
        taken = dict(self.counts)
        self.counts.clear()
        return taken

    def _count(self, function: Callable[..., Any], patch: pytest.MonkeyPatch) -> None:
        counted = self._counted(function)
        for module in [each for name, each in sys.modules.items() if name.startswith("sevenfold")]:
            for name, value in list(vars(module).items()):
                if value is function:
                    patch.setattr(module, name, counted)

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            # The trial of a sandbox asks about a temporary folder.
            if not isinstance(given[0], Path) or given[0].is_relative_to(self._home):
                self.counts[function.__name__] += 1
            return function(*given, **named)

        return counted

    def _counting_files(self, opening: Callable[..., int]) -> Callable[..., int]:
        def counted(path: Any, *given: Any, **named: Any) -> int:
            if str(path).endswith((".sevenfold/settings.toml", ".sevenfold/settings.local.toml")):
                whose = "user" if Path(path).is_relative_to(self._home / ".sevenfold") else "project"
                self.counts[f"{whose} {Path(path).name}"] += 1
            return opening(path, *given, **named)

        return counted


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with every settings file, in a home."""
    project = tmp_path / "project"
    for folder in (tmp_path, project):
        (folder / ".sevenfold").mkdir(parents=True)
        (folder / ".sevenfold/settings.toml").write_text("[agent]\nmax_rounds = 7\n")
    (project / ".sevenfold/settings.local.toml").write_text("[agent]\nthinking = false\n")
    git(project, "init", "--quiet")
    (project / "a").write_text("tracked")
    git(project, "add", "a")
    return project


@pytest.fixture
def sim() -> Generator[Simulator]:
    with Simulator() as running:
        yield running


@pytest.fixture
def environ(tmp_path: Path, sim: Simulator) -> dict[str, str]:
    return {
        "HOME": str(tmp_path),
        "PATH": os.environ.get("PATH", os.defpath),
        "ANTHROPIC_API_KEY": "simulated",
        "ANTHROPIC_BASE_URL": sim.url,
    }


@pytest.fixture
def openings(tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Openings:
    assert environ  # the simulator runs before anything is counted
    return Openings(tmp_path, monkeypatch)


def options(project: Path, environ: dict[str, str], **given: Any) -> AgentOptions:
    return AgentOptions(project=project, model=MODEL, environ=environ, **given)


async def agree(_question: str) -> bool:
    return True


@pytest.mark.parametrize("folder", [".", "src"])
def test_an_agent_opens_everything_once(
    folder: str, project: Path, environ: dict[str, str], openings: Openings
) -> None:
    (project / folder).mkdir(exist_ok=True)

    async def play() -> None:
        agent = await open_agent(options(project / folder, environ))
        assert openings.take() == ONCE
        session = agent.session.id
        await agent.run_turn("Hello.")
        await agent.close()
        openings.take()
        await (await open_agent(options(project / folder, environ, session=session))).close()
        assert openings.take() == ONCE

    asyncio.run(play())


def test_an_agent_that_asks_about_settings_files_opens_everything_once(
    project: Path, environ: dict[str, str], openings: Openings
) -> None:
    async def play() -> Agent:
        agent = await open_agent(options(project, environ, confirm=agree))
        await agent.close()
        return agent

    asyncio.run(play())
    assert openings.take() == ONCE


def test_an_agent_that_another_starts_opens_nothing_again(
    project: Path, environ: dict[str, str], openings: Openings, sim: Simulator
) -> None:
    def answer(prompt: Prompt) -> str | Reply:
        if "Delegate." not in prompt.last_text or prompt.results:
            return "Done."
        return Reply((call_tool("agent", {"description": "look", "prompt": "Look around."}),))

    async def play() -> None:
        agent = await open_agent(options(project, environ, mode="bypass"))
        openings.take()
        end = await agent.run_turn("Delegate.")
        assert end.reason == "answered"
        await agent.close()

    with Simulator(answer) as other:
        environ["ANTHROPIC_BASE_URL"] = other.url
        asyncio.run(play())
        assert len(other.ledger.entries) >= 3
    assert openings.take() == {}


def test_a_client_opens_everything_once_for_all_its_conversations(
    project: Path, environ: dict[str, str], openings: Openings, sim: Simulator
) -> None:
    with attach(sim.client(), project=project, environ=environ) as client:
        assert openings.take() == {}
        for said in ("One thing.", "Another thing."):
            client.messages.create(model=MODEL, max_tokens=100, messages=[{"role": "user", "content": said}])
    assert openings.take() == ONCE


@pytest.mark.parametrize("more", [[], ["--continue"]])
def test_a_chat_opens_everything_once(
    more: list[str],
    project: Path,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["chat", "-p", "--project", str(project), "Hello."]) == 0
    counted = Openings(tmp_path, monkeypatch)
    assert main(["chat", "-p", "--project", str(project), *more, "Hello again."]) == 0
    assert counted.take() == ONCE


def test_a_session_opens_everything_once(project: Path, environ: dict[str, str], openings: Openings) -> None:
    async def play() -> None:
        params = RequestParams(model=MODEL, max_tokens=100)
        async with await Session.open(params, project=project, environ=environ):
            pass

    asyncio.run(play())
    assert openings.take() == ONCE


def test_looking_at_settings_makes_no_folder(project: Path, tmp_path: Path) -> None:
    with Workspace.open(WorkspaceOptions(project=project, environ={"HOME": str(tmp_path)})) as workspace:
        assert workspace.settings.of(AgentSettings).max_rounds == 7
        assert not workspace.project_folder.exists()
        assert workspace.project.root == project
        assert workspace.project_folder.is_dir()
        assert workspace.project is workspace.project


def test_what_happened_before_anybody_listened_is_told_once_and_logged(project: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    workspace = Workspace.open(WorkspaceOptions(project=project, environ={"HOME": str(tmp_path)}))
    with workspace:
        workspace.listen(events.append)
        refused = [event for event in events if isinstance(event, SettingRefused)]
        assert {event.key for event in refused} == {"agent.max_rounds", "agent.thinking"}
        opened = SessionResources.open(workspace)
        assert events == refused
        assert opened.log is not None
        opened.log.flush()
        assert opened.folder is not None
        assert [event.name for event in read_events(opened.folder)] == ["SettingRefused"] * len(refused)
        opened.exits.close()


def test_a_session_that_cannot_be_opened_closes_its_workspace(project: Path, tmp_path: Path) -> None:
    async def play() -> None:
        await Session.open(
            RequestParams(model=MODEL, max_tokens=100),
            project=project,
            settings={"window": {"estimator": "exact"}},
            environ={"HOME": str(tmp_path)},
        )

    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SettingsError):
        asyncio.run(play())
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize(("trusts", "waiting"), [(True, 0), (False, 1)])
def test_an_agent_trusts_edits_past_the_engine_where_settings_say_so(
    trusts: bool, waiting: int, project: Path, tmp_path: Path
) -> None:
    given = {"memory": {"trust_outside": trusts}}
    options = WorkspaceOptions(project=project, settings=given, environ={"HOME": str(tmp_path)})
    with Workspace.open(options) as workspace:
        folder = Path(workspace.memory.path)
    (folder / "deploys.md").write_text("---\nname: deploys\ndescription: when\n---\nOn Tuesdays.\n")
    with Workspace.open(options) as workspace:
        assert len(workspace.memory.waiting()) == waiting
