"""Names that must not be taken yet: one step where the file system has it, and what else where it has none.

NFS and some others cannot rename without replacing. A file that gets its *first* name there is linked to it,
which refuses to replace, and then loses its temporary one: who dies in between leaves a file with two names,
of which readers know the temporary one for what it is. A file that is *moved* has two names that both count,
so there it is one plain rename, after a look that the new name is free: the file is always under exactly one
of them. What comes between the look and the rename is kept away by a lock on the folder, which holds for
everybody who names something new this way, on this machine.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

from sevenfold.store.files.disk import FOLDER_FLAGS, Disk
from sevenfold.store.files.flock import drop_flock, take_flock
from sevenfold.store.files.fork_handles import close_in_children


@dataclass(frozen=True, slots=True)
class ExclusiveRenamer:
    """The names of one open directory."""

    disk: Disk
    fd: int
    path: str
    """For people to read."""
    wait: timedelta

    def give(self, temp: str, name: str) -> None:
        """Name a temporary file of this directory."""
        if self._renamed(temp, name, self.fd):
            return
        with self._alone():
            self.disk.link(temp, name, dir_fd=self.fd)
        # A reader that meets both takes the temporary one for a dead writer's, and may drop it first.
        with suppress(FileNotFoundError):
            self.disk.unlink(temp, dir_fd=self.fd)

    def move(self, old: str, name: str, *, old_fd: int) -> None:
        """Name a file that has a name already, here or in another directory, and take that from it."""
        if self._renamed(old, name, old_fd):
            return
        with self._alone():
            if name in self.disk.names(self.fd):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            self.disk.rename(old, name, old_fd=old_fd, new_fd=self.fd)

    def _renamed(self, old: str, name: str, old_fd: int) -> bool:
        """Whether the file system could do it in one step."""
        try:
            self.disk.rename_new(old, name, old_fd=old_fd, new_fd=self.fd)
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                return False
            raise
        return True

    @contextmanager
    def _alone(self) -> Generator[None]:
        # A handle of our own: flock belongs to the open file, and threads share the folder's.
        fd = self.disk.open_beneath(self.fd, ".", FOLDER_FLAGS)
        try:
            with close_in_children(fd):
                take_flock(self.disk, fd, self.wait, self.path)
                yield
        finally:
            # Nothing was written through it, so an error here says nothing about what the block did.
            with suppress(OSError):
                drop_flock(self.disk, fd)
            with suppress(OSError):
                self.disk.close(fd)
