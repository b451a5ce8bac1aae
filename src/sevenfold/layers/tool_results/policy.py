"""Layer 1, tool-result storage: which results leave the context for the disk, and what stands in for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from sevenfold.core.messages import Text, ToolResult, ToolUseId
from sevenfold.core.settings import limit, limits, names, switch
from sevenfold.core.settings.kinds import LimitTable
from sevenfold.core.spills import SpillDecision
from sevenfold.core.text.safe_text import truncate_lines
from sevenfold.core.tool_kinds import SPILL_READERS


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultSettings:
    SECTION: ClassVar[str] = "tool_results"

    enabled: bool = switch(True)
    """On: a spill costs one file write and loses nothing, since the whole result can be read back."""

    limit_chars: int = limit(50_000, at_least=1)
    """Some 12,500 tokens, which 75 of 21,205 real results exceeded: rare enough, and large enough to pay."""

    round_limit_chars: int = limit(200_000, at_least=1)
    """Four results at their own limit: parallel calls must not fill a 200,000-token window in one round."""

    preview_bytes: int = limit(2_000, at_least=1)
    """Some 30 lines: enough to see whether the rest is worth reading back, small enough to keep for ever."""

    session_quota_bytes: int = limit(1024**3, at_least=0)
    """A gigabyte of results in one session means that something runs away; the disk is not ours to fill."""

    limits: LimitTable = limits(LimitTable(), at_least=1, base="limit_chars")
    """By tool, in characters, in place of `limit_chars`. Empty: no tool was measured to need its own."""

    opted_out: tuple[str, ...] = names(SPILL_READERS)
    """Tools with no limit, whatever `limits` says. Read, by either name, brings spills back: storing those
    again goes in circles."""


EMPTY_RESULT = "[the tool returned no output]"
"""Instead of an empty string, which models read as a failure of the harness."""


PREVIEW_OPENING, PREVIEW_CLOSING = "<persisted-output>", "</persisted-output>"


_TAGS = re.compile(r"<(\s*/?\s*persisted-output)", re.IGNORECASE)


def render_preview(text: str, path: str, size_bytes: int, settings: ToolResultSettings) -> str:
    """The block that stands in for a spilled result: how large it is, where it is, how it begins."""
    start = truncate_lines(text, settings.preview_bytes)
    # A result that holds our own tags must not be able to speak from outside the block.
    shown = _TAGS.sub(r"<\\\1", start).rstrip("\n")
    more = "" if len(start) == len(text) else "\n…"
    return (
        f"{PREVIEW_OPENING}\n{size_bytes:,} bytes of output are kept in a file, to be read whole or "
        f"by range:\n"
        f"{path}\nIt begins:\n\n{shown}{more}\n{PREVIEW_CLOSING}"
    )


def read_preview(text: str) -> str:
    """What of a tool result stands in the context: a preview without what was put around it."""
    if text == EMPTY_RESULT:
        return ""
    if not (text.startswith(f"{PREVIEW_OPENING}\n") and text.endswith(f"\n{PREVIEW_CLOSING}")):
        return text
    shown = text[: -len(PREVIEW_CLOSING) - 1].partition("\nIt begins:\n\n")[2]
    return shown.removesuffix("\n…")


def is_empty_result(result: ToolResult) -> bool:
    """Whether there is nothing in it for a model to read."""
    content = result.content
    return not content or (
        isinstance(content, tuple) and all(isinstance(item, Text) and not item.text for item in content)
    )


def choose_inline(result: ToolResult) -> SpillDecision:
    """The decision for a result that stays in the context. An empty one is given its marker here, so that a
    later wording of the marker changes no byte of a session that has already sent it."""
    return SpillDecision(
        tool_use_id=result.tool_use_id, preview=EMPTY_RESULT if is_empty_result(result) else None
    )


@dataclass(frozen=True, slots=True)
class FreshResult:
    """A result that no prompt has shown yet."""

    result: ToolResult
    tool: str
    """The name of the tool that gave it; empty where its request is not known."""


def count_result_chars(result: ToolResult) -> int:
    """The characters of text in a result; an image has none."""
    content = result.content
    if content is None or isinstance(content, str):
        return len(content or "")
    return sum(len(item.text) for item in content if isinstance(item, Text))


def choose_spilled(fresh: Sequence[FreshResult], settings: ToolResultSettings) -> frozenset[ToolUseId]:
    """Which results of one round go to disk: each that is over its own limit, then the largest of the others
    until the round fits its budget."""
    if not settings.enabled:
        return frozenset()
    sizes = {item.result.tool_use_id: count_result_chars(item.result) for item in fresh}
    movable = [item for item in fresh if item.tool not in settings.opted_out]
    spilled = {
        item.result.tool_use_id
        for item in movable
        if sizes[item.result.tool_use_id] > settings.limits.get(item.tool, settings.limit_chars)
    }
    left = sum(size for use, size in sizes.items() if use not in spilled)
    for item in sorted(movable, key=lambda item: sizes[item.result.tool_use_id], reverse=True):
        if left <= settings.round_limit_chars:
            break
        use = item.result.tool_use_id
        # Storing what is shorter than its own preview would make the context longer.
        if use not in spilled and sizes[use] > settings.preview_bytes:
            spilled.add(use)
            left -= sizes[use]
    return frozenset(spilled)


def apply_spill_decision(result: ToolResult, decision: SpillDecision) -> ToolResult:
    """The result as it is sent: what the decision put in its place, or as it came."""
    return result if decision.preview is None else replace(result, content=decision.preview)
