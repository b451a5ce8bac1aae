"""A session's name among others: its mailbox, its socket, and what is said to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeAlias

from sevenfold.agent.subagents.mail_feed import MailFeed, parse_mail
from sevenfold.agent.subagents.mail_sender import MailSender
from sevenfold.agent.subagents.roster import RosterEntry
from sevenfold.agent.subagents.socket_mail import MailSocket
from sevenfold.core.errors import MailError
from sevenfold.core.events import Emit, MailSkipped
from sevenfold.layers.forks.mail import MailMessage
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.mailbox import Mail

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
