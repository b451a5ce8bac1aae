"""The simulated network in front of what `sevenfold serve` runs in its transactions, on SQLite."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import cast

import apsw

from sevenfold.cli.team.serve import open_database
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
from sevenfold.team.server.backup import restore_backup, write_backup
from sevenfold.team.server.commits import WriteContext
from sevenfold.team.server.database import Database
from sevenfold.team.server.memory import apply_writer_commit, find_unknown, read_contents, store_bodies
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
        now = f"{found.seq}.{found.tag}"
        listing = RemoteListing(etag=now, seq=found.seq, entries=self.entries, lost=found.lost)
        return None if etag == now else listing

    def find_unknown(self, entries: Mapping[TeamKey, TeamEntry]) -> Collection[TeamKey]:
        return self.team.read(lambda tx: find_unknown(tx, self.team.owner, self.repo, entries))

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


def copy_database(source: Path, target: Path) -> None:
    """With what is in the write-ahead log, while the database is in use.

    By the library that the server uses: another copy of SQLite in this process would drop the server's locks.
    """
    with (
        closing(apsw.Connection(str(source))) as one,
        closing(apsw.Connection(str(target))) as other,
        other.backup("main", one, "main") as copying,
    ):
        copying.step()


class FileServer(StoredServer):
    """One on a file of its own, that real backups are restored into and real copies are put in place of."""

    folder: Path
    opened: list[Database]

    def __init__(self) -> None:
        self.place = self.folder / f"{next(_NUMBERS)}.db"
        self.restored = 0
        self._open()
        self.team = Team(self.opened[-1])
        StoredServer.__init__(self)

    def back_up(self) -> None:
        write_backup(self.team.database, self._beside("backup"), self.team.now_ms)
        copy_database(self.place, self._beside("copy"))

    def restore(self) -> None:
        if self._beside("backup").exists():
            self._close()
            self._remove()
            self._open()
            self.restored += 1
            restore_backup(
                self.team.database, self._beside("backup"), self.team.now_ms + self.restored * 60_000
            )

    def roll_back(self) -> None:
        if self._beside("copy").exists():
            self._close()
            self._remove()
            shutil.copy(self._beside("copy"), self.place)
            self._open()

    def _beside(self, kind: str) -> Path:
        return self.place.with_suffix(f".{kind}")

    def _close(self) -> None:
        self.opened.pop().close()

    def _remove(self) -> None:
        for name in (self.place.name, f"{self.place.name}-wal", f"{self.place.name}-shm"):
            self.place.with_name(name).unlink(missing_ok=True)

    def _open(self) -> None:
        self.opened.append(open_database(f"sqlite:///{self.place}"))
        if hasattr(self, "team"):
            self.team.database = self.opened[-1]


@contextmanager
def set_back_in(folder: Path) -> Generator[type[FileServer]]:
    """Servers on files in this folder; one at a time."""

    class InFolder(FileServer):
        pass

    InFolder.folder, InFolder.opened = folder, []
    try:
        yield InFolder
    finally:
        for database in InFolder.opened:
            database.close()
