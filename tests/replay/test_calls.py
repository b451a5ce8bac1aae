"""Calls out of entries: each once, in order, conversations apart."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.messages import Text
from sevenfold.core.usage import Usage
from sevenfold.replay.calls import (
    MAX_HELD_RESULTS,
    CallAssembler,
    RecordedCall,
    TranscriptEvent,
    TranscriptStep,
)
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    NO_LINE_KEY,
    CallId,
    ConversationId,
    ForeignCompaction,
    ForeignInput,
    ForeignOutput,
)
from tests.replay.steps import at, result, said


def part(
    call: str,
    text: str = "x",
    *,
    output: int | None = 1,
    when: float = 1,
    conversation: str = "",
    done: bool = False,
) -> ForeignOutput:
    bill = None if output is None else Usage(fresh=3, read=100, output=output)
    return ForeignOutput(
        conversation=ConversationId(conversation),
        key=NO_LINE_KEY,
        at=at(when),
        call=CallId(call),
        model="m",
        blocks=(Text(text),),
        usage=bill,
        is_complete=done,
    )


def steps(entries: Iterable[TranscriptEvent]) -> list[TranscriptStep]:
    assembler = CallAssembler()
    return [step for entry in entries for step in assembler.take(entry)] + list(assembler.finish())


def calls(*entries: TranscriptEvent) -> list[RecordedCall]:
    return [step for step in steps(entries) if isinstance(step, RecordedCall)]


def test_the_lines_of_one_id_are_one_call() -> None:
    (call,) = calls(part("a", "one"), part("a", "two"), part("a", "three"))
    assert call.blocks == (Text("one"), Text("two"), Text("three"))
    assert call.usage == Usage(fresh=3, read=100, output=1)


def test_what_is_said_between_the_lines_of_a_call_comes_after_it() -> None:
    early = said(result("t1", "42"))
    found = steps([part("a", "one"), early, part("a", "two"), part("b")])
    assert [type(step).__name__ for step in found] == ["RecordedCall", "ForeignInput", "RecordedCall"]
    assert isinstance(found[0], RecordedCall)
    assert found[0].blocks == (Text("one"), Text("two"))
    assert found[1] is early


@pytest.mark.parametrize(
    ("outputs", "dones", "is_final", "output"),
    [
        ([2, 2, 2], [False] * 3, False, 2),
        ([2, 2, 360], [False] * 3, True, 360),
        ([2], [True], True, 2),
        ([2, 2], [False, True], True, 2),
        ([None, 40], [False, True], True, 40),
    ],
    ids=["repeated", "rises at the end", "stopped", "stopped on the last line", "comes last"],
)
def test_an_output_count_is_final_when_it_rises_or_the_log_says_why_it_stopped(
    outputs: list[int | None], dones: list[bool], is_final: bool, output: int
) -> None:
    lines = zip(outputs, dones, strict=True)
    (call,) = calls(*(part("a", output=count, done=done) for count, done in lines))
    assert call.is_output_final == is_final
    assert call.usage is not None
    assert call.usage.output == output


def test_a_call_that_comes_again_later_in_the_file_is_not_counted_again() -> None:
    assert [call.id for call in calls(part("a"), part("b"), part("a"), part("c"))] == ["a", "b", "c"]


def test_a_call_without_an_id_stands_for_itself() -> None:
    assert len(calls(part(""), part(""), part(""))) == 3


def test_a_call_that_gets_no_bill_is_over_when_a_person_speaks() -> None:
    found = steps(
        [part("a", output=None), said(result("t1", "42")), said(Text("Hello?")), part("a", output=5)]
    )
    assert [type(step).__name__ for step in found] == [
        "RecordedCall",
        "ForeignInput",
        "ForeignInput",
        "RecordedCall",
    ]
    assert isinstance(found[0], RecordedCall)
    assert isinstance(found[3], RecordedCall)
    assert (found[0].usage is None, found[3].usage is None) == (True, False)


def test_a_log_without_any_bill_is_not_held_whole() -> None:
    assembler = CallAssembler()
    entries: list[TranscriptEvent] = [part("call 0", output=None)]
    for number in range(3 * MAX_HELD_RESULTS):
        entries += [said(result(f"t{number}", "42")), part("call 0", output=None)]
    early = [step for entry in entries for step in assembler.take(entry)]
    assert sum(isinstance(step, ForeignInput) for step in early) >= 2 * MAX_HELD_RESULTS


def test_lanes_do_not_mix() -> None:
    found = calls(part("a", "one"), part("s", "sub", conversation="agent"), part("a", "two"))
    assert {call.conversation: call.blocks for call in found} == {
        MAIN_CONVERSATION: (Text("one"), Text("two")),
        "agent": (Text("sub"),),
    }


def test_a_boundary_closes_the_call_before_it() -> None:
    found = steps([part("a"), ForeignCompaction(conversation=MAIN_CONVERSATION, at=at(5)), part("b", when=9)])
    assert [type(step).__name__ for step in found] == ["RecordedCall", "ForeignCompaction", "RecordedCall"]


def test_a_call_starts_when_the_last_thing_before_it_was_said() -> None:
    first, second, third = calls(
        said(Text("go"), when=0),
        part("a", when=4),
        said(Text("on"), when=20),
        part("b", when=25),
        part("c", when=31),
    )
    assert (first.started, first.at) == (at(0), at(4))
    assert (second.started, second.at) == (at(20), at(25))
    assert third.started == at(25), "nothing was said: not before the last call was logged"


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2), st.booleans()), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_however_often_lines_are_repeated_calls_and_bills_are_the_same(
    shape: list[tuple[int, int, bool]], random: object
) -> None:
    """Each call has some lines, some results between them, and maybe a copy of an earlier call after it."""
    once: list[TranscriptEvent] = []
    messy: list[TranscriptEvent] = []
    for number, (lines, results, is_copied) in enumerate(shape):
        parts: list[TranscriptEvent] = [part(f"call {number}", f"{number}/{place}") for place in range(lines)]
        between: list[TranscriptEvent] = [said(result(f"t{number}.{place}", "r")) for place in range(results)]
        once += [*parts, *between]
        messy += [parts[0], *between, *parts[1:]]
        if is_copied:
            messy += [part(f"call {earlier}", "copy") for earlier in range(number)]
    plain, repeated = calls(*once), calls(*messy)
    assert [(call.id, call.usage, call.blocks) for call in plain] == [
        (call.id, call.usage, call.blocks) for call in repeated
    ]
    assert len(plain) == len(shape)
    heard = [step for step in steps(messy) if isinstance(step, ForeignInput)]
    assert len(heard) == list(accumulate(results for _, results, _ in shape))[-1]
