"""What Sevenfold would have saved: played, kept between runs, and told as a range."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.replay import savings
from sevenfold.replay.account import ReplayTerms, read_account
from sevenfold.replay.report import PlayedSaving, ReplayReport, build_replay_report
from sevenfold.replay.savings import (
    ERROR_MEAN,
    ERROR_SPREAD,
    RANGE_DEVIATIONS,
    WeightedSaving,
    read_saving,
    sum_savings,
)
from sevenfold.replay.stored_reports import StoredReports
from sevenfold.store.session_index.database import DerivedValues
from tests.replay.test_sample import SAMPLE


@pytest.fixture
def report() -> ReplayReport:
    return build_replay_report([read_account(SAMPLE, "claude-code", ReplayTerms())])


def test_the_range_is_as_wide_as_the_error_on_unseen_sessions() -> None:
    played = [
        WeightedSaving(30.0, PlayedSaving(100.0, 60.0)),
        WeightedSaving(10.0, PlayedSaving(10.0, 10.0)),
        WeightedSaving(0.0, PlayedSaving(10.0, 1.0)),
    ]
    found = sum_savings(played)
    assert found is not None
    assert (found.usd, found.sessions) == (40.0, 2)
    assert (found.low + found.high) / 2 == pytest.approx(0.3 - ERROR_MEAN)
    assert found.high - found.low == pytest.approx(2 * RANGE_DEVIATIONS * ERROR_SPREAD)


def test_a_saving_is_never_less_than_nothing() -> None:
    found = sum_savings([WeightedSaving(1.0, PlayedSaving(10.0, 11.0))])
    assert found is not None
    assert (found.low, found.high) == (0.0, 0.0)
    assert sum_savings([]) is None


def refuse(*order: object) -> list[object]:
    assert not order[1], "it was played again"
    return []


def test_the_second_run_plays_nothing(
    report: ReplayReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(DerivedValues.open(tmp_path)) as values:
        first = read_saving(report, ReplayTerms(), stored=StoredReports(values, ReplayTerms()))
        assert first is not None
        monkeypatch.setattr(savings, "do_tasks_inline", refuse)
        assert read_saving(report, ReplayTerms(), stored=StoredReports(values, ReplayTerms())) == first


def test_a_transcript_that_is_gone_costs_only_its_own_part(report: ReplayReport, tmp_path: Path) -> None:
    assert read_saving(build_replay_report([]), ReplayTerms()) is None
    away = tuple(replace(session, path=tmp_path / "gone.jsonl") for session in report.sessions)
    lost = replace(report, sessions=away)
    assert read_saving(lost, ReplayTerms()) is None
