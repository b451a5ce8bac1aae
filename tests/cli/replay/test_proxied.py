"""`sevenfold replay --proxy` shows the ledgers of proxies, of those that run with every request."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sevenfold.cli import main
from sevenfold.cli.commands import make_parser
from sevenfold.cli.replay.proxied import show_proxied
from sevenfold.cli.screen import Screen

ENDED, LIVE = "2026-11-15-120000-999999999.jsonl", f"2026-11-16-120000-{os.getpid()}.jsonl"
REQUEST = {
    "at": "2026-11-16T12:00:01+00:00",
    "agent": "pi",
    "conversation": "c1",
    "purpose": "turn",
    "model": "claude-opus-5",
    "status": 200,
    "dollars": "0.0421",
    "fresh": 10,
    "read": 90_000,
    "written_5m": 1_000,
    "output": 5,
    "break": {"cause": "the tools changed", "lost_tokens": 4_000},
    "layers": {"acted": ["spill"]},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SEVENFOLD_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".sevenfold"


def write_ledger(home: Path, name: str, count: int = 1) -> None:
    folder = home / "proxy"
    folder.mkdir(parents=True, exist_ok=True)
    # The last line is not written to its end yet.
    (folder / name).write_text(f"{json.dumps(REQUEST)}\n" * count + '{"at": "2026')


def test_sessions_are_listed_and_requests_of_those_that_run(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_ledger(home, ENDED)
    write_ledger(home, LIVE)
    assert main(["replay", "--proxy"]) == 0
    shown = " ".join(capsys.readouterr().out.split())  # a narrow screen breaks lines
    live, _, ended = shown.partition(LIVE)
    assert "runs pi: 1 request" in live
    assert f"ended pi: 1 request, 1 conversation, $0.0421, 1 cache break {ENDED}" in ended
    for part in ("c1 turn claude-opus-5", "90,000 read, 1,010 not", "$0.0421", "spill", "the tools changed"):
        assert part in ended.partition("ended")[0]
    assert ended.count("c1 turn") == 1
    assert main(["replay", "--proxy", "--json", ENDED]) == 0
    (named,) = json.loads(capsys.readouterr().out)
    assert (named["is_live"], named["requests"], named["entries"]) == (False, 1, [REQUEST])


def test_it_is_shown_again_when_a_ledger_grows(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_ledger(home, LIVE)
    options = make_parser().parse_args(["replay", "--proxy", "--watch"])
    counts = iter([1, 2, 2])

    def wait(_: float) -> None:
        write_ledger(home, LIVE, next(counts))

    assert show_proxied(options, home, Screen(), wait, rounds=4) == 0
    shown = capsys.readouterr().out
    assert (shown.count("runs"), shown.count("1 request,"), shown.count("2 requests")) == (2, 1, 1)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--csv"], "--csv with --proxy"),
        (["--since", "2026-11-01"], "--since with --proxy"),
        (["nothing.jsonl"], "there is no ledger 'nothing.jsonl'"),
    ],
)
def test_what_does_not_fit_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    write_ledger(home, ENDED)
    assert main(["replay", "--proxy", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_without_a_ledger_it_says_how_to_begin(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--proxy"]) == 1
    assert "sevenfold run AGENT" in capsys.readouterr().err
    assert not (home / "proxy").exists()
