"""Shorter forms of a view, for summary requests and for kept messages.

Messages without thinking, media or long results, as copies; a view as rounds, which are dropped or kept whole
so that no call loses its result; and whether a summary is cheaper on the warm prefix or on a stripped copy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from sevenfold.core.messages import (
    Block,
    Compaction,
    Document,
    Image,
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    change_blocks,
    without_message_compaction,
    without_message_thinking,
)
from sevenfold.core.models import Model, Prices
from sevenfold.core.text.safe_text import truncate_lines
from sevenfold.layers.compaction.policy import CompactSettings

_RESTORED = ("<restored-file ", "<restored ")
"""How blocks begin that a compaction put back into view."""

IMAGE_PLACEHOLDER, DOCUMENT_PLACEHOLDER = "[image]", "[document]"


def without_thinking(messages: Iterable[Message]) -> tuple[Message, ...]:
    """All thinking dropped; a message that had none is the same object."""
    return tuple(map(without_message_thinking, messages))


def without_media(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Images and documents replaced by a word each, inside tool results too."""
    return tuple(change_blocks(message, _name_media) for message in messages)


def without_compaction_blocks(messages: Iterable[Message]) -> tuple[Message, ...]:
    """A provider's compaction block as the user's text, for a request that cannot carry it."""
    return tuple(map(without_message_compaction, messages))


def without_restored(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Without what an earlier compaction put back: it is put back again, as it is then."""

    def drop(block: Block) -> Block | None:
        is_restored = isinstance(block, Text) and block.text.startswith(_RESTORED)
        return None if is_restored else block

    return tuple(change_blocks(message, drop) if message.role == "user" else message for message in messages)


def without_system_role(messages: Iterable[Message]) -> tuple[Message, ...]:
    """System messages in mid-conversation as the user's text, for a model that takes none."""
    return tuple(replace(item, role="user") if item.role == "system" else item for item in messages)


def with_short_results(messages: Iterable[Message], max_bytes: int, pointer: str) -> tuple[Message, ...]:
    """Every tool result cut to its beginning, with a word on where the rest is."""

    def cut(block: Block) -> Block | None:
        if not isinstance(block, ToolResult):
            return block
        text = _result_text(block)
        shown = truncate_lines(text, max_bytes)
        if len(shown) == len(text):
            return block
        return replace(
            block, content=f"{shown}\n[cut here, {len(text) - len(shown):,} characters; {pointer}]"
        )

    return tuple(change_blocks(message, cut) for message in messages)


def ensure_user_first(messages: Sequence[Message], opening: str) -> tuple[Message, ...]:
    """The same with a user's message first, as the API wants it."""
    if messages and messages[0].role == "user":
        return tuple(messages)
    return (Message("user", opening), *messages)


def _name_media(block: Block) -> Block:
    match block:
        case Image():
            return Text(IMAGE_PLACEHOLDER)
        case Document():
            return Text(DOCUMENT_PLACEHOLDER)
        case ToolResult() if isinstance(block.content, tuple):
            inner = tuple(_name_media(item) for item in block.content)
            same = all(new is old for new, old in zip(inner, block.content, strict=True))
            return block if same else replace(block, content=inner)
        case _:
            return block


def _result_text(result: ToolResult) -> str:
    content = result.content
    if isinstance(content, tuple):
        return "\n".join(_inner_text(item) for item in content)
    return content or ""


def _inner_text(block: Block) -> str:
    named = _name_media(block)
    return named.text if isinstance(named, Text) else f"[{type(block).__name__.lower()}]"


@dataclass(frozen=True, slots=True)
class RoundSpan:
    """Messages that belong together: an answer and everything up to the next one."""

    start: int
    stop: int
    tokens: int


@dataclass(frozen=True, slots=True)
class TrimPlan:
    """Which messages a shorter request leaves out."""

    start: int
    """The first that is dropped: what stands before is a summary already, and stays."""
    stop: int
    """The first after them that stays."""
    rounds: int
    tokens: int


def split_rounds(messages: Sequence[Message], counts: Sequence[int]) -> tuple[RoundSpan, ...]:
    """The rounds of a view, oldest first. Answers in a row, and answers whose results come later, are one."""
    starts = [
        at for at, message in enumerate(messages) if at == 0 or _begins_round(messages[at - 1], message)
    ]
    stops = [*starts[1:], len(messages)]
    return tuple(
        RoundSpan(start, stop, sum(counts[start:stop])) for start, stop in zip(starts, stops, strict=True)
    )


def _begins_round(before: Message, message: Message) -> bool:
    """A round begins with an answer, or with a person's words that answer no call."""
    if message.role == "assistant":
        return before.role != "assistant"
    return before.role == "assistant" and not _has_results(message) and message.role == "user"


def _has_results(message: Message) -> bool:
    return any(isinstance(block, ToolResult) for block in message.blocks)


def count_head_messages(messages: Sequence[Message], is_summary: Sequence[bool]) -> int:
    """How many messages at the beginning are the work of an earlier compaction."""
    length = 0
    while length < len(messages) and (
        is_summary[length] or any(isinstance(block, Compaction) for block in messages[length].blocks)
    ):
        length += 1
    return length


def plan_trim(rounds: Sequence[RoundSpan], overshoot: int | None, settings: CompactSettings) -> TrimPlan:
    """The oldest rounds that cover an overshoot, or a share of all where none was stated; never the last."""
    if len(rounds) < 2:
        start = rounds[0].start if rounds else 0
        return TrimPlan(start, start, 0, 0)
    if overshoot is None:
        count = math.ceil(len(rounds) * settings.trim_pct / 100)
    else:
        count, covered = 0, 0
        while covered < overshoot and count < len(rounds):
            covered += rounds[count].tokens
            count += 1
    count = min(max(count, 1), len(rounds) - 1)
    dropped = rounds[:count]
    return TrimPlan(dropped[0].start, dropped[-1].stop, count, sum(item.tokens for item in dropped))


def choose_kept_start(rounds: Sequence[RoundSpan], budget_tokens: int, *, length: int) -> int:
    """Where the newest rounds begin that fit the budget together; `length`, the view's end, if none do."""
    start, spent = length, 0
    for item in reversed(rounds):
        spent += item.tokens
        if spent > budget_tokens:
            break
        start = item.start
    return start


def find_round_start(rounds: Sequence[RoundSpan], index: int) -> int:
    """The beginning of the round that a message belongs to: a place where the view may be parted."""
    return next((item.start for item in rounds if item.start <= index < item.stop), index)


EXPECTED_SUMMARY_TOKENS = 4_000
"""What a summary takes, thinking included; the choice turns on it only between models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPathFacts:
    model: Model
    is_warm: bool
    """The provider's cache still holds the prefix."""
    whole_tokens: int
    """The view as it is."""
    stripped_tokens: int
    """The view without media, thinking and what is restored anyway."""
    others: Sequence[Model] = ()
    """Models that may write the summary instead."""
    when: date | None = None
    unread_tokens: int = 0
    """Of the view: what the cache does not hold as it would be sent, however warm it is."""


@dataclass(frozen=True, slots=True)
class SummaryPath:
    is_warm: bool
    """The unchanged prefix, on the session's own model."""
    model: Model
    usd: Decimal | None
    """What it should cost; None where no price is known."""


def choose_summary_path(facts: SummaryPathFacts) -> SummaryPath:
    """The cheapest way whose price is known, on a model whose window takes it; the warm prefix wins a tie."""
    own = _prices(facts.model, facts.whole_tokens, facts)
    warm = _warm_usd(facts, own) if own else None
    choices = [SummaryPath(True, facts.model, warm)]
    for model in (facts.model, *facts.others):
        if facts.stripped_tokens + EXPECTED_SUMMARY_TOKENS > model.window_tokens:
            continue
        prices = _prices(model, facts.stripped_tokens, facts)
        usd = _usd(facts.stripped_tokens, prices.fresh, prices) if prices else None
        choices.append(SummaryPath(False, model, usd))
    priced = [(choice.usd, at) for at, choice in enumerate(choices) if choice.usd is not None]
    if warm is None or not priced:
        # Without prices: reading a cache is cheap everywhere, and without one less to send costs less.
        return choices[0] if facts.is_warm or len(choices) == 1 else choices[1]
    return choices[min(priced)[1]]


def count_uncached_tokens(
    messages: Sequence[Message], counts: Sequence[int], model: Model, cached: int
) -> int:
    """Tokens of a view that are not cached: those after the last request, or after dropped thinking."""
    return sum(counts[min(cached, _first_thought(messages, model)) :])


def _first_thought(messages: Sequence[Message], model: Model) -> int:
    """The first thinking of this turn, on a model that drops earlier thinking once a person speaks: from
    there on, nothing is sent as it was."""
    if not model.drops_thinking:
        return len(messages)
    spoken = (at for at in range(len(messages) - 1, -1, -1) if _is_spoken(messages[at]))
    turn = next(spoken, 0)
    return next((at for at in range(turn, len(messages)) if _has_thinking(messages[at])), len(messages))


def _is_spoken(message: Message) -> bool:
    return message.role == "user" and any(not isinstance(block, ToolResult) for block in message.blocks)


def _has_thinking(message: Message) -> bool:
    return any(isinstance(block, (Thinking, RedactedThinking)) for block in message.blocks)


def _prices(model: Model, prompt_tokens: int, facts: SummaryPathFacts) -> Prices | None:
    tariff = model.prices_at(facts.when)
    return tariff.for_prompt(prompt_tokens) if tariff else None


def _warm_usd(facts: SummaryPathFacts, prices: Prices) -> Decimal:
    read = facts.whole_tokens - facts.unread_tokens if facts.is_warm else 0
    return _usd(facts.whole_tokens - read, prices.fresh, prices) + read * prices.read / 1_000_000


def _usd(tokens: int, price: Decimal, prices: Prices) -> Decimal:
    return (tokens * price + EXPECTED_SUMMARY_TOKENS * prices.output) / 1_000_000
