"""What a caller's list may hold that is no message, or no block: refused by its place, or sent in words."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from sevenfold.core.errors import WireError
from sevenfold.core.events import HistoryRepaired
from sevenfold.core.messages import ToolResult
from sevenfold.session.blocking import BlockingSession
from tests.session.talk import FRAME, Listener

CYCLE: list[object] = []
CYCLE.append(CYCLE)


class Broken:
    """An object of an SDK that cannot be written."""

    def model_dump(self, **_: object) -> object:
        raise RuntimeError("not today")


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def session(listener: Listener) -> Generator[BlockingSession]:
    with BlockingSession.open(FRAME, project=None, emit=listener) as opened:
        yield opened


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "user", "content": b"bytes"},
        {"role": "user", "content": None},
        {"role": "user", "content": 5},
        {"role": "user"},
        {"role": "nobody", "content": "x"},
        {"content": "x"},
        "only text",
        None,
        CYCLE,
    ],
    ids=["bytes", "none", "number", "nothing", "role", "no role", "text", "no message", "cycle"],
)
def test_what_is_no_message_is_refused_by_its_place_and_nothing_of_it_is_taken(
    session: BlockingSession, wrong: object
) -> None:
    good: list[object] = [{"role": "user", "content": text} for text in ("go", "on")]
    session.prepare(good)
    with pytest.raises(WireError, match=r"messages\[1\]"):
        session.prepare([good[0], wrong, good[1]])
    more = [*good, {"role": "user", "content": "more"}]
    assert [message.content for message in session.prepare(more).request.messages] == ["go", "on", "more"]


@pytest.mark.parametrize(
    "block",
    [
        None,
        5,
        "text",
        b"bytes",
        CYCLE,
        [{}],
        {"type": "text", "text": b"x"},
        {"type": "text", 5: "x"},
        Broken(),
    ],
    ids=["none", "number", "text", "bytes", "cycle", "list", "bytes inside", "key", "model_dump"],
)
def test_what_is_no_block_is_refused_by_its_message_and_place(
    session: BlockingSession, block: object
) -> None:
    fine = {"type": "text", "text": "fine"}
    with pytest.raises(WireError, match=r"messages\[1\]: content\[1\]"):
        session.prepare([{"role": "user", "content": "go"}, {"role": "user", "content": [fine, block]}])


@pytest.mark.parametrize(
    "block",
    [{}, {"text": "x"}, {"type": None}, {"type": 5}, {"type": "text"}, {"type": "image", "source": "here"}],
    ids=str,
)
def test_a_block_that_nobody_can_read_is_sent_in_words_and_told(
    session: BlockingSession, listener: Listener, block: object
) -> None:
    call: dict[str, object] = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": [block]}
    contents: list[list[object]] = [[block], [call], [answer]]
    roles = ("user", "assistant", "user")
    history = [{"role": role, "content": blocks} for role, blocks in zip(roles, contents, strict=True)]
    sent = session.prepare(history).request.messages
    inside = [part for message in sent for part in message.blocks if isinstance(part, ToolResult)]
    assert str(sent[0].blocks[0]).count("block that cannot be read") == 1
    assert str(inside[0].content).count("block that cannot be read") == 1
    told = [event for event in listener.events if isinstance(event, HistoryRepaired)]
    assert [event.repair for event in told] == ["block", "block"]
