"""What is piped into `chat -p`: all of it, within bounds, and no wait without a word."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from sevenfold.cli import screen
from sevenfold.cli.screen import read_piped_input
from sevenfold.core.errors import InputError


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reads, writes = os.pipe()
    yield reads, writes
    os.close(reads)


def test_what_is_piped_in_is_read_to_its_end(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    text = "\u00e4" * 100_000

    def write() -> None:
        with os.fdopen(writes, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")

    writing = Thread(target=write)
    writing.start()
    notes: list[str] = []
    assert read_piped_input(reads, notes.append, is_needed=False) == text
    writing.join()
    assert notes == []


def test_a_pipe_that_stays_silent_is_told_of_and_left(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    notes: list[str] = []
    assert read_piped_input(reads, notes.append, is_needed=False, wait_seconds=0.0) == ""
    assert len(notes) == 1
    assert "going on without it" in notes[0]
    os.close(writes)


def test_without_a_prompt_a_silent_pipe_is_waited_for(pipe: tuple[int, int]) -> None:
    reads, writes = pipe
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        os.write(writes, b"late")
        os.close(writes)

    assert read_piped_input(reads, note, is_needed=True, wait_seconds=0.0) == "late"
    assert len(notes) == 1
    assert "waiting for it" in notes[0]


def test_more_than_can_be_used_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "MAX_PIPED_BYTES", 10)
    (tmp_path / "large").write_bytes(b"x" * 11)
    with (
        (tmp_path / "large").open("rb") as file,
        pytest.raises(InputError, match="more than 10 bytes were piped in"),
    ):
        read_piped_input(file.fileno(), pytest.fail, is_needed=False)
