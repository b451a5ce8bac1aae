"""Rig: somebody swaps a folder or a file for a link to the outside, as fast as it goes, while we use it."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from sevenfold.core.errors import SevenfoldError
from sevenfold.store.files.folder import Folder
from tests.torture.crew import Crew
from tests.torture.hostile import CANARY, Outside
from tests.torture.naive import read_below, write_below
from tests.torture.paths import MAX_BYTES, PLANTED, WAYS, Way
from tests.torture.rig import Orders, Outcome, outcome

_EXCHANGE = 2
"""RENAME_EXCHANGE: both names exist all the time, one always being the trap."""


@dataclass(slots=True)
class Tally:
    """What became of attempts."""

    done: int = 0
    refused: int = 0
    escaped: int = 0


Use = Callable[[Path, Random], bytes]
"""One use of the folder by a key that may be a trap by now: what was read."""


def run_races(orders: Orders, ways: Sequence[Way] = WAYS) -> list[Outcome]:
    total = orders.pick(tiny=1_500, short=3_000, long=100_000) // len(ways)
    found = [_race_ours(orders, way, total) for way in ways]
    with orders.scratch("races") as place:
        _arena(place)
        naive = _race(orders, Outcome(name="races, naive", unit=""), place, total, _use_naively)
    found[-1].notes.append(f"realpath, then open: {naive.escaped:,} of {total:,} got outside")
    return found


def _race_ours(orders: Orders, way: Way, total: int) -> Outcome:
    with (
        outcome(f"races, {way.name}", "races") as found,
        orders.scratch("races") as place,
        Folder.open(_arena(place), disk=way.disk) as folder,
    ):
        ours = _race(orders, found, place, total, lambda _, random: _use(folder, random))
        if ours.escaped:
            found.wrong(f"{ours.escaped} of {found.count} uses got outside")
        if not ours.done or not ours.refused:
            found.wrong(f"there was no race: {ours.done} uses went well and {ours.refused} were refused")
        found.notes.append(f"{ours.done:,} went well, {ours.refused:,} were refused")
    return found


def _arena(place: Path) -> Path:
    """Two things to swap, each with the trap beside it."""
    root = place / "root"
    (root / "dir").mkdir(parents=True)
    (root / "dir" / "canary.md").write_bytes(b"inside")
    (root / "file.md").write_bytes(b"inside")
    Outside(place / "outside")
    os.symlink("../outside", root / "trap")
    os.symlink("../outside/canary.md", root / "trap.md")
    return root


def _race(orders: Orders, line: Outcome, place: Path, total: int, use: Use) -> Tally:
    """Use the folder again and again while it changes under our hands."""
    random = orders.random(line.name)
    tally = Tally()
    outside = place / "outside"
    with closing(mmap.mmap(-1, 8)) as swaps, Crew() as crew:
        pid = crew.start(lambda: _swap(place / "root", swaps))
        while not int.from_bytes(swaps[:8], "little"):
            time.sleep(0.001)
        for _ in range(total):
            before = _mark(outside)
            try:
                seen = use(place / "root", random)
                tally.done += 1
            except SevenfoldError:
                seen = b""
                tally.refused += 1
            if CANARY in seen or _mark(outside) != before:
                tally.escaped += 1
            line.count += 1
            orders.progress(line.name, line.count, total, "races")
        crew.kill(pid)
        line.notes.append(f"{int.from_bytes(swaps[:8], 'little'):,} swaps")
    return tally


def _mark(outside: Path) -> tuple[int, int, tuple[str, ...]]:
    """Enough to see that somebody was there."""
    folder, file = outside.stat(), (outside / "canary.md").stat()
    return folder.st_mtime_ns, file.st_mtime_ns, tuple(os.listdir(outside))


def _use(folder: Folder, random: Random) -> bytes:
    match random.randrange(6):
        case 0:
            return folder.read("dir/canary.md", max_bytes=MAX_BYTES)
        case 1:
            return folder.read("file.md", max_bytes=MAX_BYTES)
        case 2:
            folder.replace("dir/new.md", PLANTED)
        case 3:
            folder.create(f"dir/{random.randrange(20)}.md", PLANTED)
        case 4:
            with folder.subfolder("dir", create=False) as below:
                return below.read("canary.md", max_bytes=MAX_BYTES)
        case _:
            folder.remove(f"dir/{random.randrange(20)}.md")
    return b""


def _use_naively(root: Path, random: Random) -> bytes:
    try:
        match random.randrange(3):
            case 0:
                return read_below(root, "dir/canary.md")
            case 1:
                return read_below(root, "file.md")
            case _:
                write_below(root, "dir/new.md", PLANTED)
    except OSError as error:
        raise SevenfoldError(str(error)) from error
    return b""


def _swap(root: Path, swaps: mmap.mmap) -> None:
    """Swap for ever, at a pace that leaves others a moment in between."""
    call = ctypes.CDLL(None, use_errno=True).renameat2
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    count = 0
    while True:
        for one, two in ((b"dir", b"trap"), (b"file.md", b"trap.md")):
            if call(fd, one, fd, two, ctypes.c_uint(_EXCHANGE)) != 0:
                with suppress(OSError):
                    _dance(fd, one.decode(), two.decode())
        count += 2
        swaps[:8] = count.to_bytes(8, "little")


def _dance(fd: int, one: str, two: str) -> None:
    """The same in three steps, where the kernel or file system has no single one."""
    for old, new in ((one, "aside"), (two, one), ("aside", two)):
        os.rename(old, new, src_dir_fd=fd, dst_dir_fd=fd)
