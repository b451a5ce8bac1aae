"""A device in memory: its folder, its ledger, its people, and the exchange that is under way on it.

Every durable step is whole or not there at all, as `Folder.replace` makes it; a device that dies loses
everything else.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from sevenfold.core.errors import InputError, LockBusy, TeamOffline
from sevenfold.team.client.exchange import SyncExchange
from sevenfold.team.client.memory import delete_for_all
from sevenfold.team.client.ports import FileChange, SyncReport, is_conflict_copy
from sevenfold.team.client.sync_policy import (
    LocalText,
    RetryState,
    SyncPolicy,
    SyncState,
    after_failure,
    after_success,
    choose_wait,
)
from sevenfold.team.protocol import Checksum, TeamKey, compute_checksum
from tests.team.sim_server import PAUSE, Network

KEYS = tuple(TeamKey(f"{name}.md") for name in ("a", "b", "c"))


def tokens(text: str) -> list[str]:
    return text.split("\n")[:-1]


@dataclass(frozen=True, slots=True)
class Wish:
    """Somebody deleted a memory, having seen these lines in it and all those anywhere."""

    key: TeamKey
    lines: frozenset[str]
    seen: frozenset[str]


@dataclass(slots=True, kw_only=True)
class Chronicle:
    """What people did, as the judge remembers it."""

    written: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Each write by the line that it added, with all lines of the text it left."""
    removed: set[str] = field(default_factory=set[str])
    """Lines that somebody who saw them took out."""
    deleted: list[Wish] = field(default_factory=list[Wish])
    """Deletions that somebody was told will happen."""
    copies: set[TeamKey] = field(default_factory=set[TeamKey])
    """Conflicts that were kept beside another text."""
    resolved: set[TeamKey] = field(default_factory=set[TeamKey])


@dataclass(slots=True, kw_only=True)
class SimFiles:
    chronicle: Chronicle
    texts: dict[TeamKey, str] = field(default_factory=dict[TeamKey, str])
    history: dict[Checksum, str] = field(default_factory=dict[Checksum, str])
    seen: set[str] = field(default_factory=set[str])
    marks: set[str] = field(default_factory=set[str])

    async def scan(self) -> Mapping[TeamKey, LocalText]:
        await PAUSE
        return {key: LocalText(text, compute_checksum(text)) for key, text in self.texts.items()}

    async def body(self, checksum: Checksum) -> str | None:
        return self.history.get(checksum)

    async def was_written(self, mark: str) -> bool:
        await PAUSE
        return mark in self.marks

    async def write(self, changes: Sequence[FileChange], mark: str) -> bool:
        await PAUSE
        assert len({change.key for change in changes}) == len(changes), "a file is changed twice at once"
        if not self.is_as_compared(changes):
            return False
        self.marks.add(mark)
        for change in changes:
            if change.text is None:
                self.texts.pop(change.key, None)
            else:
                self.put(change.key, change.text)
                if is_conflict_copy(change.key):
                    self.chronicle.copies.add(change.key)
        await PAUSE
        return True

    def is_as_compared(self, changes: Sequence[FileChange]) -> bool:
        return all(
            change.before == (compute_checksum(self.texts[change.key]) if change.key in self.texts else None)
            for change in changes
        )

    def put(self, key: TeamKey, text: str) -> None:
        self.texts[key] = text
        self.history[compute_checksum(text)] = text
        self.seen.update(tokens(text))


@dataclass(slots=True)
class SimLedger:
    state: SyncState

    async def read(self) -> SyncState:
        await PAUSE
        return self.state

    async def write(self, state: SyncState) -> None:
        await PAUSE
        self.state = state
        await PAUSE


class Device:
    """One laptop. Its two processes share everything but the exchange, of which there is one at a time."""

    policy: SyncPolicy = "merge"
    is_locked = True
    keys = len(KEYS)

    def __init__(self, name: str, network: Network, chronicle: Chronicle, random: Random) -> None:
        self.name = name
        self.network = network
        self.chronicle = chronicle
        self.random = random
        self.files = self.make_files()
        self.ledger = self.make_ledger()
        self.lost: dict[TeamKey, frozenset[str]] = {}
        self.running: list[Coroutine[object, object, object]] = []
        self.report: SyncReport | None = None
        self.pace = RetryState()
        self.now = datetime(2026, 11, 15, tzinfo=UTC) + timedelta(hours=random.randint(-100, 100))

    def make_files(self) -> SimFiles:
        return SimFiles(chronicle=self.chronicle)

    def make_ledger(self) -> SimLedger:
        return SimLedger(SyncState(device=self.name))

    def start(self, sends: bool = True) -> None:
        if not (self.running and self.is_locked):
            self.running.append(self._sync(sends))

    def begin(self) -> None:
        """Exchange, unless the last failure was a moment ago by this device's clock."""
        if not choose_wait(self.pace, self.now, ""):
            self.start(sends=self.random.random() < 0.85)

    def set_clock(self) -> None:
        self.now += timedelta(seconds=self.random.choice((-1e6, -40, 3, 10, 400, 1e6)))

    def step(self) -> None:
        """Go on to the next place where something else may happen."""
        if not self.running:
            return
        work = self.random.choice(self.running) if len(self.running) > 1 else self.running[0]
        try:
            work.send(None)
        except StopIteration:
            self.running.remove(work)

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def crash(self) -> None:
        for work in self.running:
            work.close()
        self.running.clear()

    def finish(self) -> None:
        while self.running:
            self.step()

    async def _sync(self, sends: bool) -> None:
        exchange = SyncExchange(self.network, self.files, self.ledger, policy=self.policy)
        try:
            self.report = await exchange.run(sends=sends)
            self.pace = after_success(self.pace, self.now)
        except TeamOffline as error:
            self.report = None
            self.pace = after_failure(self.pace, self.now, error, "")

    # What people do, between any two steps of an exchange.

    def edit(self, line: str) -> None:
        """Write a memory: a new one, or another line into one that is there."""
        key = self.random.choice((*KEYS[: self.keys], *self.files.texts))
        # Who removes a file and writes another in its place has taken out what was in it.
        self.chronicle.removed |= self.lost.pop(key, frozenset()) if key not in self.files.texts else set()
        old = tokens(self.files.texts.get(key, ""))
        new = self._edited(old, line)
        self.files.put(key, "".join(f"{each}\n" for each in new))
        self.chronicle.written[line] = frozenset(new)
        self.chronicle.removed.update(set(old) - set(new))

    def _edited(self, old: list[str], line: str) -> list[str]:
        at = self.random.randrange(len(old) + 1)
        how = self.random.random()
        if how < 0.15:
            return [line]
        if how < 0.45 and at < len(old):
            return [*old[:at], line, *old[at + 1 :]]
        return [*old[:at], line, *old[at:]]

    def lose(self) -> None:
        """Remove a file by hand, which means nothing to others; one that holds nothing new."""
        bases = self.ledger.state.bases
        clean = [
            key
            for key, text in self.files.texts.items()
            if key in bases and bases[key].checksum == compute_checksum(text)
        ]
        if clean and not self.running:
            key = self.random.choice(clean)
            self.lost[key] = frozenset(tokens(self.files.texts.pop(key)))

    def delete(self) -> None:
        """Delete a memory for all, or settle a conflict."""
        keys = sorted(self.files.texts)
        if keys and not self.running:
            self.running.append(self._deleted(self.random.choice(keys)))

    async def _deleted(self, key: TeamKey) -> None:
        watched = _Watched(self, key)
        try:
            await delete_for_all(key, watched, self.ledger)
        except (InputError, LockBusy):
            return
        self.chronicle.deleted += watched.wishes


class _Watched:
    """The device's files, with an eye on what is taken away from them by a deletion."""

    def __init__(self, device: Device, key: TeamKey) -> None:
        self._device, self._key = device, key
        self.wishes: list[Wish] = []
        self.scan, self.body = device.files.scan, device.files.body
        self.was_written = device.files.was_written

    async def write(self, changes: Sequence[FileChange], mark: str) -> bool:
        await PAUSE
        files, chronicle = self._device.files, self._device.chronicle
        if not files.is_as_compared(changes):
            return False
        files.marks.add(mark)
        lines = frozenset(tokens(files.texts.pop(self._key)))
        chronicle.removed |= lines
        chronicle.resolved.add(self._key)
        self.wishes.append(Wish(self._key, lines, frozenset(files.seen)))
        await PAUSE
        return True
