"""What a model is asked when a summary is wanted: package text, unless a caller has its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class SummaryPrompts:
    summary: str
    """The directive of a fork. `{scope}` and `{instructions}` are filled in."""
    block: str
    """For a provider that makes compaction blocks itself. `{instructions}` is filled in."""


@cache
def read_summary_prompts() -> SummaryPrompts:
    """The ones that come with the package."""
    folder = files("sevenfold.layers") / "prompts"
    texts = (folder / name for name in ("summary.md", "summary_block.md"))
    return SummaryPrompts(*(text.read_text(encoding="utf-8") for text in texts))
