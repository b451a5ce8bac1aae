"""The summary that opens a view after a compaction: what is requested, accepted and shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sevenfold.core.messages import Message, Text
from sevenfold.core.text.fences import fence_text, find_fences
from sevenfold.layers.compaction.policy import CompactionStrategy
from sevenfold.layers.compaction.user_quotes import UserQuote, render_user_quotes

SUMMARY_OPENING = "[This session goes on from an earlier part, which is no longer in view.]"
"""How every head begins: the next compaction knows its predecessor by it."""

SUMMARY_TAG = "session-summary"
MIN_SUMMARY_CHARS = 80
"""Less than a sentence is no summary of anything."""

_SOURCES: dict[CompactionStrategy, str] = {
    "notes": "These notes, kept while it went on, stand for it:",
    "block": "Its summary stands before this message.",
    "summary": "This summary stands for it:",
    "trimmed": "This summary stands for it; its oldest rounds did not fit and are not covered:",
    "structural": "This record of it was made from its structure, without a model:",
    "clip": "No summary of it could be made. What is known of it:",
}
_GO_ON = (
    "Go on with the work where it stopped, as if nothing had happened between. Do not ask the user to repeat "
    "anything that stands here, and do not remark on this summary."
)


@dataclass(frozen=True, slots=True)
class ParsedSummary:
    """What an answer held."""

    summary: str
    problem: str = ""
    """Why it is none; empty when it is one."""


def parse_summary(text: str) -> ParsedSummary:
    """The summary of an answer, without its scratchpad. An incomplete summary is a failure."""
    if not text.strip():
        return ParsedSummary("", "the answer was empty")
    rest = text
    if (start := text.find("<analysis>")) >= 0 and not text[:start].strip():
        _, closed, rest = text.partition("</analysis>")
        if not closed:
            return ParsedSummary("", "the answer broke off before its summary")
    start, end = rest.find("<summary>"), rest.rfind("</summary>")
    if start < 0:
        return ParsedSummary("", "the answer held no <summary>")
    if end < start:
        return ParsedSummary("", "the summary was not closed")
    summary = rest[start + len("<summary>") : end].strip()
    if len(summary) < MIN_SUMMARY_CHARS:
        return ParsedSummary("", f"the summary had {len(summary)} characters")
    return ParsedSummary(summary)


def render_summary_directive(template: str, *, instructions: str = "", scope: str = "") -> str:
    """The request for a summary. Braces of the instructions are theirs."""
    wish = (
        f"\nThe user asks for this in particular:\n{instructions.strip()}\n" if instructions.strip() else ""
    )
    filled = {"scope": scope, "instructions": wish}
    return re.sub(r"\{(scope|instructions)\}", lambda found: filled[found[1]], template).strip()


def render_summary_scope(anchor: str) -> str:
    """For a summary of what follows a message alone."""
    quoted = " ".join(anchor.split())[:200]
    return f", but only of the part that begins with the message that reads: “{quoted}”" if quoted else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryHead:
    """What goes into the message that opens the new view."""

    rung: CompactionStrategy
    summary: str
    said: tuple[UserQuote, ...] = ()
    transcript: str = ""
    remark: str = ""
    """What else should be known, such as what was dropped."""


def render_summary_head(head: SummaryHead, restored: Sequence[Text] = ()) -> Message:
    """One message of the user's side: the summary, the user's words, what was restored, how to go on."""
    blocks = [Text(_render_opening(head))]
    if head.said:
        blocks.append(
            Text(f"## All user messages, word for word, oldest first\n{render_user_quotes(head.said)}")
        )
    return Message("user", (*blocks, *restored, Text(_GO_ON)))


def _render_opening(head: SummaryHead) -> str:
    where = f"All of it can be read in {head.transcript}." if head.transcript else ""
    parts = [SUMMARY_OPENING, where, head.remark, _SOURCES[head.rung]]
    if head.rung != "block" and head.summary:
        parts.append(fence_text(SUMMARY_TAG, head.summary))
    return "\n".join(part for part in parts if part)


def is_summary_head(message: Message) -> bool:
    """Whether this message opened a view after a compaction."""
    first = next((block for block in message.blocks if isinstance(block, Text)), None)
    return message.role == "user" and first is not None and first.text.startswith(SUMMARY_OPENING)


def find_carried_summary(messages: Sequence[Message]) -> str:
    """The summary that an earlier compaction left in these messages; empty where there is none."""
    for message in messages:
        if is_summary_head(message):
            texts = (block.text for block in message.blocks if isinstance(block, Text))
            for text in texts:
                for fence in find_fences(SUMMARY_TAG, text):
                    return fence.text
    return ""
