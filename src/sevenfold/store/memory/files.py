"""The files of a memory folder, and the log of its history.

`MemoryFiles` inspects files without reading them where that is enough, and writes them. `MemoryLog` is
`memory/log.jsonl` in the state of the directory, one append-only file. A transaction is one line with its
texts, so it is there as a whole or not at all. Everything that is shown follows from these lines: files are
written afterwards, and can be written again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sevenfold.core import events
from sevenfold.core.errors import (
    AccessDenied,
    FileDamaged,
    FileMissing,
    InputError,
    KeyRefused,
    NotRegular,
    StoreError,
    WireError,
)
from sevenfold.core.events import Emit
from sevenfold.core.memories import INDEX_FILE
from sevenfold.core.system import map_os_errors
from sevenfold.store.files.disk import READ_FLAGS, read_fully
from sevenfold.store.files.folder import MAX_MEMORY_DEPTH, TEMP_PREFIX, Folder, check_memory_key
from sevenfold.store.memory.records import (
    NO_FILE,
    FileSnapshot,
    FileStamp,
    LogEntry,
    LoggedTransaction,
    decode_text,
    encode_text,
    format_log_line,
    hash_text,
    is_upkeep,
    read_log_entry,
)
from sevenfold.store.transcript.transcript import RecordPosition, Transcript

MAX_MEMORY_FILE_BYTES = 256 * 1024
"""Thirty times what is ever put before a model at once."""

_UNREADABLE = (NotRegular, FileDamaged, AccessDenied)


@dataclass(frozen=True, slots=True)
class InspectedFile:
    """What a file was found to be."""

    placement: FileSnapshot
    text: str | None = None
    """None: there is no file, or it was not read because it looks the same as before."""


class MemoryFiles:
    """The folder, below which nothing is read that is no memory. What is refused is told once."""

    def __init__(self, folder: Folder, emit: Emit) -> None:
        self._folder, self._emit = folder, emit
        self._refused: set[str] = set()

    def keys(self) -> list[str]:
        """Every memory that lies in the folder, the index not among them."""
        return [key for key in self._walk(self._folder, "", MAX_MEMORY_DEPTH) if key != INDEX_FILE]

    def inspect(self, key: str, known: FileSnapshot = NO_FILE) -> InspectedFile | None:
        """What the file is now, unread if it looks as it did; None where it cannot be read, which is told."""
        try:
            with self._folder.opened(key, READ_FLAGS) as fd, map_os_errors(f"read {self._folder.path}/{key}"):
                found = self._folder.disk.stat(fd)
                stamp = FileStamp(found.st_size, found.st_mtime_ns, found.st_ino)
                if stamp == known.stamp:
                    return InspectedFile(known)
                if stamp.size_bytes > MAX_MEMORY_FILE_BYTES:
                    raise FileDamaged(
                        f"{stamp.size_bytes:,} bytes are over the {MAX_MEMORY_FILE_BYTES:,} that are read"
                    )
                text = decode_text(read_fully(self._folder.disk, fd, stamp.size_bytes))
        except FileMissing:
            return InspectedFile(NO_FILE)
        except _UNREADABLE as error:
            self.refuse(key, str(error))
            return None
        return InspectedFile(FileSnapshot(hash_text(text), stamp), text)

    def put(self, key: str, text: str) -> FileSnapshot:
        """Put a file in place; a power cut may take it, and the history gives it back."""
        above, _, _ = key.rpartition("/")
        if above:
            self._folder.subfolder(above).close()
        self._folder.replace(key, encode_text(text), durable=False)
        # Read again, and not just looked at: somebody else may have been at it already.
        look, sha256 = self.inspect(key), hash_text(text)
        return look.placement if look and look.placement.sha256 == sha256 else FileSnapshot(sha256)

    def remove(self, key: str) -> FileSnapshot:
        with suppress(FileMissing):
            self._folder.remove(key, durable=False)
        return NO_FILE

    def sync(self, keys: Collection[str]) -> None:
        """Make files, and that some are gone, outlast a power cut."""
        named = {key.rpartition("/")[0]: key for key in keys}
        for key in keys:
            mapped = map_os_errors(f"sync {self._folder.path}/{key}")
            with suppress(FileMissing, *_UNREADABLE), self._folder.opened(key, READ_FLAGS) as fd, mapped:
                self._folder.disk.fsync(fd)
        for key in named.values():
            # Any name makes all of its folder durable.
            with suppress(FileMissing):
                self._folder.sync_name(key)

    def refuse(self, name: str, reason: str) -> None:
        if name not in self._refused:
            self._refused.add(name)
            self._emit(events.MemoryRefused(name, reason))

    def _walk(self, folder: Folder, above: str, depth: int) -> Iterator[str]:
        for name in folder.all_names():
            key = f"{above}{name}"
            if name.endswith(".md"):
                if self._is_key(key):
                    yield key
            elif depth > 1 and not name.startswith((".", TEMP_PREFIX)):
                yield from self._walk_below(folder, name, key, depth)

    def _walk_below(self, folder: Folder, name: str, key: str, depth: int) -> Iterator[str]:
        try:
            below = folder.subfolder(name, create=False)
        except (FileMissing, InputError, *_UNREADABLE):
            return  # no folder, or none of ours: whatever lies there is no memory
        with below:
            yield from self._walk(below, f"{key}/", depth - 1)

    def _is_key(self, key: str) -> bool:
        if key == INDEX_FILE:
            return True
        try:
            check_memory_key(key)
        except KeyRefused as error:
            self.refuse(key, str(error))
            return False
        return True


LOG = "log"
_FILE = f"{LOG}.jsonl"

_HEAD_BYTES = 64
"""Checksum, kind and id of a line."""

_CHUNK_BYTES = 1024 * 1024
_REMEMBERED_BYTES = 4 * 1024 * 1024
"""Of transactions kept as they were read: what others did last is asked for next, and one that brought a
thousand memories is asked for each of them."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of the history."""

    entry: LogEntry | None
    """None: it cannot be read, or a newer version wrote it."""
    place: RecordPosition


@dataclass(frozen=True, slots=True)
class LogStat:
    """What can be told of the history without reading it."""

    size_bytes: int
    head: bytes
    """How its first line begins, with a random id: another head is another history."""


class MemoryLog:
    """The file, open for writing. Hold the mutex of the history to append."""

    def __init__(self, folder: Folder, emit: Emit) -> None:
        self._folder, self._emit = folder, emit
        self._writer: Transcript | None = None
        self._remembered: dict[int, LogLine] = {}
        self._held_bytes = 0

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def stat(self) -> LogStat | None:
        """The file as it is now; None where there is none, or nothing in it."""
        try:
            with self._folder.opened(_FILE, READ_FLAGS) as fd, map_os_errors(f"look at {_FILE}"):
                size = self._folder.disk.stat(fd).st_size
                return LogStat(size, read_fully(self._folder.disk, fd, _HEAD_BYTES)) if size else None
        except FileMissing:
            return None

    def head_at(self, offset: int) -> bytes:
        """How the line that begins there begins."""
        return self._folder.read_range(_FILE, offset, _HEAD_BYTES)

    def read(self, start: int = 0) -> Iterator[LogLine]:
        """Every line from `start` on that is closed; what cannot be read is told and passed over."""
        return self._read(lambda _: False, start)

    def _read(self, skips: Callable[[bytes], bool], start: int = 0) -> Iterator[LogLine]:
        fd = self._folder.open_file(_FILE, READ_FLAGS)
        try:
            rest = b""
            while chunk := self._read_chunk(fd, start + len(rest)):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if not skips(line):
                        yield LogLine(self._parsed(line, start), RecordPosition(start, len(line) + 1))
                    start += len(line) + 1
        finally:
            # Nothing was written through it; and whoever looked far enough is gone when it is closed.
            with suppress(OSError):
                self._folder.disk.close(fd)

    def read_transactions(self) -> Iterator[LoggedTransaction]:
        """Every transaction, the oldest first; what was put in place since is passed over unread."""
        for found in self._read(is_upkeep):
            if isinstance(found.entry, LoggedTransaction):
                yield found.entry

    def read_lines(self) -> Iterator[bytes]:
        """Every closed line as it stands, with its end."""
        with self._folder.opened(_FILE, READ_FLAGS) as fd, map_os_errors(f"read {self._folder.path}/{_FILE}"):
            size = self._folder.disk.stat(fd).st_size
            whole = read_fully(self._folder.disk, fd, size)
        yield from (line + b"\n" for line in whole.split(b"\n")[:-1])

    def read_at(self, place: RecordPosition) -> LoggedTransaction:
        """The transaction at a place; `FileDamaged` where there is none."""
        known = self._remembered.get(place.offset)
        if known is not None and isinstance(known.entry, LoggedTransaction):
            return known.entry
        data = self._folder.read_range(_FILE, place.offset, place.length_bytes)
        entry = self._parsed(data.removesuffix(b"\n"), place.offset)
        if isinstance(entry, LoggedTransaction):
            self.cache(LogLine(entry, place))
            return entry
        raise FileDamaged(
            f"{self._folder.path}/{_FILE} holds no transaction at {place.offset:,}: it was changed by hand, "
            "or the disk is damaged; restore it from a backup"
        )

    def cache(self, found: LogLine) -> None:
        """Keep a transaction at hand for whoever asks for its texts."""
        if not isinstance(found.entry, LoggedTransaction) or found.place.offset in self._remembered:
            return
        self._remembered[found.place.offset] = found
        self._held_bytes += found.place.length_bytes
        while self._held_bytes > _REMEMBERED_BYTES and len(self._remembered) > 1:
            oldest = self._remembered.pop(next(iter(self._remembered)))
            self._held_bytes -= oldest.place.length_bytes

    def append(self, entries: Sequence[LogEntry]) -> list[LogLine]:
        """Add lines, which are in the kernel's hands on return; `sync` makes them durable."""
        lines = [format_log_line(entry) for entry in entries]
        places = self._opened().append_lines(lines, durable=False)
        return [LogLine(entry, place) for entry, place in zip(entries, places, strict=True)]

    def sync(self) -> None:
        """Make everything in the file durable, whoever added it."""
        try:
            self._opened().sync()
        except StoreError:
            # The same handle would report success the next time, whatever was lost.
            self.close()
            raise

    def replace(self, lines: Iterable[bytes]) -> None:
        """Put another history in place of this one, as a whole."""
        self.reset()
        self._folder.replace(_FILE, b"".join(lines))

    def reset(self) -> None:
        """Somebody put another file there: nothing that is known of this one holds."""
        self._remembered.clear()
        self._held_bytes = 0
        self.close()

    def _read_chunk(self, fd: int, offset: int) -> bytes:
        with map_os_errors(f"read {self._folder.path}/{_FILE}"):
            return read_fully(self._folder.disk, fd, _CHUNK_BYTES, offset)

    def _opened(self) -> Transcript:
        if self._writer is None:
            self._writer = Transcript.open(self._folder, LOG, emit=self._emit)
        return self._writer

    def parse(self, line: bytes) -> LogEntry | None:
        """What a line of `read_lines` says; None where it cannot be read."""
        return self._parsed(line.removesuffix(b"\n"), 0)

    def _parsed(self, line: bytes, offset: int) -> LogEntry | None:
        try:
            return read_log_entry(line)
        except WireError as error:
            self._emit(
                events.LineQuarantined(f"{self._folder.path}/{_FILE}", offset, len(line) + 1, str(error))
            )
            return None
