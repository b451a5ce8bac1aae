"""`sevenfold context`, from its arguments to what is on the screen."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sevenfold.cli import main
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import PromptTooLong
from sevenfold.core.events import HistoryCompacted, ResultsCleared, RungSkipped
from sevenfold.core.messages import Message
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session.blocking import BlockingSession
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.transcript import SessionId, fork_transcript
from tests.layers.compaction.overflows import GOOD
from tests.session.talk import FRAME, Listener, call, result

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


def test_calls_of_the_session_that_it_branched_off_are_not_in_its_cost(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = talk(home)
    (place,) = (home.parent / ".sevenfold").glob("projects/*/sessions")
    with Folder.open(place) as sessions:
        branch = fork_transcript(sessions, SessionId(session), SystemClock().now())
    told = run_json(capsys, branch)
    assert told["messages"]["history"] == 13
    assert told["spent"]["all"]["calls"] == 0


def test_the_next_cut_names_its_rung_and_why_not_the_others(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEVENFOLD_NOTES_ENABLED", "false")
    session = talk(home, notes={"enabled": False})
    cut = run_json(capsys, session)["next_cut"]
    assert cut["rung"] == "summary"
    assert cut["asks_model"] is True
    assert cut["skipped"]["notes"] == "switched off"


def test_notes_that_are_ready_come_first(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = talk(home, 20, notes={"first_update_tokens": 100, "growth_tokens": 1, "keep_tokens": 100})
    cut = run_json(capsys, session)["next_cut"]
    assert cut["rung"] == "notes"
    assert cut["total_tokens"] < 967_000
    assert 0 < cut["notes_covered"] <= 41


UNCLEARED = {"SEVENFOLD_MICROCOMPACT_ENABLED": "false", "SEVENFOLD_SERVER_EDITS_CLEAR_RESULTS": "never"}
FORECASTS: dict[str, tuple[str, dict[str, str]]] = {
    "by notes": ("claude-opus-5", UNCLEARED),
    "by a summary": ("claude-opus-4-5", UNCLEARED | {"SEVENFOLD_NOTES_ENABLED": "false"}),
    "after a refusal": ("claude-opus-4-5", UNCLEARED),
    "with a depth": ("claude-opus-5", {}),
    "with markers": ("claude-opus-4-5", {}),
}


def fill(session: BlockingSession, start: int = 0) -> None:
    """Rounds until the next request is over the point of automatic compaction."""
    for number in count(start):
        view = session.prepare()
        tokens = view.tokens
        session.record(call(number, "Read", tokens=tokens + 500, file_path=f"/src/{number}.py"))
        session.history.append(result(number, f"text of file {number} " * 800))
        if view.percent_left < 6:
            return


@pytest.mark.parametrize("case", FORECASTS)
def test_the_next_request_does_what_is_forecast(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    model, environ = FORECASTS[case]
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    listener, frame = Listener(), replace(FRAME, model=model)
    (home.parent / ".sevenfold").mkdir()
    (home.parent / ".sevenfold" / "settings.toml").write_text(f'[models."{model}"]\nwindow_tokens = 100000\n')

    def opened(session: str | None = None) -> BlockingSession:
        provider = ScriptedProvider([make_response(GOOD)] * 3)
        return BlockingSession.open(frame, project=home, session=session, provider=provider, emit=listener)

    with opened() as session:
        session.history.append(Message("user", "Please mend the parser."))
        fill(session)
        if case == "after a refusal":  # what a provider has refused counts for the forecast too
            session.prepare()
            session.recover(PromptTooLong("too long", tokens=65_000, limit=50_000))
            fill(session, 100)
        name = session.id
    before = {path: path.read_bytes() for path in home.parent.rglob("*") if path.is_file()}
    cut = run_json(capsys, name)["next_cut"]
    assert {path: path.read_bytes() for path in home.parent.rglob("*") if path.is_file()} == before
    listener.events.clear()
    with opened(name) as session:
        cleared = sum(event.results for event in listener.events if isinstance(event, ResultsCleared))
        session.prepare()
    done = [event for event in listener.events if isinstance(event, HistoryCompacted)]
    skips = {event.rung: event.reason for event in listener.events if isinstance(event, RungSkipped)}
    cleared = sum(event.results for event in listener.events if isinstance(event, ResultsCleared)) - cleared
    assert cut["clears_results"] == cleared
    assert cut["is_due"] is bool(done)
    assert bool(done) is not case.startswith("with")
    if done:
        assert [(cut["rung"], cut["kept_messages"])] == [(one.rung, one.kept_messages) for one in done]
        assert cut["skipped"] == skips
    else:
        assert cleared > 0


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
    assert "is not a folder" in run(capsys, "--project", "/nonexistent", code=2)


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
