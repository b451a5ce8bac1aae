"""Layer 4, compaction: its settings, which strategy comes next, and when to stop trying.

The strategies, best first: the notes that were already written; a compaction block from the provider; a
summary on the unchanged prefix; a summary after the oldest rounds were dropped; the structural notes, which
need no model; and a clip, which always works. So a failed summary never ends a session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import ClassVar, Literal, TypeAlias, get_args

from sevenfold.core.fields import NonNegative
from sevenfold.core.messages import Message
from sevenfold.core.settings import amount, limit, names, percent, switch


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    SECTION: ClassVar[str] = "compact"

    enabled: bool = switch(True, off_by="DISABLE_COMPACT")
    """On: without it a session ends where its window does. Off stops compaction by hand too."""

    auto_compact_enabled: bool = switch(True, off_by="DISABLE_AUTO_COMPACT")
    """On: nobody watches the window while working. Off leaves compaction by hand."""

    auto_compact_pct: Decimal | None = percent(None, alias="CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")
    """Unset: the default margin suits every window sold. A percentage compacts earlier, never later."""

    blocks_enabled: bool = switch(True)
    """On: where a model makes compaction blocks itself, it needs no prompt of ours and fits its thinking."""

    breaker_failures: int = limit(3, at_least=1)
    """Model calls that fail in a row before none is made by itself any more: each costs a whole prompt."""

    stream_retries: int = limit(2)
    """Of a summary whose stream broke off: mostly the network's fault, and the prefix is cached by then."""

    trim_tries: int = limit(3, at_least=1)
    """Calls that may be too long for the window, the first included, before a model is not asked any more."""

    trim_pct: int = limit(20, at_least=1, at_most=100)
    """Of the rounds, dropped at a time where the provider does not say how much too long the prompt is."""

    thrash_limit: int = amount(2, at_least=1)
    """Compactions in a row that help nothing: the first may be chance, a third would be like the second."""

    thrash_rounds: int = amount(3, at_least=1)
    """A view that is full again within so few rounds was not made smaller in any way that matters."""

    summary_models: tuple[str, ...] = names(())
    """Others that may write a summary where that is cheaper. None: a weaker model forgets what matters."""

    summary_max_tokens: int = amount(20_000, at_least=1_000)
    """What the window keeps free for an answer anyway, thinking included."""

    summary_timeout_seconds: int = amount(180, at_least=1)
    """Some 8,000 tokens at the pace of the slowest model; a user waits for it."""

    keep_tokens: int = amount(10_000)
    """Of the newest rounds, kept word for word beside a summary: what is being worked on right now."""

    said_tokens: int = limit(2_000, at_least=50)
    """A longer user message is pasted material: its beginning stays in view and the rest goes to a file."""

    said_total_tokens: int = limit(30_000, at_least=500)
    """All user messages together; over it the longest are shortened first, and the files hold them whole."""

    restored_files: int = limit(5)
    """Files read again after a compaction: an agent works on few at a time."""

    restored_file_tokens: int = limit(5_000)
    """Of each such file: some 500 lines, and the rest can be read when it is needed."""

    restored_files_tokens: int = limit(50_000)
    """Of all such files together, a quarter of the smallest window."""

    restored_skill_tokens: int = limit(5_000)
    """Of each skill that was in use, the newest first."""

    restored_skills_tokens: int = limit(25_000)
    """Of all such skills together: five whole ones."""

    restored_extra_tokens: int = limit(10_000)
    """Of a plan, a todo list or anything else that is put back: what is longer is no list any more."""

    hook_seconds: int = amount(60, at_least=1)
    """How long a hook around a compaction may take, while a user waits for all of it."""

    lock_seconds: int = amount(60, at_least=1)
    """How long one compaction keeps others out; the longest are slow, and somebody may be waiting."""

    wait_seconds: int = amount(15)
    """How long a second asker waits for the first one's result before it is told to come back."""

    @property
    def is_automatic(self) -> bool:
        """Both switches together: one that turns all compaction off turns the automatic kind off as well."""
        return self.enabled and self.auto_compact_enabled


CompactionStrategy: TypeAlias = Literal["notes", "block", "summary", "trimmed", "structural", "clip"]
COMPACTION_STRATEGIES: tuple[CompactionStrategy, ...] = get_args(CompactionStrategy)
MODEL_STRATEGIES = frozenset[CompactionStrategy]({"block", "summary", "trimmed"})
"""Those that ask a model, and therefore cost money when they fail."""

STRATEGY_TEXTS: Mapping[str, str] = {
    "notes": "the session notes stand in, no model is asked",
    "block": "the model makes a compaction block",
    "summary": "the model writes a summary of the whole view",
    "trimmed": "the model writes a summary without the oldest rounds",
    "structural": "the session's structure is told, no model is asked",
    "clip": "the newest rounds that fit are kept, and nothing else",
}
"""What each does, for a person."""

CompactionTrigger: TypeAlias = Literal["auto", "manual", "reactive"]
"""`reactive`: the provider refused an ordinary request because its prompt is too long."""

StrategyFailure: TypeAlias = Literal["too long", "broken", "refused", "unusable", "too large", "unavailable"]
"""`too long`: the prompt; `broken`: a stream; `refused`: any other answer of the provider but a reply;
`unusable`: a reply that holds no summary; `too large`: what came out is over the target; `unavailable`: there
was nothing to try with."""


@dataclass(frozen=True, slots=True)
class StrategyAttempt:
    """One strategy that was tried, and its result."""

    strategy: CompactionStrategy
    failure: StrategyFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyFacts:
    trigger: CompactionTrigger
    attempts: tuple[StrategyAttempt, ...] = ()
    """Of this compaction, in order."""
    failures_in_row: int = 0
    """Model calls for summaries that failed since the last one that did not, in this session."""
    notes_missing: str = ""
    """Why notes cannot stand in for the history; empty: they can."""
    has_model: bool = True
    """Whether there is anybody to ask for a summary."""
    has_structural: bool = False
    block_missing: str = ""
    """Why no compaction block can be asked for; empty: one can."""
    fits_window: bool = True
    """Whether the whole view and the directive can be sent at all."""
    can_trim: bool = True
    """Whether there is more than the newest round to drop."""
    has_rounds: bool = True
    """Whether anything was said since the last compaction. Without it only the head can be made shorter."""
    is_partial: bool = False
    is_thrashing: bool = False
    """Compactions in a row have helped nothing: only what costs no model call is tried."""
    is_directed: bool = False
    """Somebody said what the summary should be about: notes that were written before cannot follow."""


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """What to try next."""

    strategy: CompactionStrategy
    skipped: tuple[SkippedStrategy, ...] = ()
    """Better strategies that are skipped now, for the first time."""


@dataclass(frozen=True, slots=True)
class SkippedStrategy:
    strategy: CompactionStrategy
    reason: str


def choose_strategy(facts: StrategyFacts, settings: CompactSettings) -> StrategyChoice:
    """The next strategy to try. There is always one: after all others, the clip."""
    if _is_repeat_due(facts, settings):
        return StrategyChoice(facts.attempts[-1].strategy)
    reached = max((COMPACTION_STRATEGIES.index(attempt.strategy) for attempt in facts.attempts), default=-1)
    skips: list[SkippedStrategy] = []
    for strategy in COMPACTION_STRATEGIES[reached + 1 : -1]:
        reason = _unfit(strategy, facts, settings)
        if reason is None:
            return StrategyChoice(strategy, tuple(skips))
        skips.append(SkippedStrategy(strategy, reason))
    return StrategyChoice("clip", tuple(skips))


def _is_repeat_due(facts: StrategyFacts, settings: CompactSettings) -> bool:
    """Whether to repeat the strategy that just failed, with the same call or a shorter one."""
    if not facts.attempts or not _may_call(facts, settings):
        return False
    last = facts.attempts[-1]
    if last.strategy not in MODEL_STRATEGIES:
        return False
    tries = sum(attempt == last for attempt in facts.attempts)
    if last.failure == "broken":
        return tries <= settings.stream_retries
    # The first attempt was on the whole view.
    asked = sum(attempt.failure == "too long" for attempt in facts.attempts)
    is_too_long = last.strategy == "trimmed" and last.failure == "too long"
    return is_too_long and facts.can_trim and asked < settings.trim_tries


def _may_call(facts: StrategyFacts, settings: CompactSettings) -> bool:
    """By hand a model may be asked, within the limit of one compaction; else the breaker decides."""
    if facts.trigger == "manual":
        return (
            sum(attempt.strategy in MODEL_STRATEGIES for attempt in facts.attempts)
            < settings.breaker_failures
        )
    return facts.failures_in_row < settings.breaker_failures


def _unfit(strategy: CompactionStrategy, facts: StrategyFacts, settings: CompactSettings) -> str | None:
    """Why a strategy cannot be used now; None when it may be tried."""
    if not facts.has_rounds:
        return "nothing was said since the last compaction"
    match strategy:
        case "notes":
            return _unfit_notes(facts)
        case "block":
            return _unfit_model(facts, settings) or _unfit_block(facts)
        case "summary":
            return _unfit_model(facts, settings) or _unfit_summary(facts)
        case "trimmed":
            return _unfit_model(facts, settings) or _unfit_trimmed(facts)
        case "structural":
            return None if facts.has_structural else "there are no structural notes"
        case "clip":
            return None


def _unfit_model(facts: StrategyFacts, settings: CompactSettings) -> str | None:
    if not facts.has_model:
        return "no provider was given to write summaries"
    if facts.is_thrashing and facts.trigger != "manual":
        return "compactions in a row have helped nothing"
    if not _may_call(facts, settings):
        return f"{settings.breaker_failures} summaries in a row have failed"
    return None


def _unfit_notes(facts: StrategyFacts) -> str | None:
    if facts.is_partial:
        return "notes are about the whole session, not a part of it"
    if facts.is_directed:
        return "notes that are written already cannot follow an instruction"
    return facts.notes_missing or None


def _unfit_block(facts: StrategyFacts) -> str | None:
    if facts.block_missing:
        return facts.block_missing
    if facts.is_partial:
        return "a compaction block stands for everything before it, not for a part"
    return None if facts.fits_window else "the whole view does not fit the window"


def _unfit_summary(facts: StrategyFacts) -> str | None:
    if not facts.fits_window or _failed(facts, "too long"):
        return "the whole view does not fit the window"
    return None


def _unfit_trimmed(facts: StrategyFacts) -> str | None:
    if not facts.can_trim:
        return "there are no older rounds to drop"
    if not facts.fits_window or _failed(facts, "too long"):
        return None
    return "a shorter prompt would not have helped"


def _failed(facts: StrategyFacts, failure: StrategyFailure) -> bool:
    return any(attempt.failure == failure for attempt in facts.attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerState:
    """What is remembered from one compaction to the next, and across restarts."""

    failures_in_row: NonNegative = 0
    """Model calls for a summary that failed since the last success."""
    futile_in_row: NonNegative = 0
    """Automatic compactions that left the view too large, or were due again at once."""
    last_length: NonNegative | None = None
    """How many messages the last compaction left in view; None: there was none yet."""
    limit_model: str = ""
    limit_tokens: NonNegative | None = None
    """What the provider of that model has said it takes; None: it has refused nothing yet."""

    def is_thrashing(self, settings: CompactSettings) -> bool:
        return self.futile_in_row >= settings.thrash_limit

    def with_failure(self) -> BreakerState:
        """A model call for a summary failed."""
        return replace(self, failures_in_row=self.failures_in_row + 1)

    def with_success(self) -> BreakerState:
        """A model wrote a summary that can be used."""
        return replace(self, failures_in_row=0)

    def with_outcome(self, end: CompactionOutcome, settings: CompactSettings) -> BreakerState:
        """A compaction is over."""
        if end.trigger == "manual" and end.is_within:
            return replace(self, futile_in_row=0, last_length=end.length)
        is_soon = end.rounds_since is not None and end.rounds_since < settings.thrash_rounds
        futile = self.futile_in_row + 1 if is_soon or not end.is_within else 0
        return replace(self, futile_in_row=futile, last_length=end.length)

    def rounds_since(self, messages: Sequence[Message]) -> int | None:
        """How many answers the view has got since the last compaction; None if unknown."""
        if self.last_length is None or len(messages) < self.last_length:
            return None
        return sum(message.role == "assistant" for message in messages[self.last_length :])


@dataclass(frozen=True, slots=True)
class CompactionOutcome:
    """How a compaction ended."""

    trigger: CompactionTrigger
    is_within: bool
    """The view is below the target now."""
    length: int
    """How many messages are in it."""
    rounds_since: int | None = None
    """How many rounds passed since the compaction before this one."""
