"""`sevenfold simulate`, as a person starts and stops it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from sevenfold.cli import main
from sevenfold.core.extras import render_install_command
from sevenfold.core.json import read_object

HEADERS = {"x-api-key": "k", "anthropic-version": "2026-10-21"}


@dataclass(slots=True)
class Running:
    process: subprocess.Popen[str]
    url: str
    said: str = ""
    complained: str = ""

    def ask(self, text: str = "Hi", **fields: object) -> httpx2.Response:
        body = {"model": "claude-opus-5", "max_tokens": 99, "messages": [{"role": "user", "content": text}]}
        with httpx2.Client(trust_env=False, timeout=60) as client:
            return client.post(f"{self.url}/v1/messages", json={**body, **fields}, headers=HEADERS)

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        self.said, self.complained = self.process.communicate(timeout=60)
        return self.process.returncode


@contextmanager
def simulating(*options: str) -> Generator[Running]:
    command = [sys.executable, "-m", "sevenfold", "simulate", *options]
    plain = {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=plain
    ) as process:
        try:
            assert process.stdout is not None
            first, second, _ = (process.stdout.readline() for _ in range(3))
            assert second == "export ANTHROPIC_API_KEY=simulated\n", process.stderr and process.stderr.read()
            yield Running(process, first.removeprefix("export ANTHROPIC_BASE_URL=").strip())
        finally:
            process.kill()


def test_it_serves_until_it_is_interrupted_and_sums_up(tmp_path: Path) -> None:
    ledger = tmp_path / "bills.jsonl"
    with simulating("--ledger", str(ledger)) as running:
        assert running.ask().status_code == 200
        assert running.ask(system="Be brief.").status_code == 200
        assert running.ask(model="nobody").status_code == 404
        assert running.stop() == 0
    lines = running.said.splitlines()
    assert "system changed at system.0" in lines[1]
    assert lines[2].endswith("model: nobody")
    assert lines[-1].startswith("3 requests, 1 refused; read 0, written 0, fresh ")
    assert [read_object(line)["status"] for line in ledger.read_bytes().splitlines()] == [200, 200, 404]
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600, "it tells what was said"
    assert running.complained == ""


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.story)])
def test_a_signal_that_follows_the_first_line_at_once_ends_it_in_order(how: signal.Signals) -> None:
    command = [sys.executable, "-u", "-m", "sevenfold", "simulate"]
    for _ in range(3):
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline().startswith("export ANTHROPIC_BASE_URL=")
                process.send_signal(how)
                said, complained = process.communicate(timeout=60)
            finally:
                process.kill()
        assert (process.returncode, complained) == (0, "")
        assert said.splitlines()[-1].startswith("0 requests, 0 refused")


@pytest.mark.story
def test_a_model_of_ones_own_without_a_price_is_told_at_once_and_at_each_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / ".sevenfold"
    home.mkdir()
    (home / "settings.toml").write_text(
        '[models."my-model"]\nwindow_tokens = 100_000\n\n[notes]\nenabled = false\n', encoding="utf-8"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    with simulating() as running:
        assert running.process.stdout is not None
        warned = running.process.stdout.readline()
        assert running.ask(model="my-model").status_code == 200
        assert running.stop() == 0
    assert warned == "# no price is known for my-model: what it costs is not counted\n"
    assert "unpriced  no price is known for my-model" in running.said


def test_it_can_be_asked_to_end_and_to_be_quiet() -> None:
    with simulating("--quiet", "--no-strict") as running:
        assert running.ask(unknown=1).status_code == 200
        assert running.stop(signal.SIGTERM) == 0
    assert running.said.splitlines()[0] == ""
    assert len(running.said.splitlines()) == 2


@pytest.mark.story
@pytest.mark.parametrize(
    ("requests", "code", "told"),
    [
        (1, 0, ""),
        (0, 1, "error: 1 of 1 steps were never asked for"),
        (2, 1, "error: request 2 is not in the script"),
    ],
    ids=["as written", "unused", "unexpected"],
)
def test_a_script_that_was_not_kept_to_ends_in_an_error(
    tmp_path: Path, requests: int, code: int, told: str
) -> None:
    path = tmp_path / "talk.yaml"
    path.write_text("- text: Hello.\n", encoding="utf-8")
    with simulating("--brain", str(path)) as running:
        for _ in range(requests):
            running.ask()
        assert running.stop() == code
    assert running.complained.startswith(told)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--brain", "parrot"], "brain 'parrot' is unknown"),
        (["--brain", "nowhere.yaml"], "nowhere.yaml"),
        (["--ledger", "nowhere/bills.jsonl"], "nowhere/bills.jsonl"),
        (["--port", "99999"], "argument --port: '99999' is not a port; expected 0 (any free one) to 65535"),
        (["--port", "-1"], "argument --port: '-1' is not a port"),
        (["--port", "http"], "argument --port: 'http' is not a port"),
        (["--account-age", "young"], "'young' is unknown; expected new, old"),
    ],
)
def test_what_cannot_be_started_says_why(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", *options]) in {1, 2}
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.out == ""


def test_without_the_extra_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["simulate"]) == 1
    assert render_install_command("simulator") in capsys.readouterr().err
