"""`sevenfold replay`, from its arguments to what is on the screen."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from multiprocessing import active_children
from pathlib import Path
from typing import cast

import pytest

from sevenfold.cli import main
from sevenfold.cli.commands import make_parser
from sevenfold.cli.replay import command, outputs
from sevenfold.cli.replay.contents import CHART_ROWS
from sevenfold.cli.screen import Screen
from sevenfold.core.json import JsonObject, freeze
from sevenfold.core.messages import Message
from sevenfold.replay import parallel
from sevenfold.store.files import RecordId
from sevenfold.store.transcript.records import MessageRecord, Record, RecordBody, UsageRecord, write_line
from tests.replay.logs import START, Row, answered, asked, usage, write_log

BILL = usage(fresh=5, read=90_000, written=1_000, output=300)
OPENAI_BILL: Row = {"input_tokens": 90_000, "output_tokens": 10}


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "logs" / "s.jsonl", asked("Go"), answered("msg_1", BILL, seconds=5))


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> str:
    assert main(["replay", *map(str, arguments)]) == code
    return capsys.readouterr().out


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, object]:
    return json.loads(run(capsys, *arguments, "--json"))


def as_wire(usage: Row) -> JsonObject:
    frozen = freeze(usage)
    assert isinstance(frozen, JsonObject)
    return frozen


def total(report: dict[str, object]) -> Row:
    found = report["total"]
    assert isinstance(found, dict)
    return found  # pyright: ignore[reportUnknownVariableType]


def test_with_no_session_anywhere_the_sample_is_shown_and_said_to_be_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "this is the sample" in run(capsys)
    assert run_json(capsys)["origin"] == "sample"


def test_the_chart_fits_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    lines = run(capsys).split("\n")
    first = next(at for at, line in enumerate(lines) if line.startswith("Context over time")) + 1
    assert [line[8:9] for line in lines[first : first + CHART_ROWS]] == ["┤"] * CHART_ROWS, "none is wrapped"
    assert {len(line) for line in lines[first + 4 : first + CHART_ROWS]} == {9 + 17 * 2}, "17 calls"


def test_without_a_path_the_users_own_sessions_are_found(
    capsys: pytest.CaptureFixture[str], empty_home: Path
) -> None:
    write_log(empty_home / ".claude/projects/-srv-app/s.jsonl", answered("msg_1", BILL))
    found = run_json(capsys)
    assert (found["origin"], found["files"]) == ("usual places", 1)


def test_without_a_path_sessions_that_hold_no_call_give_way_to_the_sample(
    capsys: pytest.CaptureFixture[str], empty_home: Path
) -> None:
    write_log(empty_home / ".claude/projects/-srv-app/s.jsonl", asked("Go"))
    assert run_json(capsys)["origin"] == "sample"


def test_a_path_that_does_not_exist_is_the_users_mistake(
    capsys: pytest.CaptureFixture[str], log: Path
) -> None:
    assert main(["replay", str(log), "nowhere.jsonl"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "'nowhere.jsonl' does not exist" in said.err


def test_files_that_cannot_be_read_are_told_at_the_end_and_do_no_harm(
    capsys: pytest.CaptureFixture[str], log: Path
) -> None:
    (log.parent / "noise.jsonl").write_bytes(b"\x00\xff\n" * 50)
    said = run(capsys, log.parent)
    assert "1 session, 1 call" in said
    assert said.rstrip().endswith("no transcript of Claude Code, Codex or plain messages")
    assert "noise.jsonl" in said


def test_nothing_that_can_be_read_is_a_failure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["replay", str(tmp_path / "empty")]) == 1
    assert "no transcript was found there" in capsys.readouterr().err
    write_log(tmp_path / "other.jsonl", {"display": "ls"})
    assert main(["replay", str(tmp_path / "other.jsonl")]) == 1
    assert "other.jsonl: no transcript of" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_named_once_with_the_reason(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pipe, empty = tmp_path / "pipe.jsonl", tmp_path / "empty.jsonl"
    os.mkfifo(pipe)
    empty.touch()
    assert main(["replay", str(tmp_path)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"error: {empty}: the file is empty",
        f"error: {pipe}: expected a plain file, not a folder, pipe or device",
    ]


def test_unknown_lines_and_a_torn_tail_are_remarked(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write('{"type":"hologram"}\n{"type":"hologram"}\n{"type":"assist')
    said = run(capsys, log)
    assert "lines of a type not known here: hologram 2" in said
    assert "lines that could not be read: half-written 1" in said


def test_json_holds_tokens_dollars_and_every_section(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    found = run_json(capsys, log)
    assert set(found) == {
        *("format", "origin", "repriced", "files", "lines", "total", "models", "breaks", "fill"),
        *("repeated_reads", "costly_results", "days", "sessions", "unreadable", "events"),
        *("advice", "would_have_saved", "left_out_simulated"),
    }
    assert total(found)["usd"] == {
        "read": 0.018,
        "written_5m": 0.005,
        "written_1h": 0.0,
        "fresh": 0.00002,
        "output": 0.006,
        "total": 0.02902,
    }


def test_reprice_shows_the_same_calls_at_another_models_prices(
    capsys: pytest.CaptureFixture[str], log: Path
) -> None:
    found = run_json(capsys, log, "--reprice", "claude-fable-5-2")
    assert found["repriced"] == "claude-fable-5-2"
    usd = total(found)["usd"]
    assert isinstance(usd, dict)
    assert usd["output"] == 0.012
    assert "the prices that claude-fable-5-2 has today" in run(capsys, log, "--reprice", "claude-fable-5-2")


def test_reprice_remarks_that_another_tokenizer_counts_otherwise(
    capsys: pytest.CaptureFixture[str], log: Path
) -> None:
    assert "tokenizer" in run(capsys, log, "--reprice", "claude-opus-4-5")
    assert "tokenizer" not in run(capsys, log, "--reprice", "claude-sonnet-5-5")


@pytest.mark.parametrize(
    ("asked", "near"),
    [("gpt-5.66", "gpt-5.6"), ("claude-opus-5-55", "claude-opus-5-5"), ("zzz", "zai-glm-5-3")],
)
def test_reprice_with_a_model_nobody_has_a_price_for_names_the_three_nearest(
    capsys: pytest.CaptureFixture[str], log: Path, asked: str, near: str
) -> None:
    assert main(["replay", str(log), "--reprice", asked]) == 2
    names = capsys.readouterr().err.partition("such as ")[2].strip().split(", ")
    assert names[0] == near
    assert len(names) == 3


def test_any_model_on_the_price_list_prices_a_session(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    repriced = run_json(capsys, log, "--reprice", "gpt-5.5")
    assert repriced["repriced"] == "gpt-5.5"
    assert total(repriced)["usd"] != total(run_json(capsys, log))["usd"]


def test_our_own_sessions_are_found_beside_others(
    capsys: pytest.CaptureFixture[str], empty_home: Path
) -> None:
    write_log(empty_home / ".claude/projects/-srv-app/s.jsonl", answered("msg_1", BILL))
    state = empty_home / ".sevenfold/projects/boats-0123/"
    (state / "sessions").mkdir(parents=True)
    (state / "project.json").write_text('{"root": "/srv/boats"}', encoding="utf-8")
    records: list[RecordBody] = [
        MessageRecord(Message("user", "Hello")),
        UsageRecord(model="claude-opus-5-5", who="main", wire=as_wire(BILL)),
        MessageRecord(Message("assistant", "Hi")),
        UsageRecord(model="gpt-5.5", who="extraction", dialect="openai", wire=as_wire(OPENAI_BILL)),
    ]
    (state / "sessions/beef.jsonl").write_bytes(
        b"".join(
            write_line(Record(body, START, RecordId(f"{place:032x}"))) for place, body in enumerate(records)
        )
    )
    found = run_json(capsys)
    assert found["origin"] == "usual places"
    sessions = cast("list[dict[str, object]]", found["sessions"])
    own = [item for item in sessions if item["agent"] == "sevenfold"]
    assert [(item["id"], item["project"], item["sub_agent"]) for item in own] == [
        ("beef", "/srv/boats", "extraction"),
        ("beef", "/srv/boats", None),
    ]
    assert [item["agent"] for item in sessions].count("claude-code") == 1
    assert total(found)["unpriced"] == {"calls": 0, "tokens": 0}


def test_a_users_own_price_counts(
    capsys: pytest.CaptureFixture[str], empty_home: Path, tmp_path: Path
) -> None:
    log = write_log(tmp_path / "g.jsonl", answered("msg_1", BILL, model="gpt-9"))
    assert '[models."gpt-9"]' in run(capsys, log)
    (empty_home / ".sevenfold").mkdir(exist_ok=True)
    (empty_home / ".sevenfold/settings.toml").write_text(
        '[models."gpt-9"]\ninput_usd_per_mtok = 2\noutput_usd_per_mtok = 10\n\n[notes]\nenabled = false\n',
        encoding="utf-8",
    )
    found = run_json(capsys, log)
    assert total(found)["unpriced"] == {"calls": 0, "tokens": 0}


def test_what_has_no_price_is_named_with_the_reason_and_what_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, empty_home: Path
) -> None:
    described = empty_home / ".sevenfold/settings.toml"
    described.parent.mkdir()
    described.write_text('[models."ours-2"]\nwindow_tokens = 50000\n', encoding="utf-8")
    log = write_log(
        tmp_path / "s.jsonl",
        answered("msg_1", BILL, model="gpt-9"),
        answered("msg_2", BILL, model="ours-2"),
        answered("msg_3", {**BILL, "speed": "fast"}, model="claude-sonnet-5-5"),
    )
    said = run(capsys, log)
    assert "No table knows gpt-9, so it has no price." in said
    assert "Settings give ours-2 no price." in said
    assert "claude-sonnet-5-5 (fast): that speed has no known price." in said
    assert said.count("[models.") == 1
    assert '[models."claude' not in said
    found = run_json(capsys, log)
    assert found["events"] == [
        {"event": "ModelUnknown", "model": "gpt-9", "assumed_window_tokens": 200_000},
        {"event": "PriceUnknown", "model": "ours-2"},
    ]
    models = found["models"]
    assert isinstance(models, list)
    assert {item["model"]: item["unpriced"] for item in models} == {  # pyright: ignore[reportUnknownVariableType]
        "gpt-9": "model",
        "ours-2": "model",
        "claude-sonnet-5-5 (fast)": "speed",
    }


def test_dollars_are_never_shown_as_those_of_calls_without_a_price(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    warm, lost = usage(fresh=5, written=90_000, output=300), usage(fresh=5, written=91_000, output=300)
    logs = [
        write_log(
            tmp_path / f"{model}.jsonl",
            answered(f"msg_1_{model}", warm, model=model),
            answered(f"msg_2_{model}", lost, model=model, seconds=900),
        )
        for model in ("claude-opus-5-5", "gpt-9", "")
    ]
    said = run(capsys, *logs)
    assert "of what was spent; 2 unpriced breaks" in said
    assert "2 breaks of these are in no dollar figure." in said
    assert "Tokens are those of all calls, dollars those of calls with a price." in said
    assert "The log names no model for these calls" in said
    only = run(capsys, logs[0])
    assert "of what was spent, in 1 break" in only
    assert "no dollar figure" not in only
    assert "dollars those of calls" not in only


def test_since_and_limit_leave_out_what_is_older(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    other = write_log(log.parent / "t.jsonl", answered("msg_2", BILL, seconds=86_400 * 9))
    os.utime(log, ns=(0, other.stat().st_mtime_ns - 5_000_000_000))
    assert run_json(capsys, log.parent)["files"] == 2
    assert run_json(capsys, log.parent, "--limit", "1")["files"] == 1
    late = run_json(capsys, log.parent, "--since", "2026-11-08")
    assert total(late)["calls"] == 1
    assert run_json(capsys, log, other, "--since", "2026-11-08")["format"] == 1


@pytest.mark.parametrize("policy", [[], ["--policy", "keep"]])
def test_files_that_are_all_too_old_are_said_to_be(
    capsys: pytest.CaptureFixture[str], log: Path, policy: list[str]
) -> None:
    assert main(["replay", str(log), "--since", "2999-01-01", *policy]) == 1
    assert "no transcript there was written to since 2999-01-01" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--since", "yesterday"], "expected a date such as 2026-11-01"),
        (["--limit", "0"], "expected a number from 1 on"),
        (["--jobs", "-1"], "expected a number from 1 on"),
    ],
)
def test_an_argument_that_makes_no_sense_is_explained(
    capsys: pytest.CaptureFixture[str], arguments: list[str], hint: str
) -> None:
    assert main(["replay", *arguments]) == 2
    assert hint in capsys.readouterr().err


def test_the_report_fits_eighty_columns_in_any_session(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = "/srv/" + "very-long-folder-name/" * 9 + "file.py"
    rows: list[Row] = [asked("Go")]
    for number in range(120):
        use: Row = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": path}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "tide " * 500}
        bill = usage(fresh=5, read=10_000_000 * (number % 3), written=987_654_321, output=12_345_678)
        name = ["claude-opus-5-5", "gpt-9-a-name-that-goes-on-and-on-without-any-end"][number % 2]
        rows += answered(f"msg_{number}", bill, use, seconds=400 * number, model=name)
        rows.append({**asked("x", 400 * number + 2), "message": {"role": "user", "content": [result]}})
    said = run(
        capsys, write_log(tmp_path / "s.jsonl", rows), write_log(tmp_path / "t.jsonl", answered("m", BILL))
    )
    assert [line for line in said.splitlines() if len(line) > 80] == []


def test_the_help_fits_eighty_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = run(capsys, "--help")
    assert "--reprice MODEL" in said
    assert [line for line in said.splitlines() if len(line) > 80] == []


def test_a_screen_without_unicode_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["replay"]) == 0
    out.flush()
    said = out.buffer.getvalue().decode("ascii")
    assert "####" in said
    assert "\\u" not in said


def test_no_colour_and_no_progress_reach_a_pipe(log: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sevenfold", "replay", str(log)], capture_output=True, check=True
    )
    assert b"\x1b" not in done.stdout
    assert done.stderr == b""


def test_ctrl_c_ends_it_quietly_and_leaves_no_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, log: Path
) -> None:
    seen: list[int] = []
    others = len(active_children())  # of tests before this one

    def interrupt(*_: object) -> None:
        seen.append(len(active_children()))
        raise KeyboardInterrupt

    write_log(log.parent / "t.jsonl", answered("msg_2", BILL))
    monkeypatch.setattr(parallel, "INLINE_READ_BYTES", 0)
    monkeypatch.setattr(Screen, "show_progress", interrupt)
    assert main(["replay", str(log.parent), "--jobs", "2"]) == 130
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    assert seen == [others + 2]
    assert len(active_children()) <= others


def test_what_to_do_stands_before_everything_else(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    warm, lost = usage(written=900_000, output=300), usage(written=910_000, output=300)
    log = write_log(
        tmp_path / "s.jsonl",
        answered("msg_1", warm),
        answered("msg_2", lost, model="claude-opus-5", seconds=60),
    )
    said = run(capsys, log)
    assert said.index("Switching the model in mid-session cost $") < said.index("Where it went")
    found = run_json(capsys, log)
    (advice,) = [item for item in cast("list[Row]", found["advice"]) if item["cause"] == "model switch"]
    assert advice["command"] == "/compact, then /model"
    assert max(map(len, said.splitlines())) <= 80


def test_a_list_by_day_and_csv_hold_the_same(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    listed = run(capsys, log, "--by", "day")
    assert "By day" in listed
    assert "2026-11-03" in listed
    assert "Where it went" not in listed
    header, row = run(capsys, log, "--by", "day", "--csv").splitlines()
    assert header.startswith("day,sessions,calls,")
    assert row.startswith("2026-11-03,1,1,5,90000,1000,0,300,")
    assert run(capsys, log, "--csv").splitlines()[1].startswith("s1,1,1,")


def test_anonymous_output_names_nothing(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    for options in ([], ["--json"], ["--csv"], ["--by", "project"]):
        said = run(capsys, log, "--anonymous", *options)
        assert str(log.parent) not in said
        assert "s1" not in said


def test_a_page_without_a_name_goes_to_the_home_and_is_opened(
    capsys: pytest.CaptureFixture[str], log: Path, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_one(url: str) -> bool:
        opened.append(url)
        return len(opened) == 1

    monkeypatch.setattr(outputs.webbrowser, "open", open_one)
    page = empty_home / ".sevenfold" / "replay.html"
    assert str(page) in run(capsys, log, "--open")
    assert opened == [page.as_uri()]
    assert "no browser could be started" in run(capsys, log, "--html", "--open")


def test_a_picture_is_written_and_nothing_else_is_written_over(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "bill.svg"
    for _ in range(2):
        assert f"the picture is in {picture}" in run(capsys, log, "--svg", picture)
    assert picture.read_text(encoding="utf-8").startswith("<svg ")
    assert main(["replay", str(log), "--svg", str(log)]) == 2
    assert "is no picture of ours" in capsys.readouterr().err


def test_watching_reports_again_when_a_session_grows(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    wanted = command.read_options(
        make_parser().parse_args(["replay", str(log), "--watch", "--html", str(page)])
    )
    looks: list[int] = []

    def wait(_: float) -> None:
        looks.append(page.read_text(encoding="utf-8").count("refresh_seconds"))
        if len(looks) == 2:
            write_log(
                log, asked("Go"), answered("msg_1", BILL, seconds=5), answered("msg_2", BILL, seconds=9)
            )

    assert command.watch_replay(wanted, Screen(), wait, rounds=4) == 0
    said = capsys.readouterr().out
    assert said.count("the page is in") == 2
    assert "1 session, 2 calls" in said


@pytest.mark.parametrize("option", ["--open", "--svg=x.svg", "--by=day", "--csv", "--anonymous", "--watch"])
def test_what_a_policy_would_ignore_is_refused(
    capsys: pytest.CaptureFixture[str], log: Path, option: str
) -> None:
    assert main(["replay", str(log), "--policy", "sevenfold", option]) == 2
    assert f"{option.partition('=')[0]} with --policy" in capsys.readouterr().err
