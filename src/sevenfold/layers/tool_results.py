"""Layer 1, tool-result storage: which results leave the context for the disk, and what stands in for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sevenfold.core.setting_kinds import Limits
from sevenfold.core.settings import limit, limits, names, switch


@dataclass(frozen=True, slots=True)
class ToolResultSettings:
    SECTION: ClassVar[str] = "tool_results"

    enabled: bool = switch(True)
    """On: a spill costs one file write and loses nothing, since the whole result can be read back."""

    limit_chars: int = limit(50_000, at_least=1)
    """12,500 tokens and up, by density: of 21,205 real results 75 were larger, and those filled the window."""

    round_limit_chars: int = limit(200_000, at_least=1)
    """Four results at their own limit: parallel calls must not fill a 200,000-token window in one round."""

    preview_bytes: int = limit(2_000, at_least=1)
    """Some 30 lines: enough to see whether the rest is worth reading back, small enough to keep for ever."""

    limits: Limits = limits(Limits(), at_least=1, ceiling=50_000)  # noqa: RUF009 - a field, not a call
    """By tool, in characters, in place of `limit_chars`. Empty: no tool was measured to need its own."""

    opted_out: tuple[str, ...] = names(("Read",))
    """Tools without a limit, whatever `limits` says. Read brings spills back: storing that goes in circles."""
