"""A recorded session as what can be sent again: messages and calls in order, from boundary to boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sevenfold.core.messages import Thinking
from sevenfold.core.token_estimators import weigh_by_shape
from sevenfold.replay.calls import Assembler, Call, Part, Step
from sevenfold.replay.counterfactual_record import Recording
from sevenfold.store.foreign.entries import MAIN, Agent, Compacted, ForeignSession, Said, Unknown
from sevenfold.store.foreign.transcripts import LineTally, read_transcript


@dataclass(frozen=True, slots=True)
class Stretch:
    """What was said between two boundaries, in order."""

    steps: tuple[Said | Call, ...]


def read_stretches(path: Path, agent: Agent) -> list[Stretch]:
    """The main conversation of a transcript."""
    assembler = Assembler()
    steps: list[Step] = []
    for entry in read_transcript(path, agent, LineTally()):
        if not isinstance(entry, (ForeignSession, Unknown)):
            steps += assembler.take(entry)
    steps += assembler.finish()
    stretches: list[list[Said | Call]] = [[]]
    for step in steps:
        if step.lane != MAIN:
            continue
        if isinstance(step, Compacted):
            stretches.append([])
        elif isinstance(step, Said):
            stretches[-1].append(step)
        elif isinstance(step, Call):
            stretches[-1].append(replace(step, parts=tuple(_signed(part) for part in step.parts)))
    return [Stretch(tuple(found)) for found in stretches if any(isinstance(step, Call) for step in found)]


def find_scale(stretches: Sequence[Stretch], recording: Recording) -> float:
    """What the session's bills made of the estimates, so that both accounts weigh its messages alike."""
    scaled = weighed = 0
    for said, played in zip(stretches, recording.stretches, strict=False):
        scaled += played.rounds[-1].tokens - played.frame_tokens
        last = max(at for at, step in enumerate(said.steps) if isinstance(step, Call))
        weighed += sum(round(weigh_by_shape(block)) for step in said.steps[:last] for block in step.blocks)
    return scaled / weighed if scaled and weighed else 1.0


def _signed(part: Part) -> Part:
    """Logs leave out what signs a thought, without which it would not be sent again."""
    blocks = tuple(
        replace(block, signature=block.signature or "recorded") if isinstance(block, Thinking) else block
        for block in part.blocks
    )
    return replace(part, blocks=blocks)
