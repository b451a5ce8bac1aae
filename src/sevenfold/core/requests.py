"""What is sent to a model and what comes back, as values that are the same for every provider.

A request holds frozen messages; a provider writes them in its own dialect. Messages of an earlier request
are the same objects in the next one, so that a provider need not write them again. `Capabilities` says what
a model accepts through a provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias

from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import Message, Text, ToolUse
from sevenfold.core.models import Model
from sevenfold.core.usage import Usage

Dialect: TypeAlias = Literal["anthropic", "openai"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestParams:
    """All of a request but its messages: what a caller chose, and what stands before the conversation."""

    model: str
    max_tokens: int
    system: str | tuple[JsonObject, ...] = ()
    """Text, or text blocks, as the Messages API takes them."""
    tools: tuple[JsonObject, ...] = ()
    params: JsonObject = EMPTY_OBJECT
    """Every other field of the body (thinking, tool_choice, output_config, …), passed on as it came."""
    betas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A place whose prefix the provider is asked to cache."""

    level: Literal["tools", "system", "messages"]
    index: int
    """Which tool, part of the system prompt, or message."""
    block: int = 0
    """Which block of that message."""
    ttl: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    frame: RequestParams
    messages: Sequence[Message]
    """As sent, without breakpoints. Never changed after the request was made."""
    breakpoints: tuple[Breakpoint, ...] = ()
    purpose: str = "main"
    """Whose call it is, for the bill: `main`, or the kind of fork."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """A model's whole answer."""

    message: Message
    usage: Usage
    usage_wire: JsonObject
    """As the provider said it, for the transcript."""
    stop_reason: str | None = None
    id: str = ""
    model: str = ""
    extra: JsonObject = field(default=EMPTY_OBJECT)
    """What else the answer said: `diagnostics`, `context_management`, `input_transformations`."""
    dialect: Dialect = "anthropic"

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.message.blocks if isinstance(block, ToolUse))

    @property
    def text(self) -> str:
        """All text of the answer, joined."""
        return "".join(block.text for block in self.message.blocks if isinstance(block, Text))


# What a layer may do to a request. Appending is always possible; everything else only where it is safe.

MAX_BREAKPOINTS = 4
"""Of the Messages API, the automatic one included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    rewrites_history: bool
    """Old turns may be rewritten on our side. Not where thinking is signed over everything before it."""
    has_server_edits: bool = False
    """`context_management` clears old results on the provider's side."""
    compacts_on_demand: bool = False
    """A request can ask for a compaction block that stands for everything before it."""
    takes_system_role: bool = False
    """Reminders go as `role: "system"` messages; elsewhere as text of the user's side."""
    breakpoints: int = 0
    """How many breakpoints a prompt may have; 0: the provider caches by itself or not at all."""


def choose_capabilities(model: Model, dialect: Dialect) -> Capabilities:
    """What this model takes through this kind of provider."""
    if dialect == "openai":
        return Capabilities(rewrites_history=True)
    return Capabilities(
        rewrites_history=not model.has_preserved_thinking,
        has_server_edits=model.is_known,
        compacts_on_demand=model.is_known and model.has_preserved_thinking,
        takes_system_role=model.takes_system_role,
        breakpoints=MAX_BREAKPOINTS,
    )
