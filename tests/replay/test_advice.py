"""Advice: what it is worth, what it rests on, and when there is none."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from sevenfold.replay.advice import Advice, describe_advice, plan_advice
from sevenfold.replay.calls import BREAK_CAUSES, BreakCause
from sevenfold.replay.context_fill import ContextFill, FillShare
from sevenfold.replay.mcp_servers import ServerUse, ServerUses
from sevenfold.replay.report import RepeatedRead, SavingRange
from sevenfold.store.foreign.entries import ForeignAgent
from tests.replay.reports import Story, broke, report_of, result


def advise(*stories: Story, saving: SavingRange | None = None) -> dict[str, Advice]:
    """By kind, with the cause."""
    found = plan_advice(report_of(*stories), saving)
    assert list(found) == sorted(found, key=lambda item: -item.high_usd)
    return {f"{item.kind} {item.cause}" if item.cause else item.kind: item for item in found}


def test_pauses_that_cost_more_than_the_hour_cache_are_advice_for_it() -> None:
    # A fifth of three dollars was written for 5 minutes; for an hour it costs 1.6 times that: 36 cents more.
    found = advise(Story(breaks=(broke(5, "idle", "0.5"), broke(9, "idle", "0.4"))))
    (advice,) = found.values()
    assert advice.kind == "pauses"
    assert advice.high_usd == Decimal("0.54")
    assert advice.command == "export ENABLE_PROMPT_CACHING_1H=1"
    assert "cost $0.90" in advice.title
    assert [item.usd for item in advice.evidence] == [Decimal("0.5"), Decimal("0.4")]
    assert {item.session for item in advice.evidence} == {"s1"}


def test_our_own_sessions_are_told_our_own_setting() -> None:
    (advice,) = advise(Story(agent="sevenfold", breaks=(broke(5, "idle", "0.9"),))).values()
    assert advice.command == '[cache]\nttl = "1h"'


def test_pauses_that_the_hour_cache_would_not_pay_for_are_told_with_another_way_out() -> None:
    (advice,) = advise(Story(breaks=(broke(5, "idle", "0.3"),))).values()
    assert (advice.kind, advice.cause, advice.low_usd) == ("breaks", "idle", None)
    assert advice.command == "/compact"


def test_pauses_of_more_than_an_hour_are_none_that_the_hour_cache_bridges() -> None:
    long = replace(broke(5, "idle", "2"), gap=timedelta(hours=3))
    (advice,) = advise(Story(breaks=(long,))).values()
    assert advice.kind == "breaks"
    assert "after 3 hours" in advice.evidence[0].text


@pytest.mark.parametrize("cause", BREAK_CAUSES)
def test_breaks_by_cause_have_advice_except_those_by_design(cause: BreakCause) -> None:
    found = advise(Story(usd=30.0, breaks=(broke(5, cause, "1.5"),)))
    if cause in ("compaction", "clearing"):
        assert found == {}
    else:
        advice = found[f"breaks {cause}"]
        assert advice.high_usd == Decimal("1.5")
        assert "$1.50" in advice.title
        assert advice.action


@pytest.mark.parametrize(
    ("spent", "lost", "is_told"),
    [(3.0, "0.10", True), (3.0, "0.09", False), (50.0, "0.49", False), (50.0, "0.50", True)],
)
def test_nothing_below_ten_cents_or_a_hundredth_is_advice(spent: float, lost: str, is_told: bool) -> None:
    assert bool(advise(Story(usd=spent, breaks=(broke(5, "unexplained", lost),)))) is is_told


def test_files_read_again_cost_what_their_copies_took_to_send() -> None:
    fill = ContextFill((FillShare("tool_result", "Read", 9_000, 900_000),), 3_000, 94_000)
    reads = (RepeatedRead("/a.py", 3, 2_000), RepeatedRead("/b.py", 1, 1_000))
    advice = advise(Story(fill=fill, reads=reads))["reads"]
    # A tenth of the 940,000 prompt tokens, which cost 2.55 dollars.
    assert advice.high_usd == Decimal("0.255")
    assert advice.title == "2 unchanged files were read again, 4 times in all"
    assert [item.usd for item in advice.evidence] == [Decimal("0.17"), Decimal("0.085")]


def test_large_results_are_worth_what_a_preview_would_have_spared() -> None:
    large = replace(result(), tokens=20_000, usd=Decimal("1.0"))
    small = replace(result(), tokens=9_999, usd=Decimal("1.0"))
    advice = advise(Story(results=(large, small)))["results"]
    assert advice.high_usd == Decimal("0.9")
    assert len(advice.evidence) == 1


@pytest.mark.parametrize(
    ("agent", "tool", "command"),
    [
        ("claude-code", "Read", "export CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS=5000"),
        ("claude-code", "Bash", "export BASH_MAX_OUTPUT_LENGTH=10000"),
        ("claude-code", "mcp__maps__find", "export MAX_MCP_OUTPUT_TOKENS=5000"),
        ("claude-code", "Grep", ""),
        ("codex", "exec_command", "tool_output_token_limit = 5000"),
        ("messages", "Read", ""),
    ],
)
def test_the_limit_is_a_setting_of_the_agent_for_the_tool_that_returned_too_much(
    agent: ForeignAgent, tool: str, command: str
) -> None:
    large = replace(result(), tool=tool, tokens=20_000, usd=Decimal("1.0"))
    advice = advise(Story(agent=agent, results=(large, large)))["results"]
    assert advice.command == command
    assert advice.action.endswith(":" if command else ".")


def test_a_server_of_which_no_tool_was_ever_called_is_named_with_its_price() -> None:
    idle, used = ServerUse("notes; rm -rf /", 12, 94_000, 0), ServerUse("maps", 3, 94_000, 1)
    never = replace(used, calls=0)
    found = advise(Story(name="one", servers=(idle, used)), Story(name="two", servers=(idle, never)))
    advice = found["servers"]
    assert advice.title == "The MCP server notes; rm -rf / cost $0.26 a session and was never used"
    assert advice.command == "claude mcp remove 'notes; rm -rf /'"
    assert advice.high_usd == Decimal("0.51")


def test_what_would_have_been_saved_is_a_range() -> None:
    advice = advise(Story(usd=100.0), saving=SavingRange(0.21, 0.28, 80.0, 7))["clearing"]
    assert advice.title == "Sevenfold would have saved 21% to 28% of what prompts cost"
    assert (advice.low_usd, advice.high_usd) == (Decimal("16.8"), Decimal("22.4"))
    assert describe_advice(advice)["low_usd"] == 16.8


def test_a_saving_of_a_part_of_the_sessions_says_so() -> None:
    stories = [Story(name=f"s{number}") for number in range(5)]
    unpriced, helper = Story(name="free", usd=None), Story(name="helper", sub_agent="a1")
    advice = advise(*stories, unpriced, helper, saving=SavingRange(0.21, 0.28, 80.0, 2))["clearing"]
    part = "what the prompts of 2 of 5 sessions cost"
    assert advice.title == f"Sevenfold would have saved 21% to 28% of {part}"
    whole = advise(*stories, unpriced, helper, saving=SavingRange(0.21, 0.28, 80.0, 5))["clearing"]
    assert whole.title == "Sevenfold would have saved 21% to 28% of what prompts cost"


def test_without_prices_there_is_no_advice() -> None:
    assert advise(Story(usd=None, model="gpt-9", breaks=(broke(5, "idle", None),))) == {}


def test_the_schemas_of_a_server_are_weighed_by_their_length() -> None:
    uses = ServerUses()
    uses.set_tools('{"name":"Read"}\n{"name":"mcp__maps__find"}\n{"name":"mcp__maps__show"}\nno json\n[]')
    fill = ContextFill((FillShare("tool_schema", "", 10, 1_000),))
    (use,) = uses.finish(fill)
    assert (use.server, use.tools, use.calls) == ("maps", 2, 0)
    assert 600 < use.carried_tokens < 900


def test_a_setting_of_codex_is_not_mixed_with_variables_of_the_shell() -> None:
    large = replace(result(), tool="Read", tokens=20_000, usd=Decimal("1.0"))
    stories = (Story(results=(large,)), Story(name="s2", agent="codex", results=(large,)))
    found = plan_advice(report_of(*stories), None)
    assert {item.command for item in found if item.kind == "results"} == {
        "tool_output_token_limit = 5000",
        "export CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS=5000",
    }
