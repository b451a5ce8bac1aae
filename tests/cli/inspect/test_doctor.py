"""`sevenfold doctor` finds what was broken on purpose, says what to do, and leaves everything as it was."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from sevenfold.cli import main
from sevenfold.cli.inspect import doctor
from sevenfold.cli.inspect.doctor_store import DoctorFinding
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import Overloaded
from sevenfold.core.events import WriterFailed
from sevenfold.core.memories import TEAM_FOLDER, Origin, write_memory
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest
from sevenfold.providers.scripted import ScriptedProvider
from sevenfold.session.blocking import BlockingSession
from sevenfold.session.budget import SpendSettings
from sevenfold.session.governor import GovernedProvider, Governor
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project
from sevenfold.store.transcript.transcript import EventLog
from sevenfold.team.client.local_state import FolderLedger, Membership, write_membership
from sevenfold.team.client.sync_policy import RetryState
from sevenfold.team.protocol import RepoId
from tests.session.talk import FRAME
from tests.store.repos import git


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("SEVENFOLD_HOME", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    # The sandbox is tried for real in its own tests; here it would be tried a dozen times.
    monkeypatch.setattr(doctor, "check_sandbox", untried)
    return tmp_path / ".sevenfold"


def untried(*_: object) -> tuple[DoctorFinding, ...]:
    return ()


def talk(home: Path) -> Path:
    """A session on disk; its folder."""
    project = home.parent / "project"
    with BlockingSession.open(FRAME, project=project, environ={"HOME": str(home.parent)}) as session:
        session.history.append(Message("user", "hello"))
        session.prepare()
        named = session.id
    [place] = home.glob(f"projects/*/sessions/{named}")
    return place


def findings(capsys: pytest.CaptureFixture[str], code: int = 0) -> list[tuple[str, str, str, str]]:
    assert main(["doctor", "--json"]) == code
    rows: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return [(row["area"], row["level"], row["said"], row["advice"]) for row in rows]


def told(found: list[tuple[str, str, str, str]], area: str) -> list[tuple[str, str]]:
    return [(level, said) for at, level, said, _ in found if at == area]


def test_a_new_machine_is_in_order_and_stays_untouched(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = findings(capsys)
    assert told(found, "home") == [("fine", f"{home} is made when it is first needed")]
    assert told(found, "spend") == [("fine", "background work has spent nothing yet")]
    assert not home.exists()


def test_every_finding_that_is_not_fine_says_what_to_do(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(home)
    monkeypatch.setenv("PATH", "/nowhere")
    found = findings(capsys)
    assert told(found, "git")[0][0] == "worry"
    assert [each for each in found if each[1] != "fine" and not each[3]] == []


def test_a_key_is_named_and_never_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-thing ")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "ANTHROPIC_API_KEY begins or ends with white space" in out
    assert "secret-thing" not in out


def test_settings_that_cannot_be_used_are_broken(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    (home / "settings.toml").write_text("[spend]\nstrikes = -1\n")
    assert told(findings(capsys, code=1), "settings")[0][0] == "broken"


def test_a_local_file_that_nobody_agreed_to_is_a_worry(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = home.parent / "project"
    (project / "a").write_text("tracked")
    git(project, "init", "--quiet")
    git(project, "add", "a")
    (project / ".sevenfold").mkdir()
    (project / ".sevenfold" / "settings.local.toml").write_text('[places]\nmemory_dir = "/etc"\n')
    worries = [said for level, said in told(findings(capsys), "settings") if level == "worry"]
    assert len(worries) == 1
    assert "places.memory_dir was refused" in worries[0]


def test_what_a_committed_file_wants_is_shown_with_what_became_of_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home.parent / "project/.sevenfold/settings.toml"
    path.parent.mkdir()
    path.write_text(
        '[cache]\nenabled = false\n[permissions]\nask = ["shell"]\n[places]\nmemory_dir = "/etc"\n'
    )

    def shown() -> list[tuple[str, str]]:
        return [found for found in told(findings(capsys), "settings") if str(path) in found[1]]

    free = ("fine", f"{path} may set without your agreement: permissions.ask.shell")
    never = ("worry", f"{path}: places.memory_dir was refused: a committed file never sets a path")
    ignored = f"{path} wants, and is ignored since nobody has agreed to it: cache.enabled"
    assert shown() == [free, ("worry", ignored), never]
    for option, said in (
        ("--trust", "sets, as you have agreed"),
        ("--refuse", "wants, and you have refused"),
    ):
        assert main(["settings", option]) == 0
        capsys.readouterr()
        assert shown() == [free, ("fine", f"{path} {said}: cache.enabled"), never]


def test_a_home_that_others_can_look_into_is_a_worry(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir(mode=0o755)
    os.chmod(home, 0o755)
    assert told(findings(capsys), "home") == [("worry", f"others can look into {home}")]


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(
    ("free", "level", "code"), [(10**6, "broken", 1), (5 * 10**8, "worry", 0), (10**12, "fine", 0)]
)
def test_a_disk_that_fills_up_is_seen_before_it_is_full(
    free: int, level: str, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def usage(_place: Path) -> Usage:
        return Usage(10**12, 0, free)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    assert told(findings(capsys, code), "disk")[0][0] == level


def test_a_damaged_transcript_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = talk(home)
    assert told(findings(capsys), "transcripts") == [("fine", "the newest 1 read whole")]
    with session.with_suffix(".jsonl").open("ab") as file:
        file.write(b"nonsense\n")
    assert told(findings(capsys), "transcripts") == [
        ("worry", f"lines that cannot be read: {session.name}: 1 line")
    ]


def test_what_went_wrong_lately_is_counted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = talk(home)
    with Folder.open(session) as folder:
        log = EventLog(folder, SystemClock())
        log.add(WriterFailed("notes", "x"))
        log.add(WriterFailed("notes", "y"))
        log.flush()
    [(level, said)] = told(findings(capsys), "events")
    assert level == "worry"
    assert said.startswith("WriterFailed 2 times in a week")


def test_mail_that_was_set_aside_is_seen(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = talk(home)
    bad = session.parents[1] / "mail" / "somebody" / "bad"
    bad.mkdir(parents=True)
    (bad / "000000000001-00000000-x").write_bytes(b"forged")
    assert told(findings(capsys), "mail") == [("worry", "1 message set aside as forged or damaged")]


def test_a_stopped_or_resting_kind_of_work_is_seen(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    governor = Governor.open(home, SpendSettings())
    models = GovernedProvider(ScriptedProvider([Overloaded("busy")] * 3), governor)
    for _ in range(3):
        with pytest.raises(Overloaded):
            asyncio.run(models.send(ModelRequest(FRAME, (Message("user", "x"),), purpose="notes")))
    governor.stop("by a test")
    found = told(findings(capsys), "spend")
    assert ("worry", "background work is stopped") in found
    assert any("notes rests until" in said for _, said in found)


def test_a_project_that_is_no_folder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--project", "nowhere"]) == 2
    assert "'nowhere' is not a folder" in capsys.readouterr().err


def test_worktrees_that_nobody_works_in_are_listed_and_left_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = talk(home).parents[1]
    left, held = place / "worktrees" / "ada", place / "worktrees" / "bob"
    left.mkdir(parents=True)
    held.mkdir()
    with Folder.open(place / "control") as control, mutex(control, "worktree-bob"):
        [(level, said)] = told(findings(capsys), "worktrees")
    assert (level, said) == ("worry", f"1 worktree of agents that have ended: {left}")
    assert left.is_dir()


def test_sockets_of_dead_sessions_are_listed_and_living_ones_are_not_called(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short, socket.socket(socket.AF_UNIX) as living:
        # A socket's path has to be shorter than most temporary folders.
        monkeypatch.setenv("SEVENFOLD_HOME", short)
        folder = Path(short) / "run"
        folder.mkdir()
        living.bind(str(folder / "living"))
        living.listen()
        living.setblocking(False)
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(folder / "dead"))
        [(level, said)] = told(findings(capsys), "sockets")
        assert (level, said) == ("worry", f"1 socket of sessions that have died: {folder / 'dead'}")
        assert (folder / "dead").exists()
        with pytest.raises(BlockingIOError):
            living.accept()


def test_memories_and_what_waits_for_review_are_seen(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = write_memory("deploys", "when", "project", "On Tuesdays.")
    by_page = Origin(who="fork", why="read on a page", taint=frozenset(["web"]))
    with MemoryDir.for_project(".") as memory:
        memory.commit([Write("deploys.md", text, None)], Origin(who="user", why="said so", said_by="user"))
    assert ("fine", "1 memory") in [(row["level"], row["said"]) for row in found(capsys, "memory")]
    with MemoryDir.for_project(".") as memory:
        memory.propose([Write("page.md", text, None)], by_page, "a page says so")
    [fine, worry] = found(capsys, "memory")
    assert (fine["level"], worry["level"]) == ("fine", "worry")
    assert worry["said"].startswith("1 change of memories")
    assert "sevenfold memory review" in worry["advice"]


def test_memory_that_is_switched_off_is_noted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEVENFOLD_MEMORY_ENABLED", "false")
    assert [row["level"] for row in found(capsys, "memory")] == ["note"]


def test_a_team_that_was_joined_and_one_that_refuses_are_seen(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    joined = Membership(
        url="http://team.invalid", repo=RepoId("r1"), repo_name="acme/app", org="acme", member="ada"
    )
    with Project.open(Path(), home=home) as project, project.control.subfolder(TEAM_FOLDER) as folder:
        write_membership(folder, joined)
        assert [row["level"] for row in found(capsys, "team")] == ["fine"]
        FolderLedger(folder).write_retry(RetryState(refusal="the token has expired"))
    [row] = found(capsys, "team")
    assert row["level"] == "worry"
    assert "the token has expired" in row["said"]


def found(capsys: pytest.CaptureFixture[str], area: str) -> list[dict[str, str]]:
    capsys.readouterr()
    main(["doctor", "--json"])
    rows: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return [row for row in rows if row["area"] == area]
