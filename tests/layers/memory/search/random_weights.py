"""A network of the size of MiniLM with random weights: right enough to compare two ways of running it."""

from __future__ import annotations

import numpy as np

from sevenfold.layers.memory.search.vectors import (
    MAX_ENCODER_TOKENS,
    MINILM_LAYERS,
    VECTOR_WIDTH,
    FloatArray,
)

WORDS, INNER = 50, 64


def make_weights() -> dict[str, FloatArray]:
    random = np.random.default_rng(7)
    weights: dict[str, FloatArray] = {}

    def fill(name: str, *shape: int) -> None:
        weights[name] = random.normal(0, 0.05, shape).astype(np.float32)

    def fill_norm(name: str) -> None:
        weights[f"{name}.weight"] = random.normal(1, 0.1, VECTOR_WIDTH).astype(np.float32)
        fill(f"{name}.bias", VECTOR_WIDTH)

    fill("embeddings.word_embeddings.weight", WORDS, VECTOR_WIDTH)
    fill("embeddings.position_embeddings.weight", MAX_ENCODER_TOKENS, VECTOR_WIDTH)
    fill("embeddings.token_type_embeddings.weight", 2, VECTOR_WIDTH)
    fill_norm("embeddings.LayerNorm")
    for layer in range(MINILM_LAYERS):
        name = f"encoder.layer.{layer}"
        sizes = {
            "attention.self.query": (VECTOR_WIDTH, VECTOR_WIDTH),
            "attention.self.key": (VECTOR_WIDTH, VECTOR_WIDTH),
            "attention.self.value": (VECTOR_WIDTH, VECTOR_WIDTH),
            "attention.output.dense": (VECTOR_WIDTH, VECTOR_WIDTH),
            "intermediate.dense": (INNER, VECTOR_WIDTH),
            "output.dense": (VECTOR_WIDTH, INNER),
        }
        for part, (out, taken) in sizes.items():
            fill(f"{name}.{part}.weight", out, taken)
            fill(f"{name}.{part}.bias", out)
        fill_norm(f"{name}.attention.output.LayerNorm")
        fill_norm(f"{name}.output.LayerNorm")
    return weights
