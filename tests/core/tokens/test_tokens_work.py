"""The running count against the same sums done the slow way, and the work that it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import (
    Block,
    Document,
    Image,
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
    read_message,
)
from sevenfold.core.prices import Catalog
from sevenfold.core.tokens import (
    CALIBRATED_ESTIMATOR,
    PLAIN_ESTIMATOR,
    Calibration,
    ContextSize,
    SourcedMessage,
    Tally,
    TextOrigin,
    TokenEstimator,
    TokenMix,
    measure_context,
)
from sevenfold.core.tokens.estimation import weigh_by_shape, weigh_plainly
from sevenfold.core.usage import Usage
from tests.core import wires

OPUS = Catalog().find("claude-opus-4-6")


@dataclass(frozen=True, slots=True)
class Add:
    message: Message


@dataclass(frozen=True, slots=True)
class Bill:
    prompt: int
    reply: Message
    is_output_known: bool


@dataclass(frozen=True, slots=True)
class Cut:
    kept: int
    """How many of the last messages stay."""


@dataclass(frozen=True, slots=True)
class Frame:
    system: str


Step: TypeAlias = Add | Bill | Cut | Frame

messages = wires.messages.map(read_message)
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(Add, messages),
    st.builds(Bill, st.integers(0, 10**6), messages, st.booleans()),
    st.builds(Cut, st.integers(0, 5)),
    st.builds(Frame, st.text(max_size=200)),
)
origins: st.SearchStrategy[TextOrigin] = st.sampled_from(["human", "attachment", "memory"])


def follow(tally: Tally, steps: Sequence[Step]) -> None:
    history: list[Message] = []
    for step in steps:
        match step:
            case Add():
                tally.add(step.message)
                history.append(step.message)
            case Bill():
                usage = Usage(fresh=step.prompt, output=7)
                tally.bill(usage, step.reply, is_output_known=step.is_output_known)
                history.append(step.reply)
            case Cut():
                history = history[len(history) - step.kept :] if step.kept < len(history) else history
                tally.cut(history)
            case Frame():
                tally.set_frame(step.system)


def recount(estimator: TokenEstimator, steps: Sequence[Step]) -> ContextSize:
    """Everything since the last bill, the frame's change too, weighed anew from the whole list of steps."""
    billed: int | None = None
    new: list[Message] = []
    history: list[Message] = []
    framed = frame = TokenMix()
    calibration = Calibration() if estimator.calibrates else Calibration(TokenMix(1, 1, 1, 1))
    for step in steps:
        match step:
            case Add():
                new.append(step.message)
                history.append(step.message)
            case Bill():
                if billed is not None and estimator.calibrates:
                    grown = _mix(estimator, new) + frame + framed.times(-1)
                    calibration = calibration.learn(grown, step.prompt - billed)
                framed = frame
                billed = step.prompt + (7 if step.is_output_known else 0)
                new = [] if step.is_output_known else [step.reply]
                history.append(step.reply)
            case Cut():
                history = history[len(history) - step.kept :] if step.kept < len(history) else history
                billed, new, framed = None, list(history), TokenMix()
            case Frame():
                frame = _mix(estimator, [Message("user", (Text(step.system), Text("")))])
    added = _mix(estimator, new) + frame + framed.times(-1)
    return measure_context(billed, calibration.estimate(added))


def _mix(estimator: TokenEstimator, messages: Sequence[Message]) -> TokenMix:
    return sum(
        (_share(estimator, message, block) for message in messages for block in message.blocks), TokenMix()
    )


def _share(estimator: TokenEstimator, message: Message, block: Block) -> TokenMix:
    tokens = round(estimator.weigh(block) * 256) / 256
    match block:
        case ToolUse():
            return TokenMix(asked=tokens)
        case ToolResult():
            return TokenMix(got=tokens)
        case Thinking() | RedactedThinking():
            return TokenMix(said=tokens)
        case _ if message.role == "assistant" and not isinstance(block, Image | Document):
            return TokenMix(said=tokens)
        case _:
            return TokenMix(told=tokens)


@pytest.mark.parametrize("estimator", [CALIBRATED_ESTIMATOR, PLAIN_ESTIMATOR], ids=lambda item: item.name)
@given(steps=st.lists(steps, max_size=12))
def test_the_running_count_is_the_one_from_scratch(estimator: TokenEstimator, steps: list[Step]) -> None:
    tally = Tally(OPUS, estimator=estimator)
    follow(tally, steps)
    assert tally.count() == recount(estimator, steps)


@given(st.lists(steps, max_size=8), st.lists(st.builds(SourcedMessage, messages, origins), max_size=6))
def test_after_a_cut_nothing_is_left_of_before(steps: list[Step], view: list[SourcedMessage]) -> None:
    tally = Tally(OPUS)
    follow(tally, steps)
    tally.set_frame("Be brief.")
    tally.cut(view)
    fresh = Tally(OPUS, calibration=tally.calibration)
    fresh.set_frame("Be brief.")
    for item in view:
        fresh.add(item.message, item.origin)
    assert tally.count() == fresh.count()
    assert tally.breakdown() == fresh.breakdown()


# Work, not time: how many bytes are weighed.


class Scales:
    """An estimator that notes what it was asked to weigh."""

    def __init__(self) -> None:
        self.weighed_bytes = 0
        self.estimator = TokenEstimator("noting", self._weigh, calibrates=True)

    def _weigh(self, block: Block) -> float:
        self.weighed_bytes += int(weigh_plainly(block) * 4)
        return weigh_by_shape(block)


def turns(count: int) -> Iterator[tuple[Message, Message]]:
    for number in range(count):
        use = ToolUseId(f"toolu_{number:05}")
        path = f"/src/file_{number:05}.py"
        yield (
            Message("assistant", (Text("Reading."), ToolUse(use, "Read", JsonObject({"file_path": path})))),
            Message("user", (ToolResult(use, f"{number:05}" + "line of code\n" * 100),)),
        )


@pytest.mark.parametrize("history_turns", [0, 10, 100, 1_000])
def test_a_turn_weighs_its_own_bytes_however_long_the_history(history_turns: int) -> None:
    scales = Scales()
    tally = Tally(OPUS, estimator=scales.estimator)
    *history, (request, result) = turns(history_turns + 1)
    for number, (before, after) in enumerate(history):
        tally.bill(Usage(fresh=1_000 * number), before)
        tally.add(after)
    scales.weighed_bytes = 0
    tally.bill(Usage(fresh=1_000 * history_turns), request)
    tally.add(result)
    tally.count()
    tally.breakdown()
    own = sum(weigh_plainly(block) * 4 for message in (request, result) for block in message.blocks)
    assert scales.weighed_bytes == own


def test_results_that_stay_through_a_cut_are_not_weighed_again() -> None:
    scales = Scales()
    tally = Tally(OPUS, estimator=scales.estimator)
    results = [result for _, result in turns(20)]
    for result in results:
        tally.add(result)
    scales.weighed_bytes = 0
    tally.cut(results)
    assert scales.weighed_bytes == 0


def test_a_result_whose_content_changed_under_its_id_is_weighed_anew() -> None:
    tally = Tally(OPUS, estimator=PLAIN_ESTIMATOR)
    [(request, result)] = turns(1)
    tally.cut([request, result])
    whole = tally.count().tokens
    cleared = ToolResult(ToolUseId("toolu_00000"), "[cleared]")
    tally.cut([request, Message("user", (cleared,))])
    assert tally.count().tokens < whole / 10


def test_a_moved_cache_marker_weighs_nothing_again() -> None:
    scales = Scales()
    tally = Tally(OPUS, estimator=scales.estimator)
    [(_, result)] = turns(1)
    tally.add(result)
    scales.weighed_bytes = 0
    marked = ToolResult(
        ToolUseId("toolu_00000"),
        "00000" + "line of code\n" * 100,
        extra=JsonObject({"cache_control": JsonObject({"type": "ephemeral"})}),
    )
    tally.cut([Message("user", (marked,))])
    assert scales.weighed_bytes == 0
