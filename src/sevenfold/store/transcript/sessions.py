"""The sessions of a project: their names, and which there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NewType
from uuid import uuid4

from sevenfold.core.errors import FileMissing, NotRegular
from sevenfold.store.files.folder import FileStat, Folder

SessionId = NewType("SessionId", str)

_AGENT = "agent-"

_SUFFIX = ".jsonl"
_LATEST_NS = 253_402_300_799 * 10**9
"""The end of the year 9999: some file systems keep times that Python cannot say."""


@dataclass(frozen=True, slots=True)
class SessionEntry:
    id: SessionId
    size_bytes: int
    modified: datetime
    """By the file system's clock: good for a list, not for a decision."""


def new_session_id() -> SessionId:
    """A name nobody else has."""
    return SessionId(uuid4().hex)


def new_agent_session() -> SessionId:
    """The same for a session that an agent started, and no person."""
    return SessionId(f"{_AGENT}{uuid4().hex}")


def is_agent_session(session: str) -> bool:
    """Whether an agent started it: a person who goes on with their last session does not mean this one."""
    return session.startswith(_AGENT)


def list_sessions(sessions: Folder) -> list[SessionEntry]:
    """Every session with a transcript, the most recently written first."""
    found: list[SessionEntry] = []
    for name in sessions.names():
        entry = _entry(sessions, name) if name.endswith(_SUFFIX) else None
        if entry:
            when = datetime.fromtimestamp(min(max(0, entry.modified_ns), _LATEST_NS) / 1e9, UTC)
            found.append(SessionEntry(SessionId(name.removesuffix(_SUFFIX)), entry.size_bytes, when))
    return sorted(found, key=lambda entry: (entry.modified, entry.id), reverse=True)


def _entry(sessions: Folder, name: str) -> FileStat | None:
    try:
        return sessions.entry(name)
    except NotRegular:
        return None  # a folder or a link of that name is no transcript


def latest_session(sessions: Folder) -> SessionId:
    """The one to continue; `FileMissing` when there is none yet."""
    found = [entry for entry in list_sessions(sessions) if not is_agent_session(entry.id)]
    if not found:
        raise FileMissing(f"no session in {sessions.path} to continue; start a new one")
    return found[0].id
