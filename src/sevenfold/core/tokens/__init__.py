"""How many tokens a context holds: as billed up to the last response, estimated since (docs/tokens.md).

A `Tally` follows one session. Adding a message takes time in proportion to that message alone; `count` and
`breakdown` take the same time after ten messages and after ten thousand. `choose_window` and
`plan_thresholds` compute the size of the window, and where warning, compaction and blocking begin.

- `estimation`: tokens of a text and of a block, and the calibration that learns from bills.
- `portions`: messages split into portions by kind and tool, and the breakdown of a context.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import ClassVar, Literal

from sevenfold.core.json import Json, JsonObject, write_json
from sevenfold.core.messages import Block, Message, Text, ToolResult
from sevenfold.core.models import Model
from sevenfold.core.prices import LONG_WINDOW_TOKENS, has_long_suffix
from sevenfold.core.settings import amount, choice, file_path
from sevenfold.core.tokens.estimation import (
    CALIBRATED_ESTIMATOR,
    ESTIMATORS,
    PLAIN_ESTIMATOR,
    TOKEN_CLASSES,
    Calibration,
    TokenEstimator,
    TokenMix,
)
from sevenfold.core.tokens.portions import BreakdownTotals, TextOrigin, TokenBreakdown, TokenPortion, Weigher
from sevenfold.core.usage import Usage

__all__ = [
    "CALIBRATED_ESTIMATOR",
    "ESTIMATORS",
    "PLAIN_ESTIMATOR",
    "Calibration",
    "ContextSize",
    "SourcedMessage",
    "Tally",
    "TextOrigin",
    "TokenBreakdown",
    "TokenEstimator",
    "TokenMix",
    "convert_tokens",
    "measure_context",
]

SAFETY_FACTOR = Fraction(4, 3)
"""Over a total that is all estimate: too much of it compacts early, too little is a failed request."""

NEWER_TOKENIZER_SCALE = 1.3
"""The newer tokenizer counts about 30% more for the same text; our weights were measured on the older one."""


def convert_tokens(tokens: int, counted_by: Model, wanted: Model) -> int:
    """What another model counts for a text of so many tokens, about."""
    scales = {"older": 1.0, "newer": NEWER_TOKENIZER_SCALE}
    return round(tokens * scales[wanted.tokenizer] / scales[counted_by.tokenizer])


_NOTHING = TokenMix()
UNCALIBRATED = Calibration(TokenMix(1.0, 1.0, 1.0, 1.0))


@dataclass(frozen=True, slots=True)
class ContextSize:
    """The size of a context."""

    tokens: int
    estimated: int
    """The part of it that nobody has billed yet. Below zero when earlier thinking leaves with a new turn."""
    is_wholly_estimated: bool
    """No response yet, so that a safety margin is in `tokens`."""


@dataclass(frozen=True, slots=True)
class SourcedMessage:
    """A message and who wrote its text."""

    message: Message
    origin: TextOrigin = "human"


def measure_context(billed: int | None, added: float) -> ContextSize:
    """The last response's real size plus an estimate of what was added since; without one, all estimate."""
    if billed is None:
        tokens = math.ceil(max(0.0, added) * SAFETY_FACTOR)
        return ContextSize(tokens, tokens, is_wholly_estimated=True)
    estimated = round(added)
    return ContextSize(max(0, billed + estimated), estimated, is_wholly_estimated=False)


class Tally:
    """The running count of one session. Not for sharing between threads: a round has one owner."""

    __slots__ = (
        "_added",
        "_billed",
        "_calibration",
        "_estimator",
        "_frame",
        "_ledger",
        "_model",
        "_thinking",
        "_total",
        "_weigher",
    )

    def __init__(
        self,
        model: Model,
        *,
        estimator: TokenEstimator = CALIBRATED_ESTIMATOR,
        calibration: Calibration | None = None,
    ) -> None:
        self._model = model
        self._estimator = estimator
        self._calibration = (calibration or Calibration()) if estimator.calibrates else UNCALIBRATED
        self._weigher = Weigher(estimator)
        self._frame: tuple[TokenPortion, ...] = ()
        self._start()

    def _start(self) -> None:
        self._billed: int | None = None
        self._added = _NOTHING
        self._total = _NOTHING
        self._thinking = 0.0
        self._ledger = BreakdownTotals()

    @property
    def calibration(self) -> Calibration:
        """What has been learnt so far; keep it to resume with."""
        return self._calibration

    def set_frame(self, system: str, tools: Iterable[JsonObject] = ()) -> None:
        """What stands around the messages. Until the first bill all of it is estimated, after one its change.

        A frame that was in the requests from the start is told before the first bill, which includes it.
        """
        before = self._frame
        schemas = "\n".join(write_json(tool).decode() for tool in tools)
        self._frame = (
            TokenPortion("system_prompt", self._weigher.weigh(Text(system))),
            TokenPortion("tool_schema", self._weigher.weigh(Text(schemas))),
        )
        if self._billed is not None:
            self._added += _mixed(self._frame) + _mixed(before).times(-1)

    def add(self, message: Message, origin: TextOrigin = "human") -> float:
        """A message joins the context; what it weighs by itself, before calibration."""
        if self._model.drops_thinking and _ends_turn(message):
            self._put(TokenPortion("thinking", -self._thinking))
        weight = 0.0
        for portion in self._weigher.portions(message, origin):
            self._put(portion)
            weight += portion.tokens
        return weight

    def swap(self, before: Message, after: Message, origin: TextOrigin = "human") -> float:
        """A message of the context was rewritten: what was billed stays the base, the change is estimated.

        Only for a change that leaves the thinking alone, such as a cleared result.
        """
        for portion in self._weigher.portions(before, origin):
            self._put(replace(portion, tokens=-portion.tokens))
        weight = 0.0
        for portion in self._weigher.portions(after, origin):
            self._put(portion)
            weight += portion.tokens
        return weight

    def discount(self, weight: float) -> None:
        """Results of this weight leave the prompt on the provider's side; the next bill knows better."""
        self._put(TokenPortion("tool_result", -weight))

    def estimate_of(self, weight: float) -> int:
        """Tokens of a weight that `add` or `swap` gave, by all that was learnt since; for shares and sums."""
        return round(weight * self._tokens_per_weight)

    def estimate_block(self, block: Block) -> float:
        """Tokens of a block that is not in the context, by the same measure as `estimate_of`."""
        return self._weigher.weigh(block) * self._tokens_per_weight

    def bill(self, usage: Usage, reply: Message, *, is_output_known: bool = True) -> float:
        """A response came: its usage is the new base, and what it says of the estimate is learnt. Returns
        what the reply weighs, as `add` does.

        Transcripts often hold the output count of a stream's start; with `is_output_known=False` only the
        prompt is taken from the bill and the reply is estimated.
        """
        last = usage.last_run
        if last is not None:
            # Where the provider compacted on the way, the prompt is no longer the one that was estimated.
            if self._estimator.calibrates and self._billed is not None and len(usage.iterations) < 2:
                scaled = self._added.times(self._scale)
                self._calibration = self._calibration.learn(scaled, last.prompt - self._billed)
            self._billed, self._added = last.prompt, _NOTHING
        weight = self.add(reply)
        if last is not None and is_output_known:
            self._billed, self._added = last.prompt + last.output, _NOTHING
        return weight

    def cut(self, view: Iterable[Message | SourcedMessage]) -> None:
        """The context was rewritten: from here on it is this. Results that stayed are not weighed again.

        A bare message is a person's, as with `add`.
        """
        self._weigher.start_over()
        self._start()
        for item in view:
            sourced = item if isinstance(item, SourcedMessage) else SourcedMessage(item)
            self.add(sourced.message, sourced.origin)

    def rewrite(self, view: Iterable[Message | SourcedMessage]) -> list[float]:
        """The context was rewritten by ourselves: what was billed stays the base, less what left, plus what
        came. Returns what each message weighs.

        Without a bill there is no base, and all is estimated as after a `cut`.
        """
        billed, added, before = self._billed, self._added, self._total
        self._weigher.start_over()
        self._start()
        sourced = (item if isinstance(item, SourcedMessage) else SourcedMessage(item) for item in view)
        weights = [self.add(item.message, item.origin) for item in sourced]
        if billed is not None:
            self._billed, self._added = billed, added + before.times(-1) + self._total
        return weights

    def set_baseline(self, tokens: int) -> None:
        """The context as it is now was known to have this many: what was written down when it was last known
        better than it can be estimated."""
        self._billed, self._added = tokens, _NOTHING

    def describe_state(self) -> JsonObject:
        """All that cannot be worked out from the messages of the context, for `restore_state`."""
        rows = (self._added.values, self._calibration.factors.values, *self._calibration.spread)
        return JsonObject({"billed": self._billed, "rows": rows})

    def restore_state(self, state: JsonObject) -> bool:
        """Go on from what `describe_state` gave for the same context; whether it could be read."""
        billed, rows = state.get("billed"), state.get("rows")
        vectors = [_read_vector(row) for row in rows] if isinstance(rows, tuple) else []
        if len(vectors) != 2 + len(TOKEN_CLASSES) or not all(vectors) or not isinstance(billed, int | None):
            return False
        added, factors, *spread = vectors
        self._billed, self._added = billed, TokenMix(*added)
        if self._estimator.calibrates:
            self._calibration = Calibration(TokenMix(*factors), tuple(spread))
        return True

    def switch_model(self, model: Model) -> None:
        """The next request goes to another model, whose tokenizer may count the same context differently."""
        before = self._scale
        self._model = model
        if self._billed is not None:
            self._billed = round(self._billed * self._scale / before)

    def count(self) -> ContextSize:
        """The size of the context as it would be sent now."""
        added = self._added
        if self._billed is None:
            added += _mixed(self._frame)
        return measure_context(self._billed, self._estimate(added))

    def breakdown(self) -> TokenBreakdown:
        """Where the tokens of the context are. All of it is estimated, what has been billed too."""
        return self._ledger.breakdown(self._frame, self._estimate)

    @property
    def _scale(self) -> float:
        is_newer = self._estimator.calibrates and self._model.tokenizer == "newer"
        return NEWER_TOKENIZER_SCALE if is_newer else 1.0

    @property
    def _tokens_per_weight(self) -> float:
        factors = self._calibration.factors.values
        return self._scale * sum(factors) / len(factors)

    def _estimate(self, mix: TokenMix) -> float:
        return self._calibration.estimate(mix) * self._scale

    def _put(self, portion: TokenPortion) -> None:
        mix = portion.mix
        self._added += mix
        self._total += mix
        self._ledger.add(portion)
        if portion.kind == "thinking":
            self._thinking += portion.tokens


def _read_vector(row: Json) -> tuple[float, ...]:
    """One number for each class of tokens; none where it is something else."""
    values = (
        tuple(float(one) for one in row if isinstance(one, (int, float))) if isinstance(row, tuple) else ()
    )
    return values if len(values) == len(TOKEN_CLASSES) else ()


def _mixed(portions: Iterable[TokenPortion]) -> TokenMix:
    return sum((portion.mix for portion in portions), _NOTHING)


def _ends_turn(message: Message) -> bool:
    """More than tool results from the user's side: a person, or a program on their behalf, has spoken."""
    return message.role == "user" and not all(isinstance(block, ToolResult) for block in message.blocks)


# The window: how large it is, and at which sizes to warn, compact and block.

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
