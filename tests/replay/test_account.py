"""One file's account, from its lines to its report."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from anthropic.types import MessageParam
from hypothesis import given
from hypothesis import strategies as st

from sevenfold import attach
from sevenfold.core.messages import Text
from sevenfold.core.prices import CATALOG, ModelSettings
from sevenfold.core.tokens.estimation import weigh_by_shape
from sevenfold.core.usage import TokenCounts
from sevenfold.replay.account import MAX_TITLE_CHARS, ReplayTerms, read_account
from sevenfold.replay.bills import BillTotals, sum_bills, sum_counts
from sevenfold.replay.report import FileReport, SessionReport, build_replay_report
from sevenfold.store.foreign.entries import CallId, ForeignAgent
from sevenfold.store.foreign.transcripts import FOREIGN_READERS, hash_call_id
from sevenfold.testing import Simulator
from tests.replay.logs import Row, answered, asked, row, usage, write_log
from tests.replay.steps import START

LONG = "The tide comes in and the tide goes out, and nobody asks the harbour master why. " * 30
TERMS = ReplayTerms()


def text(said: str) -> Row:
    return {"type": "text", "text": said}


def account(path: Path, terms: ReplayTerms = TERMS, foreign: frozenset[int] = frozenset()) -> FileReport:
    return read_account(path, "claude-code", terms, foreign=foreign)


def session(path: Path, terms: ReplayTerms = TERMS) -> SessionReport:
    (only,) = account(path, terms).sessions
    return only


def test_a_call_of_many_lines_is_billed_once(tmp_path: Path) -> None:
    bill = usage(fresh=10, read=1_000, written=200, output=30)
    blocks: list[Row] = [{"type": "thinking", "thinking": "Hm."}, text("One."), text("Two.")]
    found = session(write_log(tmp_path / "s.jsonl", asked("Go"), answered("msg_1", bill, *blocks)))
    assert found.totals.calls == 1
    assert found.totals.tokens == TokenCounts(fresh=10, read=1_000, written_5m=200, output=30)
    assert found.totals.cost.read == Decimal("0.0002")
    assert found.totals.cost.written_5m == Decimal("0.001")


def test_a_dated_id_takes_its_familys_row_and_the_prices_of_the_day(tmp_path: Path) -> None:
    bill = usage(read=1_000_000)
    early = answered("msg_1", bill, model="claude-sonnet-5-5-20260901", seconds=-86_400 * 40)
    late = answered("msg_2", bill, model="claude-sonnet-5-5")
    (row_,) = session(write_log(tmp_path / "s.jsonl", early, late)).bills
    assert (row_.model, row_.calls) == ("claude-sonnet-5-5", 2)
    assert row_.cost is not None
    assert row_.cost.read == Decimal("0.20") + Decimal("0.10")


def test_a_model_without_a_row_is_tokens_and_no_dollars_until_the_user_prices_it(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "s.jsonl", answered("msg_1", usage(fresh=1_000_000, output=7), model="ours-1")
    )
    unpriced = session(path)
    assert unpriced.bills[0].cost is None
    assert unpriced.totals.cost.total == 0
    assert (unpriced.totals.unpriced_calls, unpriced.totals.unpriced_tokens) == (1, 1_000_007)
    own = ModelSettings(input_usd_per_mtok=Decimal(3), output_usd_per_mtok=Decimal(9))
    priced = session(path, ReplayTerms(CATALOG.with_overrides({"ours-1": own})))
    assert priced.totals.cost.fresh == Decimal(3)
    assert priced.totals.unpriced_calls == 0


def test_output_is_taken_from_the_log_where_the_count_is_final(tmp_path: Path) -> None:
    first, second = answered("msg_1", usage(fresh=10, output=2), text(LONG), text("Done."))
    second["message"] = {**second["message"], "usage": usage(fresh=10, output=777)}  # pyright: ignore[reportGeneralTypeIssues]
    found = session(write_log(tmp_path / "s.jsonl", first, second))
    assert found.totals.tokens.output == 777
    assert found.totals.estimated_output_tokens == 0


def test_output_is_estimated_and_marked_where_the_log_has_a_streams_first_value(tmp_path: Path) -> None:
    found = session(write_log(tmp_path / "s.jsonl", answered("msg_1", usage(fresh=10, output=2), text(LONG))))
    weight = weigh_by_shape(Text(LONG))
    assert weight < found.totals.tokens.output < 1.6 * weight
    assert found.totals.estimated_output_tokens == found.totals.tokens.output
    assert found.totals.estimated_usd == found.totals.cost.output > 0
    assert found.bills[0].estimated_calls == 1


def test_output_that_covers_what_was_said_is_taken_as_it_is(tmp_path: Path) -> None:
    found = session(
        write_log(tmp_path / "s.jsonl", answered("msg_1", usage(fresh=10, output=5), text("Yes.")))
    )
    assert (found.totals.tokens.output, found.totals.estimated_output_tokens) == (5, 0)


def test_answers_that_were_made_up_are_no_calls(tmp_path: Path) -> None:
    made_up = answered("e1", usage(), text("API Error"), model="<synthetic>")
    found = session(write_log(tmp_path / "s.jsonl", made_up, answered("msg_1", usage(fresh=10, output=1))))
    assert (found.totals.calls, found.unbilled_calls) == (1, 0)


def test_calls_without_usage_are_counted_apart(tmp_path: Path) -> None:
    bare = row("assistant", 1, message={"id": "msg_9", "model": "m", "content": [text("x")]})
    assert session(write_log(tmp_path / "s.jsonl", bare)).unbilled_calls == 1


def test_idle_compaction_and_clearing_are_told_with_their_figures(tmp_path: Path) -> None:
    boundary = row("system", 1_000, subtype="compact_boundary", compactMetadata={"preTokens": 54_321})
    clearing = {"compactedToolIds": ["toolu_1"], "tokensSaved": 999}
    path = write_log(
        tmp_path / "s.jsonl",
        asked("Go", 0),
        answered("msg_1", usage(fresh=5, written=50_000, output=1), seconds=1),
        asked("Later", 900),
        answered("msg_2", usage(fresh=5, written=50_100, output=1), seconds=901),
        boundary,
        asked("This session is being continued", 1_001, isCompactSummary=True),
        answered("msg_3", usage(fresh=5, read=10_000, written=9_000, output=1), seconds=1_002),
        row("system", 1_010, subtype="microcompact_boundary", microcompactMetadata=clearing),
        answered("msg_4", usage(fresh=5, read=10_000, written=8_000, output=1), seconds=1_011),
    )
    found = session(path)
    assert [(item.cause, item.lost_tokens) for item in found.breaks] == [
        ("idle", 50_000),
        ("compaction", 9_005),
        ("clearing", 8_005),
    ]
    assert found.breaks[0].gap == timedelta(seconds=900)
    assert [(item.before_tokens, item.after_tokens) for item in found.compactions] == [(54_321, 19_005)]
    assert [(item.results, item.saved_tokens) for item in found.clearings] == [(1, 999)]
    assert [point.mark for point in found.series] == ["", "break", "compaction", "clearing"]
    assert found.largest_prompt_tokens == 50_105


def test_sub_agents_have_accounts_of_their_own(tmp_path: Path) -> None:
    def on_the_side(rows: list[Row]) -> list[Row]:
        return [{**item, "isSidechain": True, "agentId": "a1"} for item in rows]

    path = write_log(
        tmp_path / "s.jsonl",
        answered("msg_1", usage(fresh=5, written=50_000, output=1)),
        on_the_side([asked("Search", 2)]),
        on_the_side(answered("msg_2", usage(fresh=5, written=4_000, output=1), seconds=3)),
        answered("msg_3", usage(fresh=5, read=50_000, written=100, output=1), seconds=4),
    )
    main, sub = account(path).sessions
    assert (main.name, sub.name) == ("s1", "s1/a1")
    assert (main.totals.calls, sub.totals.calls) == (2, 1)
    assert main.breaks == sub.breaks == ()


def test_calls_of_another_file_fill_the_context_and_cost_nothing(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "s.jsonl",
        answered("msg_1", usage(fresh=5, written=50_000, output=1)),
        asked("Resumed", 9_000),
        answered("msg_2", usage(fresh=5, written=50_500, output=1), seconds=9_001),
    )
    (found,) = account(path, foreign=frozenset({hash_call_id(CallId("msg_1"))})).sessions
    assert (found.totals.calls, found.uncounted_calls) == (1, 1)
    assert [item.cause for item in found.breaks] == ["idle"]


def test_a_file_whose_calls_all_belong_to_others_has_no_session(tmp_path: Path) -> None:
    path = write_log(tmp_path / "s.jsonl", answered("msg_1", usage(fresh=5, output=1)))
    assert account(path, foreign=frozenset({hash_call_id(CallId("msg_1"))})).sessions == ()


def test_calls_before_the_date_asked_for_are_not_counted(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "s.jsonl",
        answered("msg_1", usage(fresh=5, output=1), seconds=0),
        answered("msg_2", usage(fresh=7, output=1), seconds=100),
    )
    found = session(path, ReplayTerms(since=START + timedelta(seconds=50)))
    assert (found.totals.tokens.fresh, found.uncounted_calls) == (7, 1)


def test_repricing_takes_one_models_prices_of_today_for_every_call(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "s.jsonl",
        answered("msg_1", usage(read=1_000_000, output=10), model="claude-sonnet-5-5", seconds=-86_400 * 40),
        answered("msg_2", usage(fresh=1_000_000, output=10), model="gpt-5.5"),
    )
    found = session(path, ReplayTerms(reprice=CATALOG.find("claude-sonnet-5-5")))
    assert {bill.model: bill.cost.total for bill in found.bills if bill.cost} == {
        "claude-sonnet-5-5": Decimal("0.1001"),
        "gpt-5.5": Decimal("2.0001"),
    }


def test_what_was_billed_beside_a_request_is_counted_with_it(tmp_path: Path) -> None:
    bill = usage(fresh=100, output=10)
    bill["iterations"] = [
        {"type": "compaction", "input_tokens": 5_000, "output_tokens": 300},
        {"type": "message", "input_tokens": 100, "output_tokens": 10},
    ]
    found = session(write_log(tmp_path / "s.jsonl", answered("msg_1", bill)))
    assert found.totals.tokens == TokenCounts(fresh=5_100, output=310)
    assert found.totals.cost.total == 5_100 * Decimal("0.000004") + 310 * Decimal("0.00002")
    assert found.largest_prompt_tokens == 100


def test_a_call_that_only_compacted_is_billed_and_says_nothing_of_the_context(tmp_path: Path) -> None:
    alone = usage()
    alone["iterations"] = [{"type": "compaction", "cache_read_input_tokens": 50_000, "output_tokens": 300}]
    found = session(
        write_log(
            tmp_path / "s.jsonl",
            answered("msg_1", usage(fresh=5, written=50_000, output=9)),
            answered("msg_2", alone, text("A summary of all that was said."), seconds=10),
            answered("msg_3", usage(fresh=5, read=10_000, written=900, output=9), seconds=20),
        )
    )
    assert (found.totals.calls, found.unbilled_calls) == (3, 0)
    assert found.totals.tokens.read == 60_000
    assert (found.totals.tokens.output, found.totals.estimated_output_tokens) == (318, 0)
    assert [(item.before_tokens, item.after_tokens) for item in found.compactions] == [(50_000, 10_905)]
    assert found.breaks == ()
    assert [(point.call, point.prompt_tokens, point.mark) for point in found.series] == [
        (0, 50_005, ""),
        (2, 10_905, "compaction"),
    ]


def test_unknown_lines_and_a_torn_tail_are_counted(tmp_path: Path) -> None:
    path = write_log(tmp_path / "s.jsonl", answered("msg_1", usage(fresh=5, output=1)), {"type": "hologram"})
    with path.open("a", encoding="utf-8") as file:
        file.write('{"type":"assist')
    found = account(path)
    assert found.lines.unknown == {"hologram": 1}
    assert found.lines.faults == {"half-written": 1}
    assert found.sessions[0].totals.calls == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**13) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *(
            "type",
            "subtype",
            "uuid",
            "parentUuid",
            "sessionId",
            "timestamp",
            "isSidechain",
            "agentId",
            "message",
        ),
        *(
            "role",
            "content",
            "usage",
            "id",
            "model",
            "meta",
            "boundary",
            "payload",
            "info",
            "data",
            "attachment",
        ),
        *(
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "iterations",
            "compactMetadata",
            "name",
        ),
        *("tool_use_id", "input", "last_token_usage", "total_token_usage", "replacement_history", "output"),
    ]
)
WORDS = st.sampled_from(
    [
        *(
            "user",
            "assistant",
            "system",
            "progress",
            "attachment",
            "compact_boundary",
            "microcompact_boundary",
        ),
        *(
            "response_item",
            "event_msg",
            "token_count",
            "compacted",
            "session_meta",
            "turn_context",
            "message",
        ),
        *("text", "tool_use", "tool_result", "thinking", "image", "function_call", "function_call_output"),
        *("claude-opus-5-5", "gpt-5.5", "msg_1", "2026-11-03T10:00:00Z", "9999-12-31T23:59:59Z", ""),
    ]
)
LIKELY = st.recursive(
    WORDS | JSON,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)


@given(
    st.lists(st.dictionaries(KEYS, LIKELY, max_size=8) | JSON, max_size=8),
    st.sampled_from(sorted(FOREIGN_READERS)),
)
def test_no_line_however_odd_stops_an_account(
    tmp_path_factory: pytest.TempPathFactory, rows: list[object], agent: ForeignAgent
) -> None:
    path = tmp_path_factory.mktemp("odd") / "s.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in rows), encoding="utf-8")
    found = read_account(path, agent, TERMS)
    assert found.lines.lines == len(rows)
    assert build_replay_report([found]).totals.calls == sum(item.totals.calls for item in found.sessions)


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["claude-opus-5-5", "claude-haiku-5-5", "gpt-5.5"]),
        st.tuples(*[st.integers(0, 200_000)] * 4),
        st.integers(1, 20_000),
    ),
    min_size=1,
    max_size=6,
)


@given(st.lists(CALLS, min_size=1, max_size=4))
def test_sessions_add_up_to_the_total(
    tmp_path_factory: pytest.TempPathFactory, sessions: list[list[tuple[str, tuple[int, ...], int]]]
) -> None:
    folder, files = tmp_path_factory.mktemp("many"), list[FileReport]()
    for place, calls in enumerate(sessions):
        rows: list[Row] = []
        seconds = 0
        for number, (model, counts, gap) in enumerate(calls):
            seconds += gap
            rows += answered(f"msg_{place}_{number}", usage(*counts), seconds=seconds, model=model)
        files.append(account(write_log(folder / f"{place}.jsonl", rows)))
    report = build_replay_report(files)
    parts = [item.totals for item in report.sessions]
    total = report.totals
    whole = BillTotals()
    for part in parts:
        whole = BillTotals(
            calls=whole.calls + part.calls,
            tokens=sum_counts(whole.tokens, part.tokens),
            cost=whole.cost + part.cost,
            uncached_usd=whole.uncached_usd + part.uncached_usd,
            estimated_output_tokens=whole.estimated_output_tokens + part.estimated_output_tokens,
            estimated_usd=whole.estimated_usd + part.estimated_usd,
            unpriced_calls=whole.unpriced_calls + part.unpriced_calls,
            unpriced_tokens=whole.unpriced_tokens + part.unpriced_tokens,
        )
    assert total == whole == sum_bills(report.bills)
    assert total.calls + sum(item.unbilled_calls for item in report.sessions) == sum(map(len, sessions))
    assert report.fill.carried_tokens == sum(item.fill.carried_tokens for item in report.sessions)
    assert report.fill.carried_tokens == total.tokens.prompt
    assert [-item.totals.cost.total for item in report.sessions] == sorted(
        -item.totals.cost.total for item in report.sessions
    )


def test_a_session_is_known_by_its_first_words(tmp_path: Path) -> None:
    told = asked("Fix the\n  parser, " + "please " * 40)
    found = session(write_log(tmp_path / "s.jsonl", told, answered("msg_1", usage(fresh=9)), asked("Thanks")))
    assert found.title.startswith("Fix the parser, please please")
    assert len(found.title) == MAX_TITLE_CHARS


def test_first_words_that_hold_a_secret_are_not_quoted(tmp_path: Path) -> None:
    told = asked("Deploy with AKIAQ3EGRT5XNP2LMWVB, please")
    found = session(write_log(tmp_path / "s.jsonl", told, answered("msg_1", usage(fresh=9))))
    assert "AKIA" not in found.title
    assert "secret" in found.title


def test_a_session_of_a_command_alone_is_known_by_it(tmp_path: Path) -> None:
    command = "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
    rows = [asked(f"{command}<command-args>158 of main</command-args>"), answered("msg_1", usage(fresh=9))]
    assert session(write_log(tmp_path / "s.jsonl", *rows)).title == "/review 158 of main"
    rows = [asked(command), *rows[1:], asked("And now the tests")]
    assert session(write_log(tmp_path / "t.jsonl", *rows)).title == "And now the tests"


def ask_simulator() -> str:
    """The id of a second answer."""
    with Simulator() as sim:
        client = sim.client()
        asks: list[MessageParam] = [{"role": "user", "content": "Hello"}]
        client.messages.create(model="claude-opus-5-5", max_tokens=10, messages=asks)
        return client.messages.create(model="claude-opus-5-5", max_tokens=10, messages=asks).id


def test_a_session_that_the_simulator_answered_is_known_by_its_ids(tmp_path: Path) -> None:
    bill = usage(read=1_000_000)
    path = write_log(tmp_path / "s.jsonl", asked("Go"), answered(ask_simulator(), bill))
    assert session(path).is_simulated
    paid = write_log(tmp_path / "p.jsonl", asked("Go"), answered("msg_01Xf0000000000000001", bill))
    assert not session(paid).is_simulated


def test_a_session_of_ours_notes_that_the_simulator_answered(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PATH": "/nowhere"}
    asks: list[MessageParam] = [{"role": "user", "content": "Hello"}]
    with Simulator() as sim, attach(sim.client(), project=tmp_path, environ=environ) as client:
        client.messages.create(model="claude-opus-5-5", max_tokens=10, messages=asks)
    [path] = (tmp_path / ".sevenfold").glob("projects/*/sessions/*.jsonl")
    [found] = read_account(path, "sevenfold", TERMS).sessions
    assert found.is_simulated


def test_a_session_with_one_paid_call_counts(tmp_path: Path) -> None:
    bill = usage(read=1_000_000)
    found = session(
        write_log(tmp_path / "s.jsonl", answered("msg_0000000000000001", bill), answered("msg_01Xy", bill))
    )
    assert not found.is_simulated


def test_simulated_sessions_are_left_out_only_beside_others_in_the_usual_places(tmp_path: Path) -> None:
    bill = usage(read=1_000_000)
    fake = account(write_log(tmp_path / "s.jsonl", answered("msg_0000000000000001", bill)))
    paid = account(write_log(tmp_path / "p.jsonl", answered("msg_01Xy", bill)))
    both = build_replay_report([fake, paid], origin="usual places")
    assert both.totals.calls == 1
    assert both.describe_simulated() == (
        "1 session ran against Sevenfold's simulator, so nothing was paid: left out here. "
        "Name a folder or a file to see them."
    )
    named = build_replay_report([fake, paid])
    assert named.totals.calls == 2
    assert named.describe_simulated() == (
        "1 of these sessions ran against Sevenfold's simulator: what they cost was not paid."
    )
    alone = build_replay_report([fake], origin="usual places")
    assert alone.totals.calls == 1
    assert alone.describe_simulated() == (
        "These sessions ran against Sevenfold's simulator: what they cost was not paid."
    )
    assert not build_replay_report([paid]).describe_simulated()
