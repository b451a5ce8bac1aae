"""The check that every test of the store runs under: what stays open is found, what others close is not."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.store import disks
from tests.store.disks import find_left_open, open_handles


def test_a_handle_that_stays_open_is_found_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disks, "OTHERS_SECONDS", 0.0)
    before = open_handles()
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        assert find_left_open(before) == {fd: str(tmp_path.resolve())}
        assert fd in open_handles(tmp_path)
        assert fd not in open_handles(tmp_path / "below")
    finally:
        os.close(fd)


def test_a_handle_that_another_thread_closes_soon_is_not_left_open(tmp_path: Path) -> None:
    before = open_handles()
    fd = os.open(tmp_path, os.O_RDONLY)
    closing = threading.Timer(0.05, os.close, [fd])
    closing.start()
    assert find_left_open(before) == {}
    closing.join()
