"""The mailbox of a session: takes the session's name, listens, and reads each message exactly once.

`MailFeed` reads the mailbox. `MailListener` holds the name, the mailbox and the socket while the session is
open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Self, TypeAlias

from sevenfold.agent.subagents.messaging import MailSender, RosterEntry
from sevenfold.agent.subagents.socket_mail import MailSocket
from sevenfold.core.errors import FileMissing, MailError, SevenfoldError, WireError
from sevenfold.core.events import Emit, MailSkipped, ignore_event
from sevenfold.core.json import write_json
from sevenfold.core.os_errors import map_os_errors
from sevenfold.layers.forks.mail import MailMessage, NoteMessage, find_mail_ids, read_mail_message
from sevenfold.store.files.disk import READ_FLAGS
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.mailbox import Mail, Mailbox, MailId
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import MessageRecord

# A message is acknowledged once the transcript on disk contains it; one that it already contains is
# acknowledged without being delivered again. So a crash loses and repeats nothing, with no other state.

OnMail: TypeAlias = Callable[[Mail], None]
"""Puts a message where its id will reach the transcript: see `render_mail`."""

MAIL_POLL_INTERVAL = timedelta(milliseconds=500)
"""A person does not notice, and listing an empty folder costs microseconds."""


class MailFeed:
    """One session's mailbox and the transcript that its mail goes to."""

    def __init__(
        self, name: str, mailbox: Mailbox, sessions: Folder, session: str, *, emit: Emit = ignore_event
    ) -> None:
        self.name = name
        self._mailbox, self._sessions, self._session = mailbox, sessions, session
        self._emit = emit
        self._told: set[MailId] = set()
        """Handed out by this process and perhaps not in the transcript yet."""
        self._kept: set[MailId] = set()
        self._offset = 0
        self._woken = asyncio.Event()

    def collect(self) -> list[Mail]:
        """Messages to deliver now, oldest first; delivered ones that are safe on disk are acknowledged."""
        waiting = self._mailbox.receive()
        if not waiting:
            return []
        self._read_transcript()
        if any(mail.id in self._kept for mail in waiting):
            self._settle_transcript()
        new: list[Mail] = []
        for mail in waiting:
            if mail.id in self._kept:
                self._mailbox.acknowledge(mail.id)
                self._told.discard(mail.id)
            elif mail.id not in self._told:
                self._told.add(mail.id)
                new.append(mail)
        return new

    def deliver(self, mail: Mail) -> None:
        """Put a message that came another way into the mailbox, durably, and have it looked at."""
        self._mailbox.deliver(mail)

    async def settle(self) -> None:
        """Acknowledge what is safe by now."""
        try:
            await run_blocking(self.collect)
        except SevenfoldError as error:
            self._emit(MailSkipped(self.name, str(error)))

    def wake(self) -> None:
        """There may be something: look now."""
        self._woken.set()

    async def run(self, take: OnMail, every: timedelta = MAIL_POLL_INTERVAL) -> None:
        """Hand out mail as it comes, until cancelled. A disk error is reported and tried again."""
        while True:
            self._woken.clear()
            try:
                for mail in await run_blocking(self.collect):
                    take(mail)
            except SevenfoldError as error:
                self._emit(MailSkipped(self.name, str(error)))
            with suppress(TimeoutError):
                async with asyncio.timeout(every.total_seconds()):
                    await self._woken.wait()

    def _read_transcript(self) -> None:
        for line in self._new_lines():
            # The last line is read again next time: it may be the one that was not whole.
            self._offset = line.offset
            if isinstance(line.record.body, MessageRecord):
                self._kept.update(map(MailId, find_mail_ids([line.record.body.message])))

    def _new_lines(self) -> Iterator[StoredRecord]:
        with suppress(FileMissing):
            for line in scan_transcript(self._sessions, self._session, start=self._offset):
                if isinstance(line, StoredRecord):
                    yield line

    def _settle_transcript(self) -> None:
        """What was read there may not have reached the disk: an acknowledgement must not outlive it."""
        with (
            self._sessions.opened(f"{self._session}.jsonl", READ_FLAGS) as fd,
            map_os_errors(f"sync transcript {self._session}"),
        ):
            self._sessions.disk.fsync(fd)


def parse_mail(mail: Mail) -> MailMessage:
    """What a message says; one of a type that is not known here is shown as it is."""
    try:
        return read_mail_message(mail.body)
    except WireError:
        return NoteMessage(write_json(mail.body).decode())


OnMailMessage: TypeAlias = Callable[[str, str, MailMessage], None]
"""Told of a message's id, its sender and what it says. The id has to reach the transcript."""


class MailListener:
    """Open as long as the session is. Whoever comes second to a name does not get it."""

    def __init__(self, feed: MailFeed, exits: AsyncExitStack) -> None:
        self._feed, self._exits = feed, exits

    @classmethod
    async def open(
        cls,
        office: MailSender,
        listed: RosterEntry,
        sessions: Folder,
        *,
        sockets: Path,
        on_letter: OnMailMessage,
        emit: Emit,
    ) -> Self:
        """Take the name and begin to listen; `LockBusy` where a living process has it."""
        async with AsyncExitStack() as exits:
            held = exits.enter_context(ExitStack())
            await run_blocking(lambda: office.roster.hold(listed, held))
            box = await run_blocking(lambda: office.open_mailbox(listed.name, held))
            feed = MailFeed(listed.name, box, sessions, listed.session, emit=emit)

            async def take(mail: Mail) -> None:
                await run_blocking(lambda: feed.deliver(mail))
                feed.wake()

            try:
                socket = await MailSocket.listen(sockets / f"{listed.name}.sock", take, emit=emit)
            except (MailError, OSError) as error:
                # Mailboxes work all the same.
                emit(MailSkipped(listed.name, f"no socket: {error}"))
            else:
                exits.push_async_callback(socket.close)
                office.socket = str(socket.path)
                await run_blocking(lambda: office.roster.write(replace(listed, socket=office.socket)))
            running = asyncio.create_task(
                feed.run(lambda mail: on_letter(mail.id, mail.sender, parse_mail(mail)))
            )
            exits.push_async_callback(_end, running)
            return cls(feed, exits.pop_all())

    async def close(self) -> None:
        """Acknowledge what is safe by now, and let go of the name."""
        await self._feed.settle()
        await self._exits.aclose()


async def _end(running: asyncio.Task[None]) -> None:
    running.cancel()
    await asyncio.wait({running})
