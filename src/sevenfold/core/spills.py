"""What was decided of a tool result, as transcripts keep it."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.canonical import Digest
from sevenfold.core.messages import ToolUseId


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillDecision:
    """What happens to one tool result: decided when it first enters a prompt, and never changed."""

    tool_use_id: ToolUseId
    preview: str | None = None
    """The exact text that stands in for the result; None: it was left alone."""
    spill: str | None = None
    """The file that holds all of it, relative to the session's folder."""
    digest: Digest | None = None
    """Of the stored bytes, so that a changed or exchanged spill is noticed."""
    size_bytes: int = 0
