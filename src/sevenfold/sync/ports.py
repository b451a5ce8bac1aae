"""What an exchange talks to: a server, a folder and a ledger, real or simulated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from sevenfold.sync.protocol import Checksum, Commit, Entry, Outcome, TeamKey
from sevenfold.sync.state import LocalText, SyncState


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server says it has."""

    etag: str
    seq: int
    entries: Mapping[TeamKey, Entry]
    """Tombstones too."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Bodies that a commit names and the server does not have; nothing was applied."""

    checksums: tuple[Checksum, ...]


class Remote(Protocol):
    """The server. `TeamUnreached` when it is not there, `TeamRefused` when it does not want to."""

    async def pull_entries(self, etag: str) -> Listing | None:
        """None: as it was at `etag`."""
        ...

    async def pull_bodies(self, checksums: Sequence[Checksum]) -> Mapping[Checksum, str]:
        """Those that came whole; what does not match its checksum is left out."""
        ...

    async def push_bodies(self, texts: Sequence[str]) -> None: ...

    async def push_commit(self, commit: Commit) -> Outcome | Missing: ...


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file to write or, without a text, to remove; unless it is not as it was compared."""

    key: TeamKey
    before: Checksum | None
    text: str | None = field(repr=False)


class Files(Protocol):
    """The team's folder on this device."""

    async def scan(self) -> Mapping[TeamKey, LocalText]: ...

    async def body(self, checksum: Checksum) -> str | None:
        """A text that was in the folder once, for merging; None: it is not kept any more."""
        ...

    async def write(self, changes: Sequence[FileChange], mark: str) -> bool:
        """All of them and the mark, durable on return; or none, and False: a file was not as compared."""
        ...

    async def was_written(self, mark: str) -> bool:
        """Whether that came to pass, whatever became of the files since."""
        ...


class Ledger(Protocol):
    """Where a device keeps what it knows, whole or not at all."""

    async def read(self) -> SyncState: ...

    async def write(self, state: SyncState) -> None: ...


Screen: TypeAlias = Callable[[Mapping[TeamKey, str]], Awaitable[Mapping[TeamKey, str]]]
"""What may not leave among the texts, and why."""


async def let_all_pass(_: Mapping[TeamKey, str]) -> Mapping[TeamKey, str]:
    """A screen that finds nothing."""
    return {}
