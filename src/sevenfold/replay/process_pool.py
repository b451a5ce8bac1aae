"""A few processes that do one kind of work: small tasks in, small results out."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, cast

from sevenfold.core.errors import SevenfoldError

if TYPE_CHECKING:
    # Loaded only when processes are wanted: importing the package stays light and leaves nothing behind.
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

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
class _Hand:
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
    """`hands` processes. Use it as a context: leaving it, by whatever way, ends them."""

    def __init__(self, work: WorkFunction[TaskT, ResultT], hands: int) -> None:
        from multiprocessing import get_context

        self._work = work
        # Not forked: the caller may have threads, and a fork would copy the locks they hold.
        self._context = get_context("spawn")
        self._wanted = hands
        self._hands: list[_Hand] = []

    def __enter__(self) -> ProcessPool[TaskT, ResultT]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for hand in self._hands:
            hand.connection.close()
            hand.process.terminate()
        for hand in self._hands:
            hand.process.join(STOP_TIMEOUT_SECONDS)
            if hand.process.is_alive():
                hand.process.kill()
        self._hands.clear()

    def run(self, tasks: Sequence[TaskT], on_bytes: OnBytesRead) -> Iterator[TaskDone[ResultT]]:
        """Every task once, as they are done. Tasks are handed out in the order given."""
        from multiprocessing.connection import wait

        waiting = iter(enumerate(tasks))
        while len(self._hands) < min(self._wanted, len(tasks)):
            self._hands.append(self._hire())
        for hand in self._hands:
            self._give(hand, next(waiting, None))
        while busy := {hand.connection: hand for hand in self._hands if hand.place is not None}:
            for ready in wait(list(busy)):
                hand = busy[cast("Connection", ready)]
                done = self._hear(hand, on_bytes)
                if done is not None:
                    self._give(hand, next(waiting, None))
                    yield done

    def _hire(self) -> _Hand:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(self._work, theirs), daemon=True)
        process.start()
        theirs.close()
        return _Hand(process, cast("Connection", ours))

    def _give(self, hand: _Hand, next_one: tuple[int, TaskT] | None) -> None:
        hand.place = None
        if next_one is not None:
            hand.place, task = next_one
            try:
                hand.connection.send(task)
            except OSError:  # it died while it had nothing to do
                self._replace(hand)
                hand.connection.send(task)

    def _hear(self, hand: _Hand, on_bytes: OnBytesRead) -> TaskDone[ResultT] | None:
        place = cast("int", hand.place)
        try:
            said = cast("_Progress | ResultT | FailedTask", hand.connection.recv())
        except (EOFError, OSError):
            return TaskDone(place, self._replace(hand))
        if isinstance(said, _Progress):
            on_bytes(said.count_bytes)
            return None
        return TaskDone(place, said)

    def _replace(self, hand: _Hand) -> FailedTask:
        """A process died, most likely of too little memory: its task is lost, and another takes its seat."""
        hand.connection.close()
        hand.process.join(STOP_TIMEOUT_SECONDS)
        code = hand.process.exitcode
        fresh = self._hire()
        hand.process, hand.connection = fresh.process, fresh.connection
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
