"""Forked workers that never outlive their block, and die with whoever forked them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

_PR_SET_PDEATHSIG = 1
CRASHED = 3
"""How a worker leaves that met an error it did not expect; its traceback is on stderr."""


def fork_worker(work: Callable[[], None]) -> int:
    """Run `work` in a child, which leaves without unwinding anything of its parent's."""
    parent = os.getpid()
    with warnings.catch_warnings():
        # Newer Pythons warn of threads that a fork does not copy; the workers need none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        sys.stderr.flush()
        pid = os.fork()
    if pid:
        return pid
    code = CRASHED
    try:
        _settle(parent)
        work()
        code = 0
    except BaseException:
        with suppress(BaseException):
            traceback.print_exc()
            sys.stderr.flush()
    finally:
        os._exit(code)


def _settle(parent: int) -> None:
    """Leave Ctrl-C to the parent, forget its signal settings, and die when it does."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(CRASHED)


@dataclass(frozen=True, slots=True)
class Ended:
    pid: int
    code: int
    """Its exit code, or minus the signal that killed it."""


class Crew:
    """Workers by process id. On leaving the block every one is killed and buried."""

    def __init__(self) -> None:
        self._alive: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self._alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while self._alive:
            self._bury(self._alive[0])

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(self._alive)

    def start(self, work: Callable[[], None]) -> int:
        pid = fork_worker(work)
        self._alive.append(pid)
        return pid

    def kill(self, pid: int) -> None:
        """Kill one for good and wait until it is gone."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self._bury(pid)

    def stop(self, pid: int) -> bool:
        """Stop one and wait until it stands; False when it has ended instead."""
        os.kill(pid, signal.SIGSTOP)
        _, status = os.waitpid(pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return True
        self._alive.remove(pid)
        return False

    def go_on(self, pid: int) -> None:
        os.kill(pid, signal.SIGCONT)

    def wait(self, pid: int) -> int:
        """Wait for one to end: its exit code, or minus the signal that killed it."""
        _, status = os.waitpid(pid, 0)
        self._alive.remove(pid)
        return os.waitstatus_to_exitcode(status)

    def ended(self) -> list[Ended]:
        """Those that ended by themselves since last asked."""
        gone: list[Ended] = []
        for pid in self.pids:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self._alive.remove(pid)
                gone.append(Ended(pid, os.waitstatus_to_exitcode(status)))
        return gone

    def _bury(self, pid: int) -> None:
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        self._alive.remove(pid)
