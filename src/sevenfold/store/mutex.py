"""Mutual exclusion between processes and threads, for the few milliseconds that a change of files takes.

`flock` on a permanent file: the kernel lets go when the holder dies, and there is nothing to go stale. The
file is never removed: unlinking a lock file lets two holders in, one on the old inode and one on the new.
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta

from sevenfold.core.errors import FileMissing, LockBusy
from sevenfold.store.disk import Disk, mapped_errors
from sevenfold.store.folder import Folder
from sevenfold.store.inherited import forget_in_children

WAIT = timedelta(seconds=15)
"""Long enough for a queue of writers on a slow disk, short enough that a person sees the error."""

_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02


@contextmanager
def mutex(folder: Folder, name: str, *, wait: timedelta = WAIT) -> Generator[None]:
    """Hold `name`.mutex in `folder` for the block; `LockBusy` when it cannot be had in time."""
    key = f"{name}.mutex"
    while True:
        with _handle(folder, key) as fd:
            with mapped_errors(f"lock {folder.path}/{key}"):
                take_flock(folder.disk, fd, wait, f"{folder.path}/{key}")
                if folder.disk.stat(fd).st_nlink == 0:
                    continue  # somebody cleaned up while we waited: others lock a new file of that name
            yield
            return


def edit_file(
    folder: Folder,
    key: str,
    change: Callable[[bytes | None], bytes | None],
    *,
    control: Folder,
    max_bytes: int,
    wait: timedelta = WAIT,
) -> bytes | None:
    """Read, change and replace a file with nobody else in between; what it now holds.

    `change` gets None when there is no file, and returns None to leave everything as it is. The mutex lives
    in `control`, apart from the folder, because agents may write to the folder.
    """
    with mutex(control, "edit", wait=wait):
        try:
            before = folder.read(key, max_bytes=max_bytes)
        except FileMissing:
            before = None
        after = change(before)
        if after is None or after == before:
            if after is not None:
                folder.settle(key)
            return before
        folder.replace(key, after)
        return after


@contextmanager
def _handle(folder: Folder, key: str) -> Generator[int]:
    """One for each block: flock belongs to the open file, so threads exclude each other too."""
    fd, holder = _open(folder, key), os.getpid()
    try:
        with forget_in_children(fd):
            yield fd
    finally:
        # In a child that was forked inside the block it is closed already, and the number may be another's.
        if os.getpid() == holder:
            # Nothing was written through it, so an error here says nothing about what the block did.
            with suppress(OSError):
                drop_flock(folder.disk, fd)
            with suppress(OSError):
                folder.disk.close(fd)


def _open(folder: Folder, key: str) -> int:
    try:
        return folder.open_file(key, os.O_RDWR)
    except FileMissing:
        return folder.open_file(key, os.O_RDWR | os.O_CREAT)


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
