"""How many tokens a block is. Pluggable: a `Tokenizer` is any function of a model, a level and a block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from sevenfold.core.cache.assumptions import PromptLevel
from sevenfold.core.cache.prompt_blocks import THINKING_TYPES
from sevenfold.core.cache.prompt_cache import PartCounter
from sevenfold.core.canonical import strip_cache_control
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, write_json
from sevenfold.core.messages import Opaque, Text
from sevenfold.core.models import Model
from sevenfold.core.tokens import CALIBRATED_ESTIMATOR, NEWER_TOKENIZER_SCALE
from sevenfold.core.tokens.calibration import START_FACTOR
from sevenfold.core.wire import read_block
from sevenfold.simulator.wire.binding_chain import get_signature
from sevenfold.simulator.wire.signatures import parse_thinking_seal

BlockTokenizer: TypeAlias = Callable[[Model, PromptLevel, JsonObject], int]


def estimate_tokens(model: Model, level: PromptLevel, block: JsonObject) -> int:
    """The default: the estimator that `core.tokens` starts a session with, block by block.

    The same block counts the same in every request, whatever stands around it and wherever a marker is.
    """
    told = _unsealed(strip_cache_control(block))
    if level == "tools" or told.get("type") is None:
        weight = CALIBRATED_ESTIMATOR.weigh(Text(write_json(told).decode()))
    else:
        read = read_block(told)
        weight = CALIBRATED_ESTIMATOR.weigh(
            Text(write_json(told).decode()) if isinstance(read, Opaque) else read
        )
    scale = NEWER_TOKENIZER_SCALE if model.tokenizer == "newer" else 1.0
    return max(1, round(weight * START_FACTOR * scale))


def _unsealed(block: Json) -> JsonObject:
    """Thinking with its text, which our signatures hold: what is withheld costs what it costs when shown."""
    if not isinstance(block, JsonObject):
        return EMPTY_OBJECT
    if block.get("type") not in THINKING_TYPES:
        return block
    seal = parse_thinking_seal(get_signature(block))
    if seal is None:
        return block
    return JsonObject({"type": "thinking", "thinking": seal.thinking, "signature": get_signature(block)})


def make_part_counter(tokenizer: BlockTokenizer, model: Model) -> PartCounter:
    """A tokenizer for one model, in the form that the cache model takes."""

    def count(level: PromptLevel, block: JsonObject) -> int:
        return tokenizer(model, level, block)

    return count


def count_block_tokens(tokenizer: BlockTokenizer, model: Model, blocks: Iterable[JsonObject]) -> int:
    """The tokens of a reply's blocks."""
    return sum(tokenizer(model, "messages", block) for block in blocks)
