"""What a request is compared with: what is new, and all of it where something may have left the prompt."""

from __future__ import annotations

import pytest

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.session.cache.comparer import RequestComparer

CALL = ToolUseId("toolu_1")
THOUGHT = (
    Message("user", (Text("Look into the log. " * 50),)),
    Message("assistant", (Thinking("It is long. " * 50, "signature"), ToolUse(CALL, "read", JsonObject()))),
    Message("user", (ToolResult(CALL, "nothing"),)),
)


def ask(model: str, *messages: Message) -> ModelRequest:
    return ModelRequest(RequestParams(model=model, max_tokens=1_000), messages)


@pytest.mark.parametrize(("model", "leaves"), [("claude-haiku-4-5", True), ("claude-opus-5", False)])
def test_thinking_that_leaves_when_a_user_speaks_is_a_difference(model: str, leaves: bool) -> None:
    assert CATALOG.find(model).drops_thinking == leaves
    comparer = RequestComparer()
    before = comparer.outline(ask(model, *THOUGHT))
    spoken = comparer.compare(before, ask(model, *THOUGHT, Message("user", (Text("And now?"),))))
    assert (spoken.difference is not None, spoken.is_trimmed) == (leaves, leaves)


def test_thinking_stays_while_no_user_speaks() -> None:
    comparer = RequestComparer()
    before = comparer.outline(ask("claude-haiku-4-5", *THOUGHT))
    going_on = Message("assistant", (Text("There is nothing."),))
    assert comparer.compare(before, ask("claude-haiku-4-5", *THOUGHT, going_on)).difference is None
