"""Work that hooks leave for later: what a session taught becomes memories, and the team's news are pulled.

Extraction reads the agent's transcript. It works by rules, or asks the model that the user has named for it,
and never with the agent's key. The user's own sentences become memories; everything else waits for review or
is left out, as in a chat of ours.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from sevenfold.core.clock import Clock
from sevenfold.core.errors import FileMissing
from sevenfold.core.events import Emit
from sevenfold.core.memories import TEAM_FOLDER
from sevenfold.core.settings.sections import OtherAgentsSettings, SyncSettings
from sevenfold.layers.memory.extraction.drafts import ConversationSnapshot
from sevenfold.layers.memory.extraction.settings import ExtractionSettings
from sevenfold.layers.memory.extraction.writer import ExtractionPlaces, ExtractionWriter
from sevenfold.resident.agent_sessions import (
    SESSIONS_FOLDER,
    AgentSession,
    SessionWriter,
    name_session_folder,
    read_agent_session,
    write_agent_session,
)
from sevenfold.resident.learning_model import LearningModel, is_learning_paid
from sevenfold.resident.projects import OpenProject
from sevenfold.store.files.folder import Folder
from sevenfold.team.client.local_state import find_team_access
from sevenfold.team.client.memory import TeamMemory

SESSION_LIFE = timedelta(days=30)
"""Since the last hook that changed something: so long a session that is resumed is shown nothing twice."""

PRUNE_PAUSE = timedelta(days=1)

PULL_PAUSE = timedelta(minutes=5)
"""Between two pulls of one project: sessions are often started in a row."""


def open_session_folder(project: OpenProject, session: str, *, create: bool = True) -> Folder:
    """Where the state of another agent's session is kept."""
    control = project.workspace.project.control
    return control.subfolder(f"{SESSIONS_FOLDER}/{name_session_folder(session)}", create=create)


def load_agent_session(project: OpenProject, name: str) -> AgentSession:
    """What a session of another agent was shown, from before this process began."""
    try:
        # Not made yet: that takes an fsync, and somebody waits for an answer.
        with open_session_folder(project, name, create=False) as folder:
            return read_agent_session(folder, name)
    except FileMissing:
        return AgentSession(session=name)


def keep_agent_session(project: OpenProject, session: AgentSession) -> None:
    with project.lock:
        if not project.is_closed:
            with open_session_folder(project, session.session) as folder:
                write_agent_session(folder, session)


def prune_agent_sessions(project: OpenProject, now: datetime) -> None:
    """Remove what is kept of sessions that ended long ago, or that never said that they ended."""
    oldest = (now - SESSION_LIFE).timestamp()
    with project.lock:
        if project.is_closed or (project.pruned_at and now - project.pruned_at < PRUNE_PAUSE):
            return
        project.pruned_at = now
        live = {name_session_folder(one.session) for one in project.sessions.values()}
        with (
            suppress(FileNotFoundError),
            os.scandir(project.workspace.project.control.path / SESSIONS_FOLDER) as found,
        ):
            for entry in found:
                # Each write puts a file in place, which the time of its folder tells.
                if entry.name not in live and entry.stat(follow_symlinks=False).st_mtime < oldest:
                    shutil.rmtree(entry.path, ignore_errors=True)


def make_session_writer(
    project: OpenProject, session: str, clock: Clock, emit: Emit, *, asks_model: bool
) -> SessionWriter:
    """`asks_model`: whether a model may be asked, if the user has named one."""
    workspace = project.workspace
    # Each turn is looked at: other agents call a hook when a turn ends, and nothing says that more will come.
    settings = replace(workspace.settings.of(ExtractionSettings), every_turns=1)
    folder = open_session_folder(project, session)
    places = ExtractionPlaces(
        session=session[:100],
        memory=project.memory,
        folder=str(project.memory.path),
        kept=folder,
        templates=workspace.templates,
    )
    model: LearningModel | None = None
    if asks_model and is_learning_paid(workspace.settings.of(OtherAgentsSettings)):
        model = LearningModel(workspace=workspace, session=session[:100], clock=clock, emit=emit)
    tools = model.tools if model else None
    return SessionWriter(ExtractionWriter(places, settings, tools, clock=clock, emit=emit), folder, model)


def extract_memories(writer: SessionWriter, snapshot: ConversationSnapshot, *, is_end: bool) -> None:
    """Look through what was said since the last time, at the end of a session also what is very short.

    Blocks, on a long conversation for seconds, and on a model for minutes."""
    if writer.model is not None:
        writer.model.shown = snapshot
    work = writer.writer.session_ended if is_end else writer.writer.turn_ended
    asyncio.run(work(snapshot))


def pull_team_memory(project: OpenProject, clock: Clock, emit: Emit) -> None:
    """Take in the team's news, if the project has joined a team. Blocks on the network."""
    workspace = project.workspace
    settings = workspace.settings.of(SyncSettings)
    if not settings.enabled or not project.has_memory:
        return
    try:
        with workspace.project.memory_state.subfolder(TEAM_FOLDER, create=False) as folder:
            with Folder.open(Path(workspace.home)) as home:
                joined = find_team_access(folder, home)
            if joined is not None:
                team = TeamMemory(joined, workspace.memory, folder, settings, clock=clock, emit=emit)
                asyncio.run(_pull(team))
    except FileMissing:
        return  # it has joined none


async def _pull(team: TeamMemory) -> None:
    await team.pull_news()
