"""An agent in a project that has joined a team."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.core.events import Event, TeamStopped, TeamSynced, TeamUnreached
from sevenfold.core.memories import TEAM_FOLDER, TEAM_PREFIX
from sevenfold.layers.memory.recall.finder import recall
from sevenfold.layers.memory.recall.policy import render_recalled_memories
from sevenfold.providers.scripted import ScriptedProvider
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project
from sevenfold.team.client.local_state import Membership, TokenStore, write_membership
from tests.team.laptops import Laptop, Office

HOME = ".sevenfold"


class AgentSetup:
    """A person's project, and an agent in it."""

    def __init__(self, place: Path) -> None:
        self.home, self.root = place / "setup", place / "setup" / "app"
        self.root.mkdir(parents=True)
        self.heard: list[Event] = []

    def join(self, office: Office, *, url: str = "", token: str | None = None) -> None:
        place = Membership(
            url=url or office.live.url,
            repo=office.people.repo,
            repo_name="acme/app",
            org="acme",
            member="ada",
        )
        with (
            Project.open(self.root, home=self.home / HOME) as project,
            project.control.subfolder(TEAM_FOLDER) as folder,
            Folder.open(self.home / HOME) as home,
        ):
            write_membership(folder, place)
            if token != "":
                TokenStore(home).write(place.url, place.org, token or office.people.token)

    def talk(self, said: str = "hello", **settings: object) -> ScriptedProvider:
        models = ScriptedProvider(lambda _request: "Yes.")

        async def run() -> None:
            environ = {"HOME": str(self.home), "PATH": "/usr/bin:/bin"}
            setup = AgentOptions(
                project=self.root,
                provider=models,
                settings={
                    "extraction": {"enabled": False},
                    "recall": {"side_query": "off"},
                    "sync": settings,
                },
                emit=self.heard.append,
                environ=environ,
            )
            agent = await open_agent(setup)
            await agent.run_turn(said)
            await agent.close()

        asyncio.run(run())
        return models

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.heard if isinstance(event, kind)]


def test_the_teams_news_is_there_before_the_first_prompt_and_scopes_are_said(
    office: Office, ada: Laptop, tmp_path: Path
) -> None:
    ada.write("deploy.md", "We deploy on Tuesdays.\n")
    asyncio.run(ada.team.exchange())
    setup = AgentSetup(tmp_path)
    setup.join(office)
    models = setup.talk()
    assert setup.told(TeamSynced) == [TeamSynced(taken=1, dropped=0, merged=0, sent=0, deleted=0)]
    sent = str(models.requests[0].messages)
    assert "deploy.md" in sent
    assert "user: always private" in sent
    assert "acme/app" in sent
    with MemoryDir.for_project(setup.root, environ={"HOME": str(setup.home)}) as memory:
        origin = memory.read(f"{TEAM_PREFIX}deploy.md").origin
        assert (origin.taint, origin.author, origin.is_trusted) == ({"team"}, "ada", False)
        [recalled] = recall(memory, "When do we deploy, on Tuesdays?", environ={"HOME": str(setup.home)})
    shown = render_recalled_memories([recalled], datetime.now(UTC), 8_000)
    assert 'written by the teammate "ada", through team, and confirmed by nobody' in shown
    assert "sevenfold memory review --trust team/deploy" in shown


def test_a_server_that_is_away_or_a_token_that_is_gone_keeps_no_agent_from_its_work(
    office: Office, tmp_path: Path
) -> None:
    setup = AgentSetup(tmp_path)
    setup.join(office, url="http://127.0.0.1:9")
    assert len(setup.talk().requests) == 1
    assert len(setup.told(TeamUnreached)) == 1
    setup.join(office, token="")
    assert len(setup.talk().requests) == 1
    assert len(setup.told(TeamStopped)) == 1


def test_without_a_server_or_with_sync_off_nothing_is_said_or_asked(office: Office, tmp_path: Path) -> None:
    setup = AgentSetup(tmp_path)
    assert "always private" not in str(setup.talk().requests[0].messages)
    setup.join(office, url="http://127.0.0.1:9")
    assert "always private" not in str(setup.talk(enabled=False).requests[0].messages)
    assert setup.told(TeamUnreached) == []
