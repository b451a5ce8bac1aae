"""A recorded session as what can be sent again: messages and calls in order, from boundary to boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sevenfold.core.messages import Thinking
from sevenfold.core.tokens.estimators import weigh_by_shape
from sevenfold.replay.calls import CallAssembler, CallPart, RecordedCall, TranscriptStep
from sevenfold.replay.policies.recording import Recording
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    ForeignAgent,
    ForeignCompaction,
    ForeignInput,
    ForeignSession,
    UnknownLine,
)
from sevenfold.store.foreign.transcripts import LineTally, read_transcript


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
    stretches: list[list[ForeignInput | RecordedCall]] = [[]]
    for step in steps:
        if step.lane != MAIN_CONVERSATION:
            continue
        if isinstance(step, ForeignCompaction):
            stretches.append([])
        elif isinstance(step, ForeignInput):
            stretches[-1].append(step)
        elif isinstance(step, RecordedCall):
            stretches[-1].append(replace(step, parts=tuple(_signed(part) for part in step.parts)))
    return [
        MessageSegment(tuple(found))
        for found in stretches
        if any(isinstance(step, RecordedCall) for step in found)
    ]


def compute_token_scale(stretches: Sequence[MessageSegment], recording: Recording) -> float:
    """What the session's bills made of the estimates, so that both accounts weigh its messages alike."""
    scaled = weighed = 0
    for said, played in zip(stretches, recording.stretches, strict=False):
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
