"""Every model we know, as data: its window, its prices over time, and what it accepts.

Figures are those of the provider's price list and model documentation. `core/prices.py` finds a model by any
of the names it goes by, `core/prices.py` says what a request cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Literal, TypeAlias

TokenizerKind: TypeAlias = Literal["older", "newer"]
"""The newer one (4.7 and all of 5) counts about 30% more tokens for the same text."""

ONE = Decimal(1)
US_FACTOR = Decimal("1.1")
"""What `inference_geo: "us"` does to every price, on the models that take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars for a million tokens, by what became of them."""

    fresh: Decimal
    written_5m: Decimal
    written_1h: Decimal
    read: Decimal
    output: Decimal


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a model costs from one day on."""

    prices: Prices
    since: date | None = None
    """The day, in UTC, from which it holds; None for the first one."""
    long_above_tokens: int | None = None
    """A prompt of more tokens than this (read, written and fresh together) pays `long_prices` for it all."""
    long_prices: Prices | None = None

    def for_prompt(self, tokens: int) -> Prices:
        """The prices of a request whose prompt has this many tokens."""
        if self.long_prices is None or self.long_above_tokens is None or tokens <= self.long_above_tokens:
            return self.prices
        return self.long_prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    name: str
    window_tokens: int
    max_output_tokens: int
    cache_min_tokens: int
    """A prefix shorter than this is not cached, and nothing says so."""
    tariffs: tuple[Tariff, ...]
    """Oldest first. Empty: what it costs cannot be told."""
    fast_factor: Decimal | None = None
    """What `speed: "fast"` does to every price; None: no fast price is known. The provider gives it for input
    and output; that cache reads and writes scale alike is an assumption."""
    us_factor: Decimal = US_FACTOR
    has_preserved_thinking: bool = False
    """Its thinking blocks are signed over everything before them: rewriting an old turn breaks them."""
    enforces_prefix: bool = False
    """For every account, whatever its age."""
    takes_system_role: bool = False
    """Accepts `role: "system"` messages in mid-conversation."""
    tokenizer: TokenizerKind = "newer"
    takes_prefill: bool = False
    """A conversation may end with the beginning of the assistant's answer."""
    drops_thinking: bool = False
    """Leaves all earlier thinking out of the prompt once a user message is more than tool results."""
    has_window: bool = True
    """False where nobody gave the window, and the one here is a guess."""
    is_known: bool = True
    """False for the cautious stand-in of a model that no table knows."""

    def prices_at(self, when: date | None = None) -> Tariff | None:
        """What held on that day (UTC), or what holds now; None when no price is known."""
        day = _day(when)
        past = [item for item in self.tariffs if item.since is None or day is None or item.since <= day]
        return past[-1] if past else None


def _day(when: date | None) -> date | None:
    if isinstance(when, datetime):
        return (when.astimezone(UTC) if when.tzinfo else when).date()
    return when


def _prices(fresh: str, written_5m: str, written_1h: str, read: str, output: str) -> Prices:
    return Prices(
        fresh=Decimal(fresh),
        written_5m=Decimal(written_5m),
        written_1h=Decimal(written_1h),
        read=Decimal(read),
        output=Decimal(output),
    )


def _tariff(*usd: str, since: date | None = None) -> Tariff:
    fresh, written_5m, written_1h, read, output = usd
    return Tariff(_prices(fresh, written_5m, written_1h, read, output), since)


_LARGE = (1_000_000, 128_000)
_SMALL = (200_000, 64_000)

_FABLE_5_2 = (_tariff("8", "10", "16", "0.20", "40"),)
_FABLE_5_1 = (_tariff("10", "12.5", "20", "0.25", "50"),)
_FABLE_5 = (_tariff("10", "12.5", "20", "1", "50"),)
_OPUS_5_5 = (_tariff("4", "5", "8", "0.20", "20"),)
_OPUS = (_tariff("5", "6.25", "10", "0.50", "25"),)
_SONNET_5_5 = (
    _tariff("2", "2.5", "4", "0.20", "10"),
    _tariff("2", "2.5", "4", "0.10", "10", since=date(2026, 10, 7)),
)
_SONNET_5 = (_tariff("2", "2.5", "4", "0.20", "10"),)
_SONNET_4 = (_tariff("3", "3.75", "6", "0.30", "15"),)
_HAIKU_5_5 = (
    Tariff(
        _prices("0.10", "0.125", "0.20", "0.01", "0.50"),
        long_above_tokens=100_000,
        long_prices=_prices("0.50", "0.625", "1", "0.05", "2.50"),
    ),
)
_HAIKU_4_5 = (_tariff("1", "1.25", "2", "0.10", "5"),)


def _signed(
    name: str, tariffs: tuple[Tariff, ...], *, fast: Decimal | None = None, all_: bool = False
) -> Model:
    """The models with preserved thinking: they share everything but price and how strictly it is checked."""
    return replace(
        _unsigned(name, 512, tariffs, system=True),
        fast_factor=fast,
        has_preserved_thinking=True,
        enforces_prefix=all_,
    )


def _unsigned(
    name: str,
    cache_min_tokens: int,
    tariffs: tuple[Tariff, ...],
    *,
    size: tuple[int, int] = _LARGE,
    system: bool = False,
) -> Model:
    window_tokens, max_output_tokens = size
    return Model(
        name=name,
        window_tokens=window_tokens,
        max_output_tokens=max_output_tokens,
        cache_min_tokens=cache_min_tokens,
        tariffs=tariffs,
        takes_system_role=system,
    )


def _older(
    name: str,
    size: tuple[int, int],
    cache_min_tokens: int,
    tariffs: tuple[Tariff, ...],
    *,
    us: Decimal = ONE,
    prefill: bool = False,
    drops: bool = False,
) -> Model:
    """Before 4.7: the older tokenizer, no mid-conversation system message; a US price from 4.6 on only."""
    return replace(
        _unsigned(name, cache_min_tokens, tariffs, size=size),
        us_factor=us,
        tokenizer="older",
        takes_prefill=prefill,
        drops_thinking=drops,
    )


MODELS: tuple[Model, ...] = (
    _signed("claude-fable-5-2", _FABLE_5_2, all_=True),
    _signed("claude-mythos-5-2", _FABLE_5_2, all_=True),
    _signed("claude-fable-5-1", _FABLE_5_1),
    _signed("claude-mythos-5-1", _FABLE_5_1, all_=True),
    _signed("claude-opus-5-5", _OPUS_5_5, fast=Decimal(2)),
    _signed("claude-sonnet-5-5", _SONNET_5_5),
    _signed("claude-haiku-5-5", _HAIKU_5_5),
    _unsigned("claude-fable-5", 512, _FABLE_5, system=True),
    _unsigned("claude-mythos-5", 512, _FABLE_5, system=True),
    _unsigned("claude-opus-5", 512, _OPUS, system=True),
    _unsigned("claude-opus-4-8", 1024, _OPUS, system=True),
    _unsigned("claude-opus-4-7", 2048, _OPUS),
    _unsigned("claude-sonnet-5", 1024, _SONNET_5),
    _older("claude-opus-4-6", _LARGE, 4096, _OPUS, us=US_FACTOR),
    _older("claude-sonnet-4-6", _LARGE, 1024, _SONNET_4, us=US_FACTOR),
    _older("claude-opus-4-5", _SMALL, 4096, _OPUS, prefill=True),
    _older("claude-sonnet-4-5", _SMALL, 1024, _SONNET_4, prefill=True, drops=True),
    _older("claude-haiku-4-5", _SMALL, 4096, _HAIKU_4_5, prefill=True, drops=True),
)


LOCAL_SUFFIX = ".gguf"
LOCAL_WINDOW_TOKENS = 32_768
"""What most open models were trained for, at a memory that most machines have."""

_NOTHING = Decimal(0)
FREE_TARIFF = Tariff(
    Prices(fresh=_NOTHING, written_5m=_NOTHING, written_1h=_NOTHING, read=_NOTHING, output=_NOTHING)
)


def is_local_model(name: str) -> bool:
    """Whether a model is a file that is run on this machine."""
    return name.lower().endswith(LOCAL_SUFFIX)


def make_local_model(name: str) -> Model:
    """A model that is a file. Every request is answered on this machine, so that all of it is free."""
    return Model(
        name=name,
        window_tokens=LOCAL_WINDOW_TOKENS,
        # An eighth of the window: what these models say at length they say again and again.
        max_output_tokens=4_096,
        cache_min_tokens=0,
        tariffs=(FREE_TARIFF,),
        us_factor=ONE,
        takes_prefill=True,
    )


def make_unknown_model(name: str, window_tokens: int = 200_000) -> Model:
    """What we assume of a model we do not know: every choice is the one that costs least when it is wrong."""
    return Model(
        name=name,
        window_tokens=window_tokens,
        # The whole output reserve stays free, and no request asks for more than most models give.
        max_output_tokens=20_000,
        cache_min_tokens=4_096,
        tariffs=(),
        us_factor=ONE,
        has_preserved_thinking=True,
        enforces_prefix=True,
        has_window=False,
        is_known=False,
    )
