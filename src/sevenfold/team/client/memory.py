"""A project that has joined a team: exchanged on request, before a session begins, and after a change.

In order: the team's folder (`TeamFiles`), deleting a memory for everybody, `TeamMemory`, and the watcher
that sends changes during a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import (
    FileMissing,
    InputError,
    LockBusy,
    MemoryConflict,
    SevenfoldError,
    TeamLeft,
    TeamOffline,
)
from sevenfold.core.events import Emit, TeamStopped, TeamUnreached, ignore_event
from sevenfold.core.memories import TEAM_PREFIX, Origin, is_team_key
from sevenfold.core.settings.sections import SyncSettings
from sevenfold.core.system import run_blocking
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.memory.changes import Remove, StoredMemory, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.team.client.exchange import SyncExchange, new_write_mark, resolve_pending_write
from sevenfold.team.client.local_state import EXCHANGE_MUTEX, FolderLedger, TeamAccess, check_membership
from sevenfold.team.client.ports import FileChange, LocalFiles, SyncLedger, SyncReport
from sevenfold.team.client.screening import SecretScreen
from sevenfold.team.client.server_client import ServerClient
from sevenfold.team.client.sync_policy import (
    LocalText,
    PendingWrite,
    SyncPolicy,
    after_failure,
    after_pending_write,
    after_success,
    choose_wait,
)
from sevenfold.team.protocol import MAX_TEAM_FILE_BYTES, Checksum, TeamKey, compute_checksum

# The shared part of a project's memory. It is read and changed through `MemoryDir` only.

_PREFIX = "sha256:"
NOT_UTF8 = "it is no plain UTF-8 text; save it as such"
BAD_NAME = "its name is none that every system can have; use a-z, 0-9, '_' and '-'"
_TOO_LARGE = f"it is larger than {MAX_TEAM_FILE_BYTES:,} bytes; split it"
_WAITS = "it was edited past the engine; accept or reject that with `sevenfold memory review`"


class TeamFiles:
    """What is under `team/`. What it receives is told apart from what was written here: it is tainted."""

    def __init__(self, memory: MemoryDir) -> None:
        self._memory = memory

    async def scan(self) -> Mapping[TeamKey, LocalText]:
        return await run_blocking(self.read_all)

    async def body(self, checksum: Checksum) -> str | None:
        try:
            return await run_blocking(lambda: self._memory.body(checksum.removeprefix(_PREFIX)))
        except FileMissing:
            return None

    async def write(self, changes: Sequence[FileChange], mark: str) -> bool:
        try:
            await run_blocking(lambda: self._commit(changes, mark))
        except MemoryConflict:
            return False
        return True

    async def was_written(self, mark: str) -> bool:
        why = _received(mark)
        log = await run_blocking(lambda: self._memory.log(limit=None))
        return any(one.origin.who == "sync" and one.origin.why == why for one in log)

    def read_all(self) -> dict[TeamKey, LocalText]:
        """Every file of it. Blocks on the disk."""
        found = {
            TeamKey(key.removeprefix(TEAM_PREFIX)): _local(stored)
            for key in self._memory.keys(TEAM_PREFIX)
            if (stored := self._memory.find(key)) is not None
        }
        for waiting in self._memory.waiting():
            for change in waiting.changes:
                if change.key.startswith(TEAM_PREFIX):
                    key = TeamKey(change.key.removeprefix(TEAM_PREFIX))
                    text = found[key].text if key in found else ""
                    found[key] = LocalText(text, compute_checksum(text), _WAITS)
        return found

    def put_back(self, shared: Collection[TeamKey]) -> None:
        """Undo removals of shared files that came past the engine, which would wait for a person otherwise:
        only `sevenfold team delete` deletes for all. Blocks on the disk."""
        keys = {f"{TEAM_PREFIX}{key}" for key in shared}
        for waiting in self._memory.notice():
            is_removal = all(change.text is None and change.key in keys for change in waiting.changes)
            if waiting.is_outside and is_removal:
                self._memory.reject(waiting.id, "the team has it still", who="sync")

    def _commit(self, changes: Sequence[FileChange], mark: str) -> None:
        """A text that was here under another name is still its writer's; every other one is the team's."""
        known = {
            one.sha256: one.origin for one in map(self._memory.find, self._memory.keys(TEAM_PREFIX)) if one
        }
        received = Origin(who="sync", why=_received(mark), taint=frozenset({"team"}))
        self._memory.commit([_change(change, known, received) for change in changes], received)


def _received(mark: str) -> str:
    return f"received from the team (exchange {mark})"


def _local(stored: StoredMemory) -> LocalText:
    text, checksum = stored.memory.text, Checksum(f"{_PREFIX}{stored.sha256}")
    return LocalText(text, checksum, _hold(stored, text, checksum))


def _hold(stored: StoredMemory, text: str, checksum: Checksum) -> str:
    if not is_team_key(stored.memory.key.removeprefix(TEAM_PREFIX)):
        return BAD_NAME
    if compute_checksum(text) != checksum:
        return NOT_UTF8
    return _TOO_LARGE if len(text.encode()) > MAX_TEAM_FILE_BYTES else ""


def _change(change: FileChange, known: Mapping[str, Origin], received: Origin) -> Write | Remove:
    key, base = f"{TEAM_PREFIX}{change.key}", change.before and change.before.removeprefix(_PREFIX)
    if change.text is None:
        assert base is not None, f"{key} is not there, and cannot be removed"
        return Remove(key, base)
    sha256 = compute_checksum(change.text).removeprefix(_PREFIX)
    return Write(key, change.text, base, known.get(sha256) or replace(received, author=change.author))


# Deleting for all happens on request only, and while no exchange is under way.

_TRIES = 3


async def delete_for_all(key: TeamKey, files: LocalFiles, ledger: SyncLedger) -> None:
    """Remove the file and record the deletion; the next exchange deletes it for the others.

    The deletion counts once the file is gone, also where this is cut off in between: the old text would come
    back from the server otherwise. A file that is there despite the record was written since, and stays.
    """
    for _ in range(_TRIES):
        here = await files.scan()
        mine = here.get(key)
        if mine is None:
            raise InputError(f"there is no {key!r} in the team's folder; `sevenfold team status` lists it")
        if mine.hold:
            raise InputError(f"{key!r} is not deleted: {mine.hold}")
        state = await resolve_pending_write(await ledger.read(), files)
        leaving = PendingWrite(new_write_mark(), {}, {key: mine.checksum})
        state = replace(state, incoming=leaving)
        await ledger.write(state)
        is_gone = await files.write([FileChange(key, mine.checksum, None)], leaving.mark)
        await ledger.write(after_pending_write(state, came=is_gone))
        if is_gone:
            return
    raise LockBusy(f"{key!r} keeps changing, and was not deleted; try again")


DELETED = "deleted"
BUSY = "another process of yours is exchanging with the team's server just now"


class TeamMemory:
    """One project that has joined a server. `folder` is its part of the memory state."""

    def __init__(
        self,
        joined: TeamAccess,
        memory: MemoryDir,
        folder: Folder,
        settings: SyncSettings,
        *,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
    ) -> None:
        self.joined, self.settings = joined, settings
        self.files = TeamFiles(memory)
        self.ledger = FolderLedger(folder)
        self.screen = SecretScreen(folder)
        self._folder, self._emit = folder, emit
        self._clock = clock or SystemClock()
        self._is_away = False

    async def pull_news(self) -> SyncReport | None:
        """For a session that is about to begin: bounded in time, and never an error. None: no news."""
        return await self._in_time(sends=False)

    async def push_news(self) -> SyncReport | None:
        """What is new here, for a session that ends: bounded in time too, and never an error."""
        return await self._in_time(sends=True)

    async def try_exchange(self, *, sends: bool = True, is_patient: bool = False) -> SyncReport | None:
        """Exchange, unless the last failure says not to yet. What goes wrong is told and remembered; the
        patient, who will try again by themselves, are told once that the server is away. `TeamLeft` where
        there is nothing more to try."""
        pace = await run_blocking(self.ledger.read_retry)
        if is_patient and choose_wait(pace, self._clock.now(), ""):
            return None  # without a look at every file, each second that a server is away
        mark = await run_blocking(lambda: self.read_mark(sends=sends))
        why_not = choose_wait(pace, self._clock.now(), mark)
        if why_not:
            if not is_patient:
                self._emit(TeamUnreached(why_not))
            return None
        try:
            report = await self.exchange(sends=sends)
        except TeamLeft:
            raise
        except LockBusy:
            if not is_patient:
                self._emit(TeamUnreached(BUSY))
            return None
        except SevenfoldError as error:
            await run_blocking(lambda error=error: self._note_failure(error, mark))
            self._tell(error, is_patient=is_patient)
            return None
        self._is_away = False
        return report

    async def _in_time(self, *, sends: bool) -> SyncReport | None:
        try:
            async with asyncio.timeout(self.settings.pull_seconds):
                return await self.try_exchange(sends=sends, is_patient=sends)
        except TimeoutError:
            reason = f"{self.joined.membership.url} took longer than {self.settings.pull_seconds} s"
            # The next session is not to wait for it as well.
            with suppress(SevenfoldError):
                await run_blocking(lambda: self._note_failure(TeamOffline(reason), ""))
            self._tell(TeamOffline(reason))
        except SevenfoldError as error:
            self._tell(error)
        return None

    def _tell(self, error: SevenfoldError, *, is_patient: bool = False) -> None:
        if not isinstance(error, TeamOffline):
            self._emit(TeamStopped(str(error)))
        elif not (is_patient and self._is_away):
            self._is_away = True
            self._emit(TeamUnreached(str(error)))

    async def exchange(self, *, sends: bool = True, wait: timedelta = timedelta(0)) -> SyncReport:
        """Pull, and send what is new unless `sends` is off; whatever goes wrong is raised."""
        async with self._alone(wait), self._link() as link:
            return await self._run(link, sends=sends)

    async def push(self, *, wait: timedelta = timedelta(0)) -> SyncReport:
        """Send what is new here because somebody asks for it: also what the server has refused before."""
        async with self._alone(wait), self._link() as link:
            state = await self.ledger.read()
            if state.refused:
                await self.ledger.write(replace(state, refused={}))
            return await self._run(link, sends=True)

    async def delete(self, key: TeamKey, *, wait: timedelta = timedelta(0)) -> None:
        """Delete a memory here, and for all at the next exchange."""
        async with self._alone(wait):
            await delete_for_all(key, self.files, self.ledger)

    def _note_failure(self, error: SevenfoldError, mark: str) -> None:
        self.ledger.write_retry(after_failure(self.ledger.read_retry(), self._clock.now(), error, mark))

    def read_mark(self, *, sends: bool) -> str:
        """What the team's files and the token are like, and what is asked for: another text whenever one of
        them is. Who may not send may still pull. Blocks."""
        files = self.files.read_all()
        said = [f"{key} {files[key].checksum} {files[key].hold}" for key in sorted(files)]
        return sha256("\n".join([self.joined.token, str(sends), *said]).encode()).hexdigest()

    def read_unsent(self) -> dict[TeamKey, str]:
        """What is here and not there, each with what it would take to send it; deletions too. Blocks."""
        state, files = self.ledger.read_state(), self.files.read_all()
        unsent = {
            key: str(local.checksum)
            for key, local in files.items()
            if key not in state.bases or state.bases[key].checksum != local.checksum
        }
        return unsent | {key: DELETED for key in state.deleting if key not in files}

    async def _run(self, link: ServerClient, *, sends: bool) -> SyncReport:
        policy, shared = await self._choose_policy(sends=sends), (await self.ledger.read()).bases
        await run_blocking(lambda: self.files.put_back(shared))
        exchange = SyncExchange(
            link, self.files, self.ledger, policy=policy, screen=self.screen, emit=self._emit
        )
        report = await exchange.run(sends=sends)
        await run_blocking(self._forget_failures)
        return report

    async def _choose_policy(self, *, sends: bool) -> SyncPolicy:
        """With the policy `mirror` the server wins a pull and the local side wins a push. A new member does
        not overwrite what the team has."""
        if self.settings.policy != "mirror":
            return "merge"
        return "local wins" if sends and (await self.ledger.read()).bases else "server wins"

    def _forget_failures(self) -> None:
        pace = self.ledger.read_retry()
        if pace.in_a_row or pace.refusal:
            self.ledger.write_retry(after_success(pace, self._clock.now()))

    @asynccontextmanager
    async def _link(self) -> AsyncGenerator[ServerClient]:
        place = self.joined.membership
        async with ServerClient(
            place.url, self.joined.token, place.repo, timeout=self.settings.timeout, emit=self._emit
        ) as link:
            yield link

    @asynccontextmanager
    async def _alone(self, wait: timedelta) -> AsyncGenerator[None]:
        """One process of a device at a time, and with the server that the project has joined still."""
        with ExitStack() as stack:
            await run_blocking(lambda: stack.enter_context(mutex(self._folder, EXCHANGE_MUTEX, wait=wait)))
            await run_blocking(lambda: check_membership(self._folder, self.joined.membership))
            yield


# The watcher compares texts and ignores file events, so what an exchange wrote is not sent back. It sends
# only accepted texts (see `store/memory/directory.py`).

LOOK_SECONDS = 1.0
"""A look costs a file's size while nothing has changed."""
NOTICE_EVERY = 10
"""Looks between two searches for edits that came past the engine: those look at every file."""


class TeamWatcher:
    """Looks now and then, and exchanges when there is something to send."""

    def __init__(
        self,
        team: TeamMemory,
        memory: MemoryDir,
        *,
        is_behind: bool = False,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
    ) -> None:
        self._team, self._memory, self._emit = team, memory, emit
        self._is_behind = is_behind
        """The team's news did not come in time: they are had in the background, which has more of it."""
        self._clock = clock or SystemClock()
        self._looks = 0
        self._generation = -1
        self._unsent: Mapping[TeamKey, str] = {}
        self._since: datetime | None = None
        self._left: Mapping[TeamKey, str] = {}
        """What the last exchange did not take: as it is, the next one will not either."""

    async def run(self) -> None:
        """Until cancelled, or until there is nothing to look at any more, which is told."""
        try:
            while True:
                # Others are busy with the memories: a later look will do.
                with suppress(LockBusy):
                    await self.look()
                await asyncio.sleep(LOOK_SECONDS)
        except SevenfoldError as error:
            self._emit(TeamStopped(str(error)))

    async def finish(self) -> None:
        """For a session that ends: what is new does not wait for the next one, if the server is there."""
        try:
            if self._is_new(await run_blocking(self._team.read_unsent)):
                await self._team.push_news()
        except SevenfoldError as error:
            self._emit(TeamStopped(str(error)))

    async def look(self) -> None:
        generation = await self._next_generation()
        if generation != self._generation:
            self._take(await run_blocking(self._team.read_unsent))
            self._generation = generation
        if self._since is not None and self._is_due(self._since):
            report = await self._team.try_exchange(is_patient=True)
            if report is not None and report.is_settled:
                self._left = {key: text for key, text in self._unsent.items() if key in report.held}
                self._is_behind, self._since = False, None

    def _take(self, unsent: Mapping[TeamKey, str]) -> None:
        if not (self._is_behind or self._is_new(unsent)):
            self._since = None
        elif unsent != self._unsent or self._since is None:
            self._since = self._clock.now()
        self._unsent = unsent

    def _is_due(self, since: datetime) -> bool:
        """A clock that was set back does not hold it up."""
        now = self._clock.now()
        return now < since or now - since >= self._team.settings.push_after

    def _is_new(self, unsent: Mapping[TeamKey, str]) -> bool:
        return any(self._left.get(key) != text for key, text in unsent.items())

    async def _next_generation(self) -> int:
        self._looks += 1
        if self._looks % NOTICE_EVERY == 0:
            await run_blocking(self._memory.notice)
        return await run_blocking(self._memory.generation)
