"""Model calls, put together from the entries of a transcript, each once and in order; and cache breaks.

A call is spread over several lines, with results of its first tools between them. What was said while the
call was being logged was said after it. Conversations in one file do not mix. `BreakDetector` finds calls
that read less than the call before them had left in the cache.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, TypeAlias, get_args

from sevenfold.core.messages import Block, ToolResult, ToolUse
from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.core.usage import TokenCounts, Usage, is_simulated_id
from sevenfold.replay.bills import NANO_USD, CallRates
from sevenfold.store.foreign.entries import (
    CacheDialect,
    CallId,
    ConversationId,
    ForeignClearing,
    ForeignCompaction,
    ForeignInput,
    ForeignOutput,
    ForeignRequest,
    ForeignSideCall,
    LineKey,
    RequestChange,
)
from sevenfold.store.foreign.transcripts import hash_call_id

MAX_HELD_RESULTS = 64
"""Results that a call's tools may have returned before its bill comes; real calls have a dozen."""


@dataclass(frozen=True, slots=True)
class CallPart:
    """What one line of a call holds."""

    key: LineKey
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    conversation: ConversationId
    id: CallId
    model: str
    parts: tuple[CallPart, ...]
    usage: Usage | None
    """None where the log holds no bill."""
    at: datetime | None
    """When its first line was written."""
    started: datetime | None
    """When the last thing before it was said: the nearest to the request's start that a log has."""
    is_output_final: bool
    """The log says so, or the count rose from one line to the next. Otherwise it may be a stream's first."""
    dialect: CacheDialect = "anthropic"
    cleared_tokens: int = 0
    log_says_simulated: bool | None = None

    @property
    def is_simulated(self) -> bool | None:
        """Whether our simulator answered; None where nothing in the log tells."""
        ids = [self.id, *(block.id for block in self.blocks if isinstance(block, ToolUse))]
        if self.log_says_simulated or any(map(is_simulated_id, ids)):
            return True
        is_named = any(text.startswith(("msg_", "toolu_", "call_")) for text in ids)
        return False if is_named else self.log_says_simulated

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(block for part in self.parts for block in part.blocks)


_Between: TypeAlias = ForeignCompaction | ForeignClearing | ForeignRequest | ForeignSideCall
TranscriptEvent: TypeAlias = ForeignInput | ForeignOutput | _Between
TranscriptStep: TypeAlias = ForeignInput | RecordedCall | _Between


@dataclass(slots=True, kw_only=True)
class _Open:
    """A call whose lines are still coming."""

    first: ForeignOutput
    started: datetime | None
    parts: list[CallPart]
    usage: Usage | None
    is_final: bool
    cleared_tokens: int
    last_at: datetime | None

    def add(self, more: ForeignOutput) -> None:
        self.parts.append(CallPart(more.key, more.blocks))
        self.last_at = more.at or self.last_at
        self.is_final = self.is_final or more.is_complete
        self.cleared_tokens = max(self.cleared_tokens, more.cleared_tokens)
        if more.usage is None:
            return
        if self.usage is not None and more.usage.output != self.usage.output:
            self.is_final = True  # a stream's first value is repeated; only the last count differs from it
        if self.usage is None or more.usage.output >= self.usage.output:
            self.usage = more.usage

    def closed(self) -> RecordedCall:
        first = self.first
        return RecordedCall(
            conversation=first.conversation,
            id=first.call,
            model=first.model,
            parts=tuple(self.parts),
            usage=self.usage,
            at=first.at,
            started=self.started,
            is_output_final=self.is_final,
            dialect=first.dialect,
            cleared_tokens=self.cleared_tokens,
            log_says_simulated=first.is_simulated,
        )


@dataclass(slots=True)
class _OpenConversation:
    open: _Open | None = None
    waiting: list[ForeignInput] = field(default_factory=list[ForeignInput])
    """Said while the open call was being logged."""
    last_at: datetime | None = None


class CallAssembler:
    """Entries of one file in, steps out. Holds one open call per conversation, and the ids it has seen."""

    __slots__ = ("_conversations", "_seen")

    def __init__(self) -> None:
        self._conversations: dict[ConversationId, _OpenConversation] = {}
        self._seen: set[int] = set()

    def take(self, entry: TranscriptEvent) -> Iterator[TranscriptStep]:
        """The steps that are certain with this entry."""
        conversation = self._conversations.setdefault(entry.conversation, _OpenConversation())
        match entry:
            case ForeignInput():
                if _is_abandoned(conversation, entry):
                    yield from self._close(conversation)
                yield from _take_input(conversation, entry)
            case ForeignOutput():
                yield from self._answer(conversation, entry)
            case _:
                yield from self._close(conversation)
                conversation.last_at = entry.at or conversation.last_at
                yield entry

    def finish(self) -> Iterator[TranscriptStep]:
        """What is still open at the end of the file."""
        for conversation in self._conversations.values():
            yield from self._close(conversation)

    def _answer(self, conversation: _OpenConversation, part: ForeignOutput) -> Iterator[TranscriptStep]:
        if part.call and conversation.open and conversation.open.first.call == part.call:
            conversation.open.add(part)
            return
        if part.call and hash_call_id(part.call) in self._seen:
            return  # copied by a resume within the file
        yield from self._close(conversation)
        conversation.open = _Open(
            first=part,
            started=conversation.last_at or part.at,
            parts=[CallPart(part.key, part.blocks)],
            usage=part.usage,
            is_final=part.is_complete,
            cleared_tokens=part.cleared_tokens,
            last_at=part.at,
        )

    def _close(self, conversation: _OpenConversation) -> Iterator[TranscriptStep]:
        if conversation.open:
            call = conversation.open.closed()
            conversation.last_at = conversation.open.last_at or conversation.last_at
            conversation.open = None
            if call.id and call.usage:
                self._seen.add(hash_call_id(call.id))
            yield call
        waiting, conversation.waiting = conversation.waiting, []
        for said in waiting:
            yield from _take_input(conversation, said)


def _is_abandoned(conversation: _OpenConversation, said: ForeignInput) -> bool:
    """Whether the open call will get no bill any more. A log without any would stay in memory otherwise."""
    if conversation.open is None or conversation.open.usage is not None:
        return False
    is_turn_over = not all(isinstance(block, ToolResult) for block in said.blocks)
    return is_turn_over or len(conversation.waiting) >= MAX_HELD_RESULTS


def _take_input(conversation: _OpenConversation, said: ForeignInput) -> Iterator[TranscriptStep]:
    if conversation.open:
        conversation.waiting.append(said)
        return
    conversation.last_at = said.at or conversation.last_at
    yield said


# A log shows how much was read. Why it was less than possible is inferred from what lies between the two
# calls. If nothing does, the break stays unexplained.

BreakCause: TypeAlias = Literal[
    "idle",
    "compaction",
    "clearing",
    "model switch",
    "unexplained",
    "system prompt",
    "tools",
    "parameters",
    "history",
]
BREAK_CAUSES: tuple[BreakCause, ...] = get_args(BreakCause)
"""The last four are known only where a log holds the requests as they were sent."""

MIN_LOST_TOKENS = 1_000
"""Real breaks lose tens of thousands. Below this are dropped thinking, and entries not readable yet."""

SHORT_CACHE_TTL = timedelta(minutes=5)
LONG_CACHE_TTL = timedelta(hours=1)
OPENAI_TTL = timedelta(minutes=30)
"""Since gpt-5.6; before that, entries may go after five idle minutes."""
_GPT = re.compile(r"gpt-(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheBreak:
    """One call that paid again for what was cached."""

    at: datetime | None
    cause: BreakCause
    lost_tokens: int
    """What the call before had in the cache, this one's prompt could have read, and did not."""
    lost_usd: Decimal | None
    """What those tokens cost over reading them; None where the model has no price."""
    gap: timedelta | None
    """Since the last call on the same model."""
    life: timedelta | None
    """How long the entry was written to last."""
    model: str
    prompt_tokens: int
    read_tokens: int


@dataclass(frozen=True, slots=True)
class BreakGroup:
    """All breaks of one cause."""

    cause: BreakCause
    count: int
    lost_tokens: int
    lost_usd: Decimal | None
    """Of those that have a price; None where none has."""


def group_breaks(breaks: Iterable[CacheBreak]) -> tuple[BreakGroup, ...]:
    """One row a cause that occurs, the most expensive first."""
    groups: dict[BreakCause, BreakGroup] = {}
    for item in breaks:
        before = groups.get(item.cause, BreakGroup(item.cause, 0, 0, None))
        groups[item.cause] = BreakGroup(
            item.cause,
            before.count + 1,
            before.lost_tokens + item.lost_tokens,
            item.lost_usd if before.lost_usd is None else before.lost_usd + (item.lost_usd or 0),
        )
    return tuple(
        sorted(groups.values(), key=lambda group: (-(group.lost_usd or 0), -group.lost_tokens, group.cause))
    )


@dataclass(frozen=True, slots=True)
class _Left:
    """What a call left in its model's cache."""

    tokens: int
    started: datetime | None
    life: timedelta | None


class BreakDetector:
    """Follows one conversation. Caches are a model's own, so what each one holds is kept apart.

    A dated id and its family's name are one model.
    """

    __slots__ = ("_catalog", "_changed", "_cut", "_families", "_last", "_left")

    def __init__(self, catalog: Catalog = CATALOG) -> None:
        self._catalog = catalog
        self._families: dict[str, str] = {}
        self._left: dict[str, _Left] = {}
        self._last: str | None = None
        self._cut: BreakCause | None = None
        self._changed: RequestChange = ""

    def note_request(self, changed: RequestChange) -> None:
        """What the next call's request has that the one before had not."""
        self._changed = changed

    def note_cut(self, cause: Literal["compaction", "clearing"]) -> None:
        """The context was rewritten; the next call will show it."""
        if self._cut != "compaction":
            self._cut = cause

    def check(self, call: RecordedCall, run: TokenCounts, rates: CallRates | None) -> CacheBreak | None:
        """The break that this call's last run shows, if any; then it is the one to compare the next with."""
        family = self._family(call.model)
        before = self._left.get(family) or (self._left.get(self._last) if self._last else None)
        found = self._compare(call, run, before, rates) if before else None
        if self._cut == "compaction":
            self._left.clear()  # no other model's entries fit the new context either
        self._cut, self._changed = None, ""
        self._last = family
        self._left[family] = _Left(_cached(call, run), call.started, _life(call, run, before))
        return found

    def _compare(
        self, call: RecordedCall, run: TokenCounts, before: _Left, rates: CallRates | None
    ) -> CacheBreak | None:
        lost = min(before.tokens, run.prompt) - run.read
        if lost < MIN_LOST_TOKENS:
            return None
        gap = call.started - before.started if call.started and before.started else None
        return CacheBreak(
            at=call.at,
            cause=self._cause(call, before, gap),
            lost_tokens=lost,
            lost_usd=(lost * (rates.paid - rates.read)).quantize(NANO_USD) if rates else None,
            gap=gap,
            life=before.life,
            model=call.model,
            prompt_tokens=run.prompt,
            read_tokens=run.read,
        )

    def _cause(self, call: RecordedCall, before: _Left, gap: timedelta | None) -> BreakCause:
        if self._cut == "compaction":
            return "compaction"
        if self._family(call.model) not in self._left:
            return "model switch"
        if gap is not None and before.life is not None and gap > before.life:
            return "idle"  # also where results were cleared because of it
        if self._changed and self._changed != "history":
            return self._changed
        return "clearing" if self._cut or call.cleared_tokens else self._changed or "unexplained"

    def _family(self, model: str) -> str:
        found = self._families.get(model)
        if found is None:
            found = self._families[model] = self._catalog.find(model).name
        return found


def _cached(call: RecordedCall, run: TokenCounts) -> int:
    """Up to the last breakpoint with Anthropic; the whole prompt with OpenAI."""
    return run.prompt if call.dialect == "openai" else run.prompt - run.fresh


def _life(call: RecordedCall, run: TokenCounts, before: _Left | None) -> timedelta | None:
    if call.dialect == "openai":
        version = _GPT.search(call.model)
        is_new = version is not None and (int(version[1]), int(version[2])) >= (5, 6)
        return OPENAI_TTL if is_new else SHORT_CACHE_TTL
    if run.written_5m:
        return SHORT_CACHE_TTL
    # A call that only reads keeps its entry alive for as long as it was written for.
    return LONG_CACHE_TTL if run.written_1h else before.life if before else None
