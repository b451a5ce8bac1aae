"""Texts as vectors that are near each other when the texts mean the same: MiniLM on numpy, without torch.

Six layers of a BERT of 384 numbers a token, as published for `all-MiniLM-L6-v2`; the mean over the tokens, of
length one. The weights are read from a folder with `model.safetensors` and `tokenizer.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from sevenfold.core.errors import FileDamaged

# Not loaded at the top: only who searches by meaning needs it.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Numbers: TypeAlias = "NDArray[np.float32]"

LAYERS = 6
HEADS = 12
WIDTH = 384
EPSILON = 1e-12

MAX_TOKENS = 256
"""What the model was trained on. A memory says what it is about at its beginning."""

BATCH = 32
"""Texts at a time, of similar length: enough for large matrices, and little enough to stay in cache."""

MAX_HEADER_BYTES = 1_000_000
_TYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}


class Tokens(Protocol):
    """What is used of the tokenizer's answer."""

    @property
    def ids(self) -> list[int]: ...


class Tokenizer(Protocol):
    def encode_batch(self, texts: list[str], /) -> list[Tokens]: ...


@dataclass(frozen=True, slots=True)
class Meanings:
    """The encoder. Safe to share between threads: it keeps nothing."""

    weights: dict[str, Numbers]
    tokenizer: Tokenizer

    def encode(self, texts: Sequence[str]) -> Numbers:
        """A row of length one for each text."""
        import numpy as np

        found = np.zeros((len(texts), WIDTH), np.float32)
        encoded = [tokens.ids for tokens in self.tokenizer.encode_batch(list(texts))]
        # Of similar length together, so that little is computed on padding.
        order = sorted(range(len(texts)), key=lambda at: len(encoded[at]))
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            found[some] = self._encode([encoded[at] for at in some])
        return found

    def _encode(self, ids: list[list[int]]) -> Numbers:
        import numpy as np

        longest = max(map(len, ids))
        tokens = np.zeros((len(ids), longest), np.int64)
        mask = np.zeros((len(ids), longest), np.float32)
        for row, each in enumerate(ids):
            tokens[row, : len(each)] = each
            mask[row, : len(each)] = 1
        hidden = self._embed(tokens)
        # So much less than any other that its share rounds to nothing.
        hide = ((1 - mask) * np.float32(-1e9))[:, None, None, :]
        for layer in range(LAYERS):
            hidden = self._layer(f"encoder.layer.{layer}", hidden, hide)
        weight = mask[:, :, None]
        mean = (hidden * weight).sum(axis=1) / weight.sum(axis=1)
        length = np.sqrt((mean * mean).sum(axis=1, keepdims=True))
        return mean / np.maximum(length, EPSILON)

    def _embed(self, tokens: NDArray[np.int64]) -> Numbers:
        weights = self.weights
        summed = (
            weights["embeddings.word_embeddings.weight"][tokens]
            + weights["embeddings.position_embeddings.weight"][: tokens.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        return self._norm("embeddings.LayerNorm", summed)

    def _layer(self, name: str, hidden: Numbers, hide: Numbers) -> Numbers:
        import numpy as np

        rows, length, _ = hidden.shape

        def heads(part: str) -> Numbers:
            whole = self._linear(f"{name}.attention.self.{part}", hidden)
            return whole.reshape(rows, length, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32(np.sqrt(WIDTH // HEADS))
        scores = np.exp((scores := scores + hide) - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        seen = (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(rows, length, WIDTH)
        attended = self._norm(
            f"{name}.attention.output.LayerNorm",
            hidden + self._linear(f"{name}.attention.output.dense", seen),
        )
        inner = gelu(self._linear(f"{name}.intermediate.dense", attended))
        return self._norm(f"{name}.output.LayerNorm", attended + self._linear(f"{name}.output.dense", inner))

    def _linear(self, name: str, value: Numbers) -> Numbers:
        return value @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _norm(self, name: str, value: Numbers) -> Numbers:
        import numpy as np

        centred = value - value.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + EPSILON)
        return centred / spread * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def gelu(value: Numbers) -> Numbers:
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


def read_meanings(folder: Path) -> Meanings:
    """The encoder whose files lie in a folder. Takes about a second."""
    from tokenizers import Tokenizer as Loaded

    loaded = Loaded.from_file(str(folder / "tokenizer.json"))
    loaded.enable_truncation(MAX_TOKENS)  # pyright: ignore[reportUnknownMemberType]
    loaded.no_padding()
    return Meanings(dict(_tensors(folder / "model.safetensors")), cast("Tokenizer", loaded))


def _tensors(path: Path) -> Iterator[tuple[str, Numbers]]:
    """The file's own format: a length, a header in JSON, and the numbers one after another."""
    import numpy as np

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
            yield name, np.frombuffer(file.read(end - start), kind).reshape(shape).astype(np.float32)
