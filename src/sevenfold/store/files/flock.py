"""The lock of an open file, waited for: the kernel lets go of it when its holder dies."""

from __future__ import annotations

import fcntl
import random
import time
from contextlib import suppress
from datetime import timedelta

from sevenfold.core.errors import LockBusy
from sevenfold.store.files.disk import Disk

_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02


def take_flock(disk: Disk, fd: int, wait: timedelta, name: str) -> None:
    """Wait for the lock of an open file; `LockBusy` when it cannot be had in time."""
    deadline = time.monotonic() + wait.total_seconds()
    pause = _FIRST_PAUSE
    while True:
        try:
            return disk.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except InterruptedError:
            continue
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise LockBusy(
                    f"{name} is held by another process for over {wait.total_seconds():g} s; "
                    "look for a stopped process that has it open (lsof, fuser)"
                ) from error
        except OSError:
            # It may have been taken all the same, and whoever is told that it was not will not let go of it.
            with suppress(OSError):
                drop_flock(disk, fd)
            raise
        # Jitter: sixteen processes that woke together would otherwise ask together for ever.
        time.sleep(pause * random.uniform(0.5, 1.5))
        pause = min(pause * 2, _LONGEST_PAUSE)


def drop_flock(disk: Disk, fd: int) -> None:
    """Let go at once. Closing alone would not, where a child forked meanwhile has a copy of the handle."""
    while True:
        try:
            return disk.flock(fd, fcntl.LOCK_UN)
        except InterruptedError:
            continue
