"""Whether a summary is cheaper on the warm prefix or on a stripped copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from sevenfold.core.messages import Message, RedactedThinking, Thinking, ToolResult
from sevenfold.core.models import Model, Prices

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


def count_uncached_tokens(messages: Sequence[Message], counts: Sequence[int], model: Model, held: int) -> int:
    """Tokens of a view that a question after it has to pay anew: all but what the last request held."""
    return sum(counts[min(held, _first_thought(messages, model)) :])


def _first_thought(messages: Sequence[Message], model: Model) -> int:
    """Where a model leaves earlier thinking out once a person speaks: from this turn's first on, nothing is
    sent as it was."""
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
