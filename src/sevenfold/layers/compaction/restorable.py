"""What returns to the view after a compaction besides files: whoever holds it says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from sevenfold.layers.compaction.restore_policy import Extra


@runtime_checkable
class Restorable(Protocol):
    """A tool that holds something the model must see again: skills, a plan, a todo list, tasks, listings."""

    def extras(self) -> Sequence[Extra]:
        """What it is now, skills newest first; nothing where there is nothing."""
        ...
