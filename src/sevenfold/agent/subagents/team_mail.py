"""Delivers messages between an agent, the agents it started, and other sessions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Protocol
from uuid import uuid4

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.project_context import ProjectContext
from sevenfold.agent.subagents.mailbox import MailListener
from sevenfold.agent.subagents.messaging import PLAN_APPROVED, MailSender, RosterEntry
from sevenfold.agent.subagents.socket_mail import choose_socket_folder
from sevenfold.agent.subagents.subagent import Subagent
from sevenfold.core.errors import AddressUnknown, InputError, SevenfoldError
from sevenfold.core.events import MailSkipped
from sevenfold.layers.forks.mail import (
    LEAD_NAME,
    Address,
    AgentAddress,
    BridgeAddress,
    BroadcastAddress,
    MailMessage,
    PendingRequests,
    PlanApprovalRequest,
    PlanApprovalResponse,
    ShutdownRequest,
    ShutdownResponse,
    SocketAddress,
    render_mail,
    summarize_mail,
)
from sevenfold.store.files.offload import run_blocking


class MailRecipients(Protocol):
    """The agents of a team, as far as mail goes."""

    @property
    def members(self) -> tuple[Subagent, ...]: ...

    def find(self, name: str) -> Subagent | None: ...

    def take_up(self, listed: RosterEntry, prompt: str) -> str: ...


class TeamMail:
    """Carries what agents of this process send, and takes in what comes for their lead."""

    def __init__(self, team: MailRecipients, office: MailSender, lead: Agent) -> None:
        self._team, self._office, self._lead = team, office, lead
        self._handshakes = PendingRequests()
        self._ear: MailListener | None = None
        self._opening: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._office.name

    @property
    def socket(self) -> str:
        """Where other sessions reach it; empty: nowhere."""
        return self._office.socket

    def listen(self, ground: ProjectContext) -> None:
        """Begin to take in what other processes say."""
        self._opening = asyncio.create_task(self._open(ground))

    async def ready(self) -> None:
        """Until others can write to it."""
        if self._opening is not None:
            await self._opening

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        if self._ear is not None:
            await self._ear.close()

    async def send(self, sender: str, to: Address, letter: MailMessage, summary: str) -> str:
        """Bring a message to whoever is meant; what became of it."""
        match to:
            case BridgeAddress() | SocketAddress():
                return await self._office.send_abroad(to, letter, summary)
            case BroadcastAddress():
                return await self._send_to_all(sender, letter, summary)
            case AgentAddress(name) if name in (LEAD_NAME, self.name):
                return self._send_to_lead(sender, letter)
            case AgentAddress(name):
                return await self._send_to_name(sender, name, letter, summary)

    def take(self, mail_id: str, sender: str, letter: MailMessage) -> None:
        """A message for the lead, from wherever."""
        text = render_mail(mail_id, sender, letter)
        if isinstance(letter, (PlanApprovalResponse, ShutdownResponse)) and not self._handshakes.settle(
            letter, sender
        ):
            text += "\n[this answers no request of yours to them]"
        self._lead.post(text)

    async def _open(self, ground: ProjectContext) -> None:
        lead = self._lead
        emit, folders = lead.place.emit, ground.folders
        listed = RosterEntry(
            name=self.name,
            kind="main",
            session=lead.session.id,
            cwd=str(lead.place.cwd),
            model=lead.frame.model,
        )
        try:
            self._ear = await MailListener.open(
                self._office,
                listed,
                ground.project.sessions,
                sockets=choose_socket_folder(folders.home, lead.place.environ),
                on_letter=self.take,
                emit=emit,
            )
        except SevenfoldError as error:
            emit(MailSkipped(self.name, str(error)))

    async def _send_to_all(self, sender: str, letter: MailMessage, summary: str) -> str:
        own = [member for member in self._team.members if member.is_running and member.listed.kind == "fresh"]
        here = frozenset({self.name, *(member.name for member in own)})
        told = await self._office.send_to_all(sender, here, letter, summary)
        for name in (*told, *here):
            self._note_request(letter, name)
        if sender != self.name:
            self._send_to_lead(sender, letter)
            told.append(LEAD_NAME)
        for member in own:
            if member.name != sender:
                member.hear(render_mail(uuid4().hex, sender, letter))
                told.append(member.name)
        return f"sent to {', '.join(sorted(told))}" if told else "nobody else runs"

    def _send_to_lead(self, sender: str, letter: MailMessage) -> str:
        if sender == self.name:
            raise AddressUnknown("you are the lead yourself; answer your user directly")
        self._note_request(letter, self.name)
        self.take(uuid4().hex, sender, letter)
        return "your lead has it"

    async def _send_to_name(self, sender: str, name: str, letter: MailMessage, summary: str) -> str:
        self._note_request(letter, name)
        member = self._team.find(name)
        if member is not None and member.listed.kind == "fork":
            raise AddressUnknown(f"{name} is a fork, which hears nothing; start a fresh agent to talk with")
        if member is not None and member.listed.kind == "fresh":
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
        return self._team.take_up(listed, "")

    def _tell(self, member: Subagent, sender: str, letter: MailMessage) -> str:
        if not member.is_running:
            return self._go_on(member.listed, sender, letter)
        self._check_answer(member.name, sender, letter)
        if self._is_go_ahead(sender, letter) and member.agent is not None:
            member.agent.mode = self._lead.mode
        member.hear(render_mail(uuid4().hex, sender, letter))
        return f"{member.name} hears it when its next round begins"

    def _go_on(self, listed: RosterEntry, sender: str, letter: MailMessage) -> str:
        """Take up an agent that has ended, with a message."""
        self._check_answer(listed.name, sender, letter)
        approved = replace(listed, plan=PLAN_APPROVED) if self._is_go_ahead(sender, letter) else listed
        return self._team.take_up(approved, render_mail(uuid4().hex, sender, letter))

    def _check_answer(self, asker: str, sender: str, letter: MailMessage) -> None:
        if isinstance(letter, (PlanApprovalResponse, ShutdownResponse)) and not self._handshakes.settle(
            letter, sender
        ):
            raise InputError(f"{asker} has asked you nothing with the request id {letter.request_id!r}")

    def _is_go_ahead(self, sender: str, letter: MailMessage) -> bool:
        """Whether an agent may act now. Nobody but its lead can say so."""
        return isinstance(letter, PlanApprovalResponse) and letter.is_approved and sender == self.name

    def _note_request(self, letter: MailMessage, to: str) -> None:
        if isinstance(letter, (ShutdownRequest, PlanApprovalRequest)):
            self._handshakes.ask(letter, to)
