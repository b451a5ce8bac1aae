"""The sessions of a project: their names, and which there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NewType
from uuid import uuid4

from sevenfold.core.errors import FileMissing
from sevenfold.store.folder import Folder

SessionId = NewType("SessionId", str)

_SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True)
class SessionEntry:
    id: SessionId
    size_bytes: int
    modified: datetime
    """By the file system's clock: good for a list, not for a decision."""


def new_session_id() -> SessionId:
    """A name nobody else has."""
    return SessionId(uuid4().hex)


def list_sessions(sessions: Folder) -> list[SessionEntry]:
    """Every session with a transcript, the most recently written first."""
    found: list[SessionEntry] = []
    for name in sessions.names():
        entry = sessions.entry(name) if name.endswith(_SUFFIX) else None
        if entry:
            when = datetime.fromtimestamp(entry.modified_ns / 1e9, UTC)
            found.append(SessionEntry(SessionId(name.removesuffix(_SUFFIX)), entry.size_bytes, when))
    return sorted(found, key=lambda entry: (entry.modified, entry.id), reverse=True)


def latest_session(sessions: Folder) -> SessionId:
    """The one to continue; `FileMissing` when there is none yet."""
    found = list_sessions(sessions)
    if not found:
        raise FileMissing(f"no session in {sessions.path} to continue; start a new one")
    return found[0].id
