"""What whoever watches tools is shown while they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from sevenfold.agent.tool import ToolOutput
from sevenfold.core.messages import ToolUse


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


@dataclass(frozen=True, slots=True)
class ToolEnded:
    use: ToolUse
    output: ToolOutput
    took: timedelta


ToolEvent: TypeAlias = ToolStarted | ToolPrinted | ToolEnded
OnToolEvent: TypeAlias = Callable[[ToolEvent], None]


def ignore_tool_event(seen: ToolEvent) -> None:
    """For calls that nobody watches."""
