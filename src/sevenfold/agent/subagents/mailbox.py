"""The mailbox of a session: takes the session's name, listens, and reads each message exactly once.

`MailFeed` reads the mailbox. `MailListener` holds the name, the mailbox and the socket while the session is
open. `TeamMail` delivers messages between an agent, the agents it started, and other sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol, Self, TypeAlias
from uuid import uuid4

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.subagents.definitions import Subagent
from sevenfold.agent.subagents.messaging import PLAN_APPROVED, MailSender, RosterEntry
from sevenfold.agent.subagents.socket_mail import MailSocket, choose_socket_folder
from sevenfold.core.errors import (
    AddressUnknown,
    FileMissing,
    InputError,
    MailError,
    SevenfoldError,
    WireError,
)
from sevenfold.core.events import Emit, MailSkipped, ignore_event
from sevenfold.core.json import write_json
from sevenfold.core.system import map_os_errors, run_blocking
from sevenfold.layers.forks.policy import (
    LEAD_NAME,
    Address,
    AgentAddress,
    BridgeAddress,
    BroadcastAddress,
    MailMessage,
    NoteMessage,
    PendingRequests,
    PlanApprovalResponse,
    ShutdownResponse,
    SocketAddress,
    find_mail_ids,
    read_mail_message,
    render_mail,
    summarize_mail,
)
from sevenfold.session.opening import Workspace
from sevenfold.store.files.disk import READ_FLAGS
from sevenfold.store.files.folder import Folder
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
        self._handed_out: set[MailId] = set()
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
                self._handed_out.discard(mail.id)
            elif mail.id not in self._handed_out:
                self._handed_out.add(mail.id)
                new.append(mail)
        return new

    def deliver(self, mail: Mail) -> None:
        """Put a message that came another way into the mailbox, durably, and have it looked at."""
        self._mailbox.deliver(mail)

    async def acknowledge(self) -> None:
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
            claims = exits.enter_context(ExitStack())
            await run_blocking(lambda: office.roster.claim(listed, claims))
            box = await run_blocking(lambda: office.open_mailbox(listed.name, claims))
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
        await self._feed.acknowledge()
        await self._exits.aclose()


async def _end(running: asyncio.Task[None]) -> None:
    running.cancel()
    await asyncio.wait({running})


class MailRecipients(Protocol):
    """The agents of a team, as far as mail goes."""

    @property
    def members(self) -> tuple[Subagent, ...]: ...

    def find(self, name: str) -> Subagent | None: ...

    def resume(self, listed: RosterEntry, prompt: str) -> str: ...


class TeamMail:
    """Carries what agents of this process send, and takes in what comes for their lead."""

    def __init__(self, team: MailRecipients, office: MailSender, lead: Agent) -> None:
        self._team, self._office, self._lead = team, office, lead
        self._handshakes = PendingRequests()
        self._listener: MailListener | None = None
        self._opening: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._office.name

    @property
    def socket(self) -> str:
        """Where other sessions reach it; empty: nowhere."""
        return self._office.socket

    def listen(self, workspace: Workspace) -> None:
        """Begin to take in what other processes say."""
        self._opening = asyncio.create_task(self._open(workspace))

    async def ready(self) -> None:
        """Until others can write to it."""
        if self._opening is not None:
            await self._opening

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        if self._listener is not None:
            await self._listener.close()

    async def send(self, sender: str, to: Address, letter: MailMessage, summary: str) -> str:
        """Bring a message to whoever is meant; what became of it."""
        match to:
            case BridgeAddress() | SocketAddress():
                return await self._office.send_to_session(to, letter, summary)
            case BroadcastAddress():
                return await self._send_to_all(sender, letter, summary)
            case AgentAddress(name) if name in (LEAD_NAME, self.name):
                return self._send_to_lead(sender, letter)
            case AgentAddress(name):
                return await self._send_to_name(sender, name, letter, summary)

    def receive(self, mail_id: str, sender: str, letter: MailMessage) -> None:
        """A message for the lead, from wherever."""
        text = render_mail(mail_id, sender, letter)
        if not self._handshakes.settle(letter, sender):
            text += "\n[this answers no request of yours to them]"
        self._lead.post(text)

    async def _open(self, workspace: Workspace) -> None:
        lead = self._lead
        emit = lead.place.emit
        listed = RosterEntry(
            name=self.name,
            kind="main",
            session=lead.session.id,
            cwd=str(lead.place.cwd),
            model=lead.frame.model,
        )
        try:
            self._listener = await MailListener.open(
                self._office,
                listed,
                workspace.project.sessions,
                sockets=choose_socket_folder(workspace.home, lead.place.environ),
                on_letter=self.receive,
                emit=emit,
            )
        except SevenfoldError as error:
            emit(MailSkipped(self.name, str(error)))

    async def _send_to_all(self, sender: str, letter: MailMessage, summary: str) -> str:
        own = [member for member in self._team.members if member.is_running and member.entry.kind == "fresh"]
        here = frozenset({self.name, *(member.name for member in own)})
        receivers = await self._office.send_to_all(sender, here, letter, summary)
        for name in (*receivers, *here):
            self._handshakes.ask(letter, name)
        if sender != self.name:
            self._send_to_lead(sender, letter)
            receivers.append(LEAD_NAME)
        for member in own:
            if member.name != sender:
                member.post(render_mail(uuid4().hex, sender, letter))
                receivers.append(member.name)
        return f"sent to {', '.join(sorted(receivers))}" if receivers else "nobody else runs"

    def _send_to_lead(self, sender: str, letter: MailMessage) -> str:
        if sender == self.name:
            raise AddressUnknown("you are the lead yourself; answer your user directly")
        self._handshakes.ask(letter, self.name)
        self.receive(uuid4().hex, sender, letter)
        return "your lead has it"

    async def _send_to_name(self, sender: str, name: str, letter: MailMessage, summary: str) -> str:
        self._handshakes.ask(letter, name)
        member = self._team.find(name)
        if member is not None and member.entry.kind == "fork":
            raise AddressUnknown(f"{name} is a fork, which hears nothing; start a fresh agent to talk with")
        if member is not None and member.entry.kind == "fresh":
            return self._tell(member, sender, letter)
        listed = await run_blocking(lambda: self._office.roster.find(name))
        if listed is not None and listed.kind == "fresh":
            if await run_blocking(lambda: self._office.roster.is_running(name)):
                raise AddressUnknown(f"{name} works for another session; write to that one")
            return self._go_on(listed, sender, letter)
        is_running = await self._office.send_to_name(sender, name, letter, summary)
        if is_running:
            return f"it is in the mailbox of {name}: {summarize_mail(letter, summary)}"
        if listed is None or listed.kind == "main":
            return f"it is in the mailbox of {name}, who is not running now"
        return self._team.resume(listed, "")

    def _tell(self, member: Subagent, sender: str, letter: MailMessage) -> str:
        if not member.is_running:
            return self._go_on(member.entry, sender, letter)
        self._check_answer(member.name, sender, letter)
        if self._is_go_ahead(sender, letter) and member.agent is not None:
            member.agent.mode = self._lead.mode
        member.post(render_mail(uuid4().hex, sender, letter))
        return f"{member.name} hears it when its next round begins"

    def _go_on(self, listed: RosterEntry, sender: str, letter: MailMessage) -> str:
        """Take up an agent that has ended, with a message."""
        self._check_answer(listed.name, sender, letter)
        approved = replace(listed, plan=PLAN_APPROVED) if self._is_go_ahead(sender, letter) else listed
        return self._team.resume(approved, render_mail(uuid4().hex, sender, letter))

    def _check_answer(self, asker: str, sender: str, letter: MailMessage) -> None:
        is_answer = isinstance(letter, (PlanApprovalResponse, ShutdownResponse))
        if is_answer and not self._handshakes.settle(letter, sender):
            raise InputError(f"{asker} has asked you nothing with the request id {letter.request_id!r}")

    def _is_go_ahead(self, sender: str, letter: MailMessage) -> bool:
        """Whether an agent may act now. Nobody but its lead can say so."""
        return isinstance(letter, PlanApprovalResponse) and letter.is_approved and sender == self.name
