"""The tools of an agent, put together once a session: the list is part of the cached prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from sevenfold.agent.agent import Agent


@runtime_checkable
class Joins(Protocol):
    """A tool that works with the agent itself: it starts others, or tells it something later."""

    def join(self, agent: Agent) -> None:
        """The agent is there now. Called once, before its first turn."""
        ...
