"""The simulated network in front of what `sevenfold serve` runs in its transactions, on SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import cast

from sevenfold.team.client.ports import MissingBodies, RemoteListing
from sevenfold.team.protocol import (
    Checksum,
    Commit,
    CommitConflicts,
    CommitOutcome,
    RepoId,
    TeamEntry,
    TeamKey,
)
from sevenfold.team.server.commits import WriteContext
from sevenfold.team.server.database import Database
from sevenfold.team.server.memory import apply_writer_commit, read_contents, store_bodies
from sevenfold.team.server.messages import ApiError
from tests.team.sim_server import SimServer
from tests.team.team import Team

_NUMBERS = count()


class StoredServer(SimServer):
    """One repository of a team. `team` is set before it is made: a schedule makes its own server."""

    team: Team

    def __init__(self) -> None:
        SimServer.__init__(self)
        self.repo: RepoId = self.team.claim(f"acme/repo{next(_NUMBERS)}")

    @property
    def writer(self) -> WriteContext:
        return WriteContext(self.team.owner, self.repo, self.team.now_ms, self.team.limits)

    def list(self, etag: str) -> RemoteListing | None:
        found = self.team.read(lambda tx: read_contents(tx, self.team.owner, self.repo, bodies=True))
        self.seq = found.seq
        living = {key: TeamEntry(one.version, one.checksum) for key, one in found.entries.items()}
        self.bodies |= {one.checksum: one.content or "" for one in found.entries.values()}
        deleted = {key: TeamEntry(version, None) for key, version in found.deleted.items()}
        self.entries = {**living, **deleted}
        return None if etag == str(found.seq) else RemoteListing(str(found.seq), found.seq, self.entries)

    def store(self, texts: Sequence[str]) -> None:
        self.team.write(lambda tx: store_bodies(tx, self.writer, texts))

    def commit(self, commit: Commit) -> CommitOutcome | MissingBodies:
        try:
            return self.team.write(lambda tx: apply_writer_commit(tx, self.writer, commit))
        except ApiError as refusal:
            return _answer(refusal)

    def texts(self) -> dict[TeamKey, str]:
        self.list("")
        return SimServer.texts(self)


def _answer(refusal: ApiError) -> CommitConflicts | MissingBodies:
    if refusal.status == 409:
        told = cast("Mapping[str, Mapping[str, object]]", refusal.extras["conflicts"])
        return CommitConflicts(
            {
                TeamKey(key): TeamEntry(cast("int", one["version"]), cast("Checksum | None", one["checksum"]))
                for key, one in told.items()
            }
        )
    if refusal.kind == "missing":
        return MissingBodies(tuple(Checksum(one) for one in cast("list[str]", refusal.extras["missing"])))
    raise refusal


def stored_on(database: Database) -> type[StoredServer]:
    """Servers on this database, for schedules to make, as one organisation's."""

    class OnDatabase(StoredServer):
        team = Team(database)

    return OnDatabase
