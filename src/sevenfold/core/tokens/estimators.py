"""What one block of a message weighs, in tokens, before calibration: estimators by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from sevenfold.core.json import Json, write_json
from sevenfold.core.messages import (
    Block,
    Compaction,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from sevenfold.core.tokens.shape import MEASURED_WEIGHTS, ShapeWeights, estimate_text_tokens

MEDIA_TOKENS = 2_000.0
"""An image or a document, whatever its size: the pixels and pages that decide are not in the block's JSON."""

VERBATIM_BYTES = 2_000
"""Thinking is shown as it was up to about here; the rest is a summary of what is billed."""
SUMMARY_RATIO = 2.0
"""Bytes billed for each byte of that summary, where no signature tells."""
SIGNATURE_BYTES = 175
"""A signature holds the thinking itself, encrypted, and this much besides, all in base64."""
THINKING_BYTES_PER_TOKEN = 4.3
"""Prose in a plain style; used only where the text is withheld."""

WeighBlock: TypeAlias = Callable[[Block], float]


@dataclass(frozen=True, slots=True)
class TokenEstimator:
    name: str
    weigh: WeighBlock
    calibrates: bool
    """Whether billed usage may correct it."""


def weigh_by_shape(block: Block, weights: ShapeWeights = MEASURED_WEIGHTS) -> float:
    """The tokens of a block by the shape of its text and by what surrounds it."""
    match block:
        case Text():
            return weights.text_block + estimate_text_tokens(block.text, weights)
        case Thinking():
            return weights.thinking_block + _thinking_tokens(block.thinking, block.signature, weights)
        case RedactedThinking():
            return weights.thinking_block + _signed_bytes(block.data) / THINKING_BYTES_PER_TOKEN
        case ToolUse():
            # Arguments reach the model as text, unescaped: their JSON form would overstate code by a third.
            texts = "\n".join(_spoken(value) for value in block.input.values())
            around = weights.tool_block + weights.argument * len(block.input)
            return around + estimate_text_tokens(texts, weights)
        case ToolResult():
            inside = _result_tokens(
                block,
                partial(estimate_text_tokens, weights=weights),
                partial(weigh_by_shape, weights=weights),
            )
            return weights.tool_block + inside
        case _:
            return _other_tokens(block, partial(estimate_text_tokens, weights=weights))


def weigh_plainly(block: Block) -> float:
    """The well-known rule: four bytes a token for text, two for JSON, a flat figure for media."""
    match block:
        case Text():
            return _quarter_bytes(block.text)
        case Thinking():
            return _quarter_bytes(block.thinking)
        case RedactedThinking():
            return _quarter_bytes(block.data)
        case ToolUse():
            return len(write_json(block.input)) / 2
        case ToolResult():
            return _result_tokens(block, _by_look, weigh_plainly)
        case _:
            return _other_tokens(block, _by_look)


def weigh_exactly(block: Block, count: Callable[[str], float]) -> float:
    """By the model's own tokenizer. What its template puts around a block is no part of one."""
    match block:
        case Text():
            return count(block.text)
        case Thinking():
            return count(block.thinking)
        case RedactedThinking():
            return _signed_bytes(block.data) / THINKING_BYTES_PER_TOKEN
        case ToolUse():
            return count(block.name) + count(write_json(block.input).decode())
        case ToolResult():
            return _result_tokens(block, count, partial(weigh_exactly, count=count))
        case _:
            return _other_tokens(block, count)


CALIBRATED_ESTIMATOR = TokenEstimator("calibrated", weigh_by_shape, calibrates=True)
PLAIN_ESTIMATOR = TokenEstimator("plain", weigh_plainly, calibrates=False)
EXACT_ESTIMATOR_NAME = "exact"
"""The name of one that counts with a tokenizer (`weigh_exactly`), which somebody has to bring."""
ESTIMATORS: Mapping[str, TokenEstimator] = {
    item.name: item for item in (CALIBRATED_ESTIMATOR, PLAIN_ESTIMATOR)
}


def _result_tokens(result: ToolResult, weigh_text: Callable[[str], float], weigh: WeighBlock) -> float:
    if result.content is None or isinstance(result.content, str):
        return weigh_text(result.content or "")
    return sum(weigh(item) for item in result.content)


def _other_tokens(block: Compaction | Document | Image | Opaque, weigh_text: Callable[[str], float]) -> float:
    match block:
        case Image() | Document():
            return MEDIA_TOKENS
        case Compaction():
            return weigh_text(block.content or "")
        case Opaque():
            return weigh_text(write_json(block.wire).decode())


def _thinking_tokens(text: str, signature: str | None, weights: ShapeWeights) -> float:
    shown_bytes = len(text.encode("utf-8", "surrogatepass"))
    billed_bytes = max(shown_bytes, _signed_bytes(signature)) if signature else _unsummarised(shown_bytes)
    if not shown_bytes:
        return billed_bytes / THINKING_BYTES_PER_TOKEN
    return estimate_text_tokens(text, weights) * billed_bytes / shown_bytes


def _signed_bytes(encoded: str) -> float:
    return max(0.0, len(encoded) * 3 / 4 - SIGNATURE_BYTES)


def _unsummarised(shown_bytes: int) -> float:
    return shown_bytes + (SUMMARY_RATIO - 1) * max(0, shown_bytes - VERBATIM_BYTES)


def _spoken(value: Json) -> str:
    return value if isinstance(value, str) else write_json(value).decode()


def _quarter_bytes(text: str) -> float:
    return len(text.encode("utf-8", "surrogatepass")) / 4


def _by_look(text: str) -> float:
    return _quarter_bytes(text) * (2 if text.lstrip()[:1] in {"{", "["} else 1)


def estimate_message(message: Message) -> int:
    """A message by itself, where nothing was billed to correct the estimate with."""
    return round(sum(CALIBRATED_ESTIMATOR.weigh(block) for block in message.blocks))
