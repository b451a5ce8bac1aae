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

from sevenfold.replay.account import Terms, read_account
from sevenfold.replay.crew import Crew, Done, Failed, run_inline
from sevenfold.replay.report import FileReport
from sevenfold.store.foreign.detect import detect
from sevenfold.store.foreign.entries import Agent
from sevenfold.store.foreign.find import Found, Unreadable
from sevenfold.store.foreign.repeats import FileCalls, choose_owners, scan_calls

SMALL_BYTES = 6 * 1024 * 1024
"""Below this, starting processes takes longer than they would save."""
MOST_JOBS = 16
STEPS = 200
"""How often progress is told, at most: a bar on a screen has no more places."""

NO_TRANSCRIPT = "no transcript of Claude Code, Codex or plain messages"
EMPTY = "the file is empty"

Phase: TypeAlias = Literal["looking", "reading"]


@dataclass(frozen=True, slots=True)
class Progress:
    phase: Phase
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    files: tuple[FileReport, ...]
    unreadable: tuple[Unreadable, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """Whose transcript is it, and which calls does it hold?"""

    path: Path


@dataclass(frozen=True, slots=True)
class Read:
    """Account for it."""

    path: Path
    agent: Agent
    terms: Terms
    foreign: frozenset[int]


@dataclass(frozen=True, slots=True)
class Looked:
    agent: Agent | None
    calls: FileCalls


Order: TypeAlias = Look | Read
Answer: TypeAlias = Looked | FileReport
OnProgress: TypeAlias = Callable[[Progress], None]
Runner: TypeAlias = Callable[[Sequence[Order], Callable[[int], None]], Iterator[Done[Answer]]]


def carry_out(order: Order, on_bytes: Callable[[int], None]) -> Answer:
    """What a process does with an order."""
    match order:
        case Look():
            return Looked(detect(order.path), scan_calls(order.path, on_bytes))
        case Read():
            return read_account(
                order.path, order.agent, order.terms, foreign=order.foreign, on_bytes=on_bytes
            )


def read_all(
    found: Sequence[Found], terms: Terms, *, jobs: int | None = None, on_progress: OnProgress | None = None
) -> Outcome:
    """Every file's account, in the order given. A file that cannot be read costs only itself."""
    # The oldest file owns a call that several hold: the others were copied from it.
    files = sorted(found, key=lambda item: (item.modified_ns, str(item.path)))
    with ExitStack() as stack:
        run = _runner(files, jobs or count_cores(), stack)
        unreadable: list[Unreadable] = []
        orders = _look(files, terms, run, unreadable, on_progress)
        reports = _read(orders, files, run, unreadable, on_progress)
    order = {item.path: place for place, item in enumerate(found)}
    return Outcome(tuple(sorted(reports, key=lambda report: order[report.path])), tuple(unreadable))


def count_cores() -> int:
    """The cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_JOBS)


def _runner(files: Sequence[Found], jobs: int, stack: ExitStack) -> Runner:
    is_small = sum(item.size_bytes for item in files) < SMALL_BYTES
    if jobs == 1 or len(files) < 2 or is_small:
        return lambda orders, on_bytes: run_inline(carry_out, orders, on_bytes)
    return stack.enter_context(Crew[Order, Answer](carry_out, min(jobs, len(files)))).run


def _look(
    files: Sequence[Found],
    terms: Terms,
    run: Runner,
    unreadable: list[Unreadable],
    on_progress: OnProgress | None,
) -> list[Read]:
    """What to read: transcripts, each with the calls that it does not own."""
    looked: dict[int, Looked] = {}
    total = sum(item.size_bytes for item in files)
    for done in run([Look(item.path) for item in files], _counter("looking", total, on_progress)):
        match done.result:
            case Looked(agent=None):
                file = files[done.place]
                unreadable.append(Unreadable(file.path, NO_TRANSCRIPT if file.size_bytes else EMPTY))
            case Looked() as seen:
                looked[done.place] = seen
            case Failed(reason=reason):
                unreadable.append(_unreadable(files[done.place].path, reason))
            case FileReport():
                pass
    places = sorted(looked)
    owned = choose_owners([looked[place].calls for place in places])
    return [
        Read(files[place].path, agent, terms, owned.get(index, frozenset()))
        for index, place in enumerate(places)
        if (agent := looked[place].agent)
    ]


def _read(
    orders: list[Read],
    files: Sequence[Found],
    run: Runner,
    unreadable: list[Unreadable],
    on_progress: OnProgress | None,
) -> list[FileReport]:
    sizes = {item.path: item.size_bytes for item in files}
    # The largest first, so that no process is left alone with one at the end.
    orders = sorted(orders, key=lambda order: -sizes[order.path])
    total = sum(sizes[order.path] for order in orders)
    reports: list[FileReport] = []
    for done in run(orders, _counter("reading", total, on_progress)):
        if isinstance(done.result, FileReport):
            reports.append(done.result)
        elif isinstance(done.result, Failed):
            unreadable.append(_unreadable(orders[done.place].path, done.result.reason))
    return reports


def _unreadable(path: Path, reason: str) -> Unreadable:
    """Whoever shows it names the path."""
    return Unreadable(path, reason.removeprefix(f"cannot read {path}: "))


def _counter(phase: Phase, total_bytes: int, on_progress: OnProgress | None) -> Callable[[int], None]:
    done = told = 0

    def count(read_bytes: int) -> None:
        nonlocal done, told
        done += read_bytes
        if on_progress and (done - told) * STEPS >= total_bytes:
            told = done
            on_progress(Progress(phase, done, total_bytes))

    return count
