"""`sevenfold context`, from its arguments to what is on the screen."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sevenfold.cli import main
from sevenfold.core.messages import Message
from sevenfold.session.blocking import BlockingSession
from tests.session.talk import FRAME, call, result

LARGE = "line\n" * 20_000


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own = tmp_path / "project"
    own.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(own)
    return own


def talk(home: Path, rounds: int = 6, **settings: dict[str, object]) -> str:
    """A session on disk, ended."""
    with BlockingSession.open(
        FRAME, project=home, environ={"HOME": str(home.parent)}, settings=settings
    ) as session:
        session.history.append(Message("user", "Please mend the parser."))
        for number in range(rounds):
            view = session.prepare()
            session.record(call(number, "Read", tokens=500 + view.tokens, file_path="/src/a.py"))
            session.history.append(result(number, LARGE if number == 2 else "the same text " * 200))
        return session.id


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["context", *arguments]) == code
    out = capsys.readouterr()
    return out.err if code else out.out


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    return json.loads(run(capsys, *arguments, "--json"))


def test_the_last_session_is_shown_without_a_name(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = talk(home)
    told = run(capsys)
    assert f"session {session}" in told
    assert "results of Read" in told
    assert "files read again though nothing had changed" in told
    assert "automatic compaction at 967K" in told
    assert "6 calls" in told


def test_every_line_fits_80_columns_and_has_no_colour(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home)
    told = run(capsys)
    assert max(map(len, told.splitlines())) <= 80
    assert "\x1b" not in told


def test_the_same_as_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = talk(home)
    told = run_json(capsys, session)
    assert told["session"] == session
    assert told["messages"] == {"history": 13, "view": 13}
    assert told["filled"]["tool_results"]["Read"] > 1_000
    assert told["filled"]["repeated_reads"] > 0
    assert told["next_cut"]["tokens_left"] == told["window"]["auto_compact"] - told["tokens"]
    assert told["spent"]["all"]["calls"] == 6
    assert told["spent"]["main"]["usd"] > 0


def test_the_next_cut_names_its_rung_and_why_not_the_others(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = talk(home, notes={"enabled": False})
    cut = run_json(capsys, session)["next_cut"]
    assert cut["rung"] == "summary"
    assert cut["asks_model"] is True
    assert cut["skipped"]["notes"] == "no notes were written yet"


def test_notes_that_are_ready_come_first(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = talk(home, 20, notes={"first_update_tokens": 100, "growth_tokens": 1, "keep_tokens": 100})
    cut = run_json(capsys, session)["next_cut"]
    assert cut["rung"] == "notes"
    assert cut["total_tokens"] < 967_000
    assert 0 < cut["notes_covered"] <= 41


def test_another_model_shows_whether_it_would_fit(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home)
    assert run_json(capsys, "--model", "claude-haiku-4-5")["window"]["tokens"] == 200_000
    assert "no table knows gpt-nobody" in run(capsys, "--model", "gpt-nobody")


def test_a_spill_that_is_gone_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with BlockingSession.open(FRAME, project=home, environ={"HOME": str(home.parent)}) as session:
        session.history.append(Message("user", "go"))
        session.prepare()
        session.record(call(1))
        session.history.append(result(1, LARGE))
        session.prepare()
    told = run(capsys)
    assert "1 large result on disk, 100,000 bytes" in told
    for spill in home.parent.rglob("tool-results/*"):
        spill.unlink()
    assert "1 of the files are gone" in run(capsys)


def test_a_compacted_session_is_shown_as_it_is_now(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = talk(home, 12, models={FRAME.model: {"window_tokens": 40_000}}, microcompact={"enabled": False})
    told = run_json(capsys, session)
    assert told["compactions"] >= 1
    assert told["messages"]["view"] < told["messages"]["history"] == 25


def test_a_running_session_can_be_looked_at_and_nothing_is_written(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with BlockingSession.open(FRAME, project=home, environ={"HOME": str(home.parent)}) as session:
        session.history.append(Message("user", "go"))
        session.prepare()
        session.record(call(1))
        transcript = next(home.parent.rglob(f"{session.id}.jsonl"))
        before = transcript.read_bytes()
        assert run_json(capsys, session.id[:6])["messages"]["history"] == 2
        assert transcript.read_bytes() == before
        session.history.append(result(1, "ok"))
        session.prepare()


def test_a_session_that_is_not_there_is_refused_with_those_that_are(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = talk(home, 1)
    told = run(capsys, "nobody", code=2)
    assert "no session is called 'nobody'; known ones, the last first:" in told
    assert session in told
    (home / "other.jsonl").write_text("{}")
    assert "a file is read by `sevenfold replay`" in run(capsys, str(home / "other.jsonl"), code=2)


def test_a_project_without_sessions_is_said_and_none_is_made(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no session is kept for the project of" in run(capsys, code=2)
    assert not (home.parent / ".sevenfold").exists()
    assert "is no folder" in run(capsys, "--project", "/nonexistent", code=2)


def test_a_session_without_a_call_asks_for_the_model(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with BlockingSession.open(FRAME, project=home, environ={"HOME": str(home.parent)}) as session:
        session.history.append(Message("user", "go"))
        session.prepare()
    assert "name a model with --model" in run(capsys, code=2)
    told = run(capsys, "--model", FRAME.model)
    assert re.search(r"estimated, nothing was billed yet", told)


def test_tools_whose_results_are_never_cleared_are_named_with_the_setting_that_changes_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with BlockingSession.open(FRAME, project=home, environ={"HOME": str(home.parent)}) as session:
        session.history.append(Message("user", "go"))
        for number, tool in enumerate(("Read", "mcp__db__query")):
            session.prepare()
            session.record(call(number, tool))
            session.history.append(result(number, "a row of the table\n" * 200))
    told = run(capsys)
    assert "never cleared: results of mcp__db__query (" in told
    assert "`clearable` of [microcompact]" in told
    assert list(run_json(capsys)["never_cleared"]) == ["mcp__db__query"]
    (home.parent / ".sevenfold/settings.toml").write_text('[microcompact]\nclearable = ["mcp__db__*"]\n')
    assert "never cleared" not in run(capsys)
    (home.parent / ".sevenfold/settings.toml").write_text("[microcompact]\nenabled = false\n")
    assert "old results are never cleared: layer 2 is switched off" in run(capsys)
