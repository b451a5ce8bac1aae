"""Mutual exclusion between processes and threads, for the few milliseconds that a change of files takes.

`flock` on a permanent file: the kernel lets go when the holder dies, and there is nothing to go stale. The
file is never removed: unlinking a lock file lets two holders in, one on the old inode and one on the new.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta

from sevenfold.core.errors import FileMissing
from sevenfold.core.os_errors import map_os_errors
from sevenfold.store.files.flock import drop_flock, take_flock
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.fork_handles import close_in_children


@contextmanager
def mutex(folder: Folder, name: str, *, wait: timedelta | None = None) -> Generator[None]:
    """Hold `name`.mutex in `folder` for the block; `LockBusy` when it cannot be had in time.

    That is `wait`, or as long as the folder's patience lasts.
    """
    key = f"{name}.mutex"
    while True:
        with _handle(folder, key) as fd:
            with map_os_errors(f"lock {folder.path}/{key}"):
                take_flock(
                    folder.disk, fd, folder.patience.mutex if wait is None else wait, f"{folder.path}/{key}"
                )
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
    wait: timedelta | None = None,
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
        with close_in_children(fd):
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
