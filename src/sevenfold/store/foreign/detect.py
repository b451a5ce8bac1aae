"""Whose transcript a file is, told by what it says; names and folders are only where one looks first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Protocol

from sevenfold.store.foreign.claude_code import SESSION_LINE_TYPES, ClaudeReader
from sevenfold.store.foreign.codex import CodexReader
from sevenfold.store.foreign.entries import ForeignAgent, ForeignEntry
from sevenfold.store.foreign.fields import JsonFields, get_name, get_object
from sevenfold.store.foreign.lines import scan_lines
from sevenfold.store.foreign.plain import PLAIN_ROLES, PlainReader

LOOK_LINES = 40
"""An agent's own lines come first and are many; forty foreign ones in a row are another kind of file."""

ROLLOUT_TYPES = frozenset({"compacted", "event_msg", "response_item", "session_meta", "turn_context"})
CLAUDE_TYPES = frozenset({"assistant", "attachment", "progress", "system", "user"})


class ForeignReader(Protocol):
    def read(self, line: JsonFields) -> Iterator[ForeignEntry]:
        """What one line says."""
        ...


FOREIGN_READERS: Mapping[ForeignAgent, Callable[[], ForeignReader]] = {
    "claude-code": ClaudeReader,
    "codex": CodexReader,
    "messages": PlainReader,
}


def detect_agent(path: Path) -> ForeignAgent | None:
    """The agent that wrote it; None where the beginning looks like no transcript that we know."""
    for line in islice(scan_lines(path), LOOK_LINES):
        agent = _told_by(line.fields)
        if agent:
            return agent
    return None


def _told_by(line: JsonFields) -> ForeignAgent | None:
    kind = get_name(line, "type")
    if kind in ROLLOUT_TYPES and "payload" in line:
        return "codex"
    if _is_claude(kind, line):
        return "claude-code"
    if get_name(line, "role") in PLAIN_ROLES or get_name(get_object(line, "message"), "role") in PLAIN_ROLES:
        return "messages"
    if not kind and "instructions" in line and "timestamp" in line:
        return "codex"
    return None


def _is_claude(kind: str, line: JsonFields) -> bool:
    if kind in CLAUDE_TYPES:
        return "sessionId" in line or "session_id" in line or "parentUuid" in line
    return kind in SESSION_LINE_TYPES and ("sessionId" in line or "leafUuid" in line or "messageId" in line)
