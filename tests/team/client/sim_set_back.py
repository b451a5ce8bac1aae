"""Servers that are set back and leave out one of the rules for it: the schedules have to show each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sevenfold.team.client.ports import MissingBodies, RemoteListing
from sevenfold.team.protocol import Commit, CommitOutcome, TeamEntry, TeamKey
from tests.team.sim_server import SimServer
from tests.team.sim_world import play


class Unaware(SimServer):
    """Says nothing of what it has lost, as servers of old did."""

    def list(self, etag: str) -> RemoteListing | None:
        found = SimServer.list(self, etag)
        return found and replace(found, lost=())

    def find_unknown(self, entries: Mapping[TeamKey, TeamEntry]) -> Collection[TeamKey]:
        return ()


class Recordless(SimServer):
    """Does not look into its history."""

    def find_unknown(self, entries: Mapping[TeamKey, TeamEntry]) -> Collection[TeamKey]:
        return ()


class Trusting(SimServer):
    """Takes a version that was given twice for the one that the writer had seen."""

    def commit(self, commit: Commit) -> CommitOutcome | MissingBodies:
        return SimServer.commit(self, replace(commit, seen={}))


class Untagged(SimServer):
    """Tells states apart by their number alone."""

    def list(self, etag: str) -> RemoteListing | None:
        found = SimServer.list(self, "")
        return None if found is None or etag == str(self.seq) else replace(found, etag=str(self.seq))


@dataclass(frozen=True, slots=True)
class SetBackFault:
    kind: type[SimServer]
    first_seed: int

    def play(self, seed: int) -> tuple[str, ...]:
        return play(seed, server=self.kind, is_set_back=True)


SET_BACK_FAULTS = (
    SetBackFault(Unaware, 170),
    SetBackFault(Recordless, 330),
    SetBackFault(Trusting, 1_500),
    SetBackFault(Untagged, 370),
)
