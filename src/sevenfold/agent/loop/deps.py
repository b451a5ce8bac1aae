"""What an agent is made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from sevenfold.agent.hooks.runner import SessionHooks
from sevenfold.agent.loop.event_relay import EventRelay
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.requests import RequestParams
from sevenfold.layers.context.sources import ContextSource
from sevenfold.providers.provider import Provider
from sevenfold.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDeps:
    """What an agent works with."""

    session: Session
    toolbox: ToolExecutor
    provider: Provider
    frame: RequestParams
    relay: EventRelay
    hooks: SessionHooks
    exits: AsyncExitStack
    """Closed with the agent: its session last but for what that needs."""
    keep: Callable[[RequestParams], Awaitable[bool]]
    """Write a frame down for whoever takes the session up again; False, and told, where that fails."""
    kept: RequestParams | None
    """What is written down already."""
    catalog: Catalog = CATALOG
    thinks: bool = True
    """Whether models that can are asked to."""
    max_rounds: int = 500
    sources: Callable[[], tuple[ContextSource, ...]] | None = None
    """Context that may change from round to round: said where it has."""
    is_child: bool = False
    """Started by another agent: its session is no person's, and hooks hear of its end alone."""


@dataclass(frozen=True, slots=True)
class OpeningMessages:
    """What there is to say when a session begins, or goes on."""

    texts: tuple[str, ...] = ()
    """To the model, beside the first prompt."""
    notices: tuple[str, ...] = ()
    """To the person."""
    posts: tuple[str, ...] = ()
    """In the user's name."""
