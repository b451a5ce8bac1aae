"""Keeps the user's messages word for word through every compaction: the engine copies them, not a model.

Each message stands in a fence of its own in the summary, so that the next compaction finds them all again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sevenfold.core.messages import Block, Document, Image, Message, Text
from sevenfold.layers.compact import CompactSettings
from sevenfold.layers.compact_strip import DOCUMENT, IMAGE
from sevenfold.layers.cut_text import Count, cut_tokens
from sevenfold.layers.fences import fenced, read_fences
from sevenfold.layers.forks import FORK_MARK

SAID_TAG = "user-message"

REMINDER = "<system-reminder>"
"""How text begins that a harness put into the user's side; nobody said it."""

LEAST_TOKENS = 20
"""Shorter than this no message is made: its first words must still say what it was about."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the user's."""

    text: str
    pointer: str = ""
    """Where all of it is, if only its beginning is shown."""


@dataclass(frozen=True, slots=True)
class SaidPlan:
    """How everything the user said is made to fit."""

    fold: int = 0
    """So many of the oldest go to one file together. Only where there are thousands."""
    max_tokens: int = 0
    """What may stay in view of any other."""
    long: tuple[int, ...] = ()
    """Which of the others are over that."""


def collect_said(
    messages: Sequence[Message], *, is_summary: Sequence[bool], attachments: Collection[int] = ()
) -> tuple[Said, ...]:
    """All that the user said, oldest first; what earlier compactions carried is found in their summaries."""
    found: list[Said] = []
    for at, message in enumerate(messages):
        if message.role != "user":
            continue
        if is_summary[at]:
            for block in message.blocks:
                found += _carried(block.text) if isinstance(block, Text) else ()
        elif at not in attachments:
            text = spoken_text(message)
            found += [Said(text)] if text else []
    return tuple(found)


def spoken_text(message: Message) -> str:
    """What a person said in a message: tool results and reminders are nobody's words."""
    return "\n".join(part for block in message.blocks if (part := _spoken(block)))


def _spoken(block: Block) -> str:
    match block:
        case Text():
            is_ours = block.text.lstrip().startswith((REMINDER, FORK_MARK))
            return "" if is_ours else block.text
        case Image():
            return IMAGE
        case Document():
            return DOCUMENT
        case _:
            return ""


def _carried(text: str) -> Iterator[Said]:
    return (Said(fence.text, fence.label) for fence in read_fences(SAID_TAG, text))


def plan_said(said: Sequence[Said], count: Count, settings: CompactSettings) -> SaidPlan:
    """Which messages are shortened, and to what: those over their own limit; and while all together are over
    theirs, ever more of the longest."""
    sizes = [count(item.text) for item in said]
    total, cap = settings.said_total_tokens, settings.said_tokens
    while cap > LEAST_TOKENS and sum(min(size, cap) for size in sizes) > total:
        cap = max(LEAST_TOKENS, cap // 2)
    fold = 0
    while sum(min(size, cap) for size in sizes[fold:]) > total:
        fold += max(1, (len(sizes) - fold) // 10)
    return SaidPlan(fold, cap, tuple(at for at, size in enumerate(sizes) if at >= fold and size > cap))


def shorten(said: Said, max_tokens: int, count: Count, pointer: str) -> Said:
    """Its beginning, in whole lines, and where all of it is: where that was known before, there."""
    return Said(cut_tokens(said.text, max_tokens, count).rstrip(), said.pointer or pointer)


def render_said(said: Sequence[Said]) -> str:
    return "\n".join(fenced(SAID_TAG, item.text, label=item.pointer) for item in said)
