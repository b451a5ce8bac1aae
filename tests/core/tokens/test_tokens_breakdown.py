from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import (
    Document,
    Image,
    Message,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
    read_message,
)
from sevenfold.core.prices import Catalog
from sevenfold.core.tokens import PLAIN_ESTIMATOR, SourcedMessage, Tally, TextOrigin, TokenBreakdown
from tests.core import wires

MODEL = Catalog().find("claude-opus-4-6")


def tally() -> Tally:
    return Tally(MODEL, estimator=PLAIN_ESTIMATOR)


def words(size_tokens: int) -> Text:
    return Text("x" * 4 * size_tokens)


def read(
    number: int, path: str, content: str, *, tool: str = "Read", is_error: bool = False
) -> list[Message]:
    use = ToolUseId(f"toolu_{number}")
    request = ToolUse(use, tool, JsonObject({"file_path": path}))
    return [
        Message("assistant", (request,)),
        Message("user", (ToolResult(use, content, is_error=is_error or None),)),
    ]


def test_every_kind_has_its_own_sum() -> None:
    counted = tally()
    counted.set_frame("s" * 400, [JsonObject({"name": "Read"}), JsonObject({"name": "Bash"})])
    grep, bash = ToolUseId("g"), ToolUseId("b")
    for message in (
        Message("user", (words(10), Image(JsonObject({})), Document(JsonObject({})))),
        Message("assistant", (Thinking("t" * 40), RedactedThinking("r" * 40), words(30))),
        Message("assistant", (ToolUse(grep, "Grep", JsonObject({"q": "xx"})),)),
        Message("assistant", (ToolUse(bash, "Bash", JsonObject({"c": "xx"})),)),
        Message("user", (ToolResult(grep, "x" * 400), ToolResult(bash, "x" * 800))),
        Message("user", (ToolResult(ToolUseId("unseen"), "x" * 40),)),
        Message("system", (words(5),)),
    ):
        counted.add(message)
    counted.add(Message("user", (words(7),)), origin="memory")
    counted.add(Message("system", (words(8),)), origin="memory")
    counted.add(Message("user", (words(9),)), origin="attachment")
    breakdown = counted.breakdown()
    assert breakdown == TokenBreakdown(
        human=10,
        assistant=30,
        thinking=20,
        tool_requests={"Grep": 5, "Bash": 5},
        tool_results={"Grep": 100, "Bash": 200, "": 10},
        attachments=4_000 + 5 + 9,
        memory=15,
        system_prompt=100,
        tool_schemas=8,
    )
    assert breakdown.total == 10 + 30 + 20 + 10 + 310 + 4_014 + 15 + 108


def test_a_new_frame_takes_the_place_of_the_old_one() -> None:
    counted = tally()
    counted.set_frame("s" * 400)
    counted.set_frame("s" * 800)
    assert counted.breakdown().system_prompt == 200
    assert counted.count().tokens == 267


@pytest.mark.parametrize(
    ("again", "wasted"),
    [
        (read(2, "/a.py", "x" * 400), 100),
        (read(2, "/a.py", "x" * 400, tool="read_file"), 100),
        (read(2, "/a.py", "x" * 396 + "y" * 4), 0),
        (read(2, "/b.py", "x" * 400), 0),
        (read(2, "/a.py", "x" * 400, tool="Bash"), 0),
        (read(2, "/a.py", "x" * 400, is_error=True), 0),
    ],
    ids=["same content", "another name for reading", "changed", "another file", "no reader", "failed"],
)
def test_a_file_read_again_with_the_same_content_is_waste(again: list[Message], wasted: int) -> None:
    counted = tally()
    for message in (*read(1, "/a.py", "x" * 400), *again):
        counted.add(message)
    assert counted.breakdown().repeated_reads == wasted


def test_reading_again_what_a_cut_took_away_is_no_waste() -> None:
    counted = tally()
    for message in read(1, "/a.py", "x" * 400):
        counted.add(message)
    counted.cut(())
    for message in read(2, "/a.py", "x" * 400):
        counted.add(message)
    assert counted.breakdown().repeated_reads == 0


def test_a_cut_keeps_who_wrote_what_stays_and_a_bare_message_is_a_persons() -> None:
    counted = tally()
    note, picture, speech = (Message("user", (words(size),)) for size in (7, 9, 10))
    counted.cut(
        [
            SourcedMessage(note, "memory"),
            SourcedMessage(picture, "attachment"),
            speech,
            SourcedMessage(speech),
        ]
    )
    assert counted.breakdown() == TokenBreakdown(human=20, attachments=9, memory=7)


def test_dropped_thinking_is_no_longer_in_the_breakdown() -> None:
    counted = Tally(Catalog().find("claude-sonnet-4-5"), estimator=PLAIN_ESTIMATOR)
    counted.add(Message("assistant", (Thinking("t" * 400),)))
    counted.add(Message("user", (words(1),)))
    assert counted.breakdown() == TokenBreakdown(human=1)


def test_a_breakdown_is_corrected_by_what_was_learnt() -> None:
    plain, learnt = tally(), Tally(MODEL)
    for counted in (plain, learnt):
        counted.add(Message("user", "Some words of a person. " * 100))
    assert learnt.breakdown().human == learnt.count().tokens * 3 // 4
    assert plain.breakdown().human != learnt.breakdown().human


@pytest.mark.parametrize(
    ("role", "origin", "kind"),
    [
        ("user", "human", "human"),
        ("user", "attachment", "attachments"),
        ("user", "memory", "memory"),
        ("system", "human", "attachments"),
        ("system", "memory", "memory"),
        ("assistant", "human", "assistant"),
        ("assistant", "memory", "assistant"),
    ],
)
def test_text_goes_to_whoever_wrote_it(role: Role, origin: TextOrigin, kind: str) -> None:
    counted = tally()
    counted.add(Message(role, (words(10),)), origin)
    assert getattr(counted.breakdown(), kind) == counted.breakdown().total == 10


@given(st.lists(wires.messages.map(read_message), max_size=8))
def test_the_parts_make_up_the_whole(messages: list[Message]) -> None:
    counted = tally()
    for message in messages:
        counted.add(message)
    parts = sum(len(message.blocks) for message in messages) + 9
    assert abs(counted.breakdown().total - counted.count().tokens * 0.75) <= parts
    assert counted.breakdown().repeated_reads <= sum(counted.breakdown().tool_results.values()) + 1
