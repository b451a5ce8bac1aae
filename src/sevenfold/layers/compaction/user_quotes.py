"""Keeps the user's messages word for word through every compaction: the engine copies them, not a model.

Each message stands in a fence of its own in the summary, so that the next compaction finds them all again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sevenfold.core.messages import Block, Document, Image, Message, Text
from sevenfold.core.text.fences import fence_text, find_fences
from sevenfold.core.text.truncate import CountTokens, truncate_tokens
from sevenfold.layers.compaction.settings import CompactSettings
from sevenfold.layers.compaction.strip import DOCUMENT_PLACEHOLDER, IMAGE_PLACEHOLDER
from sevenfold.layers.forks.policy import FORK_MARK

USER_MESSAGE_TAG = "user-message"

_REMINDER = "<system-reminder>"
"""How text begins that a harness put into the user's side; nobody said it."""

MIN_QUOTE_TOKENS = 20
"""Shorter than this no message is made: its first words must still say what it was about."""


@dataclass(frozen=True, slots=True)
class UserQuote:
    """One message of the user's."""

    text: str
    pointer: str = ""
    """Where all of it is, if only its beginning is shown."""


@dataclass(frozen=True, slots=True)
class QuotePlan:
    """How everything the user said is made to fit."""

    fold: int = 0
    """So many of the oldest go to one file together. Only where there are thousands."""
    max_tokens: int = 0
    """What may stay in view of any other."""
    long: tuple[int, ...] = ()
    """Which of the others are over that."""


def collect_user_quotes(
    messages: Sequence[Message], *, is_summary: Sequence[bool], attachments: Collection[int] = ()
) -> tuple[UserQuote, ...]:
    """All that the user said, oldest first; what earlier compactions carried is found in their summaries."""
    found: list[UserQuote] = []
    for at, message in enumerate(messages):
        if message.role != "user":
            continue
        if is_summary[at]:
            for block in message.blocks:
                found += _carried(block.text) if isinstance(block, Text) else ()
        elif at not in attachments:
            text = extract_user_text(message)
            found += [UserQuote(text)] if text else []
    return tuple(found)


def extract_user_text(message: Message) -> str:
    """What a person said in a message: tool results and reminders are nobody's words."""
    return "\n".join(part for block in message.blocks if (part := _spoken(block)))


def _spoken(block: Block) -> str:
    match block:
        case Text():
            is_ours = block.text.lstrip().startswith((_REMINDER, FORK_MARK))
            return "" if is_ours else block.text
        case Image():
            return IMAGE_PLACEHOLDER
        case Document():
            return DOCUMENT_PLACEHOLDER
        case _:
            return ""


def _carried(text: str) -> Iterator[UserQuote]:
    return (UserQuote(fence.text, fence.label) for fence in find_fences(USER_MESSAGE_TAG, text))


def plan_quotes(said: Sequence[UserQuote], count: CountTokens, settings: CompactSettings) -> QuotePlan:
    """Which messages are shortened, and to what: those over their own limit; and while all together are over
    theirs, ever more of the longest."""
    sizes = [count(item.text) for item in said]
    total, cap = settings.said_total_tokens, settings.said_tokens
    while cap > MIN_QUOTE_TOKENS and sum(min(size, cap) for size in sizes) > total:
        cap = max(MIN_QUOTE_TOKENS, cap // 2)
    fold = 0
    while sum(min(size, cap) for size in sizes[fold:]) > total:
        fold += max(1, (len(sizes) - fold) // 10)
    return QuotePlan(fold, cap, tuple(at for at, size in enumerate(sizes) if at >= fold and size > cap))


def shorten_quote(said: UserQuote, max_tokens: int, count: CountTokens, pointer: str) -> UserQuote:
    """Its beginning, in whole lines, and where all of it is: where that was known before, there."""
    return UserQuote(truncate_tokens(said.text, max_tokens, count).rstrip(), said.pointer or pointer)


def render_user_quotes(said: Sequence[UserQuote]) -> str:
    return "\n".join(fence_text(USER_MESSAGE_TAG, item.text, label=item.pointer) for item in said)
