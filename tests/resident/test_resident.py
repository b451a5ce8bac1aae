"""The resident process: started on demand, one per user, and gone without a trace when it is asked to."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sevenfold import MemoryDir
from sevenfold.core.errors import FileMissing, InputError, ResidentUnavailable
from sevenfold.resident import client, perform
from sevenfold.resident.client import find_run_folder, request

WAIT = 60.0
"""Seconds: a loaded machine takes long to start an interpreter."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SEVENFOLD_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    yield str(folder)
    try:
        pid = ask("stop")["pid"]
    except ResidentUnavailable:
        return
    assert isinstance(pid, int)
    wait_for_end(pid)


def ask(operation: str, **arguments: object) -> dict[str, object]:
    """A request that starts nothing."""
    import json

    body = {"operation": operation, "arguments": arguments, "environ": {}}
    reply = client.exchange(
        json.dumps(body).encode(), os.environ, deadline=time.monotonic() + WAIT, starts=False
    )
    return json.loads(reply[1:])


def ignore_start(_environ: Mapping[str, str]) -> None:
    """For a machine on which no process can be started."""


def wait_for_end(pid: int) -> None:
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        try:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
        except ChildProcessError:
            if not Path(f"/proc/{pid}").exists():
                return
        os.sched_yield()
    raise AssertionError(f"process {pid} did not end")


def test_answers_from_files_that_others_change(project: str) -> None:
    assert request("recall", {"cwd": project, "prompt": "when do we release?"}, deadline_seconds=WAIT) == {
        "memories": [],
        "text": "",
    }
    with MemoryDir.for_project(project) as memory:
        memory.add("release-day", "We release on Tuesdays, from the blue branch.")
    prompt = {"cwd": project, "prompt": "which blue branch do we release from on Tuesdays?"}
    found = request("recall", prompt, deadline_seconds=WAIT)
    assert "blue branch" in str(found["text"])
    assert found["memories"] == perform("recall", prompt, deadline_seconds=WAIT)["memories"]
    assert "release-day" in str(request("memory_index", {"cwd": project}, deadline_seconds=WAIT)["text"])
    with pytest.raises(FileMissing, match="there is no memory"):
        request("memory_read", {"cwd": project, "key": "other.md"}, deadline_seconds=WAIT)
    with pytest.raises(InputError, match="there is no operation"):
        request("explode", {"cwd": project}, deadline_seconds=WAIT)


@pytest.mark.story
def test_many_clients_at_once_start_one_process_that_nobody_else_can_reach(project: str) -> None:
    code = "from sevenfold.resident.client import request\n"
    code += f"print(request('status', {{}}, deadline_seconds={WAIT})['pid'])"
    clients = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(4)]
    said = {one.communicate()[0].strip() for one in clients}
    assert len(said) == 1
    folder = Path(find_run_folder(os.environ))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / client.SOCKET_NAME).stat().st_mode) == 0o600
    pid = int(said.pop())
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)
    after = request("status", {}, deadline_seconds=WAIT)["pid"]
    assert after != pid
    environ = Path(f"/proc/{after}/environ").read_bytes()
    assert b"ANTHROPIC" not in environ
    assert b"OPENAI" not in environ


@pytest.mark.story
def test_a_newer_client_makes_an_old_process_step_down(project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = request("status", {}, deadline_seconds=WAIT)["pid"]
    assert isinstance(before, int)
    import json

    newer = {"protocol": 1, "version": "999.0", "operation": "status"}
    with pytest.raises(ResidentUnavailable):
        client.exchange(json.dumps(newer).encode(), os.environ, deadline=time.monotonic() + 0.2, starts=False)
    wait_for_end(before)
    assert request("status", {}, deadline_seconds=WAIT)["pid"] != before


def test_work_is_done_here_where_no_process_can_be_had(project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "start_resident", ignore_start)
    with pytest.raises(ResidentUnavailable, match="no answer in time"):
        request("memory_index", {"cwd": project}, deadline_seconds=0.05)
    said = perform("memory_index", {"cwd": project}, deadline_seconds=0.05)
    assert said["text"] == ""


def test_one_that_hangs_is_waited_for_once(project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    answers: list[dict[str, object] | None] = [None, None, {"text": "back"}, None]

    def ask(_operation: str, _given: object, *, deadline_seconds: float) -> dict[str, object]:
        waits.append(deadline_seconds)
        answer = answers.pop(0)
        if answer is None:
            raise ResidentUnavailable("timed out")
        return answer

    monkeypatch.setattr(client, "request", ask)
    monkeypatch.setattr("sevenfold.resident._SILENT", [False])
    said = [perform("memory_index", {"cwd": project}, deadline_seconds=20.0)["text"] for _ in range(4)]
    assert said == ["", "", "back", ""]
    assert waits == [20.0, 1.0, 1.0, 20.0]
