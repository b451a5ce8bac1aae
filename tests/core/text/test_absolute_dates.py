"""Relative dates of prose become absolute, by the day on which they were written."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sevenfold.core.text.absolute_dates import resolve_relative_dates

SUNDAY = date(2026, 11, 15)


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("We decided yesterday to use SQLite.", "We decided on 2026-11-14 to use SQLite."),
        ("Yesterday we decided.", "On 2026-11-14 we decided."),
        ("Frozen since yesterday.", "Frozen since 2026-11-14."),
        ("Due by tomorrow!", "Due by 2026-11-16!"),
        ("Moved 3 days ago.", "Moved on 2026-11-12."),
        ("Moved three days ago.", "Moved on 2026-11-12."),
        ("Agreed two weeks ago.", "Agreed in the week of 2026-10-26."),
        ("The freeze began last Friday.", "The freeze began on 2026-11-13."),
        ("Last Sunday was the release.", "On 2026-11-08 was the release."),
        ("Renamed last month, broke this week.", "Renamed in October 2026, broke in the week of 2026-11-09."),
        ("Until last year it was Java.", "Until 2025 it was Java."),
        ("A year ago we had two teams.", "In 2025 we had two teams."),
        ("As of today the API is v2.", "As of 2026-11-15 the API is v2."),
        ("It broke last night.", "It broke on 2026-11-14."),
        ("The day before yesterday Ann left.", "On 2026-11-13 Ann left."),
        ("3 days ago we moved.", "On 2026-11-12 we moved."),
        ("The move is planned for tomorrow.", "The move is planned for 2026-11-16."),
        ("Decisions:\n- We moved yesterday.", "Decisions:\n- We moved on 2026-11-14."),
        ("The freeze ends next Friday.", "The freeze ends next Friday (said on 2026-11-15)."),
    ],
)
def test_a_relative_date_becomes_the_day_that_was_meant(said: str, means: str) -> None:
    assert resolve_relative_dates(said, SUNDAY) == means
    assert resolve_relative_dates(said, SUNDAY, events_only=True) == means


@pytest.mark.parametrize(
    "text",
    [
        "Always put today's date on top.",
        "Every build from yesterday is deleted.",
        "Call `yesterday()` first.",
        '```\nrm -rf last week\n```\nRun "today" only.',
        "> we did that yesterday",
        "See https://example.com/today for more.",
        "In the last week of a month we freeze.",
        "Use yesterday's backup.",
        "The end of last week was quiet.",
        "Nothing here has a date.",
        "Today we use Postgres.",
        "The API used today is v2.",
        "The parser works today because Ann fixed it.",
        "The report covers yesterday.",
        "Delete files that changed last week.",
        "Ann reviews what was merged last week.",
        "If it failed yesterday, run it again.",
        "Retry tomorrow.",
        "Logs older than 30 days ago go.",
        "| Released yesterday | Ann |",
        "The word 'yesterday' was removed.",
        "On 2026-11-14 we decided.",
        "The bot posts: Deployed yesterday by Ann.",
        "Last week was the first sprint with the new board.",
        "The way we build today took years.",
        "The rules of today were written for v3.",
        "People joined last month see the banner.",
        "I guess it broke last night.",
        "Maybe Ben merged it yesterday.",
        "The sign said we closed yesterday.",
        "09:12 Ann: shipped it yesterday",
        "**Ann**: I shipped it yesterday",
        "Ann (Slack): we moved yesterday",
        "a | b\n--|--\nx | moved yesterday",
        "<!-- we moved this yesterday -->",
        "<td>We moved yesterday.</td>",
        "Ann's note:\n    we moved it yesterday",
        "    we moved yesterday",
        "$ echo we moved yesterday",
        "x = 1  # moved yesterday",
        "We moved yesterday.csv to the archive.",
        "We deleted rows created 30 days ago.",
        "Imagine we shipped last week.",
        "E.g. the invoice was paid 2 days ago.",
        "The bot's template:\nWe moved the API yesterday.",
        "## Example reply\n\nYour order was shipped yesterday.",
        "Our joke:\n- The build was fixed yesterday.",
    ],
)
def test_what_means_no_one_day_or_is_no_prose_stays(text: str) -> None:
    assert resolve_relative_dates(text, SUNDAY, events_only=True) == text


def test_what_a_person_asks_for_now_is_dated_and_nowadays_is_not() -> None:
    assert resolve_relative_dates("Freeze it until tomorrow.", SUNDAY) == "Freeze it until 2026-11-16."
    assert resolve_relative_dates("Today we use Postgres.", SUNDAY) == "Today we use Postgres."


def test_a_date_behind_a_preposition_takes_no_second_one() -> None:
    assert resolve_relative_dates("Up to last month it was 50.", SUNDAY) == "Up to October 2026 it was 50."
    assert resolve_relative_dates("Keep it for tomorrow.", SUNDAY) == "Keep it for 2026-11-16."


def test_a_fence_that_is_never_closed_is_code_to_its_end() -> None:
    text = "Moved yesterday.\n~~~\nyesterday\n"
    assert resolve_relative_dates(text, SUNDAY) == "Moved on 2026-11-14.\n~~~\nyesterday\n"


def test_a_date_beyond_the_calendar_is_left_alone() -> None:
    assert resolve_relative_dates("It was 300 years ago.", date(2, 1, 1)) == "It was 300 years ago."
    assert resolve_relative_dates("It was yesterday.", date.min) == "It was yesterday."


WORDS = (
    "yesterday",
    "last week",
    "Next Friday",
    "3 days ago",
    "`today`",
    "always",
    "since",
    "\n",
    ". ",
    "it",
)


@given(
    some.lists(some.sampled_from(WORDS), max_size=12),
    some.dates(min_value=date(1900, 1, 1)),
    some.integers(0, 4_000),
)
def test_what_was_made_absolute_is_never_changed_again(parts: list[str], day: date, later: int) -> None:
    once = resolve_relative_dates(" ".join(parts), day)
    other = day + timedelta(days=later) if day < date(9000, 1, 1) else day
    assert resolve_relative_dates(once, other) == once
