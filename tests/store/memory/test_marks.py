"""Marks of memories whose claims broke."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.sidecars import MARKS_NAME, BrokenMark, MarkStore

MARK = BrokenMark("ab12", ("src/gone.py (no such file)",), datetime(2026, 11, 2, tzinfo=UTC))


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(tmp_path / "control", create=True) as folder:
        yield folder


def test_marks_are_put_on_and_taken_off_and_others_stay(control: Folder) -> None:
    book = MarkStore(control)
    book.put({"a.md": MARK, "b.md": MARK})
    book.put({"a.md": None, "c.md": None})
    assert book.read() == {"b.md": MARK}


def test_what_is_no_mark_marks_nothing(control: Folder) -> None:
    control.replace(
        f"{MARKS_NAME}.json",
        b'{"a.md": 1, "b.md": {"sha256": "x"}, "c.md": {"sha256": "x", "broken": [2], "at": "?"}}',
    )
    assert MarkStore(control).read() == {}
