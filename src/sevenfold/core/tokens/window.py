"""How large the window is, and at which sizes to warn, compact and block. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePath
from typing import ClassVar, Literal

from sevenfold.core.catalog import LONG_WINDOW_TOKENS, has_long_suffix
from sevenfold.core.models import Model
from sevenfold.core.settings import amount, choice, file_path

DEFAULT_WINDOW_TOKENS = 200_000
"""The smallest window still sold: too small a guess compacts early, too large a one overflows."""

LONG_BETA = "context-1m-"
"""How the header that grants a window of 1M begins; its date changes."""


LEARNED_PCT = 90
"""Of what a provider has said it takes: there a view is cut down before it is refused again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSettings:
    SECTION: ClassVar[str] = "window"

    tokens: int | None = amount(None, at_least=1_000)
    """The window of a model that no table knows; for a known one use `[models."name"]`. Without it,
    200,000."""

    estimator: str = choice("calibrated", "calibrated", "plain", "exact")
    """How tokens that nobody has billed yet are counted. `plain`: 4 bytes for text, 2 for JSON; `exact`: by
    `tokenizer`."""

    tokenizer: PurePath | None = file_path(None)
    """The `tokenizer.json` of your model, for `exact`. No provider of a closed model gives one away."""

    output_reserve_tokens: int = amount(20_000)
    """Kept free for the answer, or the model's own maximum if that is less: longer answers are rare."""

    auto_compact_margin_tokens: int = amount(13_000)
    """Below the effective window: one large round still fits while the summary is being written."""

    warning_margin_tokens: int = amount(20_000)
    """Below the effective window: early enough for a person to finish a thought before compaction."""

    blocking_margin_tokens: int = amount(3_000)
    """Below the effective window: what `/compact` itself needs in order to still work."""


@dataclass(frozen=True, slots=True)
class WindowFacts:
    window_tokens: int
    max_output_tokens: int
    is_automatic: bool = True
    """Whether automatic compaction is on, all switches considered."""
    auto_compact_pct: Decimal | None = None
    """Lowers the point of automatic compaction to this share of the effective window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Points in the window, in tokens. None is below zero: in a tiny window everything is due at once."""

    effective: int
    auto_compact: int
    """Where automatic compaction would act; whether it does is `is_automatic`."""
    warning: int
    blocking: int
    is_automatic: bool

    @property
    def limit(self) -> int:
        """What `percent_left` counts down to."""
        return self.auto_compact if self.is_automatic else self.effective

    def percent_left(self, current_tokens: int) -> float:
        """0 to 100; 0 when nothing is left, however far past the limit."""
        if self.limit <= 0:
            return 0.0
        return max(0.0, (self.limit - current_tokens) / self.limit * 100)

    def is_compact_due(self, current_tokens: int) -> bool:
        return self.is_automatic and current_tokens >= self.auto_compact

    def level(self, current_tokens: int) -> Literal["fine", "warning", "blocked"]:
        """What to tell the user: `blocked` refuses new input, compaction by hand still works."""
        if current_tokens >= self.blocking:
            return "blocked"
        return "warning" if current_tokens >= self.warning else "fine"


def choose_window(name: str, model: Model, betas: tuple[str, ...], settings: WindowSettings) -> int:
    """The window in tokens, from the first source that has one: the name's `[1m]`, the table, a beta header
    in force, the setting, 200,000."""
    if has_long_suffix(name):
        return LONG_WINDOW_TOKENS
    if model.has_window:
        return model.window_tokens
    if any(beta.startswith(LONG_BETA) for beta in betas):
        return LONG_WINDOW_TOKENS
    return settings.tokens or DEFAULT_WINDOW_TOKENS


def plan_thresholds(facts: WindowFacts, settings: WindowSettings) -> Thresholds:
    """Where warning, automatic compaction and blocking lie."""
    reserve = min(facts.max_output_tokens, settings.output_reserve_tokens)
    effective = max(0, facts.window_tokens - reserve)
    auto_compact = effective - settings.auto_compact_margin_tokens
    if facts.auto_compact_pct is not None:
        # Decimal: 57% of 100 in binary floats is 56.99…, one token short.
        auto_compact = min(auto_compact, int(effective * facts.auto_compact_pct / 100))
    return Thresholds(
        effective=effective,
        auto_compact=max(0, auto_compact),
        warning=max(0, effective - settings.warning_margin_tokens),
        blocking=max(0, effective - settings.blocking_margin_tokens),
        is_automatic=facts.is_automatic,
    )


def narrow_thresholds(found: Thresholds, limit_tokens: int) -> Thresholds:
    """The same for a provider that takes no longer prompts than this: no reserve is needed below it."""
    due = limit_tokens * LEARNED_PCT // 100
    return Thresholds(
        effective=min(found.effective, limit_tokens),
        auto_compact=min(found.auto_compact, due),
        warning=min(found.warning, due),
        blocking=min(found.blocking, limit_tokens),
        is_automatic=found.is_automatic,
    )
