"""Listing sessions, and sweeping what dead writers left."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sevenfold.core.errors import FileMissing
from sevenfold.core.events import Event, TempSwept
from sevenfold.store.files.disk import SystemDisk
from sevenfold.store.files.folder import TEMP_LIFE, Folder
from sevenfold.store.project.project import Project
from sevenfold.store.transcript.transcript import (
    Transcript,
    is_agent_session,
    latest_session,
    list_sessions,
    new_agent_session,
    new_session_id,
)

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_sessions_are_listed_most_recent_first_and_only_transcripts_count(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        for age, name in enumerate(("young", "middle", "old")):
            Transcript.open(folder, name).close()
            moment = (NOW - timedelta(hours=age)).timestamp()
            os.utime(tmp_path / f"{name}.jsonl", (moment, moment))
        folder.subfolder("young").close()
        folder.replace("stray.txt", b"no transcript")
        assert [entry.id for entry in list_sessions(folder)] == ["young", "middle", "old"]
        assert latest_session(folder) == "young"


def test_what_is_no_transcript_is_not_listed_and_odd_times_cost_nothing(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        for name in ("old", "new"):
            Transcript.open(folder, name).close()
        os.utime(tmp_path / "old.jsonl", ns=(0, -(10**18)))
        folder.subfolder("folder.jsonl").close()
        (tmp_path / "link.jsonl").symlink_to("new.jsonl")
        os.mkfifo(tmp_path / "fifo.jsonl")
        assert [entry.id for entry in list_sessions(folder)] == ["new", "old"]


class AgelessDisk(SystemDisk):
    """Keeps times that Python cannot say, as some file systems do."""

    def stat(self, fd: int) -> os.stat_result:
        found = super().stat(fd)
        fields = list(found)
        return os.stat_result(fields, {"st_mtime_ns": 10**21, "st_ctime_ns": found.st_ctime_ns})


def test_a_time_that_cannot_be_said_is_the_latest_there_is(tmp_path: Path) -> None:
    with Folder.open(tmp_path, disk=AgelessDisk()) as folder:
        Transcript.open(folder, "s").close()
        [entry] = list_sessions(folder)
    assert entry.modified.year == 9999


def test_continuing_where_there_is_no_session_says_so(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder, pytest.raises(FileMissing, match="start a new one"):
        latest_session(folder)


def test_session_ids_are_usable_names_and_never_repeat(tmp_path: Path) -> None:
    ids = {new_session_id() for _ in range(1000)}
    assert len(ids) == 1000
    with Folder.open(tmp_path) as folder:
        folder.create(ids.pop(), b"")


def test_sweep_finds_dead_temporaries_in_every_folder_and_spares_live_ones(tmp_path: Path) -> None:
    seen: list[Event] = []
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    with Project.open(work, home=home) as project, project.sessions.subfolder("s1/tool-results") as session:
        folders = [project.folder, project.control, project.memory, session]
        for folder in folders:
            (folder.path / ".tmp-1").write_bytes(b"half")
        now = datetime.now(UTC)
        assert project.sweep(now, seen.append) == 0
        assert len(list(home.rglob(".tmp-*"))) == len(folders)
        assert project.sweep(now + 2 * TEMP_LIFE, seen.append) == len(folders)
    assert list(home.rglob(".tmp-*")) == []
    assert sum(event.count for event in seen if isinstance(event, TempSwept)) == len(folders)


def test_a_session_that_an_agent_started_is_not_the_one_to_continue(tmp_path: Path) -> None:
    mine, its = new_session_id(), new_agent_session()
    with Folder.open(tmp_path) as folder:
        for session in (mine, its):
            Transcript.open(folder, session).close()
        os.utime(tmp_path / f"{mine}.jsonl", ns=(0, 0))
        assert is_agent_session(its)
        assert not is_agent_session(mine)
        assert latest_session(folder) == mine
