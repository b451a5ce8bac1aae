"""Servers and devices with one rule of the protocol left out each: the judge has to find every one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sevenfold.team.client.ports import FileChange, MissingBodies
from sevenfold.team.client.sync_policy import SyncPolicy, SyncState, after_pending_write
from sevenfold.team.protocol import NO_ENTRY, Commit, CommitApplied, CommitOutcome, TeamChange
from tests.team.sim_device import Device, SimFiles, SimLedger
from tests.team.sim_server import SimServer
from tests.team.sim_world import play


class Overwriting(SimServer):
    """Does not ask what the writer had seen."""

    def commit(self, commit: Commit) -> CommitOutcome | MissingBodies:
        now = [
            TeamChange(one.key, self.entries.get(one.key, NO_ENTRY).version, one.checksum)
            for one in commit.changes
        ]
        sane = [one for one in now if one.expected or one.checksum]
        return (
            SimServer.commit(self, replace(commit, changes=tuple(sane), seen={}))
            if sane
            else CommitApplied(self.seq, {})
        )


class Forgetful(SimServer):
    """Does not know a commit that it has applied."""

    def commit(self, commit: Commit) -> CommitOutcome | MissingBodies:
        self.answers.clear()
        return SimServer.commit(self, commit)


class Graveless(SimServer):
    """Keeps no tombstones."""

    def commit(self, commit: Commit) -> CommitOutcome | MissingBodies:
        outcome = SimServer.commit(self, commit)
        for key in [key for key, entry in self.entries.items() if entry.checksum is None]:
            del self.entries[key]
        return outcome


class ServerWins(Device):
    policy: SyncPolicy = "server wins"


class LocalWins(Device):
    policy: SyncPolicy = "local wins"


class Unlocked(Device):
    """Two processes of one person exchange at once."""

    is_locked = False


class _NoPending(SimLedger):
    async def write(self, state: SyncState) -> None:
        await SimLedger.write(self, replace(state, pending=None))


class Unpledged(Device):
    """Does not write down a commit before it is sent."""

    def make_ledger(self) -> SimLedger:
        return _NoPending(SyncState(device=self.name))


class _NoIncoming(SimLedger):
    async def write(self, state: SyncState) -> None:
        await SimLedger.write(self, replace(state, incoming=None))


class Unannounced(Device):
    """Does not write down what a pull is about to write."""

    def make_ledger(self) -> SimLedger:
        return _NoIncoming(SyncState(device=self.name))


class _Blind(SimFiles):
    def is_as_compared(self, changes: Sequence[FileChange]) -> bool:
        return True


class Trampling(Device):
    """Does not look whether a file has changed since it was compared."""

    def make_files(self) -> SimFiles:
        return _Blind(chronicle=self.chronicle)


class _Hasty(SimLedger):
    """Believes in a write before it has happened: bases are kept when the intent is."""

    async def write(self, state: SyncState) -> None:
        await SimLedger.write(self, after_pending_write(state, came=True))


class Hasty(Device):
    """Writes bases before files."""

    def make_ledger(self) -> SimLedger:
        return _Hasty(SyncState(device=self.name))


class _Wordless(SimLedger):
    async def write(self, state: SyncState) -> None:
        await SimLedger.write(self, replace(state, deleting={}))


class Wordless(Device):
    """Forgets that something was to be deleted for all."""

    def make_ledger(self) -> SimLedger:
        return _Wordless(SyncState(device=self.name))


@dataclass(frozen=True, slots=True)
class Broken:
    """What is left out, and a seed shortly before the first schedule that shows it."""

    kind: type[SimServer] | type[Device]
    first_seed: int = 0

    def play(self, seed: int) -> tuple[str, ...]:
        if issubclass(self.kind, SimServer):
            return play(seed, server=self.kind)
        return play(seed, device=self.kind)


SERVERS = (Broken(Overwriting), Broken(Forgetful, 300), Broken(Graveless, 50))
DEVICES = (
    Broken(ServerWins),
    Broken(LocalWins),
    Broken(Unlocked, 50),
    Broken(Unpledged, 300),
    Broken(Unannounced, 16_620),
    Broken(Trampling, 350),
    Broken(Hasty, 600),
    Broken(Wordless),
)
