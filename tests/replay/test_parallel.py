"""Many files on several processes: the same report, whatever dies on the way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path

import pytest

from sevenfold.core.errors import InputError
from sevenfold.replay import parallel
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.parallel import (
    FailedTask,
    ProcessPool,
    ReadOutcome,
    ReadProgress,
    TaskDone,
    do_tasks_inline,
    read_accounts,
)
from sevenfold.store.foreign.transcripts import find_transcripts
from tests.replay.logs import Row, answered, asked, usage, write_log


def double(task: int, on_bytes: Callable[[int], None]) -> int:
    on_bytes(task)
    if task == 13:
        raise InputError("thirteen is refused")
    if task == 666:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * task


def ignore(_: int) -> None:
    pass


def by_place(done: list[TaskDone[int]]) -> list[int | FailedTask]:
    return [item.result for item in sorted(done, key=lambda item: item.place)]


def test_every_task_is_done_once_whoever_does_it_and_its_bytes_are_told() -> None:
    tasks, heard = list(range(20, 40)), list[int]()
    with ProcessPool[int, int](double, 2) as crew:
        assert by_place(list(crew.run(tasks, heard.append))) == [2 * task for task in tasks]
        assert sum(heard) == sum(tasks), "from every process"
        assert by_place(list(crew.run([1, 2], ignore))) == [2, 4], "and the same crew does more"
    assert by_place(list(do_tasks_inline(double, tasks, ignore))) == [2 * task for task in tasks]


@pytest.mark.story
def test_a_task_that_fails_or_kills_its_process_costs_only_itself() -> None:
    with ProcessPool[int, int](double, 2) as crew:
        found = by_place(list(crew.run([1, 13, 2, 666, 3, 4, 5], ignore)))
    assert found[1] == FailedTask("thirteen is refused")
    assert isinstance(found[3], FailedTask)
    assert "-9" in found[3].reason
    assert [item for item in found if isinstance(item, int)] == [2, 4, 6, 8, 10]


def interrupted() -> None:
    with ProcessPool[int, int](double, 2) as crew:
        for _ in crew.run([1, 2, 3, 4], ignore):
            assert len(active_children()) == 2
            raise KeyboardInterrupt


@pytest.mark.story
def test_leaving_a_crew_by_whatever_way_ends_its_processes() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert active_children() == []


def logs(folder: Path) -> Path:
    """A session, one resumed from it, a sub-agent with its mirror, and two files that are no transcripts."""
    first = [asked("Go"), *answered("msg_0001", usage(fresh=5, written=10_000, output=9))]
    resumed = answered("msg_0002", usage(fresh=5, read=10_000, output=9), seconds=50)
    sub = answered("msg_sub1", usage(fresh=7, written=2_000, output=9), model="claude-haiku-5-5")
    own: list[Row] = [{**item, "isSidechain": True, "agentId": "a1"} for item in sub]
    mirror: list[Row] = [
        {
            **asked("x"),
            "type": "progress",
            "data": {"type": "agent_progress", "agentId": "a1", "message": item},
        }
        for item in sub
    ]
    write_log(folder / "one.jsonl", *first, mirror)
    write_log(folder / "two.jsonl", *first, resumed)
    write_log(folder / "one" / "subagents" / "agent-a1.jsonl", own)
    write_log(folder / "history.jsonl", {"display": "ls"})
    (folder / "noise.jsonl").write_bytes(os.urandom(500))
    for age, name in enumerate(["two.jsonl", "one.jsonl"]):
        os.utime(folder / name, ns=(0, 1_700_000_000_000_000_000 - age * 1_000_000_000))
    return folder


def test_calls_that_stand_in_several_files_are_counted_once(tmp_path: Path) -> None:
    outcome = read_accounts(find_transcripts([logs(tmp_path)]).files, ReplayTerms())
    calls = {
        session.name + "@" + file.path.name: session.totals.calls
        for file in outcome.files
        for session in file.sessions
    }
    assert calls == {"s1@one.jsonl": 1, "s1@two.jsonl": 1, "s1/a1@agent-a1.jsonl": 1}
    assert {item.path.name for item in outcome.unreadable} == {"history.jsonl", "noise.jsonl"}


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "new.jsonl").touch()
    outcome = read_accounts(find_transcripts([tmp_path]).files, ReplayTerms())
    assert [item.reason for item in outcome.unreadable] == ["the file is empty"]


def test_two_processes_say_what_one_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_transcripts([logs(tmp_path)]).files
    alone = read_accounts(found, ReplayTerms(), jobs=1)
    monkeypatch.setattr(parallel, "INLINE_READ_BYTES", 0)
    together = read_accounts(found, ReplayTerms(), jobs=2)
    assert _sorted(alone) == _sorted(together)
    assert together.files


def _sorted(outcome: ReadOutcome) -> ReadOutcome:
    return ReadOutcome(outcome.files, tuple(sorted(outcome.unreadable, key=lambda item: str(item.path))))


def test_progress_reaches_the_end_of_both_phases(tmp_path: Path) -> None:
    told: list[ReadProgress] = []
    found = [item for item in find_transcripts([logs(tmp_path)]).files if item.path.name == "one.jsonl"]
    read_accounts(found, ReplayTerms(), on_progress=told.append)
    last = {item.phase: item for item in told}
    assert list(last) == ["looking", "reading"]
    assert all(item.done_bytes == item.total_bytes == found[0].size_bytes for item in last.values())


def test_a_file_that_may_not_be_read_is_told_with_its_reason(tmp_path: Path) -> None:
    found = find_transcripts([logs(tmp_path)]).files
    (tmp_path / "one.jsonl").unlink()
    outcome = read_accounts(found, ReplayTerms())
    reasons = {item.path.name: item.reason for item in outcome.unreadable}
    assert "No such file" in reasons["one.jsonl"]
    assert {file.path.name for file in outcome.files} == {"two.jsonl", "agent-a1.jsonl"}
