"""What an exchange uses (server, folder and ledger, real or simulated), and the report that it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from sevenfold.team.client.sync_policy import LocalText, SyncState
from sevenfold.team.protocol import Checksum, Commit, CommitOutcome, TeamEntry, TeamKey


@dataclass(frozen=True, slots=True)
class RemoteListing:
    """What a server says it has."""

    etag: str
    seq: int
    entries: Mapping[TeamKey, TeamEntry]
    """Tombstones too."""


@dataclass(frozen=True, slots=True)
class MissingBodies:
    """Bodies that a commit names and the server does not have; nothing was applied."""

    checksums: tuple[Checksum, ...]


class SyncRemote(Protocol):
    """The server. `TeamUnreached` when it is not there, `TeamRefused` when it does not want to."""

    async def pull_entries(self, etag: str) -> RemoteListing | None:
        """None: as it was at `etag`."""
        ...

    async def pull_bodies(self, checksums: Sequence[Checksum]) -> Mapping[Checksum, str]:
        """Those that came whole; what does not match its checksum is left out."""
        ...

    async def push_bodies(self, texts: Sequence[str]) -> None: ...

    async def push_commit(self, commit: Commit) -> CommitOutcome | MissingBodies: ...


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file to write or, without a text, to remove; unless it is not as it was compared."""

    key: TeamKey
    before: Checksum | None
    text: str | None = field(repr=False)


class LocalFiles(Protocol):
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


class SyncLedger(Protocol):
    """Where a device keeps what it knows, whole or not at all."""

    async def read(self) -> SyncState: ...

    async def write(self, state: SyncState) -> None: ...


ScreenTexts: TypeAlias = Callable[[Mapping[TeamKey, str]], Awaitable[Mapping[TeamKey, str]]]
"""What may not leave among the texts, and why."""


async def allow_all_texts(_: Mapping[TeamKey, str]) -> Mapping[TeamKey, str]:
    """A screen that finds nothing."""
    return {}


@dataclass(frozen=True, slots=True)
class SyncConflict:
    key: TeamKey
    copy: TeamKey


@dataclass(slots=True, kw_only=True)
class SyncReport:
    """What an exchange did."""

    taken: list[TeamKey] = field(default_factory=list[TeamKey])
    dropped: list[TeamKey] = field(default_factory=list[TeamKey])
    merged: list[TeamKey] = field(default_factory=list[TeamKey])
    sent: list[TeamKey] = field(default_factory=list[TeamKey])
    deleted: list[TeamKey] = field(default_factory=list[TeamKey])
    conflicts: list[SyncConflict] = field(default_factory=list[SyncConflict])
    kept: dict[TeamKey, str] = field(default_factory=dict[TeamKey, str])
    held: dict[TeamKey, str] = field(default_factory=dict[TeamKey, str])
    """What is not exchanged for now, and why."""
    is_settled: bool = False
    """Whether it came to its end: nothing is left that it could have done."""

    @property
    def has_news(self) -> bool:
        return bool(self.taken or self.dropped or self.merged or self.sent or self.deleted)
