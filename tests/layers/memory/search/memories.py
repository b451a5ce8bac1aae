"""Memories for tests of search, without a directory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from sevenfold.core.memories import Origin, read_memory, write_memory
from sevenfold.layers.memory.search.vectors import VECTOR_WIDTH, FloatArray, IntArray, TextEncoder
from sevenfold.store.memory.changes import StoredMemory, TransactionId

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def stored(key: str, body: str, *, name: str = "", kind: str = "project") -> StoredMemory:
    text = write_memory(name or key.removesuffix(".md"), body.partition("\n")[0], kind, body)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    origin = Origin(who="user", why="for a test", said_by="user")
    return StoredMemory(
        memory=read_memory(key, text),
        sha256=sha256,
        modified=LONG_AGO,
        origin=origin,
        transaction=TransactionId("t"),
    )


@dataclass(frozen=True, slots=True)
class _Ids:
    ids: list[int]


@dataclass(slots=True)
class Letters:
    """Takes a text apart into its letters, and counts how many texts it was given."""

    texts: list[str] = field(default_factory=list[str])

    def encode_batch(self, texts: list[str], /) -> list[_Ids]:
        self.texts += texts
        return [_Ids([1 + ord(letter) % (VECTOR_WIDTH - 1) for letter in text] or [0]) for text in texts]


class OneEach:
    """A network to which every token is a direction of its own."""

    def run(self, tokens: IntArray, mask: IntArray) -> FloatArray:
        return np.eye(VECTOR_WIDTH, dtype=np.float32)[tokens]


@dataclass(slots=True)
class Encoding:
    """An encoder whose texts are near each other when they hold the same letters."""

    letters: Letters = field(default_factory=Letters)

    @property
    def encoder(self) -> TextEncoder:
        return TextEncoder("letters", self.letters, OneEach())

    @property
    def texts(self) -> Sequence[str]:
        return self.letters.texts
