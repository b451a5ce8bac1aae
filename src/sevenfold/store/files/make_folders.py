"""Folders made one after the other, each durable before the next."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sevenfold.store.files.disk import Disk


def make_folders(path: Path, disk: Disk) -> None:
    """Make `path` and whatever is missing above it."""
    missing: list[Path] = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    # Whoever made the last one that is there may have died before making its name durable. A mount point has
    # its name from elsewhere.
    if path.stat().st_dev == path.parent.stat().st_dev:
        with suppress(PermissionError):
            _sync_folder(path.parent, disk)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            disk.mkdir(str(folder))
        _sync_folder(folder.parent, disk)


def _sync_folder(path: Path, disk: Disk) -> None:
    fd = disk.open(str(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        disk.fsync(fd)
    finally:
        disk.close(fd)
