"""The files of a memory folder: looked at without reading where that is enough, and put in place."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from sevenfold.core.errors import (
    AccessDenied,
    FileDamaged,
    FileMissing,
    InputError,
    KeyRefused,
    NotRegular,
)
from sevenfold.core.events import Emit, MemoryRefused
from sevenfold.core.memories import INDEX_FILE
from sevenfold.core.os_errors import map_os_errors
from sevenfold.store.files.disk import READ_FLAGS, read_fully
from sevenfold.store.files.folder import TEMP_PREFIX, Folder
from sevenfold.store.memory.keys import MAX_MEMORY_DEPTH, check_memory_key
from sevenfold.store.memory.records import (
    NO_FILE,
    FileSnapshot,
    FileStamp,
    decode_text,
    encode_text,
    hash_text,
)

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

    def look(self, key: str, known: FileSnapshot = NO_FILE) -> InspectedFile | None:
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
        look, sha256 = self.look(key), hash_text(text)
        return look.placement if look and look.placement.sha256 == sha256 else FileSnapshot(sha256)

    def remove(self, key: str) -> FileSnapshot:
        with suppress(FileMissing):
            self._folder.remove(key, durable=False)
        return NO_FILE

    def sync(self, keys: Collection[str]) -> None:
        """Make files, and that some are gone, outlast a power cut."""
        named = {key.rpartition("/")[0]: key for key in keys}
        for key in keys:
            told = map_os_errors(f"sync {self._folder.path}/{key}")
            with suppress(FileMissing, *_UNREADABLE), self._folder.opened(key, READ_FLAGS) as fd, told:
                self._folder.disk.fsync(fd)
        for key in named.values():
            # Any name makes all of its folder durable.
            with suppress(FileMissing):
                self._folder.settle(key)

    def refuse(self, name: str, reason: str) -> None:
        if name not in self._refused:
            self._refused.add(name)
            self._emit(MemoryRefused(name, reason))

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
