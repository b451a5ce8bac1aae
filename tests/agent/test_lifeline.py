"""What a teammate and its lead say to each other reads back, and nobody waits for a lead that is gone."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.agent.lifeline import (
    MAX_LINE,
    Asked,
    Lifeline,
    Paid,
    open_lifeline,
    read_said,
    write_answer,
    write_said,
)
from sevenfold.core.errors import WireError
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.run.permissions import Answer, Question
from sevenfold.run.rules import Rule
from sevenfold.run.tool import Need

USE = ToolUse(ToolUseId("u1"), "shell", JsonObject({"command": "make"}))
rules = st.none() | st.builds(Rule, st.text(), st.text())
needs = st.builds(Need, st.just("nothing"), command=st.text(), said=st.text())


@given(st.builds(Asked, st.text(), st.builds(Question, st.just(USE), needs, st.text(), rules)))
def test_a_question_reads_back_as_it_was_asked(asked: Asked) -> None:
    assert read_said(write_said(asked)) == asked


@given(st.builds(Paid, st.text(), st.text(), st.just(JsonObject({"input_tokens": 5})), st.just("openai")))
def test_a_payment_reads_back_as_it_was_made(paid: Paid) -> None:
    assert read_said(write_said(paid)) == paid


@pytest.mark.parametrize("line", [b"{}", b"[]", b'{"paid": 1, "who": "a", "model": "m"}', b"\n"])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(WireError):
        read_said(line)


async def ask(answers: list[Answer], question: Question) -> Answer:
    """Of a lead that gives these answers and is gone then."""
    hearing, to_mate = os.pipe()
    from_mate, telling = os.pipe()
    line: Lifeline = await open_lifeline(hearing, telling)
    heard = asyncio.create_task(line.hear())
    asking = asyncio.create_task(line.ask(question))
    for answer in answers:
        said = read_said(await asyncio.to_thread(os.read, from_mate, 65_536))
        assert isinstance(said, Asked)
        os.write(to_mate, write_answer("another question", Answer(True)))
        os.write(to_mate, write_answer(said.id, answer))
    os.close(to_mate)
    try:
        return await asking
    finally:
        await heard
        line.telling.close()
        os.close(from_mate)


@pytest.mark.parametrize("answer", [Answer(True), Answer(True, "always"), Answer(False, words="not now")])
def test_whoever_asked_gets_the_answer_to_that_question(answer: Answer) -> None:
    assert asyncio.run(ask([answer], Question(USE, Need("run"), "why"))) == answer


def test_a_lead_that_is_gone_allows_nothing() -> None:
    answer = asyncio.run(ask([], Question(USE, Need("run"), "why")))
    assert not answer.is_allowed
    assert "gone" in answer.words


def test_what_is_too_long_to_be_shown_is_not_allowed() -> None:
    answer = asyncio.run(ask([], Question(USE, Need("run", command="x" * MAX_LINE), "why")))
    assert not answer.is_allowed
    assert "too long" in answer.words
