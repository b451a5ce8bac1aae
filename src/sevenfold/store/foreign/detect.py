"""Whose transcript a file is, told by what it says; names and folders are only where one looks first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Protocol

from sevenfold.store.foreign.claude_code import CHATTER, ClaudeReader
from sevenfold.store.foreign.codex import CodexReader
from sevenfold.store.foreign.entries import Agent, Entry
from sevenfold.store.foreign.fields import Fields, inner, name
from sevenfold.store.foreign.lines import scan
from sevenfold.store.foreign.plain import ROLES, PlainReader

LOOK_LINES = 40
"""An agent's own lines come first and are many; forty foreign ones in a row are another kind of file."""

ROLLOUT = frozenset({"compacted", "event_msg", "response_item", "session_meta", "turn_context"})
SPOKEN = frozenset({"assistant", "attachment", "progress", "system", "user"})


class Reader(Protocol):
    def read(self, line: Fields) -> Iterator[Entry]:
        """What one line says."""
        ...


READERS: Mapping[Agent, Callable[[], Reader]] = {
    "claude-code": ClaudeReader,
    "codex": CodexReader,
    "messages": PlainReader,
}


def detect(path: Path) -> Agent | None:
    """The agent that wrote it; None where the beginning looks like no transcript that we know."""
    for line in islice(scan(path), LOOK_LINES):
        agent = _told_by(line.fields)
        if agent:
            return agent
    return None


def _told_by(line: Fields) -> Agent | None:
    kind = name(line, "type")
    if kind in ROLLOUT and "payload" in line:
        return "codex"
    if _is_claude(kind, line):
        return "claude-code"
    if name(line, "role") in ROLES or name(inner(line, "message"), "role") in ROLES:
        return "messages"
    if not kind and "instructions" in line and "timestamp" in line:
        return "codex"
    return None


def _is_claude(kind: str, line: Fields) -> bool:
    if kind in SPOKEN:
        return "sessionId" in line or "session_id" in line or "parentUuid" in line
    return kind in CHATTER and ("sessionId" in line or "leafUuid" in line or "messageId" in line)
