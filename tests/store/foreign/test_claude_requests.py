"""What Claude Code writes of its requests: the prompt in front, what changed, and what compactions cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from sevenfold.replay.account import ReplayTerms, read_account
from sevenfold.replay.report import SessionReport
from sevenfold.store.foreign.claude_code import ClaudeReader
from sevenfold.store.foreign.entries import ForeignEntry, ForeignRequest, ForeignSideCall, RequestChange

MODEL = "claude-opus-5-5"
AT = "2026-11-02T09:00:{:02d}.000Z"


def shape(name: str, system: str = "Be brief.", tools: Sequence[str] = ("Bash",)) -> dict[str, object]:
    declared = [{"name": tool, "description": f"Use {tool}. " * 200} for tool in tools]
    return {
        "type": "api-request-shape",
        "shapeHash": name,
        "shape": {"system": [{"type": "text", "text": system * 100}], "tools": declared},
    }


def request(number: int, tail: Sequence[str], *, keep: int = 0, **more: object) -> dict[str, object]:
    base = {"base": f"r{number - 1}", "keep": keep} if keep else {"keep": 0}
    params = {"model": MODEL, "max_tokens": number, "thinking": {"type": more.pop("thinking", "adaptive")}}
    return {
        "type": "api-request",
        "id": f"r{number}",
        "timestamp": AT.format(number),
        "querySource": "sdk",
        "shapeHash": more.pop("shape", "s1"),
        "params": params,
        "tail": list(tail),
        **base,
        **more,
    }


def answer(number: int, read: int, written: int, ref: str = "", output: int = 50) -> dict[str, object]:
    usage = {
        "input_tokens": 0,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
    }
    message = {
        "id": f"msg_{number}",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": "An answer of a few words."}],
        "stop_reason": "end_turn",
        "usage": usage,
    }
    return {
        "type": "assistant",
        "uuid": f"a{number}",
        "sessionId": "one",
        "timestamp": AT.format(number),
        "requestRef": ref or f"r{number}",
        "message": message,
    }


def asked(number: int) -> dict[str, object]:
    message = {"role": "user", "content": f"Question {number}?"}
    return {"type": "user", "uuid": f"u{number}", "timestamp": AT.format(number), "message": message}


def totals(read: int, written: int, output: int, fresh: int = 0) -> dict[str, object]:
    counts = {
        "inputTokens": fresh,
        "outputTokens": output,
        "cacheReadInputTokens": read,
        "cacheCreationInputTokens": written,
        "cacheCreationEphemeral5mInputTokens": written,
        "cacheCreationEphemeral1hInputTokens": 0,
    }
    return {"type": "cost-state", "sessionId": "one", "modelUsage": {MODEL: counts}}


def boundary(number: int) -> dict[str, object]:
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": f"b{number}",
        "timestamp": AT.format(number),
        "compactMetadata": {"trigger": "auto", "preTokens": 10_100},
    }


def read(*lines: dict[str, object]) -> list[ForeignEntry]:
    reader = ClaudeReader()
    return [entry for line in lines for entry in reader.read(line)]


def changes(*lines: dict[str, object]) -> list[RequestChange]:
    return [entry.changed for entry in read(*lines) if isinstance(entry, ForeignRequest)]


def report(folder: Path, *lines: dict[str, object]) -> SessionReport:
    path = folder / "one.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (session,) = read_account(path, "claude-code", ReplayTerms()).sessions
    return session


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (request(2, ["m3", "m4"], keep=2), ""),
        (request(2, ["m1", "m2", "m3"]), ""),
        (request(2, ["m1", "other", "m3"]), "history"),
        (request(2, ["m3"], keep=1), "history"),
        (request(2, ["m3"], keep=2, thinking="disabled"), "parameters"),
        (request(2, ["m3"], keep=2, shape="s2"), "tools"),
        (request(2, ["m3"], keep=2, shape="s3"), "system prompt"),
        (request(2, ["m3"], keep=2, shape="unknown"), ""),
    ],
)
def test_a_request_is_compared_with_the_one_that_was_answered_before(
    second: dict[str, object], expected: RequestChange
) -> None:
    shapes = (shape("s1"), shape("s2", tools=("Bash", "Read")), shape("s3", "Be kind."))
    side = {**request(9, ["title"], shape="s3"), "querySource": "title"}
    lines = (*shapes, request(1, ["m1", "m2"]), answer(1, 0, 10_000), side, second, answer(2, 10_000, 10))
    assert changes(*lines, answer(2, 10_000, 10)) == ["", expected]


def test_a_prompt_and_its_tools_come_with_the_first_request_that_has_them_and_when_they_change() -> None:
    lines = [shape("s1"), shape("s2", "Be kind.", ("Read",)), *(asked(number) for number in (1, 2, 3))]
    for number, name in enumerate(("s1", "s1", "s2", "s2"), 1):
        lines += [request(number, [f"m{number}"], shape=name), answer(number, 0, 10_000)]
    found = [entry for entry in read(*lines) if isinstance(entry, ForeignRequest)]
    assert ["Be brief." in one.system for one in found] == [True, False, False, False]
    assert ["Be kind." in one.system for one in found] == [False, False, True, False]
    assert ["Use Bash." in one.tools for one in found] == [True, False, False, False]
    assert ["Use Read." in one.tools for one in found] == [False, False, True, False]


def test_the_prompt_in_front_is_known_and_nothing_is_missing_in_the_log(tmp_path: Path) -> None:
    lines = (asked(1), shape("s1"), request(1, ["m1"]), answer(1, 0, 10_000), asked(2))
    found = report(tmp_path, *lines, request(2, ["m2"], keep=1), answer(2, 10_000, 100)).fill
    kinds = {share.kind: share.carried_tokens for share in found.shares}
    assert "unlogged" not in kinds
    assert kinds["tool_schema"] > kinds["system_prompt"] > kinds["human"] > 0
    assert found.carried_tokens == 20_100


def test_a_compaction_is_billed_from_the_running_totals_and_the_prompt_stays(tmp_path: Path) -> None:
    session = report(
        tmp_path,
        *(asked(1), shape("s1"), request(1, ["m1"]), answer(1, 0, 10_000), totals(0, 10_000, 50)),
        *(asked(2), request(2, ["m2"], keep=1), answer(2, 10_000, 100), boundary(3)),
        totals(20_100, 10_300, 300, fresh=7),
        *(asked(4), request(4, ["summary"]), answer(4, 0, 8_000), totals(20_100, 18_300, 350, fresh=7)),
    )
    (bill,) = session.bills
    assert (bill.calls, bill.tokens.read, bill.tokens.written, bill.tokens.fresh, bill.tokens.output) == (
        4,
        20_100,
        18_300,
        7,
        350,
    )
    assert bill.cost is not None
    assert [(one.cause, one.lost_tokens) for one in session.breaks] == [("compaction", 8_000)]
    assert "unlogged" not in {share.kind for share in session.fill.shares}


@pytest.mark.parametrize(
    "last",
    [totals(0, 10_000, 50), totals(0, 9_000, 40), totals(0, 0, 0), {"type": "cost-state", "modelUsage": 7}],
)
def test_totals_that_do_not_cover_the_calls_say_nothing_of_a_compaction(last: dict[str, object]) -> None:
    entries = read(answer(1, 0, 10_000), boundary(2), last)
    assert [entry for entry in entries if isinstance(entry, ForeignSideCall)] == []


def test_what_the_totals_have_beside_a_compaction_is_not_taken_for_one() -> None:
    # A sub-agent's calls, which have a file of their own.
    entries = read(answer(1, 0, 10_000), totals(50_000, 20_000, 500))
    assert [entry for entry in entries if isinstance(entry, ForeignSideCall)] == []


@pytest.mark.parametrize(
    ("change", "cause"),
    [({"shape": "s2"}, "tools"), ({"thinking": "disabled"}, "parameters"), ({}, "unexplained")],
)
def test_the_cause_of_a_break_comes_from_the_recorded_requests(
    tmp_path: Path, change: dict[str, object], cause: str
) -> None:
    shapes = (shape("s1"), shape("s2", tools=("Bash", "Read")))
    lines = (asked(1), *shapes, request(1, ["m1"]), answer(1, 0, 10_000), asked(2))
    session = report(tmp_path, *lines, request(2, ["m2"], keep=1, **change), answer(2, 0, 10_100))
    (broke,) = session.breaks
    assert (broke.cause, broke.lost_tokens) == (cause, 10_000)
    assert broke.lost_usd is None or broke.lost_usd > Decimal(0)


@pytest.mark.parametrize(("is_shown", "found"), [(False, 0), (True, 1)])
def test_a_sub_agent_beside_a_compaction_is_not_billed_with_it(is_shown: bool, found: int) -> None:
    """Its own file has its calls, unless this one has them."""
    ran = {**asked(2), "toolUseResult": {"agentId": "a1", "status": "completed"}}
    own = {**answer(7, 0, 5_000), "isSidechain": True, "agentId": "a1"}
    entries = read(
        *(answer(1, 0, 10_000), totals(0, 10_000, 50), *((own,) if is_shown else ()), ran, boundary(3)),
        totals(10_000, 15_300, 300),
    )
    calls = [entry for entry in entries if isinstance(entry, ForeignSideCall)]
    assert len(calls) == found
