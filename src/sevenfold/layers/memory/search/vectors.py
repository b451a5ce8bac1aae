"""Texts as vectors that are close when the texts mean the same, by the model `all-MiniLM-L6-v2`.

The vector of a text is the normalized mean of what the network returns for its tokens. `VectorIndex` keeps
them in one matrix, so that a question is compared with all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from sevenfold.layers.memory.search.lexical import SearchHit

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


WORDS_SHARE = 0.5
"""Of the weight; the rest is the meanings'. Between .4 and .6 it makes no difference that holds on every set
of questions: docs/decisions/028-ranking.md."""

_FIRST_ROWS = 64


class VectorIndex:
    """A row of length one for each key, or none yet."""

    def __init__(self) -> None:
        import numpy as np

        self._rows = np.zeros((_FIRST_ROWS, VECTOR_WIDTH), np.float32)
        self._is_known = np.zeros(_FIRST_ROWS, np.bool_)
        self._keys: list[str] = []
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def put(self, key: str, vector: FloatArray | None) -> None:
        """None: it is there, and its vector is not known yet."""
        place = self._places.setdefault(key, len(self._keys))
        if place == len(self._keys):
            self._keys.append(key)
            if place == len(self._rows):
                self._grow()
        self._is_known[place] = vector is not None
        if vector is not None:
            self._rows[place] = vector

    def remove(self, key: str) -> None:
        place = self._places.pop(key, None)
        if place is None:
            return
        # The last takes its place, so that rows in use are always the first ones.
        last = self._keys.pop()
        if last != key:
            end = len(self._keys)
            self._keys[place], self._places[last] = last, place
            self._rows[place], self._is_known[place] = self._rows[end], self._is_known[end]

    def compare(self, vector: FloatArray) -> FloatArray:
        """How near each is, in the order of their keys; one that is not known is as near as the mean."""
        size = len(self._keys)
        known, near = self._is_known[:size], self._rows[:size] @ vector
        near[~known] = near[known].mean() if known.any() else 0.0
        return near

    def nearness(self, key: str, vector: FloatArray) -> float | None:
        """Up to 1; None where its vector is not known."""
        place = self._places[key]
        return float(self._rows[place] @ vector) if self._is_known[place] else None

    def fuse(self, vector: FloatArray, lexical: Mapping[str, float], limit: int) -> list[SearchHit]:
        """The best by words and meaning, each measured between its least and its most over all documents."""
        import numpy as np

        words = np.zeros(len(self._keys), np.float32)
        for key, score in lexical.items():
            words[self._places[key]] = score
        scores = WORDS_SHARE * _scaled(words) + (1 - WORDS_SHARE) * _scaled(self.compare(vector))
        if limit < len(scores):
            least = np.partition(scores, -limit)[-limit]
            places = np.flatnonzero(scores >= least)
        else:
            places = np.arange(len(scores))
        hits = [SearchHit(self._keys[place], float(scores[place])) for place in places.tolist()]
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))[:limit]

    def _grow(self) -> None:
        import numpy as np

        self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)))
        self._is_known = np.concatenate((self._is_known, np.zeros_like(self._is_known)))


def _scaled(values: FloatArray) -> FloatArray:
    """From 0 to 1; all 0 where they are all the same."""
    reach = values.max() - values.min() if len(values) else 0
    return (values - values.min()) / reach if reach else values * 0


def pack_vector(vector: FloatArray) -> bytes:
    """As it is stored: half the size, and as near to all others as before to three digits."""
    import numpy as np

    return vector.astype(np.float16).tobytes()


def unpack_vector(stored: bytes) -> FloatArray | None:
    """None for what is no vector of ours."""
    import numpy as np

    return np.frombuffer(stored, np.float16).astype(np.float32) if len(stored) == 2 * VECTOR_WIDTH else None
