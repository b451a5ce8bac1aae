"""What a tool is: the `Tool` protocol, access requests, output, and events while a tool runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from sevenfold.core.errors import SevenfoldError
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import Block, ToolUse
from sevenfold.core.system import run_blocking
from sevenfold.core.tool_kinds import SandboxProfile

if TYPE_CHECKING:
    from sevenfold.core.tool_kinds import ToolContext


AccessKind: TypeAlias = Literal["nothing", "read", "edit", "run", "fetch", "message", "spawn", "outside"]
"""What a call touches: files it reads or changes, a command, the network, other agents; `outside` is a tool
of somebody else's (MCP), of which nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """What a call is about to do, said before it does it. Permissions are decided on this alone."""

    kind: AccessKind
    paths: tuple[str, ...] = ()
    """Absolute, as they were asked for: whoever decides looks through links itself."""
    command: str = ""
    profile: SandboxProfile = "open"
    """Of a command: its sandbox profile. Only an `open` one can do more than its profile says."""
    url: str = ""
    tool: str = ""
    """The tool that is meant, where one calls another; empty: the one that is called."""
    said: str = ""
    """The call in one line, for a person who is asked."""
    diff: str = ""
    """Of an edit that can be made: what it would change, as a unified diff for a person who is asked."""

    @property
    def title(self) -> str:
        """What is done, in one line: a command itself, for a model's words about it may be wrong."""
        return " ".join((self.command or self.said).split())


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """How a tool is declared. It never changes in a session: it is part of the cached prefix."""

    name: str
    description: str
    schema: JsonObject
    is_parallel: bool = False
    """It changes nothing, so that calls of it may run at the same time."""

    def declared(self) -> JsonObject:
        return freeze_object(
            {"name": self.name, "description": self.description, "input_schema": self.schema}
        )


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What the model gets back, and what a person is shown instead where that says more."""

    content: str | tuple[Block, ...]
    is_error: bool = False
    diff: str = ""
    """Of an edit: a unified diff for the user, which the model does not need."""


OnProgress: TypeAlias = Callable[[str], None]
"""Told of what a running tool prints, as it prints it."""


class Tool(Protocol):
    """One tool. Bad input is an `InputError` from `need`; what goes wrong later is an output that says so."""

    @property
    def spec(self) -> ToolSpec: ...

    def need(self, given: JsonObject, place: ToolContext, /) -> AccessRequest:
        """What this call would do. Touches nothing."""
        ...

    async def run(self, given: JsonObject, place: ToolContext, on_progress: OnProgress, /) -> ToolOutput:
        """Do it. Cancelled at any moment, it leaves no process and no half-written file."""
        ...


@runtime_checkable
class Previewer(Protocol):
    """A tool that can tell what a call would change before anybody is asked to allow it."""

    def preview(self, given: JsonObject, place: ToolContext, /) -> str | None:
        """The change as a unified diff; None where it may not be looked at before it is allowed. A
        `SevenfoldError` where the call cannot succeed. Reads files, and changes nothing."""
        ...


@runtime_checkable
class DeferredTools(Protocol):
    """A tool that knows tools which are not declared, so that a model may call them by their names."""

    def find_deferred(self, name: str, /) -> Tool | None: ...


# Events for listeners while tools run.


@dataclass(frozen=True, slots=True)
class ToolStarted:
    use: ToolUse
    said: str
    """The call in one line."""


@dataclass(frozen=True, slots=True)
class ToolPrinted:
    """A running tool printed something."""

    use: ToolUse
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded:
    use: ToolUse
    output: ToolOutput
    took: timedelta
    """Of the call itself: the time that a person took to allow it is not in it."""
    said: str = ""
    """The call in one line, also of one that was denied and never started."""
    is_denied: bool = False


ToolEvent: TypeAlias = ToolStarted | ToolPrinted | ToolEnded
OnToolEvent: TypeAlias = Callable[[ToolEvent], None]


def ignore_tool_event(seen: ToolEvent) -> None:
    """For calls that nobody watches."""


# Helpers for tools. An `InputError` says what was expected, so that the model can correct its input.


async def call_in_thread(work: Callable[[], ToolOutput]) -> ToolOutput:
    """Do the work of a call in a thread; what goes wrong on purpose becomes an answer that says so."""
    try:
        return await run_blocking(work)
    except SevenfoldError as error:
        return error_output(str(error))


def error_output(reason: str) -> ToolOutput:
    return ToolOutput(reason, is_error=True)
