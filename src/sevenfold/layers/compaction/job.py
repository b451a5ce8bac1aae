"""What a compaction is given (`CompactionJob`), what it returns (`Compacted`), and its state while it runs.

`ViewSizer` estimates the size of views that no request has carried yet. `CompactionRun` holds the job, what
is known of its view, and what has been tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sevenfold.core.errors import InputError
from sevenfold.core.messages import Compaction, Message, Text
from sevenfold.core.models import Model
from sevenfold.core.requests import Capabilities, ModelRequest, ModelResponse
from sevenfold.core.tokens import CALIBRATED_ESTIMATOR, NEWER_TOKENIZER_SCALE
from sevenfold.core.tokens.estimation import WeighBlock
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.compaction.policy import (
    CompactionStrategy,
    CompactionTrigger,
    CompactSettings,
    StrategyAttempt,
    StrategyFailure,
)
from sevenfold.layers.compaction.summary import extract_user_text, is_summary_head
from sevenfold.layers.compaction.trim import (
    EXPECTED_SUMMARY_TOKENS,
    RoundSpan,
    choose_kept_start,
    count_head_messages,
    find_round_start,
    split_rounds,
)

SpillText: TypeAlias = Callable[[str, str], str | None]
"""Stores text under a name and returns the path to read it by; None where it could not be stored. Called in a
thread; the same name and text may come again."""


def skip_spill(_name: str, _text: str) -> str | None:
    """For callers without a session folder: long text is cut, and only the transcript has all of it."""
    return None


@dataclass(frozen=True, slots=True)
class CompactionNotes:
    """The notes of the session, which may replace what they cover."""

    text: str | None = None
    """As they stand in the file; None: there is none."""
    noted: int | None = None
    """The message of the view that is the last they cover; None: it is not among them."""
    template: str = ""
    """What the file holds before anything was noted."""


NO_NOTES = CompactionNotes()


@dataclass(frozen=True, slots=True)
class Part:
    """A compaction of a part of the view."""

    side: Literal["from", "up_to"]
    """`from`: what follows is summarised and the beginning stays; `up_to`: the other way round."""
    index: int
    """A message of the view. It is moved back to the beginning of its round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionJob:
    request: ModelRequest
    """The whole view as it would be sent now."""
    tokens_before: int
    target: int
    """The view must end up below this: the point of automatic compaction."""
    counts: Sequence[int]
    """Tokens of each message of the view."""
    capabilities: Capabilities
    weigh: WeighBlock | None = None
    """Tokens of a block that is not in the view, by the same measure as `counts`; None: by an estimate that
    no usage has corrected."""
    frame_tokens: int | None = None
    """Of what stands before the messages; None: what `counts` leave of `tokens_before`."""
    trigger: CompactionTrigger = "auto"
    overshoot: int | None = None
    """Of a reactive compaction: by how many tokens the provider said the prompt is too long."""
    window_tokens: int | None = None
    """What a request may have in all; None: not known."""
    instructions: str = ""
    """What the summary should look at, in a user's words: notes that were written before cannot."""
    hook_text: str = ""
    """What hooks add to that. Notes may serve all the same: hooks speak every time."""
    part: Part | None = None
    notes: CompactionNotes = NO_NOTES
    structural: str = ""
    """The structural notes of the whole session: what a summary is when no model writes one."""
    sent_messages: int | None = None
    """So many messages at the beginning stood in the last request that was answered; None: all."""
    is_warm: bool = True
    """Whether the provider's cache still holds the prefix."""
    attachments: frozenset[int] = frozenset()
    """Messages of the view on the user's side that no person wrote."""
    transcript: str = ""
    """Where the whole history can be read."""
    spill: SpillText = skip_spill
    files_seen: tuple[str, ...] | None = None
    """Paths the agent has read, newest first; None: those that the view shows."""
    folder: str = ""
    """What relative paths among them start from."""
    barred_files: frozenset[str] = frozenset()
    """Paths never restored: the plan, instruction files. The transcript is barred anyway."""
    extras: tuple[Extra, ...] = ()
    """What else is put back after it: skills (newest first), plan, todo list, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The new view: `head`, then `kept`."""

    rung: CompactionStrategy
    trigger: CompactionTrigger
    head: tuple[Message, ...]
    """The summary and what was restored; of a part `from` a message, all that stood before it too."""
    kept_from: int
    """Messages of the request from here on are kept; its length where none are."""
    kept: tuple[Message, ...]
    """Those messages: the same objects, unless thinking or an overlong result had to be dropped from them."""
    tokens_before: int
    tokens_after: int
    """An estimate."""
    summary: str
    """The summary alone, without the text around it."""
    replies: tuple[ModelResponse, ...] = ()
    """Every answer that was paid for on the way, to be booked under `summary`."""
    betas: tuple[str, ...] = ()
    """Headers that every later request needs which carries this head."""
    calls: int = 0
    """Model calls that were made, failed ones included."""
    before: int = 0
    """So many messages at the beginning of `head` are the old view's own: of a part `from` a message."""

    @property
    def view(self) -> tuple[Message, ...]:
        return self.head + self.kept


@dataclass(frozen=True, slots=True)
class ViewSizer:
    """Token estimates for one job: its own counts for messages of the view, estimates for new ones."""

    scale: float
    frame_tokens: int
    weigh: WeighBlock = CALIBRATED_ESTIMATOR.weigh
    """What a block weighs, before the scale."""

    @classmethod
    def for_job(cls, job: CompactionJob, model: Model) -> ViewSizer:
        rest = max(0, job.tokens_before - sum(job.counts))
        frame_tokens = rest if job.frame_tokens is None else job.frame_tokens
        if job.weigh is not None:
            return cls(1.0, frame_tokens, job.weigh)
        return cls(NEWER_TOKENIZER_SCALE if model.tokenizer == "newer" else 1.0, frame_tokens)

    def text(self, text: str) -> int:
        return math.ceil(self.weigh(Text(text)) * self.scale)

    def message(self, message: Message) -> int:
        return math.ceil(sum(self.weigh(block) for block in message.blocks) * self.scale)

    def messages(self, messages: Iterable[Message]) -> int:
        return sum(map(self.message, messages))

    def rewritten(self, new: Sequence[Message], job: CompactionJob, start: int = 0) -> int:
        """Messages of the view from `start` on, some of which may have been rewritten, one for one."""
        old = job.request.messages[start : start + len(new)]
        counts = job.counts[start : start + len(new)]
        pairs = zip(new, old, counts, strict=True)
        return sum(count if one is other else self.message(one) for one, other, count in pairs)


DIRECTIVE_TOKENS = 1_500
"""What asking for a summary adds to a prompt, in the densest tokenizer."""

_LEAST_TOKENS = 1_000
"""What a summary takes at least with all that goes around it."""


RestoreScope: TypeAlias = Literal["all", "extras", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryDraft:
    """A summary, and which messages of the view stand beside it."""

    strategy: CompactionStrategy
    summary: str
    kept_from: int
    before: int = 0
    """So many messages at the view's beginning stay in front of it."""
    block: Compaction | None = None
    """What the provider made to stand for everything before it."""
    kept: tuple[Message, ...] | None = None
    """The kept messages where they were rewritten; None: as they are."""
    remark: str = ""
    restores: RestoreScope = "all"
    """How much may be restored."""
    folds_said: bool = False
    """The oldest user messages go to a file together until the rest takes half of the space."""


@dataclass(frozen=True, slots=True)
class SummaryFailure:
    """Why a strategy gave no summary."""

    failure: StrategyFailure
    reason: str


@dataclass(slots=True, kw_only=True)
class CompactionRun:
    """The state of one compaction, which alone changes it."""

    job: CompactionJob
    model: Model
    settings: CompactSettings
    sizer: ViewSizer
    is_summary: tuple[bool, ...]
    head: int
    """How many messages at the beginning an earlier compaction left."""
    rounds: tuple[RoundSpan, ...]
    """All after those."""
    part_index: int | None
    """Where a partial compaction parts the view."""
    overshoot: int | None
    """By how much the last prompt was too long, as far as anybody said."""
    attempts: list[StrategyAttempt] = field(default_factory=list[StrategyAttempt])
    replies: list[ModelResponse] = field(default_factory=list[ModelResponse])
    calls: int = 0
    dropped: int = 0
    """How many of the oldest rounds the last request left out."""

    @property
    def messages(self) -> Sequence[Message]:
        return self.job.request.messages

    @property
    def instructions(self) -> str:
        """What the summary should look at, in the words of the caller and of hooks."""
        parts = (self.job.instructions.strip(), self.job.hook_text.strip())
        return "\n\n".join(part for part in parts if part)

    @property
    def limit(self) -> int:
        """What a new view must stay below to be one: the target, and what there was before."""
        return min(self.job.target, self.job.tokens_before)

    @property
    def fits_window(self) -> bool:
        return self.job.trigger != "reactive" and self.missing_tokens() <= 0

    @property
    def can_trim(self) -> bool:
        return len(self.rounds) - self.dropped > 1

    def unanswered(self) -> int:
        """Where the user's unanswered messages begin; the end of the view if there are none."""
        end = len(self.messages)
        if len(self.rounds) < 2:
            return end
        start = self.rounds[-1].start
        is_human = self.messages[start].role == "user" and start not in self.job.attachments
        return start if is_human and extract_user_text(self.messages[start]) else end

    def newest(self, budget_tokens: int) -> int:
        """Where the newest rounds begin that fit, with the unanswered words in any case."""
        return self.kept_from(choose_kept_start(self.rounds, budget_tokens, length=len(self.messages)))

    def kept_from(self, start: int) -> int:
        """The place itself, or the start of the unanswered messages if that is earlier: no model has seen
        them, and their images exist nowhere else. Only those if everything would stay."""
        unanswered = self.unanswered()
        return min(start, unanswered) if start > self.head else unanswered

    def missing_tokens(self) -> int:
        """By how many tokens the whole view and the request for a summary exceed the window."""
        job = self.job
        if job.window_tokens is None:
            return 0
        return job.tokens_before + DIRECTIVE_TOKENS + EXPECTED_SUMMARY_TOKENS - job.window_tokens


def start_compaction_run(job: CompactionJob, model: Model, settings: CompactSettings) -> CompactionRun:
    """Examine a job; one that cannot be done is refused."""
    messages = job.request.messages
    if len(job.counts) != len(messages):
        raise InputError(f"{len(job.counts)} counts for {len(messages)} messages; give one for each")
    if job.request.purpose != "main":
        raise InputError(f"a {job.request.purpose} fork cannot be compacted; only the session's own view can")
    if job.trigger == "manual" and sum(job.counts) < _LEAST_TOKENS:
        raise InputError(
            f"there is nothing to compact yet: {sum(job.counts):,} tokens of conversation are less than a "
            "summary of them would have"
        )
    is_summary = tuple(is_summary_head(message) for message in messages)
    head = count_head_messages(messages, is_summary)
    if head >= len(messages) and job.trigger == "manual":
        raise InputError("there is nothing to compact yet: nothing was said since the view began")
    rounds = tuple(item for item in split_rounds(messages, job.counts) if item.start >= head)
    run = CompactionRun(
        job=job,
        model=model,
        settings=settings,
        sizer=ViewSizer.for_job(job, model),
        is_summary=is_summary,
        head=head,
        rounds=_after_head(rounds, messages, job.counts, head),
        part_index=None,
        overshoot=None,
    )
    if job.part is not None:
        run.part_index = _part_index(run, job.part.index)
    run.overshoot = _overshoot(run)
    return run


def _after_head(
    rounds: tuple[RoundSpan, ...], messages: Sequence[Message], counts: Sequence[int], head: int
) -> tuple[RoundSpan, ...]:
    """The rounds after an earlier head, whose last message may share a round with what follows it."""
    first = rounds[0].start if rounds else len(messages)
    if first == head:
        return rounds
    return (RoundSpan(head, first, sum(counts[head:first])), *rounds)


def _part_index(run: CompactionRun, index: int) -> int:
    if not run.head <= index < len(run.messages):
        raise InputError(
            f"message {index} cannot part the view; choose one from {run.head} to {len(run.messages) - 1}"
        )
    start = find_round_start(run.rounds, index)
    if start <= run.head and run.job.part is not None and run.job.part.side == "up_to":
        raise InputError(f"nothing stands before message {index} to be summarised; choose a later one")
    return start


def _overshoot(run: CompactionRun) -> int | None:
    job = run.job
    if job.trigger == "reactive":
        room = DIRECTIVE_TOKENS + EXPECTED_SUMMARY_TOKENS
        return None if job.overshoot is None else job.overshoot + room
    missing = run.missing_tokens()
    return missing if missing > 0 else None
