"""What a call cost, and under which name it is counted where nobody can say."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from sevenfold.core.events import Event, ModelUnknown, PriceUnknown
from sevenfold.core.prices import CATALOG, ModelSettings
from sevenfold.core.usage import Iteration, Usage
from sevenfold.replay.account import read_account
from sevenfold.replay.bills import CallPricer, PriceGap
from sevenfold.replay.report import build_replay_report
from tests.replay.logs import answered, usage, write_log
from tests.replay.steps import MODEL
from tests.replay.test_account import TERMS

MILLION = Decimal(1_000_000)


def test_rates_come_from_the_call_itself() -> None:
    bill = Usage(fresh=100, read=1_000, written_5m=300, written_1h=600)
    rates = CallPricer().price(bill, MODEL, None).rates
    assert rates is not None
    assert rates.read == Decimal("0.20") / MILLION
    assert rates.paid == (100 * Decimal(4) + 300 * Decimal(5) + 600 * Decimal(8)) / 1_000 / MILLION


def test_what_was_billed_beside_a_request_does_not_change_its_rates() -> None:
    bill = Usage(fresh=100, read=1_000, written_5m=300)
    compaction = Iteration(read=180_000, written_5m=5_000, output=3_000, kind="compaction")
    inside = Iteration(fresh=100, read=1_000, written_5m=300)
    with_one = replace(bill, iterations=(compaction, inside))
    assert CallPricer().price(with_one, MODEL, None).rates == CallPricer().price(bill, MODEL, None).rates


@pytest.mark.parametrize("read", [0, 1_000])
def test_a_multiplier_holds_for_reading_even_where_nothing_was_read(read: int) -> None:
    plain = CallPricer().price(Usage(read=read, written_5m=300), MODEL, None).rates
    fast = CallPricer().price(Usage(read=read, written_5m=300, speed="fast"), MODEL, None).rates
    assert plain is not None
    assert fast is not None
    assert (fast.read, fast.paid) == (2 * plain.read, 2 * plain.paid)


@pytest.mark.parametrize(
    ("bill", "model", "row", "gap"),
    [
        (Usage(fresh=9), "ours-1", "ours-1", "model"),
        (Usage(fresh=9, speed="fast"), "claude-sonnet-5-5-20260901", "claude-sonnet-5-5 (fast)", "speed"),
        (
            Usage(fresh=9, iterations=(Iteration(fresh=9, kind="fallback_message", model="ours-1"),)),
            MODEL,
            f"{MODEL} (several models)",
            "runs",
        ),
        (
            # They do not add up, so nobody can say whose the rest was.
            Usage(fresh=9, iterations=(Iteration(fresh=5, model="claude-haiku-5-5"),)),
            MODEL,
            f"{MODEL} (several models)",
            "runs",
        ),
    ],
)
def test_a_call_without_a_price_is_counted_under_a_name_that_says_what_has_none(
    bill: Usage, model: str, row: str, gap: PriceGap
) -> None:
    priced = CallPricer().price(bill, model, None)
    assert (priced.row, priced.gap, priced.cost) == (row, gap, None)


def test_each_model_without_a_price_is_told_of_once_even_where_another_called_it() -> None:
    heard: list[Event] = []
    catalog = CATALOG.with_overrides({"ours-2": ModelSettings(window_tokens=50_000)})
    pricer = CallPricer(catalog, emit=heard.append)
    called = Iteration(fresh=9, kind="fallback_message", model="ours-3")
    for _ in range(2):
        pricer.price(Usage(fresh=9), "ours-1", None)
        pricer.price(Usage(fresh=9), "ours-2", None)
        pricer.price(Usage(fresh=9, iterations=(called,)), MODEL, None)
    assert heard == [ModelUnknown("ours-1", 200_000), PriceUnknown("ours-2"), ModelUnknown("ours-3", 200_000)]


def test_a_report_tells_of_a_model_once_however_many_files_name_it(tmp_path: Path) -> None:
    logs = [
        write_log(tmp_path / f"{name}.jsonl", answered(f"msg_{name}", usage(fresh=9), model="ours-1"))
        for name in "ab"
    ]
    report = build_replay_report(read_account(path, "claude-code", TERMS) for path in logs)
    assert report.events == (ModelUnknown("ours-1", 200_000),)
    assert [(bill.model, bill.calls, bill.gap) for bill in report.bills] == [("ours-1", 2, "model")]
