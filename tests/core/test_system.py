"""Durable work under asyncio is waited for, whoever cancels, and however often; and a loop in a thread."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import inspect
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sevenfold.core.errors import (
    AccessDenied,
    DiskFault,
    DiskFull,
    FileMissing,
    InputError,
    SevenfoldError,
)
from sevenfold.core.system import (
    LoopThread,
    is_process_alive,
    listen,
    map_os_error,
    map_os_errors,
    run_blocking,
)
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.transcript import Transcript
from tests.store.transcripts import SESSION, ids, said, stored


class Work:
    """Something that takes until it is let go on, in whatever thread it runs."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.done = False
        self.error = error

    def __call__(self) -> str:
        self.begun.set()
        assert self.go_on.wait(30)
        self.done = True
        if self.error:
            raise self.error
        return "done"


async def until(event: threading.Event) -> None:
    await asyncio.to_thread(event.wait, 30)


def test_it_returns_what_the_work_returns_and_runs_in_a_thread() -> None:
    here = threading.get_ident()
    there = asyncio.run(run_blocking(threading.get_ident))
    assert there != here


def test_it_raises_what_the_work_raises() -> None:
    def fail() -> None:
        raise DiskFault("broken")

    with pytest.raises(DiskFault, match="broken"):
        asyncio.run(run_blocking(fail))


def test_the_work_sees_its_callers_context() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")

    async def call() -> str:
        name.set("ada")
        return await run_blocking(name.get)

    assert asyncio.run(call()) == "ada"


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_cancelled_caller_waits_for_the_work_to_end(times: int) -> None:
    async def call() -> None:
        work = Work()
        task = asyncio.create_task(run_blocking(work))
        await until(work.begun)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
        work.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert work.done

    asyncio.run(call())


def test_a_failure_of_cancelled_work_is_the_cause_of_the_cancellation() -> None:
    async def call() -> BaseException | None:
        work = Work(DiskFault("broken"))
        task = asyncio.create_task(run_blocking(work))
        await until(work.begun)
        task.cancel()
        await asyncio.sleep(0)
        work.go_on.set()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value.__cause__

    assert isinstance(asyncio.run(call()), DiskFault)


def test_a_caller_cancelled_before_the_work_began_waits_too_or_never_begins_it() -> None:
    async def call() -> None:
        work = Work()
        work.go_on.set()
        task = asyncio.create_task(run_blocking(work))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert work.done == work.begun.is_set()

    asyncio.run(call())


def test_a_loop_that_shuts_down_waits_for_the_work() -> None:
    """It cancels every task that is left; the work is no task, so nobody stops waiting for it."""
    work = Work()
    ended: list[bool] = []

    async def write() -> None:
        try:
            await run_blocking(work)
        finally:
            ended.append(work.done)

    async def call() -> None:
        left = asyncio.create_task(write())
        await until(work.begun)
        assert not left.done()
        threading.Timer(0.05, work.go_on.set).start()

    asyncio.run(call())
    assert ended == [True]


def test_a_timeout_ends_when_the_work_does() -> None:
    async def call(work: Work) -> None:
        async with asyncio.timeout(0):
            await run_blocking(work)

    work = Work()
    threading.Thread(target=lambda: work.begun.wait(30) and work.go_on.set()).start()
    with pytest.raises(TimeoutError):
        asyncio.run(call(work))
    assert work.done


def test_the_loop_goes_on_while_the_work_waits() -> None:
    async def call() -> str:
        work = Work()

        async def let_go() -> None:
            await until(work.begun)
            work.go_on.set()

        found, _ = await asyncio.gather(run_blocking(work), let_go())
        return found

    assert asyncio.run(call()) == "done"


def test_cancelled_at_any_step_an_append_is_there_or_not_and_never_by_half(tmp_path: Path) -> None:
    async def append_and_cancel(transcript: Transcript, name: str, steps: int) -> bool:
        task = asyncio.create_task(run_blocking(lambda: transcript.append(said(name))))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return False
        return True

    with Folder.open(tmp_path) as folder, Transcript.open(folder, SESSION) as transcript:
        done = {f"{n}": asyncio.run(append_and_cancel(transcript, f"{n}", n)) for n in range(30)}
        found = ids(stored(folder))
    assert {name for name, acknowledged in done.items() if acknowledged} <= set(found)
    assert found == sorted(found, key=int)


@pytest.mark.parametrize("is_begun", [False, True], ids=["before it is handed over", "after"])
def test_ctrl_c_before_the_waiting_begins_ends_the_work_too(
    monkeypatch: pytest.MonkeyPatch, is_begun: bool
) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    def interrupt(loop: asyncio.BaseEventLoop, callback: Callable[[], object]) -> None:
        monkeypatch.undo()
        if is_begun:
            loop.call_soon_threadsafe(callback)
        raise KeyboardInterrupt

    thread, work = LoopThread(), wait()
    thread.run(asyncio.sleep(0))
    monkeypatch.setattr(asyncio.BaseEventLoop, "call_soon_threadsafe", interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.run(work)
    while inspect.getcoroutinestate(work) != inspect.CORO_CLOSED:
        thread.run(asyncio.sleep(0))
    thread.stop()
    assert work.cr_frame is None


def test_an_address_of_no_interface_is_refused_with_one_to_try() -> None:
    with pytest.raises(InputError, match="name an address of this machine"):
        listen("192.0.2.1", 0)


def test_a_port_that_is_taken_is_refused_with_one_to_try() -> None:
    with closing(listen("127.0.0.1", 0)) as taken, pytest.raises(InputError, match="try --port 0"):
        listen("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(
    ("number", "kind", "advice"),
    [
        (errno.ENOSPC, DiskFull, "free some space"),
        (errno.EFBIG, DiskFull, "ulimit"),
        (errno.EROFS, AccessDenied, "owner and mode"),
        (errno.ENOENT, FileMissing, "check the name"),
        (errno.EIO, DiskFault, "system log"),
    ],
)
def test_an_error_of_the_system_becomes_ours_with_advice(
    number: int, kind: type[SevenfoldError], advice: str
) -> None:
    words = rf"cannot write it: {re.escape(os.strerror(number))}; .*{advice}"
    with pytest.raises(kind, match=words), map_os_errors("write it"):
        raise OSError(number, os.strerror(number))
    with map_os_errors("write it"):
        pass


def test_an_error_without_a_number_keeps_its_words() -> None:
    assert str(map_os_error(OSError("odd"), "read it")) == (
        "cannot read it: odd; check the device and the system log"
    )
    assert "cannot read it: OSError;" in str(map_os_error(OSError(), "read it"))


def test_a_process_is_alive_until_it_was_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert is_process_alive(child.pid)
    child.communicate()
    assert not is_process_alive(child.pid)
    assert not is_process_alive(2**70)

    def refuse(pid: int, signal: int) -> None:
        raise PermissionError(pid, signal)

    monkeypatch.setattr(os, "kill", refuse)
    assert is_process_alive(child.pid)
