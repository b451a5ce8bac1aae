"""What a chat is given, and what its commands may do with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.tui.text_renderer import TextTone
from sevenfold.agent.tui.turn_view import TurnView
from sevenfold.store.transcript.sessions import SessionEntry


@dataclass(frozen=True, slots=True)
class ChatServices:
    """What a chat is given by whoever opens it."""

    open: Callable[[str | None], Awaitable[Agent]]
    """An agent in a session of that id; None: in a new one."""
    sessions: Callable[[], Sequence[SessionEntry]]
    describe_context: Callable[[str], Awaitable[str]]
    """What fills the window of a session, by its id."""
    memories: Callable[[str], Sequence[str]]
    """What `sevenfold memory` says to these words, line by line."""


class ChatHandle(Protocol):
    """A chat as its commands see it."""

    agent: Agent
    house: ChatServices
    view: TurnView

    @property
    def is_busy(self) -> bool: ...

    def say(self, text: str, tone: TextTone = "plain") -> None: ...

    def put(self, text: str) -> None:
        """Print what is painted already."""
        ...

    def renew_status(self) -> None:
        """The model or the mode may have changed."""
        ...

    async def exchange(self, session: str | None) -> None:
        """Go on in another session, or in a new one."""
        ...

    def leave(self) -> None: ...
