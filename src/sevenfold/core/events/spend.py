"""What was spent, and what was not, as events; `core/events.py` has them in its union."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BillLost:
    """An answer came without a bill, or with one that cannot be read: what it cost is not known, and how full
    the window is remains an estimate. Told once for each reason."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCharged:
    """A model call of background work was paid for."""

    kind: str
    model: str
    tokens: int
    read: int
    micro_usd: int | None
    """None: the model's price is not known."""


@dataclass(frozen=True, slots=True)
class CallRefused:
    """Background work wanted to ask a model and may not, for a cap, a pause or the switch; it is left out."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class KindPaused:
    """A kind of background work failed too often in a row and rests until a time."""

    kind: str
    strikes: int
    until: str
    reason: str


@dataclass(frozen=True, slots=True)
class ModelUnknown:
    """A model that no table knows: cautious values stand in, and nothing it costs can be told."""

    model: str
    assumed_window_tokens: int


@dataclass(frozen=True, slots=True)
class PriceUnknown:
    """A model that settings describe has no price, there or in the table: nothing it costs can be told."""

    model: str


@dataclass(frozen=True, slots=True)
class SpendStateLost:
    """What background work had spent so far could not be read or written; caps count from what is known."""

    where: str
    reason: str
