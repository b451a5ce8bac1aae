"""A loop of your own in a stranger's repository: nobody is asked, and no layer is switched off."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.cli import main
from sevenfold.core.events import ResultSpilled, SettingRefused
from sevenfold.core.messages import Message
from sevenfold.session.blocking import BlockingSession
from tests.session.talk import FRAME, Listener, call, result

OFF = "".join(f"[{name}]\nenabled = false\n" for name in ("cache", "tool_results", "notes", "memory"))
LARGE = "line\n" * 20_000


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "ann"))
    (tmp_path / "ann").mkdir()
    (tmp_path / "project/.sevenfold").mkdir(parents=True)
    (tmp_path / "project/.git").mkdir()
    (tmp_path / "project/.sevenfold/settings.toml").write_text(OFF)
    return tmp_path / "project"


def talk(project: Path) -> tuple[Listener, int]:
    """What a round with a large result tells, and how many cache markers its request has."""
    listener = Listener()
    with BlockingSession.open(FRAME, project=project, emit=listener) as session:
        session.history.append(Message("user", "go"))
        session.prepare()
        session.record(call(1))
        session.history.append(result(1, LARGE))
        return listener, len(session.prepare().request.breakpoints)


def test_a_session_keeps_its_layers_and_tells_what_it_ignored(project: Path) -> None:
    listener, markers = talk(project)
    ignored = [event for event in listener.events if isinstance(event, SettingRefused)]
    assert [event.key for event in ignored] == [
        "cache.enabled",
        "tool_results.enabled",
        "notes.enabled",
        "memory.enabled",
    ]
    assert all("sevenfold settings --trust" in event.reason for event in ignored)
    assert any(isinstance(event, ResultSpilled) for event in listener.events)
    assert markers > 0


def test_a_session_goes_by_what_was_agreed_to_until_the_file_changes(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["settings", "--trust", "--project", str(project)]) == 0
    assert "tool_results.enabled" in capsys.readouterr().out
    listener, markers = talk(project)
    assert (listener.events, markers) == ([], 0)
    (project / ".sevenfold/settings.toml").write_text(OFF + "# changed\n")
    listener, markers = talk(project)
    assert any(isinstance(event, ResultSpilled) for event in listener.events)
    assert markers > 0


def test_not_even_an_agreement_lets_a_repository_choose_which_tools_are_cleared(project: Path) -> None:
    (project / ".sevenfold/settings.toml").write_text(
        '[microcompact]\nclearable = ["deploy"]\nnever_clear = ["Read"]\n'
    )
    assert main(["settings", "--trust", "--project", str(project)]) == 0
    listener, _ = talk(project)
    refused = [event.key for event in listener.events if isinstance(event, SettingRefused)]
    assert refused == ["microcompact.clearable", "microcompact.never_clear"]
