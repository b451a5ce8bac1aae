"""A team's server in memory: the real rule, and a network that loses, doubles and delays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TypeVar

from sevenfold.core.errors import TeamOffline
from sevenfold.team.client.ports import MissingBodies, RemoteListing
from sevenfold.team.protocol import (
    Checksum,
    Commit,
    CommitApplied,
    CommitId,
    CommitOutcome,
    TeamEntry,
    TeamKey,
    VersionRange,
    apply_commit,
    check_commit,
    compute_checksum,
)

T = TypeVar("T")


class Pause:
    """A place where the scheduler may do something else, or never come back."""

    def __await__(self) -> Generator[None]:
        yield


PAUSE = Pause()


@dataclass(slots=True)
class SimServer:
    """What `sevenfold serve` does in a transaction, on dictionaries."""

    seq: int = 0
    entries: dict[TeamKey, TeamEntry] = field(default_factory=dict[TeamKey, TeamEntry])
    bodies: dict[Checksum, str] = field(default_factory=dict[Checksum, str])
    answers: dict[CommitId, CommitApplied] = field(default_factory=dict[CommitId, CommitApplied])
    history: dict[TeamKey, frozenset[TeamEntry]] = field(default_factory=dict[TeamKey, frozenset[TeamEntry]])
    lost: tuple[VersionRange, ...] = ()
    tag: int = 0
    """Of the last commit: another for each, whatever its number."""
    highest: int = field(default=0, compare=False)
    tags: Iterator[int] = field(default_factory=lambda: count(1), compare=False, repr=False)
    saved: SimServer | None = field(default=None, compare=False, repr=False)

    def list(self, etag: str) -> RemoteListing | None:
        now = f"{self.seq}.{self.tag}"
        listing = RemoteListing(etag=now, seq=self.seq, entries=dict(self.entries), lost=self.lost)
        return None if etag == now else listing

    def find_unknown(self, entries: Mapping[TeamKey, TeamEntry]) -> Collection[TeamKey]:
        return [key for key, entry in entries.items() if entry not in self.history.get(key, ())]

    def back_up(self) -> None:
        self.saved = SimServer()
        self.saved._take(self)

    def restore(self) -> None:
        """`sevenfold serve restore`: as it was saved, and it says which versions are gone."""
        if self.saved is not None:
            self._take(self.saved)
            first, self.seq, self.tag = self.seq + 1, self.highest + 1_000, 0
            self.lost = (*self.lost, VersionRange(first, self.seq))
            self.highest = self.seq

    def roll_back(self) -> None:
        """As a point-in-time recovery does it: nothing knows that there was more."""
        if self.saved is not None:
            self._take(self.saved)

    def _take(self, other: SimServer) -> None:
        self.seq, self.tag, self.lost = other.seq, other.tag, other.lost
        self.entries, self.bodies = dict(other.entries), dict(other.bodies)
        self.answers, self.history = dict(other.answers), dict(other.history)

    def store(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.bodies[compute_checksum(text)] = text

    def commit(self, commit: Commit) -> CommitOutcome | MissingBodies:
        check_commit(commit)
        if commit.id in self.answers:
            return self.answers[commit.id]
        missing = {one.checksum for one in commit.changes if one.checksum is not None} - set(self.bodies)
        if missing:
            return MissingBodies(tuple(sorted(missing)))
        outcome = apply_commit(self.entries, self.seq, commit)
        if isinstance(outcome, CommitApplied):
            self.seq, self.tag = outcome.seq, next(self.tags)
            self.highest = max(self.highest, self.seq)
            self.entries.update(outcome.entries)
            for key, entry in outcome.entries.items():
                self.history[key] = self.history.get(key, frozenset()) | {entry}
            self.answers[commit.id] = outcome
        return outcome

    def texts(self) -> dict[TeamKey, str]:
        return {
            key: self.bodies[entry.checksum]
            for key, entry in self.entries.items()
            if entry.checksum is not None
        }


@dataclass(slots=True, kw_only=True)
class Network:
    """Requests of one device on their way, and what happens to them."""

    server: SimServer
    random: Random
    delayed: list[Callable[[], object]]
    is_parted: bool = False
    is_quiet: bool = False

    def part(self) -> None:
        """Cut the device off, or connect it again."""
        self.is_parted = not self.is_parted

    async def pull_entries(self, etag: str) -> RemoteListing | None:
        return await self._ask(lambda: self.server.list(etag))

    async def pull_bodies(self, checksums: Sequence[Checksum]) -> Mapping[Checksum, str]:
        return await self._ask(
            lambda: {one: self.server.bodies[one] for one in checksums if one in self.server.bodies}
        )

    async def push_bodies(self, texts: Sequence[str]) -> None:
        await self._ask(lambda: self.server.store(texts))

    async def push_commit(self, commit: Commit) -> CommitOutcome | MissingBodies:
        return await self._ask(lambda: self.server.commit(commit))

    async def pull_unknown(self, entries: Mapping[TeamKey, TeamEntry]) -> Collection[TeamKey]:
        return await self._ask(lambda: self.server.find_unknown(entries))

    async def _ask(self, call: Callable[[], T]) -> T:
        await PAUSE
        if self.is_quiet:
            return call()
        if self.is_parted:
            raise TeamOffline("parted")
        fate = self.random.random()
        if fate < 0.05:
            raise TeamOffline("lost on the way there")
        if fate < 0.10:
            self.delayed.append(call)
            raise TeamOffline("late")
        answer = call()
        if fate < 0.18:
            raise TeamOffline("lost on the way back")
        if fate < 0.22:
            call()
        elif fate < 0.27:
            self.delayed.append(call)
        await PAUSE
        return answer
