"""Sends messages to other agents and sessions.

`Roster` lists the names in a project, `read_started_agents` the agents of one session. `MailSender` writes to
mailboxes of the project and to sockets of other sessions. `SendMessageTool` is the tool that the model calls.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, Protocol, TypeAlias
from uuid import uuid4

from sevenfold.agent.subagents.socket_mail import SOCKET_SENDER_PREFIX, send_over_socket
from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.core.clock import Clock
from sevenfold.core.errors import (
    AddressUnknown,
    FileMissing,
    InputError,
    LockBusy,
    SevenfoldError,
    StoreError,
    WireError,
)
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import JsonObject, get_string, object_schema, read_object, write_json
from sevenfold.core.system import run_blocking
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.forks.policy import (
    MAIL_TYPES,
    Address,
    BridgeAddress,
    MailMessage,
    NoteMessage,
    ShutdownRequest,
    SocketAddress,
    parse_address,
    read_mail_message,
    summarize_mail,
    write_mail_message,
)
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.mailbox import Mail, Mailbox, MailSettings

# The roster: agents and sessions of a project, in any process, running or stopped. An agent holds the lock of
# its name while it runs, and the kernel releases it however the agent ends. The entry beside it is enough to
# resume.

AgentKind: TypeAlias = Literal["main", "fresh", "fork", "teammate"]

PLAN_APPROVED = "approved"
MAX_ROSTER_ENTRY_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterEntry:
    """One agent."""

    name: str
    kind: AgentKind
    session: str
    definition: str = ""
    description: str = ""
    cwd: str = ""
    model: str = ""
    plan: str = ""
    """`approved`: its lead has let it act, so that it may do what its lead may."""
    socket: str = ""
    """Where it listens; empty: it does not."""


class Roster:
    """The names of one project. `control` is out of agents' reach."""

    def __init__(self, control: Folder) -> None:
        self._control = control

    def claim(self, listed: RosterEntry, until: ExitStack) -> None:
        """Take a name for as long as `until` is open, and write down whose it is; `LockBusy`: it is taken.
        Blocks on the disk."""
        until.enter_context(mutex(self._control, f"agent-{listed.name}", wait=timedelta()))
        self.write(listed)

    def write(self, listed: RosterEntry) -> None:
        """Write down who has a name, without taking it. Blocks on the disk."""
        with self._control.subfolder("agents") as folder:
            folder.replace(f"{listed.name}.json", write_json(write_fields(listed)))

    def find(self, name: str) -> RosterEntry | None:
        """Who has or had that name. Blocks on the disk."""
        try:
            with self._control.subfolder("agents") as folder:
                wire = read_object(folder.read(f"{name}.json", max_bytes=MAX_ROSTER_ENTRY_BYTES))
                return read_fields(RosterEntry, wire)
        except (FileMissing, WireError):
            return None

    def names(self) -> list[str]:
        with self._control.subfolder("agents") as folder:
            return [name.removesuffix(".json") for name in folder.names() if name.endswith(".json")]

    def is_running(self, name: str) -> bool:
        """Whether a living process has the name. Blocks on the disk."""
        try:
            with mutex(self._control, f"agent-{name}", wait=timedelta()):
                return False
        except LockBusy:
            return True


# The agents that a session has started, named or not: a line each in the session's folder. What they were
# billed is part of the session's bill, also in another process.

STARTED_AGENTS_FILE = "agents.jsonl"
MAX_STARTED_AGENTS_BYTES = 4 * 1024 * 1024
"""Thirty thousand agents; what is beyond is not read."""


@dataclass(frozen=True, slots=True)
class StartedAgent:
    """An agent that a session has started."""

    session: str
    """Its own."""
    who: str
    """Whose calls its are, in the starter's bill."""


def write_started_agent(folder: Path, started: StartedAgent) -> None:
    """Write down in the starter's folder that there is one more. Blocks on the disk."""
    with Folder.open(folder, create=True) as opened:
        opened.append(STARTED_AGENTS_FILE, write_json(write_fields(started)) + b"\n")


def read_started_agents(sessions: Folder, session: str) -> tuple[StartedAgent, ...]:
    """Each once, in the order they were started; a line that cannot be read is passed over. Blocks on the
    disk."""
    try:
        data = sessions.read_range(f"{session}/{STARTED_AGENTS_FILE}", 0, MAX_STARTED_AGENTS_BYTES)
    except StoreError:
        return ()
    found: dict[str, StartedAgent] = {}
    for line in data.splitlines():
        with suppress(SevenfoldError):
            started = read_fields(StartedAgent, read_object(line))
            found.setdefault(started.session, started)
    return tuple(found.values())


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

    async def send_to_session(
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


SEND_MESSAGE_NAME = "send_message"

_SPEC = ToolSpec(
    SEND_MESSAGE_NAME,
    "Say something to another agent. `to` is its name; `lead` for whoever started you; `*` for everyone who "
    "runs; or uds:<path> for another session on this machine. A running agent hears it when its next round "
    "begins; a stopped one is taken up again from where it was. Nobody answers inside this call: an answer "
    "comes as a message. What you write as plain text is seen by nobody but your own user or starter.",
    object_schema(
        {
            "to": {"type": "string", "description": "a name, lead, *, uds:<path> or bridge:<id>"},
            "summary": {"type": "string", "description": "the message in 3 to 10 words, for display"},
            "message": {
                "description": "text, or one of the structured messages",
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "properties": {
                            "type": {"enum": list(MAIL_TYPES[1:])},
                            "request_id": {"type": "string"},
                            "approve": {"type": "boolean"},
                            "reason": {"type": "string"},
                            "feedback": {"type": "string"},
                            "plan": {"type": "string"},
                        },
                        "required": ["type"],
                    },
                ],
            },
        },
        ("to", "message"),
    ),
)


class MessageRouter(Protocol):
    """Whoever can bring a message to an address."""

    async def send(self, sender: str, to: Address, letter: MailMessage, summary: str) -> str:
        """What became of it, in a line for the sender."""
        ...


class SendMessageTool:
    """Sends messages as one agent. It cannot sign with another's name."""

    def __init__(self, router: MessageRouter, sender: str) -> None:
        self._router, self._sender = router, sender

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    def need(self, given: JsonObject, _place: ToolContext, /) -> AccessRequest:
        to = get_string(given, "to")
        parse_address(to)
        self._letter(given)
        return AccessRequest(kind="message", said=f"message to {to}: {get_string(given, 'summary', '')}")

    async def run(self, given: JsonObject, _place: ToolContext, _on_progress: OnProgress, /) -> ToolOutput:
        to, letter = parse_address(get_string(given, "to")), self._letter(given)
        return ToolOutput(await self._router.send(self._sender, to, letter, get_string(given, "summary", "")))

    def _letter(self, given: JsonObject) -> MailMessage:
        message = given.get("message")
        if isinstance(message, str):
            return NoteMessage(message)
        if not isinstance(message, JsonObject):
            raise InputError("message is missing; expected text or one of the structured messages")
        if str(message.get("type")).endswith("_request") and "request_id" not in message:
            message = JsonObject({**message, "request_id": uuid4().hex[:12]})
        return read_mail_message(message)
