"""What happens to agents and to messages between them. Imported through `core.events`, as all events are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnded:
    """An agent is over: how, and what it used."""

    name: str
    kind: str
    """`fresh`, `fork` or `teammate`."""
    outcome: str
    """`answered`, `interrupted`, `refused`, `failed`, `cancelled` or `out of rounds`."""
    rounds: int
    read_tokens: int
    written_tokens: int
    fresh_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """An agent was started."""

    name: str
    kind: str
    is_background: bool
    """Nobody waits for it: its end is told as a message."""


@dataclass(frozen=True, slots=True)
class DefinitionSkipped:
    """A file that should define an agent cannot be used as it is."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class MailSkipped:
    """A mailbox could not be read or written for once; what waits there keeps waiting."""

    mailbox: str
    reason: str


@dataclass(frozen=True, slots=True)
class PeerDismissed:
    """Somebody at a session's socket was not listened to, or what they sent could not be taken."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProgressSkipped:
    """What an agent is doing could not be said in a line, for once."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class WorktreeKept:
    """An agent's worktree stays, because something was changed in it or git would not remove it."""

    path: str
    branch: str
    reason: str
