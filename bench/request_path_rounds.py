"""The rounds that `bench/request_path.py` sends: made up, or those of recorded sessions one after another."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from token_replay import read_claude_sessions

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Block, Message, Text, Thinking, ToolResult, ToolUse, ToolUseId

WORDS = (
    *("the", "parser", "reads", "tokens", "from", "src/parse.py", "line", "42", "and", "raises"),
    *("ValueError", "when", "a", "bracket", "is", "missing", "self.stack", "->", "None", "def"),
)


@dataclass(frozen=True, slots=True)
class Round:
    """A model's answer and what the world says to it."""

    answer: Message
    result: Message


def rounds_of(data: Path | None) -> Iterator[Round]:
    """One after another, the same ones each time."""
    return made_up() if data is None else recorded(data)


def made_up() -> Iterator[Round]:
    """About 780 tokens in two messages."""
    dice, number = random.Random(7), 0
    while True:
        use = ToolUseId(f"toolu_{number:08}")
        said = " ".join(dice.choices(WORDS, k=60))
        given = JsonObject({"text": " ".join(dice.choices(WORDS, k=25)), "number": number})
        found = " ".join(dice.choices(WORDS, k=dice.randrange(150, 450)))
        answer = Message("assistant", (Text(said), ToolUse(use, "Query", given)))
        yield Round(answer, Message("user", (ToolResult(use, found),)))
        number += 1


def recorded(data: Path) -> Iterator[Round]:
    for session in read_claude_sessions(data):
        messages = [line.message for line in session.lines]
        for answer, result in pairwise(messages):
            if answer.role == "assistant" and result.role == "user":
                yield Round(_changed(answer), result)
    raise SystemExit(f"error: the sessions in {data} come to an end before that; try --short")


def _changed(answer: Message) -> Message:
    return replace(answer, content=tuple(map(_changed_block, answer.blocks)))


def _changed_block(block: Block) -> Block:
    """A call of a tool whose results layer 2 does not clear, so that the view stays as long as the history;
    and thinking that was signed, as a provider's is and a log's is not."""
    match block:
        case ToolUse():
            return replace(block, name="Query")
        case Thinking():
            return replace(block, signature=block.signature or "c2lnbmVk")
        case _:
            return block
