"""Who there is by name in a project, in whichever process: agents and sessions, running or stopped.

An agent holds the lock of its name as long as it lives, and the kernel lets go of it however it dies. What is
written down beside it is enough to take it up again.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from sevenfold.core.errors import FileMissing, LockBusy, WireError
from sevenfold.core.json import JsonObject, freeze_object, read_object, write_json
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.mutex import mutex

AgentKind: TypeAlias = Literal["main", "fresh", "fork", "teammate"]
AGENT_KINDS: tuple[AgentKind, ...] = ("main", "fresh", "fork", "teammate")

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

    def hold(self, listed: RosterEntry, until: ExitStack) -> None:
        """Take a name for as long as `until` is open, and write down whose it is; `LockBusy`: it is taken.
        Blocks on the disk."""
        until.enter_context(mutex(self._control, f"agent-{listed.name}", wait=timedelta()))
        self.write(listed)

    def write(self, listed: RosterEntry) -> None:
        """Write down who has a name, without taking it. Blocks on the disk."""
        with self._control.subfolder("agents") as folder:
            folder.replace(f"{listed.name}.json", write_json(freeze_object(asdict(listed))))

    def find(self, name: str) -> RosterEntry | None:
        """Who has or had that name. Blocks on the disk."""
        try:
            with self._control.subfolder("agents") as folder:
                return _read(read_object(folder.read(f"{name}.json", max_bytes=MAX_ROSTER_ENTRY_BYTES)))
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


def _read(wire: JsonObject) -> RosterEntry:
    texts = {key: value for key, value in wire.items() if isinstance(value, str)}
    kind = texts.pop("kind", "")
    if kind not in AGENT_KINDS or "name" not in texts or "session" not in texts:
        raise WireError("an entry of the roster needs a name, a kind and a session")
    known = {key: value for key, value in texts.items() if key in RosterEntry.__slots__}
    return RosterEntry(kind=AGENT_KINDS[AGENT_KINDS.index(kind)], **known)
