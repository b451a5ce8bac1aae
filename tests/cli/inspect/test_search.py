"""`sevenfold search`, from sessions on disk to what is on the screen."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import pytest

from sevenfold.cli import main
from sevenfold.core.messages import Message
from sevenfold.session.blocking import BlockingSession
from tests.session.talk import FRAME, call, result


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("SEVENFOLD_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / ".sevenfold"


def show(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["search", *arguments]) == code
    out = capsys.readouterr()
    return out.err if code == 2 else out.out


def search(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    return json.loads(show(capsys, *arguments, "--json"))


def talk(home: Path, prompt: str) -> str:
    with BlockingSession.open(
        FRAME, project=home.parent / "project", environ={"HOME": str(home.parent)}
    ) as session:
        session.history.append(Message("user", prompt))
        session.prepare()
        session.record(call(0, "Read", tokens=5_000, file_path="/src/parser.py"))
        session.history.append(result(0, "def parse(): ..."))
        session.prepare()
        return session.id


def write_claude(home: Path, prompt: str) -> None:
    folder = home.parent / ".claude" / "projects" / "-srv-app"
    folder.mkdir(parents=True, exist_ok=True)
    wire = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "c1",
        "cwd": "/srv/my app",
        "timestamp": "2026-11-03T10:00:00Z",
        "message": {"role": "user", "content": prompt},
    }
    (folder / "c1.jsonl").write_text(json.dumps(wire) + "\n")


def write_codex(home: Path, prompt: str) -> None:
    folder = home.parent / ".codex" / "sessions" / "2026"
    folder.mkdir(parents=True)
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}
    lines = [
        {
            "type": "session_meta",
            "timestamp": "2026-11-04T10:00:00Z",
            "payload": {"id": "x1", "cwd": "/srv/x"},
        },
        {"type": "response_item", "timestamp": "2026-11-04T10:00:01Z", "payload": item},
    ]
    (folder / "rollout.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_sessions_of_every_agent_are_found_with_the_command_that_resumes_them(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = talk(home, "Mend the walrus parser")
    write_claude(home, "Feed the walrus")
    write_codex(home, "Wash the walrus")
    found = {hit["agent"]: hit for hit in search(capsys, "walrus")}
    assert found["sevenfold"]["resume"] == (
        f"cd -- {home.parent / 'project'} && sevenfold chat --resume {session}"
    )
    assert found["claude-code"]["resume"] == "cd -- '/srv/my app' && claude --resume c1"
    assert found["codex"]["resume"] == "cd -- /srv/x && codex resume x1"
    assert {hit["title"] for hit in found.values()} == {
        "Mend the walrus parser",
        "Feed the walrus",
        "Wash the walrus",
    }
    assert found["codex"]["found"] == ["walrus"]


def test_the_screen_shows_date_project_snippet_and_command(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_claude(home, "Feed the walrus at noon")
    out = show(capsys, "walrus")
    assert "/srv/my app" in out
    assert "Feed the *walrus* at noon" in out
    assert "claude --resume c1" in out
    assert "2026-11-03" in out


def test_here_narrows_to_this_project(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, "Mend the walrus parser")
    write_claude(home, "Feed the walrus")
    assert [hit["agent"] for hit in search(capsys, "walrus", "--project", ".")] == ["sevenfold"]
    assert [hit["agent"] for hit in search(capsys, "walrus", "--project", "my app")] == ["claude-code"]
    assert [hit["agent"] for hit in search(capsys, "walrus", "--since", "2026-11-10")] == ["sevenfold"]


def test_a_secret_is_not_shown(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = token_urlsafe(32)
    write_claude(
        home, f"{'Some words about it. ' * 20} The token is sfm_acme_{body} walrus {'and so on ' * 40}"
    )
    for out in (show(capsys, "walrus"), show(capsys, "walrus", "--json"), show(capsys, "some words")):
        assert body not in out
    assert "seems to hold a secret" in show(capsys, "walrus")
    write_claude(home, f"Use sfm_acme_{body} for the penguin")
    assert body not in show(capsys, "penguin")


def test_nothing_found_is_said_and_exits_1(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no sessions" in show(capsys, "walrus", code=1)
    write_claude(home, "Feed the cat")
    assert "nothing was found in 1 session" in show(capsys, "walrus", code=1)


def test_what_search_once_set_up_has_moved(capsys: pytest.CaptureFixture[str]) -> None:
    assert "sevenfold recall --setup" in show(capsys, "setup", code=2)


@pytest.mark.parametrize("limit", ["0", "x", "1001"])
def test_a_limit_out_of_range_is_refused(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "expected 1 to 1000" in show(capsys, "walrus", f"--limit={limit}", code=2)


def test_a_wrong_date_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "expected a date" in show(capsys, "walrus", "--since", "soon", code=2)


@pytest.mark.parametrize("session", ["--dangerous", "a\nb", "x; rm"])
def test_a_session_id_that_is_none_is_not_put_into_a_command(
    home: Path, capsys: pytest.CaptureFixture[str], session: str
) -> None:
    write_claude(home, "Feed the walrus")
    path = home.parent / ".claude" / "projects" / "-srv-app" / "c1.jsonl"
    path.write_text(json.dumps({**json.loads(path.read_text()), "sessionId": session}) + "\n")
    (hit,) = search(capsys, "walrus")
    assert hit["resume"] == f"sevenfold replay -- {path}"


@pytest.mark.parametrize("name", [".claude/projects", ".claude/projects/-srv-app", ".sevenfold/projects"])
def test_an_unreadable_folder_forgets_no_session(
    home: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(home, "Mend the walrus parser")
    write_claude(home, "Feed the walrus")
    assert len(search(capsys, "walrus")) == 2
    refused = home.parent / name

    def refuse(work: Callable[..., object]) -> Callable[..., object]:
        def run(path: str | Path | int = ".", *rest: object, **more: object) -> object:
            if not isinstance(path, int) and Path(path) == refused:
                raise PermissionError(13, "Permission denied", str(path))
            return work(path, *rest, **more)

        return run

    monkeypatch.setattr(os, "scandir", refuse(os.scandir))
    monkeypatch.setattr(os, "listdir", refuse(os.listdir))
    assert main(["search", "walrus", "--json"]) == 0
    out = capsys.readouterr()
    assert len(json.loads(out.out)) == 2
    assert "Permission denied" in out.err
