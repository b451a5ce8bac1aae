"""The network of MiniLM on numpy, without torch: six layers of a BERT of 384 numbers a token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from sevenfold.core.errors import FileDamaged
from sevenfold.layers.memory.search.vectors import VECTOR_WIDTH, FloatArray, IntArray

MINILM_LAYERS = 6
MINILM_HEADS = 12
EPSILON = 1e-12

MAX_HEADER_BYTES = 1_000_000
_TYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}


@dataclass(frozen=True, slots=True)
class Minilm:
    """Safe to share between threads: it keeps nothing."""

    weights: Mapping[str, FloatArray]

    def run(self, tokens: IntArray, mask: IntArray) -> FloatArray:
        """What the last layer says of each token; those outside the mask are not looked at."""
        import numpy as np

        hidden = self._embed(tokens)
        # So much less than any other that its share rounds to nothing.
        hide = ((1 - mask.astype(np.float32)) * np.float32(-1e9))[:, None, None, :]
        for layer in range(MINILM_LAYERS):
            hidden = self._layer(f"encoder.layer.{layer}", hidden, hide)
        return hidden

    def _embed(self, tokens: IntArray) -> FloatArray:
        weights = self.weights
        summed = (
            weights["embeddings.word_embeddings.weight"][tokens]
            + weights["embeddings.position_embeddings.weight"][: tokens.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        return self._norm("embeddings.LayerNorm", summed)

    def _layer(self, name: str, hidden: FloatArray, hide: FloatArray) -> FloatArray:
        import numpy as np

        rows, length, _ = hidden.shape

        def heads(part: str) -> FloatArray:
            whole = self._linear(f"{name}.attention.self.{part}", hidden)
            return whole.reshape(rows, length, MINILM_HEADS, VECTOR_WIDTH // MINILM_HEADS).transpose(
                0, 2, 1, 3
            )

        scores = (
            heads("query")
            @ heads("key").transpose(0, 1, 3, 2)
            / np.float32(np.sqrt(VECTOR_WIDTH // MINILM_HEADS))
        )
        scores = np.exp((scores := scores + hide) - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        seen = (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(rows, length, VECTOR_WIDTH)
        attended = self._norm(
            f"{name}.attention.output.LayerNorm",
            hidden + self._linear(f"{name}.attention.output.dense", seen),
        )
        inner = gelu(self._linear(f"{name}.intermediate.dense", attended))
        return self._norm(f"{name}.output.LayerNorm", attended + self._linear(f"{name}.output.dense", inner))

    def _linear(self, name: str, value: FloatArray) -> FloatArray:
        return value @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _norm(self, name: str, value: FloatArray) -> FloatArray:
        import numpy as np

        centred = value - value.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + EPSILON)
        return centred / spread * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def gelu(value: FloatArray) -> FloatArray:
    """With the error function by a series of five terms, to 1.5e-7: numpy has none."""
    import numpy as np

    scaled = value * np.float32(0.7071067811865476)
    size = np.abs(scaled)
    step = 1 / (1 + np.float32(0.3275911) * size)
    series = (
        (((1.061405429 * step - 1.453152027) * step + 1.421413741) * step - 0.284496736) * step
    ) + 0.254829592
    error = np.sign(scaled) * (1 - series * step * np.exp(-size * size))
    return (value * np.float32(0.5) * (1 + error)).astype(np.float32, copy=False)


def read_weights(path: Path) -> dict[str, FloatArray]:
    """By name, from a file in safetensors: a length, a header in JSON, and the numbers one after another."""
    import numpy as np

    found: dict[str, FloatArray] = {}
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if not 2 <= size <= MAX_HEADER_BYTES:
            raise FileDamaged(
                f"{path} begins with a header of {size:,} bytes; expected weights in safetensors"
            )
        header = cast("dict[str, dict[str, object]]", json.loads(file.read(size)))
        base = 8 + size
        for name, told in header.items():
            if name == "__metadata__":
                continue
            start, end = cast("list[int]", told["data_offsets"])
            kind, shape = _TYPES[str(told["dtype"])], cast("list[int]", told["shape"])
            file.seek(base + start)
            numbers = np.frombuffer(file.read(end - start), kind)
            found[name] = numbers.reshape(shape).astype(np.float32)
    return found
