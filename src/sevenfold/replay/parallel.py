"""Many files on all cores: first a quick look at which calls stand in several files, then the accounts.

Nothing but paths goes to a process and nothing but small reports comes back, so memory does not grow with the
size of the files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.replay.account import ReplayTerms, read_account
from sevenfold.replay.process_pool import FailedTask, ProcessPool, TaskDone, do_tasks_inline
from sevenfold.replay.report import FileReport
from sevenfold.store.foreign.detect import detect_agent
from sevenfold.store.foreign.duplicate_calls import FileCalls, choose_owners, scan_calls
from sevenfold.store.foreign.entries import ForeignAgent
from sevenfold.store.foreign.find import TranscriptFile, UnreadableFile

INLINE_READ_BYTES = 6 * 1024 * 1024
"""Below this, starting processes takes longer than they would save."""
MAX_JOBS = 16
PROGRESS_STEPS = 200
"""How often progress is told, at most: a bar on a screen has no more places."""

NO_TRANSCRIPT_REASON = "no transcript of Claude Code, Codex or plain messages"
EMPTY_FILE_REASON = "the file is empty"

ReadPhase: TypeAlias = Literal["looking", "reading"]


@dataclass(frozen=True, slots=True)
class ReadProgress:
    phase: ReadPhase
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    files: tuple[FileReport, ...]
    unreadable: tuple[UnreadableFile, ...]


@dataclass(frozen=True, slots=True)
class ScanTask:
    """Whose transcript is it, and which calls does it hold?"""

    path: Path


@dataclass(frozen=True, slots=True)
class AccountTask:
    """Account for it."""

    path: Path
    agent: ForeignAgent
    terms: ReplayTerms
    foreign: frozenset[int]


@dataclass(frozen=True, slots=True)
class ScanResult:
    agent: ForeignAgent | None
    calls: FileCalls


ReadTask: TypeAlias = ScanTask | AccountTask
ReadTaskResult: TypeAlias = ScanResult | FileReport
OnReadProgress: TypeAlias = Callable[[ReadProgress], None]
RunReadTasks: TypeAlias = Callable[
    [Sequence[ReadTask], Callable[[int], None]], Iterator[TaskDone[ReadTaskResult]]
]


def do_read_task(order: ReadTask, on_bytes: Callable[[int], None]) -> ReadTaskResult:
    """What a process does with an order."""
    match order:
        case ScanTask():
            return ScanResult(detect_agent(order.path), scan_calls(order.path, on_bytes))
        case AccountTask():
            return read_account(
                order.path, order.agent, order.terms, foreign=order.foreign, on_bytes=on_bytes
            )


def read_accounts(
    found: Sequence[TranscriptFile],
    terms: ReplayTerms,
    *,
    jobs: int | None = None,
    on_progress: OnReadProgress | None = None,
) -> ReadOutcome:
    """Every file's account, in the order given. A file that cannot be read costs only itself."""
    # The oldest file owns a call that several hold: the others were copied from it.
    files = sorted(found, key=lambda item: (item.modified_ns, str(item.path)))
    with ExitStack() as stack:
        run = _runner(files, jobs or count_cores(), stack)
        unreadable: list[UnreadableFile] = []
        orders = _look(files, terms, run, unreadable, on_progress)
        reports = _read(orders, files, run, unreadable, on_progress)
    order = {item.path: place for place, item in enumerate(found)}
    return ReadOutcome(tuple(sorted(reports, key=lambda report: order[report.path])), tuple(unreadable))


def count_cores() -> int:
    """The cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_JOBS)


def _runner(files: Sequence[TranscriptFile], jobs: int, stack: ExitStack) -> RunReadTasks:
    is_small = sum(item.size_bytes for item in files) < INLINE_READ_BYTES
    if jobs == 1 or len(files) < 2 or is_small:
        return lambda orders, on_bytes: do_tasks_inline(do_read_task, orders, on_bytes)
    return stack.enter_context(ProcessPool[ReadTask, ReadTaskResult](do_read_task, min(jobs, len(files)))).run


def _look(
    files: Sequence[TranscriptFile],
    terms: ReplayTerms,
    run: RunReadTasks,
    unreadable: list[UnreadableFile],
    on_progress: OnReadProgress | None,
) -> list[AccountTask]:
    """What to read: transcripts, each with the calls that it does not own."""
    looked: dict[int, ScanResult] = {}
    total = sum(item.size_bytes for item in files)
    for done in run([ScanTask(item.path) for item in files], _counter("looking", total, on_progress)):
        match done.result:
            case ScanResult(agent=None):
                file = files[done.place]
                unreadable.append(
                    UnreadableFile(file.path, NO_TRANSCRIPT_REASON if file.size_bytes else EMPTY_FILE_REASON)
                )
            case ScanResult() as seen:
                looked[done.place] = seen
            case FailedTask(reason=reason):
                unreadable.append(_unreadable(files[done.place].path, reason))
            case FileReport():
                pass
    places = sorted(looked)
    owned = choose_owners([looked[place].calls for place in places])
    return [
        AccountTask(files[place].path, agent, terms, owned.get(index, frozenset()))
        for index, place in enumerate(places)
        if (agent := looked[place].agent)
    ]


def _read(
    orders: list[AccountTask],
    files: Sequence[TranscriptFile],
    run: RunReadTasks,
    unreadable: list[UnreadableFile],
    on_progress: OnReadProgress | None,
) -> list[FileReport]:
    sizes = {item.path: item.size_bytes for item in files}
    # The largest first, so that no process is left alone with one at the end.
    orders = sorted(orders, key=lambda order: -sizes[order.path])
    total = sum(sizes[order.path] for order in orders)
    reports: list[FileReport] = []
    for done in run(orders, _counter("reading", total, on_progress)):
        if isinstance(done.result, FileReport):
            reports.append(done.result)
        elif isinstance(done.result, FailedTask):
            unreadable.append(_unreadable(orders[done.place].path, done.result.reason))
    return reports


def _unreadable(path: Path, reason: str) -> UnreadableFile:
    """Whoever shows it names the path."""
    return UnreadableFile(path, reason.removeprefix(f"cannot read {path}: "))


def _counter(phase: ReadPhase, total_bytes: int, on_progress: OnReadProgress | None) -> Callable[[int], None]:
    done = told = 0

    def count(read_bytes: int) -> None:
        nonlocal done, told
        done += read_bytes
        if on_progress and (done - told) * PROGRESS_STEPS >= total_bytes:
            told = done
            on_progress(ReadProgress(phase, done, total_bytes))

    return count
