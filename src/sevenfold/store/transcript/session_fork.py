"""A session that branches off another: all that happened until then, under a name of its own."""

from __future__ import annotations

from datetime import datetime

from sevenfold.core.errors import FileMissing
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.record_lines import write_line
from sevenfold.store.transcript.records import ParentRecord, Record
from sevenfold.store.transcript.sessions import SessionId, new_session_id

MAX_COPIED_BYTES = 1024 * 1024 * 1024
"""Held in memory while it is copied; no transcript that was ever seen comes near."""


def fork_transcript(sessions: Folder, parent: SessionId, at: datetime) -> SessionId:
    """The new session, whole or not at all. The old one is not touched, and may be in use."""
    key = f"{parent}.jsonl"
    if sessions.entry(key) is None:
        raise FileMissing(f"no session {parent!r} in {sessions.path} to branch off; name one that is there")
    lines = sessions.read(key, max_bytes=MAX_COPIED_BYTES)
    child = new_session_id()
    # Somebody may be writing the last line just now; it belongs to what happens afterwards.
    whole = lines[: lines.rfind(b"\n") + 1]
    sessions.create(f"{child}.jsonl", whole + write_line(Record(ParentRecord(parent), at)))
    return child
