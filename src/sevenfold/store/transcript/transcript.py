"""A session's transcript: append-only lines, in the order they happened. File order is the truth.

Appending: under the file's own lock, close off a torn tail if somebody died in mid-line, write the whole
line, fsync, and only then acknowledge. Nothing written is ever changed, so a reader needs no lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from sevenfold.core.errors import FileMissing, StoreError, WriterBroken
from sevenfold.core.events import Emit, TailSealed, ignore_event
from sevenfold.core.os_errors import map_os_errors
from sevenfold.store.files.disk import read_fully, write_all
from sevenfold.store.files.disk_operations import close_in_children, drop_flock, take_flock
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.records import Record, write_line


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """Where a record stands in its transcript."""

    offset: int
    length_bytes: int


class Transcript:
    """The writing end. Any number may be open on one file, in threads and processes; lines never mix."""

    def __init__(self, folder: Folder, key: str, fd: int, emit: Emit) -> None:
        self._folder = folder
        self._disk = folder.disk
        self._key = key
        self._fd = fd
        self._emit = emit
        self._thread_lock = threading.Lock()
        self._clean_end = -1
        self._broken: str | None = None
        self._pid = os.getpid()
        self._exits = ExitStack()
        self._exits.enter_context(close_in_children(fd))

    @classmethod
    def open(cls, folder: Folder, session: str, *, emit: Emit = ignore_event) -> Self:
        """The transcript `<session>.jsonl`, made if it is not there."""
        key = f"{session}.jsonl"
        # Also where it is there: its maker may have died before its name was durable, and ours must be.
        return cls(folder, key, folder.open_file(key, os.O_RDWR | os.O_APPEND | os.O_CREAT), emit)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._pid != os.getpid():
            self._fd = -1  # closed when this process was forked; the number may be another file's by now
            return
        with self._thread_lock:
            if self._fd >= 0:
                self._exits.close()
                fd, self._fd = self._fd, -1
                with map_os_errors(f"close {self._folder.path}/{self._key}"):
                    self._disk.close(fd)

    def append(self, record: Record, *, durable: bool = True) -> RecordPosition:
        """Add one record; on return it is on the disk, or with `durable=False` in the kernel's hands."""
        return self.append_all((record,), durable=durable)[0]

    def append_all(self, records: Sequence[Record], *, durable: bool = True) -> list[RecordPosition]:
        """Add records in one go, with one fsync for all."""
        lines = [write_line(record) for record in records]
        with self._in_turn("append to"):
            take_flock(self._disk, self._fd, self._folder.patience.mutex, f"{self._folder.path}/{self._key}")
            try:
                end = self._end()
                start = self._seal_tail(end)
                self._write(b"".join(lines), durable=durable)
            finally:
                drop_flock(self._disk, self._fd)
        if start > end:
            self._emit(TailSealed(f"{self._folder.path}/{self._key}", end))
        places: list[RecordPosition] = []
        for line in lines:
            places.append(RecordPosition(start, len(line)))
            start += len(line)
        return places

    def sync(self) -> None:
        """Make durable what was appended without."""
        with self._in_turn("sync"):
            self._fsync()

    @contextmanager
    def _in_turn(self, doing: str) -> Generator[None]:
        """One thread at a time, on a handle that can be used."""
        if self._pid != os.getpid():
            # Before the lock: a thread of the parent's may have held it at the fork, and does not exist here.
            raise StoreError(f"transcript {self._key} was opened by the parent process; open it here as well")
        with self._thread_lock, map_os_errors(f"{doing} {self._folder.path}/{self._key}"):
            self._refuse_if_unusable()
            yield

    def _write(self, data: bytes, *, durable: bool) -> None:
        self._clean_end = -1
        write_all(self._disk, self._fd, data)
        if durable:
            self._fsync()
        # It only saves the next append a look: what was written is there, whatever comes of this.
        with suppress(OSError):
            self._clean_end = self._disk.stat(self._fd).st_size

    def _fsync(self) -> None:
        try:
            self._disk.fsync(self._fd)
        except OSError as error:
            # The kernel may have dropped the pages and would report success next time: never ask twice.
            self._broken = str(error)
            raise

    def _end(self) -> int:
        found = self._disk.stat(self._fd)
        if found.st_nlink == 0:
            raise FileMissing(
                f"transcript {self._key} was removed while it was open, and what is added now would be lost; "
                "open it again to start anew"
            )
        return found.st_size

    def _seal_tail(self, end: int) -> int:
        """Where the next line starts. A fragment before it is closed off with a newline of its own."""
        if end in (0, self._clean_end) or self._last_byte(end) == b"\n":
            return end
        write_all(self._disk, self._fd, b"\n")
        return end + 1

    def _last_byte(self, end: int) -> bytes:
        return read_fully(self._disk, self._fd, 1, end - 1)

    def _refuse_if_unusable(self) -> None:
        if self._fd < 0:
            raise StoreError(f"transcript {self._key} is closed; open it again to write")
        if self._broken:
            raise WriterBroken(
                f"an fsync of {self._key} failed ({self._broken}), so later ones prove nothing; open it again"
            )
