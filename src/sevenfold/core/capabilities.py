"""By which means a layer may act on a model: appending always; everything else only where it is safe."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.models import Model
from sevenfold.core.requests import Dialect

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
    """How many places of the prompt may be marked for caching; 0: the provider caches by itself or not."""


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
