"""The tools of an agent, put together once a session: the list is part of the cached prefix."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from sevenfold.agent.ground import Ground
from sevenfold.run.permissions import Guard
from sevenfold.run.tool import Tool
from sevenfold.run.tools.edit import Edit
from sevenfold.run.tools.read import Read
from sevenfold.run.tools.write import Write

if TYPE_CHECKING:
    from sevenfold.agent.agent import Agent


@runtime_checkable
class Joins(Protocol):
    """A tool that works with the agent itself: it starts others, or tells it something later."""

    def join(self, agent: Agent) -> None:
        """The agent is there now. Called once, before its first turn."""
        ...


def usual_tools(_ground: Ground, _guard: Guard, _exits: AsyncExitStack) -> tuple[Tool, ...]:
    """What a session has unless its caller says otherwise. What is given to `_exits` is closed with it."""
    return (Read(), Write(), Edit())
