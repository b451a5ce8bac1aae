"""Results on a shelf, and the moment before a request, for the tests of layer 2."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.layers.microcompact.facts import ClearableResult, describe_clearable
from sevenfold.layers.microcompact.policy import CachePrices, ClearableResults, ClearingFacts

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
FIVE_MINUTES = timedelta(minutes=5)
USUAL = CachePrices(0.1, 1.25)
FRAME_TOKENS = 40_000


def called(name: str, number: int, tokens: int, **given: str | int) -> ClearableResult:
    """The result of a call with these arguments."""
    use = ToolUse(ToolUseId(f"use {number}"), name, JsonObject(given))
    return describe_clearable(use, tokens)


def stock(*results: ClearableResult, said_tokens: int = 200) -> ClearableResults:
    """A shelf with one result a round, each after something said."""
    shelf, place = ClearableResults(), FRAME_TOKENS
    for number, result in enumerate(results):
        shelf.add(result, round_=number + 1, place=place + said_tokens, anchor=place)
        place += said_tokens + result.tokens
    return shelf


def logs(count: int, tokens: int) -> list[ClearableResult]:
    """What so many commands printed."""
    return [called("Bash", number, tokens, command=f"make step{number}") for number in range(count)]


def moment(
    shelf: ClearableResults,
    *,
    pause: timedelta = timedelta(seconds=20),
    prices: CachePrices = USUAL,
    ttl: timedelta = FIVE_MINUTES,
    round_: int | None = None,
    view_tokens: int | None = None,
    warning_tokens: int = 160_000,
) -> ClearingFacts:
    """Before a request that follows the shelf's last result, this long after the request before."""
    last = shelf.live[-1]
    ends = last.place + last.result.tokens
    return ClearingFacts(
        now=NOON + pause,
        last_request=NOON,
        last_answer=NOON,
        ttl=ttl,
        prices=prices,
        view_tokens=ends if view_tokens is None else view_tokens,
        cached_tokens=last.anchor,
        round=last.round if round_ is None else round_,
        warning_tokens=warning_tokens,
    )
