"""Carries messages out of a process: to mailboxes of the project, and to sockets of other sessions."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from sevenfold.agent.subagents.roster import Roster
from sevenfold.agent.subagents.socket_mail import SOCKET_SENDER_PREFIX, send_over_socket
from sevenfold.core.clock import Clock
from sevenfold.core.errors import AddressUnknown, InputError
from sevenfold.core.events import Emit, ignore_event
from sevenfold.layers.forks.mail import (
    BridgeAddress,
    MailMessage,
    NoteMessage,
    ShutdownRequest,
    SocketAddress,
    summarize_mail,
    write_mail_message,
)
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.mailbox import Mail, Mailbox, MailSettings


class MailSender:
    """Sends for the agents of one process."""

    def __init__(
        self,
        name: str,
        mail: Folder,
        control: Folder,
        clock: Clock,
        *,
        settings: MailSettings | None = None,
        emit: Emit = ignore_event,
    ) -> None:
        self.name = name
        """Of the session itself, among those of the project."""
        self._mail, self._control, self._clock = mail, control, clock
        self._settings, self._emit = settings, emit
        self.roster = Roster(control)
        self.socket = ""
        """Where answers can be sent to; empty: nowhere."""

    def open_mailbox(self, name: str, until: ExitStack) -> Mailbox:
        """Blocks on the disk."""
        box = Mailbox(self._mail, name, control=self._control, settings=self._settings, emit=self._emit)
        return until.enter_context(closing(box))

    async def send_to_name(self, sender: str, name: str, letter: MailMessage, summary: str = "") -> bool:
        """Put it in an agent's mailbox, durably; whether anybody runs by that name now."""
        mail = self._written(sender, letter, summary)

        def deliver() -> bool:
            if self.roster.find(name) is None:
                known = ", ".join(sorted(self.roster.names())) or "nobody"
                raise AddressUnknown(f"there is no agent called {name!r}; there are: {known}")
            with ExitStack() as exits:
                self.open_mailbox(name, exits).deliver(mail)
            return self.roster.is_running(name)

        return await run_blocking(deliver)

    async def send_to_all(
        self, sender: str, but: frozenset[str], letter: MailMessage, summary: str
    ) -> list[str]:
        """Put it in the mailbox of everyone in the project who runs, but for some; who that is."""
        if not isinstance(letter, (NoteMessage, ShutdownRequest)):
            raise InputError("this message is meant for one agent; name it")

        def running() -> list[str]:
            roster = self.roster
            return [name for name in roster.names() if name not in but and roster.is_running(name)]

        names = await run_blocking(running)
        for name in names:
            await self.send_to_name(sender, name, letter, summary)
        return names

    async def send_abroad(
        self, to: SocketAddress | BridgeAddress, letter: MailMessage, summary: str = ""
    ) -> str:
        """To another session, of whatever project; what became of it."""
        if isinstance(to, BridgeAddress):
            raise AddressUnknown(
                f"no bridge to {to.id!r} is set up, so nothing can be sent to other machines; "
                "use a name, *, or uds:<path> on this one"
            )
        await send_over_socket(
            Path(to.path), self._written(f"{SOCKET_SENDER_PREFIX}{self.socket}", letter, summary)
        )
        return f"the session at {to.path} has it"

    def _written(self, sender: str, letter: MailMessage, summary: str) -> Mail:
        return Mail(
            sender=sender,
            summary=summarize_mail(letter, summary),
            body=write_mail_message(letter),
            sent=self._clock.now(),
        )
