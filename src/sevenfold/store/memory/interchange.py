"""Memories from and to plain folders of markdown, such as another agent keeps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sevenfold.core.events import Emit, Event, MemoryRefused, ignore_event
from sevenfold.core.memories import INDEX_FILE
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.files import MemoryFiles
from sevenfold.store.memory.records import encode_text


@dataclass(frozen=True, slots=True)
class ImportedFolder:
    """What a folder holds, to be committed or proposed."""

    writes: tuple[Write, ...]
    """Each as a new memory."""
    refused: tuple[MemoryRefused, ...]


def read_memory_folder(path: Path, emit: Emit = ignore_event) -> ImportedFolder:
    """Every memory in a folder and below it. No link is followed; what cannot be a memory is told."""
    refused: list[MemoryRefused] = []

    def tell(event: Event) -> None:
        if isinstance(event, MemoryRefused):
            refused.append(event)
        emit(event)

    with Folder.open(path) as folder:
        files = MemoryFiles(folder, tell)
        keys = files.keys()
        found = zip(keys, map(files.look, keys), strict=True)
        writes = [Write(key, look.text, None) for key, look in found if look and look.text is not None]
    return ImportedFolder(tuple(writes), tuple(refused))


def write_memory_folder(memory: MemoryDir, path: Path) -> int:
    """Copy the memories that are shown, and their index, into a folder; how many. Nothing is replaced."""
    stored = memory.scan(limit=None)
    with Folder.open(path, create=True) as folder:
        for item in stored:
            above, _, _ = item.memory.key.rpartition("/")
            if above:
                folder.subfolder(above).close()
            folder.create(item.memory.key, encode_text(item.memory.text))
        folder.create(INDEX_FILE, encode_text(memory.index_text().text))
    return len(stored)
