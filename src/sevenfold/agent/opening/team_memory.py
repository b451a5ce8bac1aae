"""The memories that a team shares, in an agent: news before its first prompt, and what is new sent while it
works."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from sevenfold.agent.loop.project_context import ProjectContext
from sevenfold.core.clock import Clock
from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.events import Emit, TeamStopped
from sevenfold.core.memories import TEAM_PREFIX
from sevenfold.core.settings.sync import SyncSettings
from sevenfold.layers.templates import read_template
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.memory.settings import MemorySettings
from sevenfold.team.client.membership import TEAM_FOLDER, TeamAccess, find_team_access
from sevenfold.team.client.memory import TeamMemory
from sevenfold.team.client.watcher import TeamWatcher

TEAM_GUIDANCE_FILE = "team_memory.md"


async def start_team_sync(ground: ProjectContext, clock: Clock, emit: Emit, exits: AsyncExitStack) -> str:
    """Pull the team's news and watch for ours from now on; what the agent is told about it.

    Empty where the project has joined no server. Nothing that goes wrong with a server keeps an agent from
    opening.
    """
    settings = ground.settings.of(SyncSettings)
    if not (settings.enabled and ground.settings.of(MemorySettings).enabled):
        return ""
    try:
        folder = await run_blocking(lambda: ground.project.control.subfolder(TEAM_FOLDER, create=False))
        exits.callback(folder.close)
        joined = await run_blocking(lambda: _joined(folder, ground.folders.home))
    except FileMissing:
        return ""
    except SevenfoldError as error:
        emit(TeamStopped(str(error)))
        return ""
    if joined is None:
        return ""
    team = TeamMemory(joined, ground.memory, folder, settings, clock=clock, emit=emit)
    news = await team.pull_news()
    watcher = TeamWatcher(team, ground.memory, is_behind=news is None, clock=clock, emit=emit)
    watching = asyncio.create_task(watcher.run(), name="team memory")
    exits.push_async_callback(_stop, watcher, watching)
    return _guidance(ground, joined)


def _joined(folder: Folder, home: Path) -> TeamAccess | None:
    with Folder.open(home) as ours:
        return find_team_access(folder, ours)


def _guidance(ground: ProjectContext, joined: TeamAccess) -> str:
    private = Path(ground.project.memory.path)
    text = read_template(ground.templates, TEAM_GUIDANCE_FILE)
    said = {"{private}": private, "{team}": private / TEAM_PREFIX, "{repo}": joined.membership.repo_name}
    for mark, value in said.items():
        text = text.replace(mark, str(value))
    return text.strip()


async def _stop(watcher: TeamWatcher, watching: asyncio.Task[None]) -> None:
    if watching.done():
        return  # it has told why
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    await watcher.finish()
