"""`sevenfold ui`, from its arguments to a page that answers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from sevenfold.cli import main
from sevenfold.cli.ui import can_open_browser
from sevenfold.core.extras import render_install_command


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ui", "--project", "nowhere", "--no-open"]) == 2
    assert "'nowhere' is not a folder" in capsys.readouterr().err


def test_a_port_that_is_taken_is_named_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["ui", "--port", str(port), "--no-open"]) == 2
    told = capsys.readouterr().err
    assert f"port {port}" in told
    assert "--port 0" in told


def test_without_the_extra_it_says_which_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["ui", "--no-open"]) == 2
    assert render_install_command("ui") in capsys.readouterr().err


def test_a_browser_is_opened_only_where_there_is_a_screen() -> None:
    assert can_open_browser({"DISPLAY": ":0"}, "linux")
    assert can_open_browser({}, "darwin")
    assert not can_open_browser({"TERM": "xterm"}, "linux")


@pytest.mark.story
def test_the_page_answers_its_link_until_ctrl_c(home: Path) -> None:
    environ = {**os.environ, "HOME": str(home), "PYTHONUNBUFFERED": "1"}
    running = subprocess.Popen(
        [sys.executable, "-m", "sevenfold", "ui", "--port", "0", "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environ,
        cwd=home,
    )
    try:
        assert running.stdout is not None
        link = running.stdout.readline().split()[-1]
        assert link.startswith("http://127.0.0.1:")
        assert "Ctrl-C" in running.stdout.readline()
        with urlopen(Request(link), timeout=30) as answer:
            assert answer.headers["set-cookie"].startswith("sevenfold-")
        with pytest.raises(HTTPError, match="403"):
            urlopen(Request(link), timeout=30)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    finally:
        running.kill()
        running.wait()
    assert (running.returncode, err) == (0, "")
