"""Texts as vectors that are close when the texts mean the same, by the model `all-MiniLM-L6-v2`.

The vector of a text is the normalized mean of what the network returns for its tokens. `VectorIndex` keeps
them in one matrix, so that a question is compared with all of them at once. `Minilm` is the network on numpy,
without torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from sevenfold.core.errors import FileDamaged
from sevenfold.layers.memory.search.lexical import SearchHit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


FloatArray: TypeAlias = "NDArray[np.float32]"
IntArray: TypeAlias = "NDArray[np.int64]"

VECTOR_WIDTH = 384

MAX_ENCODER_TOKENS = 256
"""What the model was trained on. A memory says what it is about at its beginning."""

MODEL_FOLDER, TOKENIZER = "models/all-MiniLM-L6-v2", "tokenizer.json"
"""Below the home: where `sevenfold recall --setup` puts the tokenizer and the network, the tokenizer last."""


def has_encoder(home: Path) -> bool:
    """Whether one was set up below a home. `encoders` need not be loaded to tell."""
    return (home / MODEL_FOLDER / TOKENIZER).is_file()


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

_SURE_OVERLAP = 0.5
"""Of a word that hardly any document holds, the least that some document has to share with a prompt for words
to count in full. Where all of them share only talk, the meaning decides."""

_FIRST_ROWS = 64

_LEAST_SPREAD = 0.03
"""Of a background: where it has hardly any, a small difference would count as a large one."""


def share_of_words(overlap: float) -> float:
    """The weight of words, by how much the best document shares of a prompt."""
    return WORDS_SHARE * min(1.0, overlap / _SURE_OVERLAP)


@dataclass(frozen=True, slots=True)
class Background:
    """How near prompts about something else come to the nearest of these texts: how near says nothing."""

    mean: float
    spread: float
    """The standard deviation."""

    def measure(self, nearness: float) -> float:
        """By how many standard deviations a text is nearer than that."""
        return (nearness - self.mean) / self.spread


@dataclass(frozen=True, slots=True)
class _Stacked:
    rows: FloatArray
    places: IntArray
    """Of the text that each row belongs to."""


class VectorIndex:
    """A row of length one for each key, or none yet."""

    def __init__(self) -> None:
        import numpy as np

        self._rows = np.zeros((_FIRST_ROWS, VECTOR_WIDTH), np.float32)
        self._is_known = np.zeros(_FIRST_ROWS, np.bool_)
        self._keys: list[str] = []
        self._places: dict[str, int] = {}
        self._parts: dict[str, FloatArray] = {}
        """Of long texts, the rows of what follows their beginning."""
        self._stacked: _Stacked | None = None
        """All of them in one matrix; None: to be made again."""

    def __len__(self) -> int:
        return len(self._keys)

    def put(self, key: str, vectors: FloatArray | None) -> None:
        """A row for each part of a text, its beginning first; None: it is there, and not known yet."""
        self._stacked = None
        self._parts.pop(key, None)
        vector = None if vectors is None else vectors[0]
        if vectors is not None and len(vectors) > 1:
            self._parts[key] = vectors[1:]
        place = self._places.setdefault(key, len(self._keys))
        if place == len(self._keys):
            self._keys.append(key)
            if place == len(self._rows):
                self._grow()
        self._is_known[place] = vector is not None
        if vector is not None:
            self._rows[place] = vector

    def remove(self, key: str) -> None:
        self._stacked = None
        self._parts.pop(key, None)
        place = self._places.pop(key, None)
        if place is None:
            return
        # The last takes its place, so that rows in use are always the first ones.
        last = self._keys.pop()
        if last != key:
            end = len(self._keys)
            self._keys[place], self._places[last] = last, place
            self._rows[place], self._is_known[place] = self._rows[end], self._is_known[end]

    def compare(self, vectors: FloatArray) -> FloatArray:
        """How near each is to the nearest of these, in the order of their keys; one that is not known is as
        near as the mean."""
        known, near = self._is_known[: len(self._keys)], self._measure(vectors.T).max(axis=1)
        near[~known] = near[known].mean() if known.any() else 0.0
        return near

    def measure_background(self, prompts: FloatArray) -> Background | None:
        """How near prompts that are about something else come to the nearest; None while nothing is known."""
        known = self._is_known[: len(self._keys)]
        if not known.any() or not len(prompts):
            return None
        nearest = self._measure(prompts.T)[known].max(axis=0)
        return Background(float(nearest.mean()), max(float(nearest.std()), _LEAST_SPREAD))

    def _measure(self, vectors: FloatArray) -> FloatArray:
        """A long text is as near as its beginning and the nearest of its parts together."""
        import numpy as np

        near = self._rows[: len(self._keys)] @ vectors
        if not self._parts:
            return near
        nearest, stacked = near.copy(), self._stack()
        np.maximum.at(nearest, stacked.places, stacked.rows @ vectors)
        return ((near + nearest) / 2).astype(np.float32, copy=False)

    def nearness(self, key: str, vector: FloatArray) -> float | None:
        """Up to 1; None where its vector is not known."""
        place = self._places[key]
        if not self._is_known[place]:
            return None
        near = float(self._rows[place] @ vector)
        nearest = max(near, float((self._parts[key] @ vector).max())) if key in self._parts else near
        return (near + nearest) / 2

    def fuse(
        self,
        vectors: FloatArray,
        lexical: Mapping[str, float],
        limit: int,
        *,
        words_share: float = WORDS_SHARE,
    ) -> list[SearchHit]:
        """The best by words and by nearness to one of these vectors, each measured between its least and its
        most over all documents."""
        import numpy as np

        words = np.zeros(len(self._keys), np.float32)
        for key, score in lexical.items():
            words[self._places[key]] = score
        scores = words_share * _scaled(words) + (1 - words_share) * _scaled(self.compare(vectors))
        if limit < len(scores):
            least = np.partition(scores, -limit)[-limit]
            places = np.flatnonzero(scores >= least)
        else:
            places = np.arange(len(scores))
        hits = [SearchHit(self._keys[place], float(scores[place])) for place in places.tolist()]
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))[:limit]

    def _stack(self) -> _Stacked:
        import numpy as np

        if self._stacked is None:
            places = [self._places[key] for key, parts in self._parts.items() for _ in range(len(parts))]
            self._stacked = _Stacked(np.concatenate(list(self._parts.values())), np.array(places, np.int64))
        return self._stacked

    def _grow(self) -> None:
        import numpy as np

        self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)))
        self._is_known = np.concatenate((self._is_known, np.zeros_like(self._is_known)))


BACKGROUND_PROMPTS = (
    *("please continue", "what is next?", "thank you very much", "can you help me with this?"),
    *("I changed my mind", "let me think about it", "yes, that is fine", "no, not like that"),
    *(
        "write a short poem about the sea",
        "how tall is Mount Everest?",
        "tell me a joke",
        "why does this fail?",
    ),
    *("what is the capital of Australia?", "recommend a good movie for tonight", "how do I cook rice?"),
    *("the meeting was moved to Thursday", "please book a table for two", "make the button blue"),
    *("rename this variable", "clean up the code a little", "start over from the beginning"),
    *("translate this sentence to Spanish", "schreib das bitte um", "das verstehe ich nicht"),
    *("qué opinas de esto?", "hazlo más simple", "peux-tu reformuler ?", "c'est parfait", "pode repetir?"),
    *("请解释一下", "下一步是什么", "お願いします"),
)
"""What a background is measured with: prompts of every kind that ask for no memory."""


def _scaled(values: FloatArray) -> FloatArray:
    """From 0 to 1; all 0 where they are all the same."""
    reach = values.max() - values.min() if len(values) else 0
    return (values - values.min()) / reach if reach else values * 0


PART_CHARS, MAX_PARTS = 1_000, 4
"""Of a text: what the encoder reads at once, and how many such parts get a vector. Four times the work for a
long text, and what stands behind its beginning is found: docs/decisions/028-ranking.md."""


def split_parts(text: str) -> list[str]:
    """The text, of which the encoder reads the beginning, and what follows in parts."""
    return [text, *islice(cut_text(text, PART_CHARS), 1, MAX_PARTS)]


QUESTION_CHARS = 700
"""Of a part of a prompt. A longer prompt speaks of more than one thing, and its mean is near to none."""


def split_question(question: str) -> list[str]:
    return list(cut_text(question, QUESTION_CHARS))


def cut_text(text: str, size: int) -> Iterator[str]:
    """In parts of at most so many characters, cut between lines or words where that is possible."""
    if not text:
        yield text
    start = 0
    while start < len(text):
        end = start + size
        cut = max(text.rfind(mark, start + size // 2, end) for mark in "\n ") if end < len(text) else -1
        end = cut + 1 if cut > 0 else end
        yield text[start:end]
        start = end


def pack_vectors(vectors: FloatArray) -> bytes:
    """As they are stored: half the size, and as near to all others as before to three digits."""
    import numpy as np

    return vectors.astype(np.float16).tobytes()


def unpack_vectors(stored: bytes) -> FloatArray | None:
    """None for what are no vectors of ours."""
    import numpy as np

    if not stored or len(stored) % (2 * VECTOR_WIDTH):
        return None
    return np.frombuffer(stored, np.float16).astype(np.float32).reshape(-1, VECTOR_WIDTH)


# Six layers of a BERT, with 384 numbers for each token.

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
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            start, end = cast("list[int]", entry["data_offsets"])
            kind, shape = _TYPES[str(entry["dtype"])], cast("list[int]", entry["shape"])
            file.seek(base + start)
            numbers = np.frombuffer(file.read(end - start), kind)
            found[name] = numbers.reshape(shape).astype(np.float32)
    return found
