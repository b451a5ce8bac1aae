"""The status line says the most important things in the columns there are."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.agent.tui.render.status_line import StatusLine, render_status_line

FULL = StatusLine(
    model="claude-opus-5-5",
    mode="ask",
    context_tokens=61_200,
    limit_tokens=180_000,
    spent_usd=0.4213,
    tasks=2,
    queued=1,
    news="layer 1: a result went to disk",
    is_working=True,
)


@given(st.integers(0, 200))
def test_the_line_never_is_wider_than_the_terminal(columns: int) -> None:
    assert len(render_status_line(FULL, columns)) <= columns


def test_eighty_columns_hold_everything() -> None:
    line = render_status_line(FULL, 80)
    assert line.startswith("34% context  1 queued  2 tasks  ask  $0.42  opus-5-5  layer 1: a res")


def test_what_matters_least_goes_first() -> None:
    assert render_status_line(FULL, 30) == "34% context  1 queued  2 tasks"


def test_forty_columns_hold_what_was_spent_and_the_cache() -> None:
    status = replace(
        FULL,
        tasks=0,
        queued=0,
        news="",
        is_working=False,
        saved_usd=0.5,
        cache="cache warm 5 min, then +$0.0313",
    )
    assert render_status_line(status, 40) == "34%  ask  $0.42  opus-5-5  warm 5 min"
    unbilled = render_status_line(replace(status, has_unbilled=True), 60)
    assert unbilled == "34%  ask  $0.42+  opus-5-5  warm 5 min +$0.0313"
    busy = render_status_line(replace(status, tasks=1), 40)
    assert busy == "34%  1 task  ask  $0.42  warm 5 min", "the header has the model"
    whole = render_status_line(status, 60)
    assert whole == "34%  ask  $0.42 (saved $0.50)  opus-5-5  warm 5 min +$0.0313", (
        "sixty columns hold all of it"
    )
    cut = render_status_line(replace(status, cache="cache cut: next prompt up to +$0.0523"), 60)
    assert cut == "34%  ask  $0.42 (saved $0.50)  opus-5-5  cut +$0.0523"
    assert "$0.42 (saved $0.50)" in render_status_line(status, 100)
    assert render_status_line(status, 100).endswith("then +$0.0313")


def test_a_model_without_a_price_says_so() -> None:
    assert "unpriced" in render_status_line(
        StatusLine(model="local", mode="ask", context_tokens=0, limit_tokens=0, spent_usd=None), 80
    )
