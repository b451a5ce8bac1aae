"""Who turns texts into vectors here: whatever was set up, the fastest first; nobody where nothing was."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import cast

from sevenfold.core.events import Emit, VectorsUnused, ignore_event
from sevenfold.layers.memory.search.minilm import Minilm, read_weights
from sevenfold.layers.memory.search.onnx_graph import read_graph
from sevenfold.layers.memory.search.text_encoder import MAX_ENCODER_TOKENS, BatchTokenizer, TextEncoder

WEIGHTS, TOKENIZER, GRAPH = "model.safetensors", "tokenizer.json", "model.onnx"
MODEL_FOLDER = "models/all-MiniLM-L6-v2"
"""Below the home: where `sevenfold search setup` puts the three."""

NEEDED_LIBRARIES = ("numpy", "tokenizers")
FASTER_LIBRARY = "onnxruntime"


def find_encoder(home: Path, *, emit: Emit = ignore_event) -> TextEncoder | None:
    """The encoder that was set up below a home; None where none was. Takes up to a second.

    One that was set up and cannot be used is told of.
    """
    folder = home / MODEL_FOLDER
    if not (folder / TOKENIZER).is_file():
        return None
    missing = [name for name in NEEDED_LIBRARIES if find_spec(name) is None]
    if missing:
        emit(VectorsUnused(f"{' and '.join(missing)} is missing; install sevenfold[search]"))
        return None
    try:
        return read_encoder(folder)
    except Exception as error:  # the libraries raise it bare, whatever is wrong with a file
        emit(VectorsUnused(f"{folder}: {error}; run `sevenfold search setup` again"))
        return None


def read_encoder(folder: Path) -> TextEncoder:
    """The one whose files lie in a folder: on onnxruntime where that and its graph are there, else on numpy.

    Their vectors are near each other and not the same, so each has a name of its own.
    """
    tokenizer = read_tokenizer(folder / TOKENIZER)
    if find_spec(FASTER_LIBRARY) is not None and (folder / GRAPH).is_file():
        return TextEncoder("minilm-int8", tokenizer, read_graph(folder / GRAPH))
    return TextEncoder("minilm", tokenizer, Minilm(read_weights(folder / WEIGHTS)))


def read_tokenizer(path: Path) -> BatchTokenizer:
    from tokenizers import Tokenizer as Loaded

    loaded = Loaded.from_file(str(path))
    loaded.enable_truncation(MAX_ENCODER_TOKENS)  # pyright: ignore[reportUnknownMemberType]
    loaded.no_padding()
    return cast("BatchTokenizer", loaded)
