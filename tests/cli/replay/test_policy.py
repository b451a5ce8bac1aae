"""`sevenfold replay --policy`, from its arguments to what is on the screen."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.cli import main
from sevenfold.cli.screen import Screen
from sevenfold.replay.policies import CLEARING_POLICIES, policy_trial
from sevenfold.replay.policies.counterfactual import play_recording
from sevenfold.replay.policies.policy_trial import LIFETIME_RATES, PolicyFigures, find_optimum
from sevenfold.replay.policies.recording import compute_token_scale, read_message_segments, read_recordings
from sevenfold.replay.policies.resend import ResendOutcome, resend_session
from tests.replay.logs import answered, asked, usage, write_log

Report = dict[str, Any]


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return write_session(tmp_path / "logs" / "session.jsonl")


def write_session(
    path: Path, *, rounds: int = 20, model: str = "claude-opus-4-5", has_times: bool = True
) -> Path:
    """Rounds of reading as plain messages, with a pause over the cache's life in the middle."""

    def meta(seconds: int, **more: object) -> dict[str, object]:
        at = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        return {**({"ts": at.isoformat()} if has_times else {}), **more}

    lines: list[object] = [{"role": "user", "content": "read", "meta": meta(0)}]
    for number in range(rounds):
        at = number * 20 + (600 if number >= rounds // 2 else 0)
        given_ = {"file_path": f"/s/{number}.py"}
        use = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": given_}
        found = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"x = {number}\n" * 800}
        bill = {"input_tokens": 30_000 + 4_000 * number, "output_tokens": 10}
        lines += [
            {"role": "assistant", "content": [use], "meta": meta(at + 5, model=model, usage=bill)},
            {"role": "user", "content": [found], "meta": meta(at + 10)},
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> str:
    assert main(["replay", *map(str, arguments)]) == code
    return capsys.readouterr().out


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Report:
    return cast("Report", json.loads(run(capsys, *arguments, "--json")))


def test_the_costs_are_those_of_the_request_path_and_the_rest_those_of_the_figures(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    found = run_json(capsys, session, "--policy", "thrift")["sessions"][0]
    recording, segments = read_recordings(session, "messages")[0], read_message_segments(session, "messages")
    rates = LIFETIME_RATES["5m"]
    runs = {
        name: resend_session(segments, recording, CLEARING_POLICIES[name], rates)
        for name in ("keep", "thrift")
    }
    played = play_recording(recording, CLEARING_POLICIES["thrift"], rates)
    assert found["keep_cost"] == runs["keep"].cost > runs["thrift"].cost == found["cost"]
    assert (found["cuts"], found["unannounced"]) == (runs["thrift"].cuts, 0)
    assert found["cuts"] > 0
    assert found["keep_peak_tokens"] > found["peak_tokens"] == runs["thrift"].peak_tokens
    assert found["tax_share"] == runs["thrift"].reread_cost / runs["thrift"].cost
    assert found["view_share"] == (played.in_view / played.wanted if played.wanted else None)
    assert found["optimum_ratio"] == played.cost / find_optimum(recording, rates).cost


def test_both_accounts_weigh_a_session_alike(session: Path) -> None:
    recording, segments = read_recordings(session, "messages")[0], read_message_segments(session, "messages")
    rates = LIFETIME_RATES["5m"]
    assert abs(compute_token_scale(segments, recording) - 1) > 0.05
    keep = resend_session(segments, recording, CLEARING_POLICIES["keep"], rates).peak_tokens
    assert keep == pytest.approx(
        play_recording(recording, CLEARING_POLICIES["keep"], rates).peak_tokens, rel=0.01
    )


def test_sevenfold_means_our_default_policy(capsys: pytest.CaptureFixture[str], session: Path) -> None:
    ours = run_json(capsys, session, "--policy", "sevenfold")
    assert ours["policy"] == "balanced"
    assert ours == run_json(capsys, session, "--policy", "balanced")


def test_keeping_everything_costs_what_it_costs(capsys: pytest.CaptureFixture[str], session: Path) -> None:
    total = run_json(capsys, session, "--policy", "keep")["total"]
    assert (total["ratio"], total["cuts"], total["rereads"]) == (1.0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "model", "prices"),
    [
        ([], "claude-opus-4-5", {"read": 0.1, "write": 1.25, "from": "model"}),
        ([], "claude-opus-5-5", {"read": 0.05, "write": 1.25, "from": "model"}),
        (["--ttl", "1h"], "claude-opus-5-5", {"read": 0.05, "write": 2.0, "from": "model"}),
        (["--ttl", "1h"], "gpt-9", {"read": 0.1, "write": 2.0, "from": "assumed"}),
        (["--read-price", "0.025"], "claude-opus-5-5", {"read": 0.025, "write": 1.25, "from": "asked"}),
        (["--reprice", "claude-opus-5-5"], "gpt-9", {"read": 0.05, "write": 1.25, "from": "model"}),
    ],
)
def test_prices_are_those_of_the_sessions_model_unless_others_are_asked_for(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    model: str,
    prices: dict[str, object],
) -> None:
    log = write_session(tmp_path / "s.jsonl", rounds=3, model=model)
    assert run_json(capsys, log, "--policy", "keep", *arguments)["sessions"][0]["prices"] == prices


def test_dollars_are_those_of_models_with_a_price_alone(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    write_session(session.parent / "other.jsonl", rounds=3, model="gpt-9")
    found = run_json(capsys, session.parent, "--policy", "keep")
    known = next(item for item in found["sessions"] if item["model"] == "claude-opus-4-5")
    unknown = next(item for item in found["sessions"] if item["model"] == "gpt-9")
    assert known["usd"] == pytest.approx(known["cost"] * 5 / 1_000_000)
    assert unknown["usd"] is None
    assert (found["total"]["usd"], found["total"]["priced_sessions"]) == (known["usd"], 1)
    said = run(capsys, session.parent, "--policy", "keep")
    assert "for 1 of 2 sessions" in said
    assert "1 session of a model without a price: cache reads at 0.1." in said


def test_a_price_that_grows_with_the_prompt_gives_no_dollars(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = write_session(tmp_path / "s.jsonl", rounds=3, model="claude-haiku-5-5")
    assert run_json(capsys, log, "--policy", "keep")["total"]["usd"] is None


def test_what_cannot_be_sent_again_is_skipped_with_the_reason(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    write_session(session.parent / "timeless.jsonl", rounds=3, has_times=False)
    bill = usage(fresh=5, read=90_000, output=300)
    write_log(
        session.parent / "side.jsonl",
        asked("Go", isSidechain=True, agentId="a1"),
        answered("msg_1", bill, isSidechain=True, agentId="a1"),
    )
    (session.parent / "noise.jsonl").write_bytes(b"\x00\xff\n" * 50)
    (session.parent / "empty.jsonl").touch()
    found = run_json(capsys, session.parent, "--policy", "keep")
    assert {Path(item["path"]).stem: item["reason"] for item in found["skipped"]} == {
        "timeless": policy_trial.NO_TIMES_REASON,
        "side": policy_trial.NO_CALL_REASON,
        "noise": policy_trial.NO_TRANSCRIPT_REASON,
        "empty": policy_trial.EMPTY_FILE_REASON,
    }
    assert len(found["sessions"]) == 1
    assert "1 file skipped: its calls have no times" in run(capsys, session.parent, "--policy", "keep")


def test_nothing_that_can_be_sent_again_is_a_failure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = write_session(tmp_path / "timeless.jsonl", rounds=3, has_times=False)
    assert main(["replay", str(log), "--policy", "keep"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{log}: its calls have no times" in said.err
    (tmp_path / "nothing").mkdir()
    assert main(["replay", str(tmp_path / "nothing"), "--policy", "keep"]) == 1
    assert "no transcript was found there" in capsys.readouterr().err


def test_since_leaves_out_sessions_that_ended_before(
    capsys: pytest.CaptureFixture[str], session: Path
) -> None:
    later = (datetime.fromtimestamp(session.stat().st_mtime, UTC)).timestamp() + 86_400 * 400
    os.utime(session, (later, later))
    assert main(["replay", str(session), "--policy", "keep", "--since", "2026-11-03"]) == 1
    assert policy_trial.TOO_OLD_REASON in capsys.readouterr().err
    assert run_json(capsys, session, "--policy", "keep", "--since", "2026-10-30")["total"]["calls"] == 20


def test_with_no_session_anywhere_the_sample_is_sent_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_json(capsys, "--policy", "sevenfold")["origin"] == "sample"
    assert "this is the sample" in run(capsys, "--policy", "sevenfold")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--policy", "keep", "--html", "x.html"], "leave one of them out"),
        (["--ttl", "1h"], "add --policy sevenfold"),
        (["--read-price", "0.1"], "add --policy sevenfold"),
        (["--policy", "keep", "--read-price", "3"], "expected 0 to 1"),
        (["--policy", "keep", "--read-price", "nan"], "expected 0 to 1"),
        (["--policy", "hoard"], "'hoard' is unknown"),
        (["--policy", "keep", "--ttl", "2h"], "'2h' is unknown"),
    ],
)
def test_an_option_that_makes_no_sense_is_explained(
    capsys: pytest.CaptureFixture[str], arguments: list[str], hint: str
) -> None:
    assert main(["replay", *arguments]) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.story
def test_several_processes_say_the_same_as_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, session: Path
) -> None:
    write_session(session.parent / "other.jsonl", rounds=8)
    alone = run_json(capsys, session.parent, "--policy", "thrift", "--jobs", "1")
    monkeypatch.setattr(policy_trial, "INLINE_TRIAL_BYTES", 0)
    assert run_json(capsys, session.parent, "--policy", "thrift", "--jobs", "2") == alone
    assert alone["total"]["cost"] == pytest.approx(sum(item["cost"] for item in alone["sessions"]))


def test_progress_is_told_from_nothing_to_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, session: Path
) -> None:
    shares: list[float] = []

    def note(_screen: Screen, _label: str, share: float) -> None:
        shares.append(share)

    monkeypatch.setattr(Screen, "show_progress", note)
    run(capsys, session, "--policy", "thrift")
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1, abs=0.01)


def test_a_break_that_no_cut_explains_is_our_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, session: Path
) -> None:
    def broken(*given_: Any, **more: Any) -> ResendOutcome:
        return replace(resend_session(*given_, **more), unannounced=2)

    monkeypatch.setattr(policy_trial, "resend_session", broken)
    assert main(["replay", str(session), "--policy", "keep"]) == 1
    assert "the cache broke 2 times without a cut" in capsys.readouterr().err


def test_the_report_fits_eighty_columns_and_plain_letters(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for number in range(12):
        name = f"rollout-2026-11-01-with-a-name-that-goes-on-and-on-{number}.jsonl"
        write_session(
            tmp_path / "many" / name,
            rounds=2,
            model=["gpt-9", "claude-opus-4-5", "claude-opus-5-5"][number % 3],
        )
    write_session(tmp_path / "many" / "timeless.jsonl", rounds=2, has_times=False)
    said = run(capsys, tmp_path / "many", "--policy", "sevenfold", "--jobs", "1")
    assert "and 2 more; --json lists them all" in said
    assert "4 sessions of a model that signs its thinking" in said
    assert [line for line in said.splitlines() if len(line) > 80] == []
    assert said.isascii()


figures = st.builds(
    PolicyFigures,
    calls=st.integers(0, 99),
    cuts=st.integers(0, 99),
    keep_peak_tokens=st.integers(0, 99),
    peak_tokens=st.integers(0, 99),
    wanted=st.integers(0, 99),
)


@given(figures, figures)
def test_figures_of_two_sessions_are_their_sums_and_the_larger_peak(
    one: PolicyFigures, other: PolicyFigures
) -> None:
    both = one + other
    assert both == other + one
    assert (both.calls, both.cuts, both.wanted) == (
        one.calls + other.calls,
        one.cuts + other.cuts,
        one.wanted + other.wanted,
    )
    assert both.peak_tokens == max(one.peak_tokens, other.peak_tokens)
    assert one + PolicyFigures() == one
