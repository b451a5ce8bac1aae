from __future__ import annotations

import base64
import random
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.tokens.estimation import MEASURED_WEIGHTS, ShapeWeights, estimate_text_tokens
from tests.core import wires

NOTHING = ShapeWeights(**{field.name: 0.0 for field in fields(ShapeWeights)})


@pytest.mark.parametrize(
    ("text", "place", "times"),
    [
        ("two words", "word", 2),
        ("word", "word", 1),
        ("readMemoryFile", "hump", 2),
        ("HTTP", "capitals", 2),
        ("a" * 33, "random", 2),
        ("a1 23", "number", 2),
        ("a1 234", "digit", 4),
        ("f(x);\n}", "punctuation", 3),
        ("\na\n\nb", "line", 3),
        ("if x:\n    y  z\n\tq w", "gap", 3),
        ("né", "beyond_ascii", 2),
    ],
)
def test_each_place_is_counted_where_it_is(text: str, place: str, times: int) -> None:
    alone = ShapeWeights(**{name: float(name == place) for name in ShapeWeights.__dataclass_fields__})
    assert estimate_text_tokens(text, alone) == times


def test_an_empty_text_has_no_tokens() -> None:
    assert estimate_text_tokens("") == 0


@given(wires.texts)
def test_any_text_has_a_size_within_reason(text: str) -> None:
    size_bytes = len(text.encode("utf-8", "surrogatepass"))
    assert 0 <= estimate_text_tokens(text) <= 2 * size_bytes + 2


@given(wires.texts, wires.texts)
def test_joining_two_texts_saves_or_costs_no_more_than_a_place(left: str, right: str) -> None:
    apart = estimate_text_tokens(left) + estimate_text_tokens(right)
    largest = max(getattr(MEASURED_WEIGHTS, name) for name in ShapeWeights.__dataclass_fields__)
    assert abs(estimate_text_tokens(left + right) - apart) <= 2 * largest


@given(st.text(max_size=200))
def test_weights_of_nothing_count_nothing(text: str) -> None:
    assert estimate_text_tokens(text, NOTHING) == 0


PROSE = "The estimate starts from measured values, and every bill it sees corrects them a little. " * 20
CODE = (
    "    def read(self, path: str) -> bytes:\n        return self._folder.read_bytes(path, limit=4096)\n" * 20
)
NUMBERS = "\n".join(f"{n * 7919 % 10000}.{n * 104729 % 1000}" for n in range(200))
CHINESE = "人工智能助手需要在有限的上下文窗口中工作，因此必须知道每条消息的长度。" * 20
ENCODED = base64.b64encode(random.Random(1).randbytes(3000)).decode()


@pytest.mark.parametrize(
    ("text", "fewest_bytes", "most_bytes"),
    [(PROSE, 4.0, 5.5), (CODE, 2.8, 4.6), (NUMBERS, 1.4, 2.4), (CHINESE, 2.4, 3.8), (ENCODED, 1.2, 2.0)],
    ids=["prose", "code", "numbers", "Chinese", "base64"],
)
def test_bytes_a_token_are_those_of_real_tokenizers(
    text: str, fewest_bytes: float, most_bytes: float
) -> None:
    assert fewest_bytes <= len(text.encode()) / estimate_text_tokens(text) <= most_bytes
