"""A disk that remembers what a power cut would leave.

Killing a process proves nothing about fsync: the kernel keeps what was written. This disk keeps two accounts
of every file and folder, what is there and what was made durable, and can lay out on request what a file
system might hold if the plug were pulled now: all that was synced, and of the rest nothing, all or some.

Names change in the order of a journal, as on every file system in use: an unsynced rename may be lost, but a
file is never in neither of its two places.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias, get_args

from sevenfold.store.files.disk import SYSTEM_DISK, Disk

Leftover: TypeAlias = Literal["synced alone", "names too", "bytes too", "zeros", "some"]
LEFTOVERS: tuple[Leftover, ...] = get_args(Leftover)
"""What a cut leaves: synced names and bytes; all names, synced bytes; synced names, all bytes; the same with
zeros for unsynced bytes; some names and some bytes."""


@dataclass(slots=True, eq=False)
class Node:
    """A file or a folder, apart from its names."""

    is_folder: bool
    content: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    modified_ns: int | None = None

    def after(self, leftover: Leftover, random: Random) -> bytes:
        match leftover:
            case "synced alone" | "names too":
                return self.synced
            case "bytes too":
                return bytes(self.content)
            case "zeros":
                return self.synced.ljust(len(self.content), b"\0")
            case "some":
                most = max(len(self.content), len(self.synced))
                return bytes(self.content[: random.randint(len(self.synced), most)])


@dataclass(frozen=True, slots=True)
class Place:
    """A name in a folder, and what it names from now on."""

    folder: Node
    name: str
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class Naming:
    """One change of names, which a journal keeps whole or not at all."""

    places: tuple[Place, ...]


Names: TypeAlias = dict[Node, dict[str, Node]]


@dataclass(slots=True)
class _Handle:
    node: Node
    at: int
    appends: bool


class LossyDisk:
    """Does what it is asked on a real folder, and calls `cut` after every change that a cut could undo."""

    def __init__(self, root: Path, cut: Callable[[], None], *, inner: Disk = SYSTEM_DISK) -> None:
        self._root = root
        self._cut = cut
        self._inner = inner
        self._handles: dict[int, _Handle] = {}
        self._names: Names = {}
        self._kept: Names = {}
        self._log: list[Naming] = []
        self._top = self._load(root)
        self._kept = _copied(self._names)

    def lay_out(self, target: Path, leftover: Leftover, random: Random) -> None:
        """Make `target` what is left of the root when the power goes now."""
        names = _copied(self._kept)
        waiting = {"names too": len(self._log), "some": random.randint(0, len(self._log))}.get(leftover, 0)
        for naming in self._log[:waiting]:
            _rename(names, naming)
        self._write(self._top, target, names, lambda node: node.after(leftover, random))

    def open(self, name: str, flags: int, *, dir_fd: int | None = None) -> int:
        place = self._find(name, dir_fd)
        fd = self._inner.open(name, flags, dir_fd=dir_fd)
        self._hold(fd, place, flags)
        return fd

    def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
        fd = self._inner.open_beneath(root_fd, path, flags)
        self._hold(fd, self._find(path, root_fd), flags)
        return fd

    def close(self, fd: int) -> None:
        self._handles.pop(fd, None)
        self._inner.close(fd)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        return self._inner.read(fd, size, offset)

    def write(self, fd: int, data: memoryview) -> int:
        taken = self._inner.write(fd, data)
        if handle := self._handles.get(fd):
            at = len(handle.node.content) if handle.appends else handle.at
            handle.node.content[at : at + taken] = data[:taken]
            handle.at = at + taken
            self._cut()
        return taken

    def fsync(self, fd: int) -> None:
        self._inner.fsync(fd)
        handle = self._handles.get(fd)
        if handle and handle.node.is_folder:
            self._sync_folder(handle.node)
        elif handle:
            handle.node.synced = bytes(handle.node.content)
        self._cut()

    def rename(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        self._inner.rename(old, new, old_fd=old_fd, new_fd=new_fd)
        self._renamed(old, new, old_fd, new_fd)

    def rename_new(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        self._inner.rename_new(old, new, old_fd=old_fd, new_fd=new_fd)
        self._renamed(old, new, old_fd, new_fd)

    def link(self, old: str, new: str, *, dir_fd: int) -> None:
        self._inner.link(old, new, dir_fd=dir_fd)
        folder = self._handles[dir_fd].node
        self._name(Place(folder, new, self._names[folder][old]))

    def unlink(self, name: str, *, dir_fd: int) -> None:
        self._inner.unlink(name, dir_fd=dir_fd)
        if place := self._find(name, dir_fd):
            self._name(place)

    def mkdir(self, name: str, *, dir_fd: int | None = None) -> None:
        self._inner.mkdir(name, dir_fd=dir_fd)
        if place := self._find(name, dir_fd):
            made = Node(is_folder=True)
            self._names[made], self._kept[made] = {}, {}
            self._name(Place(place.folder, place.name, made))

    def flock(self, fd: int, operation: int) -> None:
        self._inner.flock(fd, operation)

    def set_times(self, fd: int, modified_ns: int) -> None:
        self._inner.set_times(fd, modified_ns)
        if handle := self._handles.get(fd):
            handle.node.modified_ns = modified_ns

    def stat(self, fd: int) -> os.stat_result:
        return self._inner.stat(fd)

    def names(self, fd: int) -> list[str]:
        return self._inner.names(fd)

    def _load(self, path: Path) -> Node:
        """What was there before counts as durable."""
        if not path.is_dir():
            content = path.read_bytes()
            return Node(False, bytearray(content), content, path.stat().st_mtime_ns)
        folder = Node(is_folder=True)
        self._names[folder] = {below.name: self._load(below) for below in path.iterdir()}
        return folder

    def _write(self, node: Node, path: Path, names: Names, content: Callable[[Node], bytes]) -> None:
        if not node.is_folder:
            path.write_bytes(content(node))
            if node.modified_ns is not None:
                os.utime(path, ns=(node.modified_ns, node.modified_ns))
            return
        path.mkdir()
        for name, below in names[node].items():
            self._write(below, path / name, names, content)

    def _find(self, path: str, dir_fd: int | None) -> Place | None:
        """The folder that a path's last part is in; None where that is outside of what is watched."""
        node: Node | None = self._top
        if dir_fd is not None:
            handle = self._handles.get(dir_fd)
            node = handle.node if handle else None
        elif Path(path).is_relative_to(self._root):
            path = str(Path(path).relative_to(self._root))
        else:
            return None
        *above, last = path.split("/")
        for name in above:
            node = self._names[node].get(name) if node else None
        return Place(node, last) if node else None

    def _hold(self, fd: int, place: Place | None, flags: int) -> None:
        if place is None:
            return
        if flags & os.O_CREAT and place.name not in self._names[place.folder]:
            self._name(Place(place.folder, place.name, Node(is_folder=False)))
        node = place.folder if place.name == "." else self._names[place.folder][place.name]
        if flags & os.O_TRUNC:
            node.content.clear()
        self._handles[fd] = _Handle(node, 0, bool(flags & os.O_APPEND))

    def _renamed(self, old: str, new: str, old_fd: int, new_fd: int) -> None:
        source, target = self._handles[old_fd].node, self._handles[new_fd].node
        self._name(Place(source, old), Place(target, new, self._names[source][old]))

    def _name(self, *places: Place) -> None:
        naming = Naming(places)
        _rename(self._names, naming)
        self._log.append(naming)
        self._cut()

    def _sync_folder(self, folder: Node) -> None:
        """Keep what touched the folder, and whatever came before that in a folder it moved things from."""
        touched = {folder}
        kept: list[Naming] = []
        for naming in reversed(self._log):
            if any(place.folder in touched for place in naming.places):
                touched |= {place.folder for place in naming.places}
                kept.append(naming)
        for naming in reversed(kept):
            _rename(self._kept, naming)
        self._log = [naming for naming in self._log if naming not in kept]


def _rename(names: Names, naming: Naming) -> None:
    for place in naming.places:
        if place.node is None:
            names[place.folder].pop(place.name, None)
        else:
            names[place.folder][place.name] = place.node


def _copied(names: Names) -> Names:
    return {folder: dict(below) for folder, below in names.items()}
