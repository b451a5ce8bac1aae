"""A teammate: an agent in a process of its own, started by another agent and never by hand.

It works on its task, sends its answer to its lead, and waits for mail. It ends when it agrees to, or when its
lead is gone.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.choose_provider import choose_provider
from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.agent.opening.workspace import open_agent_workspace
from sevenfold.agent.permissions.guard import Guard, Reach, deny_unattended
from sevenfold.agent.subagents.definitions import AttributedProvider
from sevenfold.agent.subagents.mailbox import MailListener
from sevenfold.agent.subagents.messaging import MailSender, RosterEntry, SendMessageTool
from sevenfold.agent.subagents.socket_mail import choose_socket_folder
from sevenfold.agent.subagents.subagent_runner import LEAD_ONLY_TOOLS
from sevenfold.agent.subagents.teammate_process import (
    TEAMMATE_KIND,
    ParentPipe,
    TeammateConfig,
    open_parent_pipe,
    parse_teammate_config,
)
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.settings.sections import AgentSettings
from sevenfold.core.system import run_blocking
from sevenfold.core.text.safe_text import escape_controls
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
    render_mail,
)
from sevenfold.providers.provider import Provider
from sevenfold.session.budget import SpendSettings
from sevenfold.session.governor import GovernedProvider, Governor, SpendStore
from sevenfold.session.opening import Workspace
from sevenfold.store.project.trust import decline_confirmation


class Teammate:
    """The agent of this process, and its way to others."""

    def __init__(self, charge: TeammateConfig, office: MailSender) -> None:
        self._charge, self._office = charge, office
        self._handshakes = PendingRequests()
        self._agent: Agent | None = None
        self.is_ending = False

    def join(self, agent: Agent) -> None:
        self._agent = agent
        guard = agent.toolbox.guard
        if isinstance(guard, Guard) and self._charge.memory:
            guard.reach = Reach((*guard.reach.read, Path(self._charge.memory)), guard.reach.edit)

    def receive(self, mail_id: str, sender: str, letter: MailMessage) -> None:
        """A message came."""
        agent = self._agent
        if agent is None:
            return
        text = render_mail(mail_id, self._as_called_here(sender), letter)
        if not self._handshakes.settle(letter, sender):
            text += "\n[this answers no request of yours to them]"
        elif isinstance(letter, PlanApprovalResponse) and letter.is_approved and sender == self._charge.lead:
            agent.mode = self._charge.lead_mode
        agent.post(text)

    async def send(self, sender: str, to: Address, letter: MailMessage, summary: str) -> str:
        match to:
            case BridgeAddress() | SocketAddress():
                return await self._office.send_to_session(to, letter, summary)
            case BroadcastAddress():
                receivers = await self._office.send_to_all(sender, frozenset({sender}), letter, summary)
                return f"sent to {', '.join(receivers)}" if receivers else "nobody else runs"
            case AgentAddress(name):
                return await self._send_to_name(
                    sender, self._charge.lead if name == LEAD_NAME else name, letter, summary
                )

    async def work(self, agent: Agent) -> None:
        """Until it may end: a turn for what was said, and its answer to the lead."""
        prompt = self._charge.prompt or None
        while not self.is_ending:
            if prompt is None:
                await agent.inbox.wait()
            end = await agent.run_turn(prompt)
            prompt = None
            said = end.text if end.reason == "answered" else f"[{end.reason}] {end.error or ''} {end.text}"
            note = NoteMessage(said.strip() or "[I have nothing to say]")
            await self._office.send_to_name(self._charge.name, self._charge.lead, note)

    async def _send_to_name(self, sender: str, name: str, letter: MailMessage, summary: str) -> str:
        self._handshakes.ask(letter, name)
        is_running = await self._office.send_to_name(sender, name, letter, summary)
        if isinstance(letter, ShutdownResponse) and letter.is_agreed and name == self._charge.lead:
            self.is_ending = True
            return "sent; you end with this turn"
        return (
            "it is in their mailbox"
            if is_running
            else f"it is in the mailbox of {name}, who is not running now"
        )

    def _as_called_here(self, sender: str) -> str:
        return LEAD_NAME if sender == self._charge.lead else sender


async def run_teammate(charge: TeammateConfig, line: ParentPipe | None = None) -> None:
    """Be a teammate until it may end, or whoever is at the other end of the line has gone."""
    async with AsyncExitStack() as exits:
        options = AgentOptions(
            project=Path(charge.cwd),
            model=charge.model,
            mode=charge.mode,
            session=charge.session,
            system=charge.system,
            only=None if charge.tools is None else frozenset(charge.tools) - LEAD_ONLY_TOOLS,
            is_child=True,
            ask=line.ask if line else deny_unattended,
        )
        workspace = await open_agent_workspace(options, decline_confirmation)
        exits.callback(workspace.close)
        office = MailSender(charge.name, workspace.project.mail, workspace.project.control, workspace.clock)
        teammate = Teammate(charge, office)
        provider = await _open_provider(charge, workspace, exits, line)
        also = (SendMessageTool(teammate, charge.name),)
        agent = await open_agent(replace(options, also=also, provider=provider), workspace)
        exits.push_async_callback(agent.close)
        teammate.join(agent)
        listed = RosterEntry(
            name=charge.name,
            kind="teammate",
            session=charge.session,
            definition=charge.definition,
            description=charge.description,
            cwd=charge.cwd,
            model=charge.model,
        )
        sockets = choose_socket_folder(workspace.home, workspace.environ)
        listener = await MailListener.open(
            office,
            listed,
            workspace.project.sessions,
            sockets=sockets,
            on_letter=teammate.receive,
            emit=agent.place.emit,
        )
        exits.push_async_callback(listener.close)
        working = asyncio.create_task(teammate.work(agent))
        leaving = asyncio.create_task(line.receive_responses() if line else asyncio.Event().wait())
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
        elif error := working.exception():
            raise error


async def _open_provider(
    charge: TeammateConfig,
    workspace: Workspace,
    exits: AsyncExitStack,
    line: ParentPipe | None,
) -> Provider:
    """Whom it asks. No person waits for the answers, so that all of them count against the caps."""
    settings, home = workspace.settings, workspace.home
    provider = choose_provider(
        workspace.catalog.find(charge.model), settings.of(AgentSettings), workspace.environ
    )
    exits.push_async_callback(provider.close)
    store = await run_blocking(lambda: SpendStore.open(home))
    governor = Governor(store, settings.of(SpendSettings), session=charge.session, catalog=workspace.catalog)
    exits.push_async_callback(governor.close)
    return AttributedProvider(
        GovernedProvider(provider, governor), TEAMMATE_KIND, line.report_usage if line else None
    )


async def _run(charge: TeammateConfig) -> None:
    if charge.is_detached:
        await run_teammate(charge)
        return
    telling, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # what a library prints is not for the lead
    os.close(null)
    await run_teammate(charge, await open_parent_pipe(os.dup(0), telling))


def _main() -> int:
    """Be a teammate, as the line on standard input says."""
    try:
        # Nothing follows it until we ask, so that no more than this line is taken from the pipe.
        charge = parse_teammate_config(sys.stdin.buffer.readline())
        if charge.is_detached:
            _detach()
        asyncio.run(_run(charge))
    except SevenfoldError as error:
        sys.stderr.write(f"{escape_controls(f'{type(error).__name__}: {error}')}\n")
        return 1
    return 0


def _detach() -> None:
    """Continue in a child that the lead does not own: the lead sees this process end and reaps it."""
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


if __name__ == "__main__":
    sys.exit(_main())
