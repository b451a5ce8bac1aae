"""Values that were computed from transcripts are kept until a transcript changes or is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sevenfold.store.foreign.transcripts import TranscriptFile
from sevenfold.store.session_index.database import DerivedValues


@pytest.fixture
def values(tmp_path: Path) -> Iterator[DerivedValues]:
    found = DerivedValues.open(tmp_path / "home")
    yield found
    found.close()


def transcript(path: Path, text: bytes = b"{}\n") -> TranscriptFile:
    path.write_bytes(text)
    return TranscriptFile(path, len(text), path.stat().st_mtime_ns)


def test_a_value_holds_for_the_file_as_it_was(values: DerivedValues, tmp_path: Path) -> None:
    one, other = transcript(tmp_path / "1"), transcript(tmp_path / "2")
    values.write("cost 1", {one: b"1", other: b"2"})
    assert values.read("cost 1", [one, other]) == {one.path: b"1", other.path: b"2"}
    assert values.read("cost 2", [one]) == {}
    assert values.read("cost 1", [transcript(one.path, b"{}\n{}\n")]) == {}


def test_values_of_files_that_are_gone_and_of_older_keys_are_deleted(
    values: DerivedValues, tmp_path: Path
) -> None:
    one, gone = transcript(tmp_path / "1"), transcript(tmp_path / "2")
    for key in ("cost 1", "cost 2", "page 1"):
        values.write(key, {one: b"x", gone: b"y"})
    gone.path.unlink()
    values.forget_others("cost", ["cost 2"])
    found = {key: values.read(key, [one, gone]) for key in ("cost 1", "cost 2", "page 1")}
    assert found == {"cost 1": {}, "cost 2": {one.path: b"x"}, "page 1": {one.path: b"x"}}
