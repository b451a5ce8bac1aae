"""A recorded session as a policy sees it: its rounds, its clearable results, and what later calls used of
them.

Boundaries split it into segments, and no policy acts across them. `read_recordings` returns token counts for
`counterfactual`; `read_message_segments` returns messages that `resend` can send again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from pathlib import Path

from sevenfold.core.messages import Block, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.tokens.estimation import weigh_by_shape
from sevenfold.core.tool_kinds import is_clearable
from sevenfold.layers.microcompact.facts import ClearableResult, describe_clearable
from sevenfold.replay.calls import CallAssembler, CallPart, RecordedCall, TranscriptStep
from sevenfold.replay.policies.fidelity import ResultUse, TextIndex, extract_block_text, find_quotes
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    ConversationId,
    ForeignAgent,
    ForeignCompaction,
    ForeignInput,
    ForeignRequest,
    ForeignSession,
    ForeignSideCall,
    UnknownLine,
)
from sevenfold.store.foreign.transcripts import LineTally, read_transcript

FRAME_TOKENS = 42_000
"""System prompt and tools, which no log holds: the first call of a session is that large at the median."""
LEAST_FRAME, MOST_FRAME = 5_000, 100_000
"""A first bill may hold more than a frame: a conversation that was taken up again."""
LEAST_SCALE, MOST_SCALE = 0.6, 1.4
"""What bills may make of the estimate: thinking that was dropped, reminders that no log holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRound:
    """One request of a session, and what its answer used."""

    started: datetime
    answered: datetime
    tokens: int
    """Of the prompt with everything kept."""
    results: range
    """The clearable results that it is the first to show."""
    uses: tuple[ResultUse, ...]
    turn: int = 0
    """How often the user had said something by then."""


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """A clearable result as it was recorded."""

    result: ClearableResult
    round: int
    place: int
    """Tokens of the prompt before it, with everything kept."""


@dataclass(frozen=True, slots=True)
class RecordedSegment:
    """From one boundary to the next."""

    rounds: tuple[RecordedRound, ...]
    results: tuple[RecordedResult, ...]
    frame_tokens: int
    previous: datetime | None = None
    """When the last request before the boundary started: the frame may still be cached."""


@dataclass(frozen=True, slots=True)
class Recording:
    name: str
    segments: tuple[RecordedSegment, ...]
    tokens: int
    """Of all its messages."""


@dataclass(frozen=True, slots=True)
class _Piece:
    block: Block
    tokens: int
    segment: int
    use: ToolUse | None
    """The call that a result answers."""

    @property
    def is_clearable(self) -> bool:
        return self.use is not None and is_clearable(self.use.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A request: how many pieces its prompt holds, and what came back."""

    started: datetime
    answered: datetime
    end: int
    segment: int
    calls: tuple[ToolUse, ...]
    billed: int
    is_whole: bool
    """The log's own agent had cleared nothing before."""
    turn: int

    @property
    def is_billed(self) -> bool:
        """Whether its bill tells what the whole prompt weighs."""
        return self.is_whole and self.billed > 0


@dataclass(slots=True, kw_only=True)
class _RecordedCalls:
    """A conversation while it is read."""

    pieces: list[_Piece] = field(default_factory=list[_Piece])
    made: list[_Made] = field(default_factory=list[_Made])
    segment: int = 0
    is_whole: bool = True
    turn: int = 0
    _uses: dict[ToolUseId, ToolUse] = field(default_factory=dict[ToolUseId, ToolUse])

    def take(self, step: TranscriptStep) -> None:
        match step:
            case ForeignInput():
                self.turn += not any(isinstance(block, ToolResult) for block in step.blocks)
                self._add(step.blocks)
            case RecordedCall():
                self._call(step)
            case ForeignCompaction():
                self.segment += 1
                self.is_whole = True
            case ForeignRequest() | ForeignSideCall():
                pass
            case _:
                # What the log's own agent cleared is kept here: each policy starts from everything.
                self.is_whole = False

    def _call(self, call: RecordedCall) -> None:
        answered = call.at or (self.made[-1].answered if self.made else None)
        if answered is None:
            return
        started = min(call.started or answered, answered)
        if self.made:
            started = max(started, self.made[-1].started)
        uses = tuple(block for block in call.blocks if isinstance(block, ToolUse))
        billed = call.usage.prompt if call.usage else 0
        self.made.append(
            _Made(
                started=started,
                answered=answered,
                end=len(self.pieces),
                segment=self.segment,
                calls=uses,
                billed=billed,
                is_whole=self.is_whole,
                turn=self.turn,
            )
        )
        self._uses.update((use.id, use) for use in uses)
        self._add(call.blocks)

    def _add(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            use = self._uses.get(block.tool_use_id) if isinstance(block, ToolResult) else None
            self.pieces.append(_Piece(block, round(weigh_by_shape(block)), self.segment, use))


def read_recordings(path: Path, agent: ForeignAgent) -> list[Recording]:
    """Every conversation of a transcript that made a request, the main one first."""
    assembler, conversations = CallAssembler(), dict[ConversationId, _RecordedCalls]()
    for entry in read_transcript(path, agent, LineTally()):
        if isinstance(entry, (ForeignSession, UnknownLine)):
            continue
        for step in assembler.take(entry):
            conversations.setdefault(step.conversation, _RecordedCalls()).take(step)
    for step in assembler.finish():
        conversations.setdefault(step.conversation, _RecordedCalls()).take(step)
    named = sorted(conversations.items(), key=lambda item: item[0])
    return [
        _recording(f"{path.stem}/{name}" if name else path.stem, conversation)
        for name, conversation in named
        if conversation.made
    ]


def _recording(name: str, conversation: _RecordedCalls) -> Recording:
    index = TextIndex([extract_block_text(piece.block) for piece in conversation.pieces])
    frame = _frame_tokens(conversation)
    scale = _scale(conversation, frame)
    conversation.pieces = [
        replace(piece, tokens=round(piece.tokens * scale)) for piece in conversation.pieces
    ]
    segments = (_segment(conversation, number, frame, index) for number in range(conversation.segment + 1))
    total = sum(piece.tokens for piece in conversation.pieces)
    return Recording(name, tuple(segment for segment in segments if segment.rounds), total)


def _frame_tokens(conversation: _RecordedCalls) -> int:
    """What the first bill holds besides the messages before it."""
    first = next((made for made in conversation.made if made.billed and made.segment == 0), None)
    if first is None:
        return FRAME_TOKENS
    said = sum(piece.tokens for piece in conversation.pieces[: first.end])
    return min(max(first.billed - said, LEAST_FRAME), MOST_FRAME)


def _scale(conversation: _RecordedCalls, frame: int) -> float:
    """What the bills say of the estimate, over the last prompt of each segment before anything was cleared.

    One figure a session: it sets how heavy the messages are beside the frame, not one against another.
    """
    billed = weighed = 0
    for number in range(conversation.segment + 1):
        last = next(
            (made for made in reversed(conversation.made) if made.segment == number and made.is_billed), None
        )
        if last is not None and last.billed > frame:
            billed += last.billed - frame
            said = (piece.tokens for piece in conversation.pieces[: last.end] if piece.segment == number)
            weighed += sum(said)
    return min(max(billed / weighed, LEAST_SCALE), MOST_SCALE) if billed and weighed else 1.0


def _segment(conversation: _RecordedCalls, number: int, frame: int, index: TextIndex) -> RecordedSegment:
    begin = next(
        (at for at, piece in enumerate(conversation.pieces) if piece.segment == number),
        len(conversation.pieces),
    )
    made = [each for each in conversation.made if each.segment == number]
    earlier = [each.started for each in conversation.made if each.segment < number]
    end = made[-1].end if made else begin
    places = [frame, *accumulate((piece.tokens for piece in conversation.pieces[begin:end]), initial=frame)][
        1:
    ]
    results: list[RecordedResult] = []
    numbers: dict[int, int] = {}
    rounds: list[RecordedRound] = []
    at = begin
    for turn, each in enumerate(made):
        shown = len(results)
        for piece in range(at, each.end):
            found = conversation.pieces[piece]
            if found.is_clearable and found.use is not None:
                numbers[piece] = len(results)
                results.append(
                    RecordedResult(describe_clearable(found.use, found.tokens), turn, places[piece - begin])
                )
        at = max(at, each.end)
        uses = tuple(_uses(each, conversation, numbers, index))
        fresh = range(shown, len(results))
        rounds.append(
            RecordedRound(
                started=each.started,
                answered=each.answered,
                tokens=places[each.end - begin],
                results=fresh,
                uses=uses,
                turn=each.turn,
            )
        )
    return RecordedSegment(tuple(rounds), tuple(results), frame, earlier[-1] if earlier else None)


def _uses(
    made: _Made, conversation: _RecordedCalls, numbers: dict[int, int], index: TextIndex
) -> Iterator[ResultUse]:
    for call in made.calls:
        for quote in find_quotes(call):
            before = [piece for piece in index.find(quote.text) if piece < made.end]
            here = [piece for piece in before if conversation.pieces[piece].segment == made.segment]
            sources = tuple(numbers[piece] for piece in here if piece in numbers)
            if sources or (before and not here):
                yield ResultUse(quote.kind, sources)


# Messages and calls in order, from boundary to boundary.


@dataclass(frozen=True, slots=True)
class MessageSegment:
    """What was said between two boundaries, in order."""

    steps: tuple[ForeignInput | RecordedCall, ...]


def read_message_segments(path: Path, agent: ForeignAgent) -> list[MessageSegment]:
    """The main conversation of a transcript."""
    assembler = CallAssembler()
    steps: list[TranscriptStep] = []
    for entry in read_transcript(path, agent, LineTally()):
        if not isinstance(entry, (ForeignSession, UnknownLine)):
            steps += assembler.take(entry)
    steps += assembler.finish()
    segments: list[list[ForeignInput | RecordedCall]] = [[]]
    for step in steps:
        if step.conversation != MAIN_CONVERSATION:
            continue
        if isinstance(step, ForeignCompaction):
            segments.append([])
        elif isinstance(step, ForeignInput):
            segments[-1].append(step)
        elif isinstance(step, RecordedCall):
            segments[-1].append(replace(step, parts=tuple(_signed(part) for part in step.parts)))
    return [
        MessageSegment(tuple(found))
        for found in segments
        if any(isinstance(step, RecordedCall) for step in found)
    ]


def compute_token_scale(segments: Sequence[MessageSegment], recording: Recording) -> float:
    """What the session's bills made of the estimates, so that both accounts weigh its messages alike."""
    scaled = weighed = 0
    for said, played in zip(segments, recording.segments, strict=False):
        scaled += played.rounds[-1].tokens - played.frame_tokens
        last = max(at for at, step in enumerate(said.steps) if isinstance(step, RecordedCall))
        weighed += sum(round(weigh_by_shape(block)) for step in said.steps[:last] for block in step.blocks)
    return scaled / weighed if scaled and weighed else 1.0


def _signed(part: CallPart) -> CallPart:
    """Logs leave out what signs a thought, without which it would not be sent again."""
    blocks = tuple(
        replace(block, signature=block.signature or "recorded") if isinstance(block, Thinking) else block
        for block in part.blocks
    )
    return replace(part, blocks=blocks)
