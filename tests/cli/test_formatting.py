"""Numbers, bars, the chart, and the line of progress."""

from __future__ import annotations

import io
import sys
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.cli.replay.contents import plan_columns, render_chart
from sevenfold.cli.screen import (
    Screen,
    TableCell,
    format_count,
    format_duration,
    format_share,
    format_tokens,
    format_usd,
    render_bar,
    shorten_text,
)
from sevenfold.replay.context_fill import PointMark, SeriesPoint


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1.0K"),
        (99_949, "99.9K"),
        (99_950, "100K"),
        (155_301, "155K"),
        (2_345_678, "2.3M"),
        (7_000_000_000, "7.0B"),
    ],
)
def test_tokens_have_three_digits_at_most(tokens: int, text: str) -> None:
    assert format_tokens(tokens) == text


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, "unpriced"),
        ("0", "$0.00"),
        ("0.00123", "$0.0012"),
        ("0.126", "$0.126"),
        ("1", "$1.00"),
        ("1234.5", "$1,234.50"),
        ("12345.6", "$12,346"),
    ],
)
def test_dollars_show_something_and_not_too_much(usd: str | None, text: str) -> None:
    assert format_usd(None if usd is None else Decimal(usd)) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(12, "12 s"), (90, "1.5 min"), (7_200, "2.0 h"), (180_000, "2.1 d")]
)
def test_spans_take_the_largest_unit_that_fits(seconds: int, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text


def test_small_things_are_spelt_as_people_would() -> None:
    assert (format_count(1, "call"), format_count(2_000, "call")) == ("1 call", "2,000 calls")
    assert (format_share(1, 3), format_share(1, 0)) == ("33.3%", "-")
    assert format_duration(None) == "?"


@given(st.text(max_size=60), st.integers(4, 40), st.booleans())
def test_a_cut_text_fits_and_a_short_one_is_whole(text: str, width: int, is_path: bool) -> None:
    found = shorten_text(text, width, is_path=is_path)
    assert len(found) <= width
    assert found == text or len(text) > width


def test_of_a_path_the_end_is_kept() -> None:
    assert shorten_text("/srv/tidewatch/forecast.py", 14, is_path=True) == "...forecast.py"


@given(st.floats(-1, 2), st.integers(1, 40), st.booleans())
def test_a_bar_fits_and_something_is_never_nothing(share: float, width: int, has_unicode: bool) -> None:
    drawn = render_bar(share, width, has_unicode=has_unicode)
    assert len(drawn) <= width
    assert bool(drawn) == (share > 0)


POINTS = st.lists(
    st.tuples(st.integers(0, 10**6), st.sampled_from(["", "break", "compaction", "clearing"])), max_size=400
)


def made(points: list[tuple[int, PointMark]]) -> list[SeriesPoint]:
    return [
        SeriesPoint(call=place, at=None, prompt_tokens=tokens, read_tokens=0, mark=mark)
        for place, (tokens, mark) in enumerate(points)
    ]


@given(POINTS, st.integers(20, 120), st.integers(2, 12), st.booleans())
def test_the_chart_fits_its_frame_and_shows_the_peak(
    points: list[tuple[int, PointMark]], width: int, height: int, has_unicode: bool
) -> None:
    lines = [
        "".join(cell.text for cell in line)
        for line in render_chart(made(points), width=width, height=height, has_unicode=has_unicode)
    ]
    assert len(lines) == (height + 1 if points else 0)
    assert all(len(line) <= width for line in lines)
    if any(tokens for tokens, _ in points):
        assert ("█" if has_unicode else "#") in lines[0]


@given(POINTS.filter(bool), st.integers(1, 100))
def test_columns_lose_no_peak_and_no_compaction(points: list[tuple[int, PointMark]], width: int) -> None:
    drawn = plan_columns(made(points), width)
    assert len(drawn) == min(width, len(points))
    assert max(column.tokens for column in drawn) == max(tokens for tokens, _ in points)
    assert any(column.mark == "compaction" for column in drawn) == any(
        mark == "compaction" for _, mark in points
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_of_a_terminal_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    Screen().show_progress("reading 12 MB", 0.5)
    Screen().clear_progress()
    assert screen.getvalue() == "\rreading 12 MB [###############               ]  50%\x1b[K\r\x1b[K"


def test_progress_is_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    Screen().show_progress("reading", 0.5)
    Screen().clear_progress()
    assert pipe.getvalue() == ""


@pytest.mark.parametrize(("encoding", "expected"), [("utf-8", True), ("ascii", False), ("latin-1", False)])
def test_a_screen_knows_what_it_can_show(
    monkeypatch: pytest.MonkeyPatch, encoding: str, expected: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert Screen().has_unicode == expected


def test_cells_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().show_cells([TableCell("a"), TableCell("b", "warning"), TableCell("  ")])
    assert capsys.readouterr().out == "ab\n"
