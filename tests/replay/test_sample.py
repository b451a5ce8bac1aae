"""The sample that ships, and its report to the last figure."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import cast

import pytest

from sevenfold.replay.account import ReplayTerms, read_account
from sevenfold.replay.report import REPORT_FORMAT, ReplayReport, build_replay_report, describe_replay_report
from sevenfold.store.foreign.transcripts import detect_agent
from tests.replay import sample_session

SAMPLE = Path(str(files("sevenfold.replay") / "sample" / "session.jsonl"))
GOLDEN = Path(__file__).parent / "golden" / "sample_report.json"


@pytest.fixture(scope="module")
def report() -> ReplayReport:
    return build_replay_report([read_account(SAMPLE, "claude-code", ReplayTerms())], origin="sample")


def test_the_sample_is_what_its_story_tells() -> None:
    assert SAMPLE.read_text(encoding="utf-8").splitlines() == sample_session.tell().lines
    assert SAMPLE.stat().st_size < 100_000
    assert detect_agent(SAMPLE) == "claude-code"


def test_the_sample_shows_what_a_report_can_show(report: ReplayReport) -> None:
    main, sub = report.sessions
    assert sub.sub_agent == "a7f01d5"
    assert [item.cause for item in main.breaks] == ["idle"]
    assert len(main.compactions) == 1
    assert [item.path for item in report.repeated_reads] == ["/srv/tidewatch/tidewatch/forecast.py"]
    assert len(report.costly_results) == 10
    assert 0 < report.totals.estimated_usd < report.totals.cost.output
    assert report.lines.unknown == {}
    assert report.lines.faults == {}


def test_the_bill_agrees_with_the_lines_read_by_hand(report: ReplayReport) -> None:
    bills = {
        line["message"]["id"]: line["message"]["usage"]
        for line in map(json.loads, SAMPLE.read_text(encoding="utf-8").splitlines())
        if line["type"] == "assistant"
    }
    assert report.totals.calls == len(bills)
    assert report.totals.tokens.read == sum(bill["cache_read_input_tokens"] for bill in bills.values())
    assert report.totals.tokens.written_5m == sum(
        bill["cache_creation_input_tokens"] for bill in bills.values()
    )
    assert report.totals.tokens.fresh == sum(bill["input_tokens"] for bill in bills.values())


def test_the_samples_report_is_pinned(report: ReplayReport) -> None:
    """After a change that is meant: `python -m tests.replay.test_sample` writes it anew."""
    assert described(report) == json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert described(report)["format"] == REPORT_FORMAT


def described(report: ReplayReport) -> dict[str, object]:
    plain = describe_replay_report(report)
    for session in cast("list[dict[str, object]]", plain["sessions"]):
        session["path"] = "session.jsonl"
    return json.loads(json.dumps(plain))


if __name__ == "__main__":
    found = described(
        build_replay_report([read_account(SAMPLE, "claude-code", ReplayTerms())], origin="sample")
    )
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
