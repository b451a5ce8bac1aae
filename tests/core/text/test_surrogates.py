"""No half of a character reaches a provider."""

from __future__ import annotations

import json

import pytest

from sevenfold.core.json import EMPTY_OBJECT, JsonObject, replace_lone_surrogates
from sevenfold.core.messages import (
    Block,
    Compaction,
    Document,
    Image,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
    write_block,
)
from sevenfold.core.normalize_blocks import replace_block_surrogates

HALF = "a\ud83db"
WITHIN = JsonObject({"key": (HALF, JsonObject({HALF: 1}))})
USE = ToolUseId(HALF)
BLOCKS: tuple[Block, ...] = (
    Text(HALF, WITHIN),
    Thinking(HALF, HALF, WITHIN),
    RedactedThinking(HALF, WITHIN),
    ToolUse(USE, HALF, WITHIN, WITHIN),
    ToolResult(USE, HALF, extra=WITHIN),
    ToolResult(USE, (Text(HALF), Image(WITHIN))),
    ToolResult(ToolUseId("a"), None, extra=WITHIN),
    Image(WITHIN, WITHIN),
    Document(WITHIN, WITHIN),
    Compaction(HALF, WITHIN),
    Compaction(None, WITHIN),
    Opaque(WITHIN),
    # Each field by itself: one that is overlooked is not mended along with another.
    Text(HALF),
    Thinking(HALF),
    Thinking("a", HALF),
    Thinking("a", None, WITHIN),
    RedactedThinking(HALF),
    ToolUse(USE, "a", EMPTY_OBJECT),
    ToolUse(ToolUseId("a"), HALF, EMPTY_OBJECT),
    ToolUse(ToolUseId("a"), "a", WITHIN),
    ToolResult(USE, "a"),
    ToolResult(ToolUseId("a"), HALF),
    ToolResult(ToolUseId("a"), (Text(HALF),)),
    Image(WITHIN),
    Document(EMPTY_OBJECT, WITHIN),
    Compaction(HALF),
)


def spelled(block: Block) -> str:
    return json.dumps(write_block(block), ensure_ascii=False)


@pytest.mark.parametrize("block", BLOCKS, ids=[f"{at}-{type(b).__name__}" for at, b in enumerate(BLOCKS)])
def test_every_text_of_a_block_is_mended(block: Block) -> None:
    with pytest.raises(UnicodeEncodeError):
        spelled(block).encode()
    mended = replace_block_surrogates(block)
    assert "\ufffd" in spelled(mended)
    assert spelled(mended).encode().decode() == spelled(block).replace("\ud83d", "\ufffd")
    assert replace_block_surrogates(mended) is mended


def test_halves_that_belong_together_are_joined() -> None:
    assert replace_lone_surrogates("\ud83d\ude00") == "😀"
    assert replace_lone_surrogates("\ude00\ud83d") == "\ufffd\ufffd"


@pytest.mark.parametrize("text", ["", "plain", "é", "😀"])
def test_sound_text_is_left_alone(text: str) -> None:
    assert replace_lone_surrogates(text) is text
    block = Text(text)
    assert replace_block_surrogates(block) is block
