"""How many tokens a text and a block are, and how estimates learn from bills.

In order: `estimate_text_tokens` estimates a text from its shape, a `TokenEstimator` weighs a block, and a
`Calibration` corrects the weights with every bill.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from operator import mul
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

# A byte-pair tokenizer splits text where the kind of character changes, and common pieces become one token.
# Counting these places is accurate to a few per cent and needs no vocabulary (docs/tokens.md).


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeWeights:
    """Tokens for each place, measured on the bills of Claude up to 4.6 (`bench/token_weights.py`)."""

    word: float = 1.07
    """A run of letters: mostly one token with its leading space, sometimes two."""
    hump: float = 1.6
    """A lower-case letter before a capital: identifiers split there, and seldom into known words."""
    capitals: float = 0.6
    """Each two capitals side by side: shouted words are rarer, so they break into more pieces."""
    random: float = 9.0
    """Sixteen lower-case letters without a break: no language does that, keys and encoded bytes do."""
    number: float = 0.9
    digit: float = 0.3
    """A number costs a token to start with, and then one for about every three digits."""
    punctuation: float = 1.12
    """A run of marks; the frequent runs, such as `);` or `":"`, are single tokens."""
    line: float = 0.94
    gap: float = 0.77
    """Two or more white-space characters together, as in indentation; a single space belongs to its word."""
    beyond_ascii: float = 1 / 3
    """Each byte: most scripts take a token for one character of three bytes, or for two of two."""

    text_block: float = 2.0
    thinking_block: float = 10.0
    tool_block: float = 26.0
    """A request, and again its result: markup, name and ids around what they say."""
    argument: float = 16.0
    """Each argument of a request has a name and markup of its own."""


MEASURED_WEIGHTS = ShapeWeights()


def _classes(**members: bytes) -> bytes:
    """A translation table that turns every byte into the letter of its class, or `_`."""
    table = bytearray(b"_" * 256)
    for name, chars in members.items():
        for char in chars:
            table[char] = ord(name)
    return bytes(table)


_LOWER, _UPPER = string.ascii_lowercase.encode(), string.ascii_uppercase.encode()
_CASES = _classes(a=_LOWER, A=_UPPER, x=bytes(range(128, 256)))
_WORDS = _classes(a=_LOWER + _UPPER)
_NUMBERS = _classes(n=string.digits.encode())
_MARKS = _classes(m=string.punctuation.encode())
_GAPS = _classes(s=string.whitespace.encode())


def estimate_text_tokens(text: str, weights: ShapeWeights = MEASURED_WEIGHTS) -> float:
    """The estimate for one text, without what the block around it costs."""
    # In front stands a byte that belongs to no run, so that a run at the very start counts too.
    data = b"\0" + text.encode("utf-8", "surrogatepass")
    cases = data.translate(_CASES)
    numbers = data.translate(_NUMBERS)
    tokens = (
        weights.word * data.translate(_WORDS).count(b"_a")
        + weights.hump * cases.count(b"aA")
        + weights.capitals * cases.count(b"AA")
        + weights.random * cases.count(b"a" * 16)
        + weights.number * numbers.count(b"_n")
        + weights.digit * numbers.count(b"n")
        + weights.punctuation * data.translate(_MARKS).count(b"_m")
        + weights.line * data.count(b"\n")
        + weights.gap * data.translate(_GAPS).count(b"_ss")
    )
    return tokens if text.isascii() else tokens + weights.beyond_ascii * cases.count(b"x")


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


# Recursive least squares over one factor per class. A prior keeps the first calls from moving it far; heavy
# tails keep calls with tokens that nobody logged (a reminder, a hook, an image) from moving it much.

START_FACTOR = 1.02
"""Agents put some text into requests that no transcript holds: 2% more was billed than the logged content."""
SHARED_SPREAD = 0.3
"""How far a whole tokenizer may lie from ours: all factors move together. The known ones differ by 30%."""
OWN_SPREAD = 0.1
"""How far a class may lie from the others: languages and file types differ less than tokenizers."""
NOISE = 0.05
"""The error of a single call, as a share of its tokens, that says nothing about the factors: half of all
calls are within 3.3%."""
NOISE_FLOOR_TOKENS = 60.0
"""A short call is all overhead: its share of noise is larger than its size says."""
TAILS = 9.0
"""Errors past three times the noise count ever less."""
UNLOGGED_TAILS = 1.0
"""The same for bills above the estimate, already past the noise itself: one call in sixteen holds text that
nobody logged, and each of them would raise the factors for all the others."""
LOWEST, HIGHEST = 0.4, 3.0
"""No text of any tokenizer we know lies outside; a factor that wants to is reading a broken bill."""
ABSURD_TOKENS = 1e9
"""A thousand of the largest windows in one call: no bill, whatever it says."""


Vector: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TokenMix:
    """Estimated tokens by class. Negative where content left the prompt."""

    said: float = 0.0
    """The assistant's text and thinking."""
    asked: float = 0.0
    """Tool requests."""
    got: float = 0.0
    """Tool results."""
    told: float = 0.0
    """Everything else: people, reminders, attachments, memory, the system prompt, tool schemas."""

    @property
    def values(self) -> Vector:
        return (self.said, self.asked, self.got, self.told)

    def __add__(self, other: TokenMix) -> TokenMix:
        # Spelled out: every request adds several.
        return TokenMix(
            self.said + other.said, self.asked + other.asked, self.got + other.got, self.told + other.told
        )

    def times(self, factor: float) -> TokenMix:
        return TokenMix(factor * self.said, factor * self.asked, factor * self.got, factor * self.told)


TOKEN_CLASSES = tuple(item.name for item in fields(TokenMix))


def _first_spread() -> tuple[Vector, ...]:
    size = range(len(TOKEN_CLASSES))
    return tuple(tuple(SHARED_SPREAD**2 + (OWN_SPREAD**2 if i == j else 0.0) for j in size) for i in size)


@dataclass(frozen=True, slots=True)
class Calibration:
    factors: TokenMix = TokenMix(START_FACTOR, START_FACTOR, START_FACTOR, START_FACTOR)
    """Billed tokens for one estimated, by class."""
    spread: tuple[Vector, ...] = _first_spread()
    """How unsure each factor still is, and how they hang together: their covariance."""

    def estimate(self, mix: TokenMix) -> float:
        """The tokens that will be billed for this much of each class."""
        return _dot(self.factors.values, mix.values)

    def learn(self, mix: TokenMix, billed: float) -> Calibration:
        """The calibration after a bill. No new content, or a total that fell, teaches nothing."""
        tokens = mix.values
        gross = sum(map(abs, tokens))
        if not (0 < billed < ABSURD_TOKENS and 0 < gross < ABSURD_TOKENS):
            return self
        unit = NOISE * max(gross, NOISE_FLOOR_TOKENS)
        surprise = (billed - self.estimate(mix)) / unit
        # Lists inside, not generators: this runs after every answer.
        parts = tuple([each / unit for each in tokens])
        pulls = tuple([_dot(row, parts) for row in self.spread])
        # The tails: the larger the surprise, the noisier the call is taken to have been.
        tails = UNLOGGED_TAILS if surprise > 0 else TAILS
        total = 1 + surprise * surprise / tails + max(0.0, _dot(parts, pulls))
        factors = [
            _bounded(factor + pull * surprise / total)
            for factor, pull in zip(self.factors.values, pulls, strict=True)
        ]
        spread = [
            tuple([value - pull * other / total for value, other in zip(row, pulls, strict=True)])
            for row, pull in zip(self.spread, pulls, strict=True)
        ]
        return Calibration(TokenMix(*factors), tuple(spread))


def _bounded(factor: float) -> float:
    return min(HIGHEST, max(LOWEST, factor))


def _dot(left: Vector, right: Vector) -> float:
    return sum(map(mul, left, right))
