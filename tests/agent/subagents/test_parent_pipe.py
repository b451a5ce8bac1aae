"""What a teammate and its lead say to each other reads back, and nobody waits for a lead that is gone."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.permissions.rules import PermissionRule
from sevenfold.agent.subagents.teammate_process import (
    MAX_PIPE_LINE_BYTES,
    ParentPipe,
    PermissionQuery,
    UsageReport,
    decode_pipe_message,
    encode_permission_response,
    encode_pipe_message,
    open_parent_pipe,
)
from sevenfold.agent.tool import AccessRequest
from sevenfold.core.errors import WireError
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse, ToolUseId

USE = ToolUse(ToolUseId("u1"), "shell", JsonObject({"command": "make"}))
rules = st.none() | st.builds(PermissionRule, st.text(), st.text())
needs = st.builds(AccessRequest, kind=st.just("nothing"), command=st.text(), said=st.text())


@given(
    st.builds(
        PermissionQuery,
        st.text(),
        st.builds(
            PermissionRequest,
            use=st.just(USE),
            need=needs,
            reason=st.text(),
            rule=rules,
            wider_rule=st.none(),
            may_accept_edits=st.just(False),
        ),
    )
)
def test_a_question_reads_back_as_it_was_asked(asked: PermissionQuery) -> None:
    assert decode_pipe_message(encode_pipe_message(asked)) == asked


@given(
    st.builds(UsageReport, st.text(), st.text(), st.just(JsonObject({"input_tokens": 5})), st.just("openai"))
)
def test_a_payment_reads_back_as_it_was_made(paid: UsageReport) -> None:
    assert decode_pipe_message(encode_pipe_message(paid)) == paid


@pytest.mark.parametrize("line", [b"{}", b"[]", b'{"paid": 1, "who": "a", "model": "m"}', b"\n"])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(WireError):
        decode_pipe_message(line)


async def ask(answers: list[PermissionResponse], question: PermissionRequest) -> PermissionResponse:
    """Of a lead that gives these answers and is gone then."""
    hearing, to_mate = os.pipe()
    from_mate, telling = os.pipe()
    line: ParentPipe = await open_parent_pipe(hearing, telling)
    heard = asyncio.create_task(line.receive_responses())
    asking = asyncio.create_task(line.ask(question))
    for answer in answers:
        said = decode_pipe_message(await asyncio.to_thread(os.read, from_mate, 65_536))
        assert isinstance(said, PermissionQuery)
        os.write(to_mate, encode_permission_response("another question", PermissionResponse(True)))
        os.write(to_mate, encode_permission_response(said.id, answer))
    os.close(to_mate)
    try:
        return await asking
    finally:
        await heard
        line.output.close()
        os.close(from_mate)


@pytest.mark.parametrize(
    "answer",
    [
        PermissionResponse(True),
        PermissionResponse(True, "always"),
        PermissionResponse(False, words="not now"),
    ],
)
def test_whoever_asked_gets_the_answer_to_that_question(answer: PermissionResponse) -> None:
    assert (
        asyncio.run(ask([answer], PermissionRequest(use=USE, need=AccessRequest(kind="run"), reason="why")))
        == answer
    )


def test_a_lead_that_is_gone_allows_nothing() -> None:
    answer = asyncio.run(ask([], PermissionRequest(use=USE, need=AccessRequest(kind="run"), reason="why")))
    assert not answer.is_allowed
    assert "gone" in answer.words


def test_what_is_too_long_to_be_shown_is_not_allowed() -> None:
    answer = asyncio.run(
        ask(
            [],
            PermissionRequest(
                use=USE, need=AccessRequest(kind="run", command="x" * MAX_PIPE_LINE_BYTES), reason="why"
            ),
        )
    )
    assert not answer.is_allowed
    assert "too long" in answer.words
