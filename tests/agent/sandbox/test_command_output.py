"""What is kept of what a command prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.agent.sandbox import job
from sevenfold.agent.sandbox.job import CommandOutput, strip_terminal_codes

letters = st.text("abc xyz\n", max_size=40)
parts = st.lists(letters.map(str.encode), max_size=20)


@pytest.fixture(autouse=True)
def small_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MAX_END_BYTES", 50)


def fed(chunks: list[bytes], folder: Path | None = None) -> CommandOutput:
    output = CommandOutput(folder)
    for chunk in chunks:
        output.add(chunk)
    output.close()
    return output


@given(parts)
def test_what_fits_is_kept_whole_and_of_the_rest_both_ends(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    text = fed(chunks).text()
    if len(whole) <= 100:
        assert text == strip_terminal_codes(whole)
    else:
        assert text.startswith(strip_terminal_codes(whole[:50]))
        assert text.endswith(strip_terminal_codes(whole[-50:]))
        assert f"{len(whole) - 100:,} bytes left out here" in text


@given(st.lists(parts, max_size=5))
def test_news_is_everything_once_or_says_how_much_is_missing(rounds: list[list[bytes]]) -> None:
    output = CommandOutput(None)
    for chunks in rounds:
        for chunk in chunks:
            output.add(chunk)
        whole = b"".join(chunks)
        news = output.read_new()
        if len(whole) <= 50:
            assert news.endswith(strip_terminal_codes(whole))
        else:
            assert news.endswith(strip_terminal_codes(whole[-50:]))


def test_all_of_a_long_output_is_in_a_file_that_only_the_user_reads(tmp_path: Path) -> None:
    chunks = [bytes([65 + at % 26]) * 30 for at in range(20)]
    text = fed(chunks, tmp_path / "deep").text()
    (path,) = (tmp_path / "deep").iterdir()
    assert str(path) in text
    assert path.read_bytes() == b"".join(chunks)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_short_output_makes_no_file(tmp_path: Path) -> None:
    fed([b"short"], tmp_path / "deep")
    assert not (tmp_path / "deep").exists()


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    text = fed([b"x" * 200], tmp_path / "file").text()
    assert "could not be kept" in text


def test_what_is_meant_for_a_terminal_is_left_out() -> None:
    assert strip_terminal_codes(b"\x1b[31mred\x1b[0m \x1b]0;title\x07plain\x1b[2J \xff") == "red plain \ufffd"
