"""Reads many files on all cores: first a quick scan for calls that several files hold, then the accounts.

`ProcessPool` runs small tasks in a few processes. Only paths are sent and only small reports come back, so
memory does not grow with the size of the files.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar, cast

from sevenfold.core.errors import SevenfoldError
from sevenfold.replay.account import ReplayTerms, read_account
from sevenfold.replay.report import FileReport
from sevenfold.replay.stored_reports import ScannedCalls, StoredReports
from sevenfold.store.foreign.entries import ForeignAgent
from sevenfold.store.foreign.transcripts import (
    TranscriptFile,
    UnreadableFile,
    choose_owners,
    detect_agent,
    scan_calls,
)

if TYPE_CHECKING:
    # Loaded only when processes are wanted: importing the package stays light and leaves nothing behind.
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess


# The process pool: one kind of work, small tasks in, small results out.

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")
OnBytesRead: TypeAlias = Callable[[int], None]
WorkFunction: TypeAlias = Callable[[TaskT, OnBytesRead], ResultT]
"""Must be importable by name: another process runs it."""

PROGRESS_BYTES = 4 * 1024 * 1024
"""How often a process says how far it is: often enough for a bar, seldom enough to cost nothing."""
STOP_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class FailedTask:
    """A task that could not be done. The others are not touched by it."""

    reason: str


@dataclass(frozen=True, slots=True)
class TaskDone(Generic[ResultT]):
    place: int
    """Of its task in the list."""
    result: ResultT | FailedTask


@dataclass(frozen=True, slots=True)
class _Progress:
    count_bytes: int


@dataclass(slots=True)
class _PoolProcess:
    process: BaseProcess
    connection: Connection
    place: int | None = None


def try_task(work: WorkFunction[TaskT, ResultT], task: TaskT, on_bytes: OnBytesRead) -> ResultT | FailedTask:
    """Do one task; whatever goes wrong in it is its own."""
    try:
        return work(task, on_bytes)
    except SevenfoldError as error:
        return FailedTask(str(error))
    except MemoryError:
        return FailedTask("not enough memory")
    except Exception as bug:
        return FailedTask(f"unexpected {type(bug).__name__}: {bug}; this is a bug, please report it")


def do_tasks_inline(
    work: WorkFunction[TaskT, ResultT], tasks: Sequence[TaskT], on_bytes: OnBytesRead
) -> Iterator[TaskDone[ResultT]]:
    """All tasks in this process, in order."""
    for place, task in enumerate(tasks):
        yield TaskDone(place, try_task(work, task, on_bytes))


class ProcessPool(Generic[TaskT, ResultT]):
    """A pool of so many processes. Use it as a context manager: leaving it ends them."""

    def __init__(self, work: WorkFunction[TaskT, ResultT], processes: int) -> None:
        from multiprocessing import get_context

        self._work = work
        # Not forked: the caller may have threads, and a fork would copy the locks they hold.
        self._context = get_context("spawn")
        self._wanted = processes
        self._processes: list[_PoolProcess] = []

    def __enter__(self) -> ProcessPool[TaskT, ResultT]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._processes:
            member.connection.close()
            member.process.terminate()
        for member in self._processes:
            member.process.join(STOP_TIMEOUT_SECONDS)
            if member.process.is_alive():
                member.process.kill()
        self._processes.clear()

    def run(self, tasks: Sequence[TaskT], on_bytes: OnBytesRead) -> Iterator[TaskDone[ResultT]]:
        """Every task once, as they are done. Tasks are handed out in the order given."""
        from multiprocessing.connection import wait

        waiting = iter(enumerate(tasks))
        while len(self._processes) < min(self._wanted, len(tasks)):
            self._processes.append(self._start_process())
        for member in self._processes:
            self._give(member, next(waiting, None))
        while busy := {member.connection: member for member in self._processes if member.place is not None}:
            for ready in wait(list(busy)):
                member = busy[cast("Connection", ready)]
                done = self._receive(member, on_bytes)
                if done is not None:
                    self._give(member, next(waiting, None))
                    yield done

    def _start_process(self) -> _PoolProcess:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(self._work, theirs), daemon=True)
        process.start()
        theirs.close()
        return _PoolProcess(process, cast("Connection", ours))

    def _give(self, member: _PoolProcess, next_one: tuple[int, TaskT] | None) -> None:
        member.place = None
        if next_one is not None:
            member.place, task = next_one
            try:
                member.connection.send(task)
            except OSError:  # it died while it had nothing to do
                self._replace(member)
                member.connection.send(task)

    def _receive(self, member: _PoolProcess, on_bytes: OnBytesRead) -> TaskDone[ResultT] | None:
        place = cast("int", member.place)
        try:
            said = cast("_Progress | ResultT | FailedTask", member.connection.recv())
        except (EOFError, OSError):
            return TaskDone(place, self._replace(member))
        if isinstance(said, _Progress):
            on_bytes(said.count_bytes)
            return None
        return TaskDone(place, said)

    def _replace(self, member: _PoolProcess) -> FailedTask:
        """A process died, most likely of too little memory: its task is lost, and it is replaced."""
        member.connection.close()
        member.process.join(STOP_TIMEOUT_SECONDS)
        code = member.process.exitcode
        fresh = self._start_process()
        member.process, member.connection = fresh.process, fresh.connection
        return FailedTask(f"the process that read it ended with code {code}; is there enough memory?")


def _serve(work: WorkFunction[TaskT, ResultT], connection: Connection) -> None:
    # Ctrl-C reaches every process of a terminal: the one that started us decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    unsaid = 0

    def count(read_bytes: int) -> None:
        nonlocal unsaid
        unsaid += read_bytes
        if unsaid >= PROGRESS_BYTES:
            connection.send(_Progress(unsaid))
            unsaid = 0

    try:
        while True:
            task = cast("TaskT", connection.recv())
            result = try_task(work, task, count)
            connection.send(_Progress(unsaid))
            unsaid = 0
            connection.send(result)
    except (EOFError, OSError):
        return  # nobody is there any more


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


ReadTask: TypeAlias = ScanTask | AccountTask
ReadTaskResult: TypeAlias = ScannedCalls | FileReport
OnReadProgress: TypeAlias = Callable[[ReadProgress], None]


def do_read_task(order: ReadTask, on_bytes: Callable[[int], None]) -> ReadTaskResult:
    """Run one task; called in a process of the pool."""
    match order:
        case ScanTask():
            return ScannedCalls(detect_agent(order.path), scan_calls(order.path, on_bytes))
        case AccountTask():
            return read_account(
                order.path, order.agent, order.terms, foreign=order.foreign, on_bytes=on_bytes
            )


def read_accounts(
    found: Sequence[TranscriptFile],
    terms: ReplayTerms,
    *,
    jobs: int | None = None,
    stored: StoredReports | None = None,
    on_progress: OnReadProgress | None = None,
) -> ReadOutcome:
    """Every file's account, in the order given. A file that cannot be read costs only itself.

    What `stored` has of a file that has not changed is not computed again.
    """
    # The oldest file owns a call that several hold: the others were copied from it.
    files = sorted(found, key=lambda item: (item.modified_ns, str(item.path)))
    reader = _AccountReader(files, terms, stored, jobs or count_cores(), on_progress)
    with reader:
        reports = reader.read()
    order = {item.path: place for place, item in enumerate(found)}
    return ReadOutcome(
        tuple(sorted(reports, key=lambda report: order[report.path])), tuple(reader.unreadable)
    )


def count_cores() -> int:
    """The cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_JOBS)


@dataclass(frozen=True, slots=True)
class _WantedAccount:
    file: TranscriptFile
    agent: ForeignAgent
    foreign: frozenset[int]
    """Calls that other files count."""


class _AccountReader:
    """Reads the accounts of files, in processes if there is much to read."""

    def __init__(
        self,
        files: Sequence[TranscriptFile],
        terms: ReplayTerms,
        stored: StoredReports | None,
        jobs: int,
        on_progress: OnReadProgress | None,
    ) -> None:
        self.unreadable: list[UnreadableFile] = []
        self._files, self._terms, self._stored = files, terms, stored
        self._jobs, self._on_progress = jobs, on_progress
        self._stack = ExitStack()
        self._pool: ProcessPool[ReadTask, ReadTaskResult] | None = None

    def __enter__(self) -> _AccountReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self) -> list[FileReport]:
        scanned = self._scan()
        places = sorted(scanned)
        owned = choose_owners([scanned[place].calls for place in places])
        wanted = [
            _WantedAccount(self._files[place], agent, owned.get(index, frozenset()))
            for index, place in enumerate(places)
            if (agent := scanned[place].agent)
        ]
        pairs = [(item.file, item.foreign) for item in wanted]
        kept = self._stored.read_reports(pairs) if self._stored else {}
        missing = [item for place, item in enumerate(wanted) if place not in kept]
        return [*kept.values(), *self._account(missing)]

    def _scan(self) -> dict[int, ScannedCalls]:
        """What each file is and which calls it holds, by its place."""
        known = self._stored.read_calls(self._files) if self._stored else {}
        found = {place: known[item] for place, item in enumerate(self._files) if item in known}
        missing = [place for place in range(len(self._files)) if place not in found]
        orders = [ScanTask(self._files[place].path) for place in missing]
        for done in self._run("looking", orders, [self._files[place] for place in missing]):
            place = missing[done.place]
            if isinstance(done.result, ScannedCalls):
                found[place] = done.result
            elif isinstance(done.result, FailedTask):
                self.unreadable.append(_unreadable(self._files[place].path, done.result.reason))
        if self._stored:
            self._stored.write_calls(
                (self._files[place], found[place]) for place in missing if place in found
            )
        for place, scanned in found.items():
            if scanned.agent is None:
                file = self._files[place]
                reason = NO_TRANSCRIPT_REASON if file.size_bytes else EMPTY_FILE_REASON
                self.unreadable.append(UnreadableFile(file.path, reason))
        return {place: scanned for place, scanned in found.items() if scanned.agent is not None}

    def _account(self, wanted: Sequence[_WantedAccount]) -> list[FileReport]:
        # The largest first, so that no process is left alone with one at the end.
        wanted = sorted(wanted, key=lambda item: -item.file.size_bytes)
        orders = [AccountTask(item.file.path, item.agent, self._terms, item.foreign) for item in wanted]
        done: list[tuple[TranscriptFile, frozenset[int], FileReport]] = []
        for result in self._run("reading", orders, [item.file for item in wanted]):
            item = wanted[result.place]
            if isinstance(result.result, FileReport):
                done.append((item.file, item.foreign, result.result))
            elif isinstance(result.result, FailedTask):
                self.unreadable.append(_unreadable(item.file.path, result.result.reason))
        if self._stored:
            self._stored.write_reports(done)
        return [report for _, _, report in done]

    def _run(
        self, phase: ReadPhase, orders: Sequence[ReadTask], files: Sequence[TranscriptFile]
    ) -> Iterator[TaskDone[ReadTaskResult]]:
        total = sum(item.size_bytes for item in files)
        count = _counter(phase, total, self._on_progress)
        if self._jobs == 1 or len(orders) < 2 or total < INLINE_READ_BYTES:
            return do_tasks_inline(do_read_task, orders, count)
        if self._pool is None:
            self._pool = self._stack.enter_context(
                ProcessPool[ReadTask, ReadTaskResult](do_read_task, min(self._jobs, len(orders)))
            )
        return self._pool.run(orders, count)


def _unreadable(path: Path, reason: str) -> UnreadableFile:
    """Whoever shows it names the path."""
    return UnreadableFile(path, reason.removeprefix(f"cannot read {path}: "))


def _counter(phase: ReadPhase, total_bytes: int, on_progress: OnReadProgress | None) -> Callable[[int], None]:
    done = reported = 0

    def count(read_bytes: int) -> None:
        nonlocal done, reported
        done += read_bytes
        if on_progress and (done - reported) * PROGRESS_STEPS >= total_bytes:
            reported = done
            on_progress(ReadProgress(phase, done, total_bytes))

    return count
