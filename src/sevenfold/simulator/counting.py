"""How many tokens a block is. Pluggable: a `Tokenizer` is any function of a model, a level and a block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from sevenfold.core.cache_choices import Level
from sevenfold.core.cache_model import CountPart
from sevenfold.core.canonical import unmarked
from sevenfold.core.json import EMPTY, Json, JsonObject, write_json
from sevenfold.core.messages import Opaque, Text
from sevenfold.core.models import Model
from sevenfold.core.prompt_blocks import THINKING
from sevenfold.core.token_calibration import START
from sevenfold.core.tokens import CALIBRATED, NEWER_SCALE
from sevenfold.core.wire import read_block
from sevenfold.simulator.binding import signature_of
from sevenfold.simulator.seals import read_seal

Tokenizer: TypeAlias = Callable[[Model, Level, JsonObject], int]


def estimate_tokens(model: Model, level: Level, block: JsonObject) -> int:
    """The default: the estimator that `core.tokens` starts a session with, block by block.

    The same block counts the same in every request, whatever stands around it and wherever a marker is.
    """
    told = _unsealed(unmarked(block))
    if level == "tools" or told.get("type") is None:
        weight = CALIBRATED.weigh(Text(write_json(told).decode()))
    else:
        read = read_block(told)
        weight = CALIBRATED.weigh(Text(write_json(told).decode()) if isinstance(read, Opaque) else read)
    scale = NEWER_SCALE if model.tokenizer == "newer" else 1.0
    return max(1, round(weight * START * scale))


def _unsealed(block: Json) -> JsonObject:
    """Thinking with its text, which our signatures hold: what is withheld costs what it costs when shown."""
    if not isinstance(block, JsonObject):
        return EMPTY
    if block.get("type") not in THINKING:
        return block
    seal = read_seal(signature_of(block))
    if seal is None:
        return block
    return JsonObject({"type": "thinking", "thinking": seal.thinking, "signature": signature_of(block)})


def counter(tokenizer: Tokenizer, model: Model) -> CountPart:
    """A tokenizer for one model, in the form that the cache model takes."""

    def count(level: Level, block: JsonObject) -> int:
        return tokenizer(model, level, block)

    return count


def count_all(tokenizer: Tokenizer, model: Model, blocks: Iterable[JsonObject]) -> int:
    """The tokens of a reply's blocks."""
    return sum(tokenizer(model, "messages", block) for block in blocks)
