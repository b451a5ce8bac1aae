"""A disk that takes nothing more: one answer for a script says so, and does not exit with 0."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from sevenfold.agent.tui.headless import HeadlessOptions, HeadlessResult, OutputFormat, run_headless
from sevenfold.core.errors import StoreError
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.store.files.disk import SystemDisk
from sevenfold.testing import Simulator
from tests.agent.workshop import Shop

LATE = 400
"""More writes than a run makes."""


class FillingDisk:
    """Writes that succeed until there is no room left."""

    def __init__(self, room: int) -> None:
        self.room, self.writes = room, 0

    def write(self, fd: int, data: memoryview) -> int:
        self.writes += 1
        if self.writes > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(fd, data)


def run(
    home: Path, form: OutputFormat, room: int, patched: pytest.MonkeyPatch
) -> tuple[HeadlessResult, list[str], int]:
    """A run on a disk with room for so many writes after it was opened; its lines, and writes in all."""
    disk = FillingDisk(room)

    async def tell() -> tuple[HeadlessResult, list[str]]:
        lines: list[str] = []
        with ScriptedProvider([make_response("Hello.")]) as models:
            agent = await Shop(home=home, provider=models).open()
            patched.setattr(SystemDisk, "write", staticmethod(disk.write))
            facts = await run_headless(agent, "hi", lines.append, HeadlessOptions(form))
            await agent.close()
        return facts, lines

    facts, lines = asyncio.run(tell())
    return facts, lines, disk.writes


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_a_full_disk_is_told_and_no_success(
    form: OutputFormat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, lines, _ = run(tmp_path, form, 0, monkeypatch)
    assert facts.end.text == "Hello."
    assert facts.exit_code == 1
    assert any("records of the transcript" in loss and "No space left" in loss for loss in facts.unsaved)
    if form != "text":
        last = json.loads(lines[-1])
        assert last["is_error"]
        assert last["unsaved"] == list(facts.unsaved)
        assert last["result"] == "Hello."


def test_whichever_write_fails_the_run_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts, _, writes = run(tmp_path / "whole", "json", LATE, monkeypatch)
    assert (facts.exit_code, facts.unsaved) == (0, ())
    assert 0 < writes < LATE
    for room in range(writes):
        with pytest.MonkeyPatch.context() as patched:
            facts, _, made = run(tmp_path / str(room), "json", room, patched)
        if made > room and not facts.exit_code:
            # A write that was tried again in time, or one of the very end, which the command sees.
            assert room >= writes - 3


def test_work_of_a_writer_that_does_not_fit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files still fit on a disk that is almost full."""

    def write(fd: int, data: memoryview) -> int:
        if b'"max_tokens"' in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(fd, data)

    async def tell() -> HeadlessResult:
        with ScriptedProvider([make_response("Hello.")]) as models:
            agent = await Shop(home=tmp_path, provider=models).open()
            monkeypatch.setattr(SystemDisk, "write", staticmethod(write))
            facts = await run_headless(agent, "hi", lambda _line: None, HeadlessOptions("json"))
            await agent.close()
        return facts

    facts = asyncio.run(tell())
    assert facts.exit_code == 1
    assert [loss for loss in facts.unsaved if "writer frame" in loss and "No space left" in loss]


@pytest.fixture
def small_home(tmp_path: Path) -> Generator[Path]:
    home = tmp_path / "home"
    home.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(home)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode()[:200]}")
    yield home
    subprocess.run(["umount", str(home)], check=True)


def chat(home: Path, project: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ: Mapping[str, str] = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": url,
    }
    return subprocess.run(
        [sys.executable, "-m", "sevenfold", "chat", "-p", "hi", *arguments],
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def fill(home: Path) -> None:
    fd = os.open(home / "fill", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with suppress(OSError):
        while True:
            os.write(fd, b"x" * 4_096)
    os.close(fd)


@pytest.mark.story
def test_a_home_on_a_full_file_system_is_told_on_stderr_and_in_json(small_home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with Simulator(lambda _request: "hello") as model:
        assert chat(small_home, project, model.url).returncode == 0
        fill(small_home)
        for form in ("json", "stream-json", "text"):
            ended = chat(small_home, project, model.url, "--output", form)
            assert ended.returncode == 1
            assert "not saved: " in ended.stderr
            assert "No space left on device" in ended.stderr
            if form != "text":
                assert json.loads(ended.stdout.splitlines()[-1])["unsaved"]


def test_a_disk_that_is_full_at_the_start_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FillingDisk(0)
    monkeypatch.setattr(SystemDisk, "write", staticmethod(disk.write))

    async def tell() -> None:
        with ScriptedProvider([]) as models:
            await Shop(home=tmp_path, provider=models).open()

    with pytest.raises(StoreError):
        asyncio.run(tell())
