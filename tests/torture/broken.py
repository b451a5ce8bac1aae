"""Stores that are broken on purpose: each rig must find what is wrong with one, or it finds nothing."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.agent.subagents.mailbox import MailFeed
from sevenfold.core.memories import Origin
from sevenfold.store.files import locks
from sevenfold.store.files.disk import ExclusiveRenamer, write_all
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.lock_state import LockState
from sevenfold.store.files.locks import Lock
from sevenfold.store.mailbox import Mail, Mailbox, MailId
from sevenfold.store.memory.changes import ANYTHING, Remove, Transaction, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.transcript.records import Record
from sevenfold.store.transcript.transcript import Transcript
from tests.torture.lossy import LossyDisk
from tests.torture.stage import QuickDisk

Plant = Callable[[pytest.MonkeyPatch], None]


def replace_in_place(patch: pytest.MonkeyPatch) -> None:
    """A file emptied and written again where it stands."""

    def put(self: Folder, key: str, data: bytes, *, modified_ns: int | None = None) -> None:
        fd = self.disk.open(str(self.path / key), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        write_all(self.disk, fd, data)
        self.disk.fsync(fd)
        self.disk.close(fd)

    patch.setattr(Folder, "replace", put)


def move_in_two_steps(patch: pytest.MonkeyPatch) -> None:
    """Without an exclusive rename, a file gets its new name before it loses the old, and both count."""

    def move(self: ExclusiveRenamer, old: str, name: str, *, old_fd: int) -> None:
        try:
            self.disk.rename_new(old, name, old_fd=old_fd, new_fd=self.fd)
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise
            os.link(old, name, src_dir_fd=old_fd, dst_dir_fd=self.fd)
            self.disk.unlink(old, dir_fd=old_fd)

    patch.setattr(ExclusiveRenamer, "move", move)


def dream_over_edits(patch: pytest.MonkeyPatch) -> None:
    """A dream that writes whatever it made, whoever has edited the file meanwhile."""
    careful = MemoryDir.commit

    def commit(self: MemoryDir, changes: Sequence[Write | Remove], origin: Origin) -> Transaction:
        if origin.who == "dream":
            changes = [replace(change, base=ANYTHING) for change in changes]
        return careful(self, changes, origin)

    patch.setattr(MemoryDir, "commit", commit)


def leave_tails_open(patch: pytest.MonkeyPatch) -> None:
    """Lines appended to whatever fragment somebody left."""

    def last_byte(self: Transcript, end: int) -> bytes:
        return b"\n"

    patch.setattr(Transcript, "_last_byte", last_byte)


def let_errors_out(patch: pytest.MonkeyPatch) -> None:
    """Errors of the system that nobody turns into ours."""

    @contextmanager
    def unmapped(doing: str) -> Generator[None]:
        yield

    patch.setattr("sevenfold.store.files.folder.map_os_errors", unmapped)


def count_crashes_as_success(patch: pytest.MonkeyPatch) -> None:
    """The old way: the time of the last success is stamped when the lock is taken."""
    acquire = Lock.acquire

    def stamped(self: Lock) -> locks.Lease:
        taken = acquire(self)
        self.publish(taken.token, lambda: None)
        return acquire(self)

    patch.setattr(Lock, "acquire", stamped)


def acknowledge_before_writing(patch: pytest.MonkeyPatch) -> None:
    """Records kept in memory until the next ones come."""
    append_all = Transcript.append_all
    kept: list[Record] = []

    def later(self: Transcript, records: Sequence[Record], *, durable: bool = True) -> object:
        waiting = [*kept]
        kept[:] = records
        return append_all(self, waiting, durable=durable) if waiting else []

    patch.setattr(Transcript, "append_all", later)


def publish_without_fencing(patch: pytest.MonkeyPatch) -> None:
    """Whoever once had the lock may publish, however late."""

    def trusted(self: Lock, token: int, nonce: str) -> LockState:
        return LockState(token=self.read_state().token)

    patch.setattr(Lock, "_owned", trusted)


def hold_no_mutex(patch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def nothing(folder: Folder, name: str, **_: object) -> Generator[None]:
        yield

    patch.setattr(locks, "mutex", nothing)


def never_sync(patch: pytest.MonkeyPatch) -> None:
    """Acknowledged as soon as the kernel has it."""

    def fsync(self: LossyDisk, fd: int) -> None:
        pass

    patch.setattr(LossyDisk, "fsync", fsync)


def sync_files_alone(patch: pytest.MonkeyPatch) -> None:
    """What a file holds is made durable, and its name is not."""
    fsync = LossyDisk.fsync

    def only_files(self: LossyDisk, fd: int) -> None:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            fsync(self, fd)

    patch.setattr(LossyDisk, "fsync", only_files)


def acknowledge_on_receipt(patch: pytest.MonkeyPatch) -> None:
    """Mail that counts as told before it is in any history."""
    receive = Mailbox.receive

    def receive_and_forget(self: Mailbox) -> list[Mail]:
        found = receive(self)
        for mail in found:
            self.acknowledge(mail.id)
        # As long as a model's answer may take, in small: long enough for a kill.
        time.sleep(0.02 if found else 0)
        return found

    patch.setattr(Mailbox, "receive", receive_and_forget)


def forget_what_was_told(patch: pytest.MonkeyPatch) -> None:
    """A reader that knows only what it told itself, and not what stands in the history."""

    def remember(self: MailFeed) -> None:
        kept: set[MailId] = self._handed_out  # pyright: ignore[reportPrivateUsage]
        self._kept.update(kept)  # pyright: ignore[reportPrivateUsage]

    patch.setattr(MailFeed, "_read_transcript", remember)


class FollowingDisk(QuickDisk):
    """Goes where links lead, as far as the stage reaches: what is planted must do no harm to the machine."""

    def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
        place = Path(os.path.realpath(f"/proc/self/fd/{root_fd}/{path}"))
        if not place.is_relative_to(os.path.realpath(tempfile.gettempdir())):
            raise PermissionError(errno.EACCES, "outside the stage", path)
        return os.open(path, flags & ~os.O_NOFOLLOW, 0o600, dir_fd=root_fd)


class WaitingDisk(QuickDisk):
    """Opens whatever is there, and waits for as long as that takes."""

    def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
        return super().open_beneath(root_fd, path, flags & ~os.O_NONBLOCK)


def name_by_slug(root: Path) -> str:
    """A project's name as other tools make it: every odd character a dash."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in str(root))


BYPASS = """
import sys
from pathlib import Path
from sevenfold.store.files.folder import Folder
from tests.torture import traced

def replace(self, key, data, *, modified_ns=None):
    (self.path / key).write_bytes(data)

Folder.replace = replace
traced.main(Path(sys.argv[1]), int(sys.argv[2]))
"""
"""A script that writes files behind the port's back."""
