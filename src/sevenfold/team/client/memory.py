"""A project's place in a team: exchanged when asked, before a session begins, and after a change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import LockBusy, SevenfoldError, TeamLeft, TeamOffline
from sevenfold.core.events import Emit, TeamStopped, TeamUnreached, ignore_event
from sevenfold.core.settings.sync import SyncSettings
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.mutex import mutex
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.team.client.deletions import delete_for_all
from sevenfold.team.client.exchange import SyncExchange
from sevenfold.team.client.files import TeamFiles
from sevenfold.team.client.ledger import FolderLedger
from sevenfold.team.client.membership import EXCHANGE_MUTEX, TeamAccess, check_membership
from sevenfold.team.client.report import SyncReport
from sevenfold.team.client.retry import after_failure, after_success, choose_wait
from sevenfold.team.client.screening import SecretScreen
from sevenfold.team.client.server_client import ServerClient
from sevenfold.team.client.sync_policy import SyncPolicy
from sevenfold.team.protocol import TeamKey

DELETED = "deleted"
BUSY = "another process of yours is exchanging with the team's server just now"


class TeamMemory:
    """One project that has joined a server. `folder` is its part of the control folder."""

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
        pace = await run_blocking(self.ledger.read_pace)
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
        self.ledger.write_pace(after_failure(self.ledger.read_pace(), self._clock.now(), error, mark))

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
        return unsent | {key: DELETED for key in state.doomed if key not in files}

    async def _run(self, link: ServerClient, *, sends: bool) -> SyncReport:
        policy = await self._choose_policy(sends=sends)
        exchange = SyncExchange(
            link, self.files, self.ledger, policy=policy, screen=self.screen, emit=self._emit
        )
        report = await exchange.run(sends=sends)
        await run_blocking(self._forget_failures)
        return report

    async def _choose_policy(self, *, sends: bool) -> SyncPolicy:
        """For a mirror the server wins a pull and the local side wins a push; but a new member does not
        overwrite what the team has."""
        if self.settings.policy != "mirror":
            return "merge"
        return "local wins" if sends and (await self.ledger.read()).bases else "server wins"

    def _forget_failures(self) -> None:
        pace = self.ledger.read_pace()
        if pace.in_a_row or pace.refusal:
            self.ledger.write_pace(after_success(pace, self._clock.now()))

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
        with ExitStack() as held:
            await run_blocking(lambda: held.enter_context(mutex(self._folder, EXCHANGE_MUTEX, wait=wait)))
            await run_blocking(lambda: check_membership(self._folder, self.joined.membership))
            yield
