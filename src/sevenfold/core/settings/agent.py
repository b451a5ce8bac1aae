"""Settings of the agent itself, down here because every room that reads settings files knows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sevenfold.core.settings import limit, line, switch


@dataclass(frozen=True, slots=True)
class AgentSettings:
    SECTION: ClassVar[str] = "agent"

    model: str | None = line(None)
    """Unset: the model that does this work best for its price among those we know."""

    base_url: str | None = line(None)
    """Unset: Anthropic's own address, or OpenAI's. Any server that speaks like OpenAI's is named here."""

    max_rounds: int = limit(500, at_least=1)
    """A turn that needs more is most likely going round in circles, at a cost."""

    thinking: bool = switch(True)
    """On: models that can think before they answer are better at this work than without."""
