"""A team's server in memory: the real rule, and a network that loses, doubles and delays."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from sevenfold.core.errors import TeamOffline
from sevenfold.sync.ports import Listing, Missing
from sevenfold.sync.protocol import (
    Applied,
    Checksum,
    Commit,
    CommitId,
    Entry,
    Outcome,
    TeamKey,
    apply_commit,
    check_commit,
    checksum_of,
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
    entries: dict[TeamKey, Entry] = field(default_factory=dict[TeamKey, Entry])
    bodies: dict[Checksum, str] = field(default_factory=dict[Checksum, str])
    answers: dict[CommitId, Applied] = field(default_factory=dict[CommitId, Applied])

    def list(self, etag: str) -> Listing | None:
        return None if etag == str(self.seq) else Listing(str(self.seq), self.seq, dict(self.entries))

    def store(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.bodies[checksum_of(text)] = text

    def commit(self, commit: Commit) -> Outcome | Missing:
        check_commit(commit)
        if commit.id in self.answers:
            return self.answers[commit.id]
        missing = {one.checksum for one in commit.changes if one.checksum is not None} - set(self.bodies)
        if missing:
            return Missing(tuple(sorted(missing)))
        outcome = apply_commit(self.entries, self.seq, commit)
        if isinstance(outcome, Applied):
            self.seq = outcome.seq
            self.entries.update(outcome.entries)
            self.answers[commit.id] = outcome
        return outcome

    def texts(self) -> dict[TeamKey, str]:
        return {
            key: self.bodies[entry.checksum]
            for key, entry in self.entries.items()
            if entry.checksum is not None
        }


@dataclass(slots=True)
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

    async def pull_entries(self, etag: str) -> Listing | None:
        return await self._ask(lambda: self.server.list(etag))

    async def pull_bodies(self, checksums: Sequence[Checksum]) -> Mapping[Checksum, str]:
        return await self._ask(lambda: {one: self.server.bodies[one] for one in checksums})

    async def push_bodies(self, texts: Sequence[str]) -> None:
        await self._ask(lambda: self.server.store(texts))

    async def push_commit(self, commit: Commit) -> Outcome | Missing:
        return await self._ask(lambda: self.server.commit(commit))

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
