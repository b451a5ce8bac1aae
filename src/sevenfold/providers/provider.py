"""What every provider offers, and what it tells while an answer is being written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from sevenfold.core.capabilities import Capabilities
from sevenfold.core.messages import ToolUseId
from sevenfold.core.models import Model
from sevenfold.core.requests import Dialect, ModelRequest, ModelResponse


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More of the thinking, where the provider shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolDelta:
    """A tool request begins (`json` is empty), or more of its input came: JSON text, whole at the end."""

    id: ToolUseId
    name: str
    json: str = ""


Delta: TypeAlias = TextDelta | ThinkingDelta | ToolDelta
OnDelta: TypeAlias = Callable[[Delta], None]
"""Who watches an answer being written. Called on the loop that awaits it."""


UNREADABLE_USAGE = "unreadable_usage"
"""In a reply's `extra`: why its usage, which then counts as none, could not be read."""

MAX_UNSTREAMED_TOKENS = 21_333
"""Max tokens above which an answer may take more than ten minutes, after which the SDKs give up waiting.
Anthropic's refuses such a request unless it is streamed."""


def ignore_delta(delta: Delta) -> None:
    """For a stream that nobody watches."""


class Provider(Protocol):
    """Sends a request and returns the whole answer. Every failure is a `ProviderError`, whoever raised it."""

    @property
    def dialect(self) -> Dialect: ...

    def capabilities(self, model: Model) -> Capabilities:
        """By which means a layer may act on this model through this provider."""
        ...

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        """Ask the model. Retries of a passing failure are the provider's own; what is raised is final."""
        ...

    async def close(self) -> None:
        """Let go of connections that this provider opened itself. Again does nothing."""
        ...


class ProviderWrapper:
    """A provider around another one. What a subclass does not say itself is the inner one's."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    @property
    def dialect(self) -> Dialect:
        return self._inner.dialect

    def capabilities(self, model: Model) -> Capabilities:
        return self._inner.capabilities(model)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        return await self._inner.send(request, on_delta)

    async def close(self) -> None:
        await self._inner.close()
