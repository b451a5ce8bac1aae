"""Days, weeks, projects and models; CSV; a report without names; the picture."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import get_args
from xml.etree import ElementTree

import pytest

from sevenfold.replay.anonymous import anonymize_report
from sevenfold.replay.groups import GroupKind, group_sessions, render_csv, week_of
from sevenfold.replay.picture import draw_picture
from sevenfold.replay.report import describe_replay_report
from tests.replay.reports import HOSTILE, Story, broke, find_all, hostile_report, report_of, rich_report

STORIES = (
    Story(name="a", usd=3.0, breaks=(broke(5),)),
    Story(name="b", usd=2.0, day="2026-11-09", project="/srv/pier", model="claude-haiku-4-5"),
    Story(name="c", usd=1.0, day="2026-11-08"),
    Story(name="d", usd=None, day="", project="", model="gpt-9"),
)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("session", ["a", "b", "c", "d"]),
        ("day", ["no date", "2026-11-09", "2026-11-08", "2026-11-03"]),
        ("week", ["no date", "2026-11-09", "2026-11-02"]),
        ("project", ["/srv/harbour", "/srv/pier", "no project"]),
        ("model", ["claude-opus-5-5", "claude-haiku-4-5", "gpt-9"]),
    ],
)
def test_each_call_is_in_one_group_of_every_kind(kind: GroupKind, keys: list[str]) -> None:
    report = report_of(*STORIES)
    groups = group_sessions(report.sessions, kind)
    assert [group.key for group in groups] == keys
    assert sum(group.totals.calls for group in groups) == report.totals.calls
    assert sum(group.totals.cost.total for group in groups) == report.totals.cost.total
    assert sum(group.breaks for group in groups) == len(report.breaks)


def test_weeks_begin_on_monday_over_the_turn_of_a_year() -> None:
    assert [week_of(day) for day in ("2026-11-02", "2026-11-08", "2027-01-01")] == [
        *("2026-11-02", "2026-11-02", "2026-12-28")
    ]


def test_csv_has_every_group_and_no_formula() -> None:
    report = report_of(Story(name="=1+1"), Story(name='comma, "quoted"\nline'))
    rows = list(
        csv.DictReader(io.StringIO(render_csv(group_sessions(report.sessions, "session"), "session")))
    )
    assert {row["session"] for row in rows} == {"'=1+1", 'comma, "quoted" line'}
    assert {row["usd"] for row in rows} == {"3.000000"}


@pytest.mark.parametrize("kind", get_args(GroupKind))
def test_an_anonymous_report_has_the_same_figures(kind: GroupKind) -> None:
    report = rich_report()
    hidden = anonymize_report(report)
    assert hidden.is_anonymous
    assert hidden.totals == report.totals
    own, others = (group_sessions(item.sessions, kind) for item in (hidden, report))
    assert [group.totals for group in own] == [group.totals for group in others]


def test_an_anonymous_report_holds_nothing_that_a_session_said() -> None:
    marker = "zanzibar"
    report = anonymize_report(hostile_report(marker))
    assert marker not in json.dumps(describe_replay_report(report))
    assert marker not in str(find_all(report))
    assert "harbour" not in str(find_all(anonymize_report(rich_report())))


def test_an_anonymous_report_keeps_public_names_and_tells_sessions_apart() -> None:
    hidden = anonymize_report(rich_report())
    assert [session.id for session in hidden.sessions] == ["s-1", "s-2", "s-3"]
    assert [bill.model for bill in hidden.bills] == ["claude-opus-5-5", "model-1"]
    assert {share.tool for share in hidden.fill.shares} == {"", "Read", "Bash"}
    assert {item.session for item in hidden.costly_results} == {"s-1"}


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("gpt-5.5", "gpt-5.5"),
        ("claude-opus-5-5 (fast)", "claude-opus-5-5 (fast)"),
        (
            "arn:aws:bedrock:eu-1:123456789012:x/anthropic.claude-opus-4-5-20251101-v1:0",
            "claude-opus-4-5",
        ),
        ("/home/me/models/zanzibar.gguf", "model-1"),
        ("claude-opus-5-5 (of zanzibar)", "model-1"),
        ("claude-opus-5-5 (zanzibar) (fast)", "model-1 (fast)"),
        ("(unnamed)", "(unnamed)"),
    ],
)
def test_only_public_names_of_models_stay(model: str, shown: str) -> None:
    (bill,) = anonymize_report(report_of(Story(model=model))).bills
    assert bill.model == shown


def test_the_picture_is_whole_and_holds_no_word_of_a_session() -> None:
    found = find_all(hostile_report())
    picture = draw_picture(found.report, found.saving)
    assert HOSTILE not in picture
    assert not re.search(r"onerror|href=|url\(|<script|<image|<foreignObject", picture)
    assert "http://" not in picture.replace("http://www.w3.org/2000/svg", "")
    root = ElementTree.fromstring(picture)
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Spent", "Lost to cache breaks", "Sevenfold would have saved"} <= set(texts)
    assert "21% to 28% of what prompts cost" in texts


def test_a_picture_of_nothing_is_still_one() -> None:
    assert ElementTree.fromstring(draw_picture(report_of())).tag.endswith("svg")
