"""Forked children for tests: they do one thing, say whether it went well, and never come back."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import NoReturn

PATIENCE_SECONDS = 60
"""A child that hangs is a bug that the test has to end, not wait for."""


def start(work: Callable[[], object]) -> int:
    """Fork a child that does `work` and exits with 0, or with 1 and a traceback."""
    with warnings.catch_warnings():
        # Newer Pythons warn of threads; these children only open, write and leave.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _live(work)
    return pid


def finish(pid: int) -> int:
    """How a child ended: its exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def expect_success(works: Iterable[Callable[[], object]]) -> None:
    """Run all of them at once; each has to end well."""
    pids = [start(work) for work in works]
    assert [finish(pid) for pid in pids] == [0] * len(pids)


def _live(work: Callable[[], object]) -> NoReturn:
    signal.alarm(PATIENCE_SECONDS)
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
