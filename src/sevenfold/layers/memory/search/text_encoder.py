"""Texts as vectors that are near each other when the texts mean the same, by the model `all-MiniLM-L6-v2`.

A text's vector is the mean of what the network says of its tokens, of length one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

# Not loaded at the top: only who searches by meaning needs it.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FloatArray: TypeAlias = "NDArray[np.float32]"
IntArray: TypeAlias = "NDArray[np.int64]"

VECTOR_WIDTH = 384

MAX_ENCODER_TOKENS = 256
"""What the model was trained on. A memory says what it is about at its beginning."""

BATCH = 16
"""Texts at a time, of similar length: enough for large matrices, and little enough to stay in cache."""


class TokenEncoding(Protocol):
    """What is used of the tokenizer's answer."""

    @property
    def ids(self) -> list[int]: ...


class BatchTokenizer(Protocol):
    def encode_batch(self, texts: list[str], /) -> Sequence[TokenEncoding]: ...


class EncoderNetwork(Protocol):
    """On numpy, or on onnxruntime."""

    def run(self, tokens: IntArray, mask: IntArray) -> FloatArray: ...


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """The encoder."""

    name: str
    """Vectors of two names are not to be compared."""
    tokenizer: BatchTokenizer
    network: EncoderNetwork

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """A row of length one for each text."""
        import numpy as np

        found = np.zeros((len(texts), VECTOR_WIDTH), np.float32)
        encoded = [tokens.ids for tokens in self.tokenizer.encode_batch(list(texts))]
        # Of similar length together, so that little is computed on padding.
        order = sorted(range(len(texts)), key=lambda at: len(encoded[at]))
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            found[some] = self._encode([encoded[at] for at in some])
        return found

    def _encode(self, ids: list[list[int]]) -> FloatArray:
        import numpy as np

        longest = max(map(len, ids))
        tokens = np.zeros((len(ids), longest), np.int64)
        mask = np.zeros((len(ids), longest), np.int64)
        for row, each in enumerate(ids):
            tokens[row, : len(each)] = each
            mask[row, : len(each)] = 1
        mean = (self.network.run(tokens, mask) * mask[:, :, None]).sum(axis=1)
        length = np.sqrt((mean * mean).sum(axis=1, keepdims=True))
        return (mean / length).astype(np.float32, copy=False)
