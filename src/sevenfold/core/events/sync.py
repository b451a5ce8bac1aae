"""What happened between this device and the team's server, as events; `core/events.py` has them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TeamConflicted:
    """Two people changed one memory in a way that does not merge: the other text has the key, this one the
    copy, and both are shared."""

    key: str
    copy: str


@dataclass(frozen=True, slots=True)
class TeamEntryRefused:
    """Something that the server sent was not taken: its name, its size or its checksum is wrong."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class TeamFileHeld:
    """A file of the team's folder is not shared for now."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class TeamSecretBlocked:
    """A text with something like a secret in it was not sent."""

    key: str
    reason: str
    """Rule and line; never the value."""


@dataclass(frozen=True, slots=True)
class TeamStopped:
    """The server refuses for good: nothing is sent again until a file or the token changes."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamSynced:
    """What an exchange with the server did."""

    taken: int
    dropped: int
    merged: int
    sent: int
    deleted: int


@dataclass(frozen=True, slots=True)
class TeamTextKept:
    """One deleted a memory and another changed or wrote it, or the server had lost it: the text was kept."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class TeamUnreached:
    """The server did not answer in time: the memories that are here are used, and what is new waits."""

    reason: str
