"""Who spent what."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelResponse
from sevenfold.core.usage import Iteration, Usage
from sevenfold.session.cache.monitor import UsageLedger
from tests.core.cache_cases import START

MODEL = "claude-opus-5"
REPLY = ModelResponse(
    message=Message("assistant", ()),
    usage=Usage(fresh=100, read=800, written_5m=100, output=10),
    usage_wire=EMPTY_OBJECT,
)


def test_each_lane_is_summed_up_apart_and_all_together() -> None:
    book = UsageLedger()
    price = book.add("main", MODEL, REPLY, START)
    book.add("main", MODEL, REPLY, START)
    book.add("notes", MODEL, replace(REPLY, usage=Usage(read=1_000)), START)
    main, notes = book.spent()
    assert (main.who, main.calls, main.usage.prompt, main.hit_rate) == ("main", 2, 2_000, 0.8)
    assert price is not None
    assert main.cost == price + price
    assert main.cost_without_caching is not None
    assert main.cost_without_caching.total == 2 * (1_000 * Decimal(5) + 10 * 25) / 1_000_000
    assert (notes.calls, notes.hit_rate) == (1, 1.0)
    assert book.total().calls == 3
    assert book.total().usage.requests == 3
    assert book.total().usage.read == 2_600


def test_runs_beside_the_totals_count_and_leave_no_list_behind() -> None:
    book = UsageLedger()
    runs = (Iteration(read=500, output=40, kind="compaction"), Iteration(fresh=100, output=10))
    book.add("main", MODEL, replace(REPLY, usage=Usage(fresh=100, output=10, iterations=runs)), START)
    (main,) = book.spent()
    assert (main.usage.prompt, main.usage.output, main.usage.iterations) == (600, 50, ())
    assert main.usage.requests == 1
    assert main.cost is not None
    assert main.cost.total > 0


def test_a_price_that_is_not_known_leaves_the_total_unknown() -> None:
    book = UsageLedger()
    book.add("main", MODEL, REPLY, START)
    assert book.add("main", "nobody-knows", REPLY, START) is None
    assert book.total().cost is None
    assert book.total().usage.prompt == 2_000


def test_an_empty_book_has_spent_nothing() -> None:
    total = UsageLedger().total()
    assert (total.calls, total.hit_rate) == (0, 0.0)
    assert total.cost is not None
    assert total.cost.total == 0
