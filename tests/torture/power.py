"""Rig: the power of a loop-mounted file system is cut, and everything acknowledged before is looked for.

Until the file system inside has written something out, the image it lies in does not hold it. So a copy of
the image is what a disk holds after a cut: mounted, its journal is played back as after any crash. Writers
are stopped while the copy is made, because a copy of something that changes shows moments that never were.
What a cut does in the middle of an operation, the simulated cuts show.

It runs in a mount namespace of its own: whatever becomes of it, no mount and no loop device is left.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from sevenfold.store.files.disk import SYSTEM_DISK, Disk
from tests.torture.crew import Crew
from tests.torture.cuts import run_cuts
from tests.torture.naive import keep_unsynced
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.workers import (
    Letters,
    Pipe,
    Records,
    Versions,
    replace_files,
    send_mail,
    use_mail,
    write_records,
)

SIZES_MB = {"ext4": 96, "xfs": 320, "btrfs": 256}
"""Little more than what each file system takes for itself."""
CUTS_EACH = 5
"""Then a new image, so that none fills up."""
SESSION = "cut"
_NEW_NAMESPACE = 0x20000
_MOST_TEXTS = 10
"""What a pipe takes in one piece."""
_TOOLS = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def run_power(orders: Orders) -> list[Outcome]:
    return [*run_loops(orders), *run_cuts(orders)]


def run_loops(orders: Orders, disk: Disk = SYSTEM_DISK) -> list[Outcome]:
    cuts = orders.pick(tiny=2, short=2, long=80)
    systems = [name for name in SIZES_MB if shutil.which(f"mkfs.{name}", path=_TOOLS)]
    reason = why_not() or (None if systems else "no mkfs is installed")
    if reason:
        return [Outcome(name="power, loop", unit="cuts", skipped=reason)]
    return [_run_apart(orders, system, cuts, disk) for system in systems]


def why_not() -> str | None:
    """Why this machine cannot run the rig, if it cannot."""
    if os.geteuid() != 0:
        return "only root may mount a file system"
    if not Path("/dev/loop-control").exists():
        return "there are no loop devices"
    tried = subprocess.run(
        ["losetup", "--find"], capture_output=True, text=True, env={"PATH": _TOOLS}, check=False
    )
    return None if tried.returncode == 0 else f"no loop device is free: {tried.stderr.strip()}"


@dataclass(slots=True)
class _Told:
    """Everything acknowledged so far."""

    records: Records = field(default_factory=Records)
    letters: Letters = field(default_factory=Letters)
    versions: Versions = field(default_factory=Versions)
    plain: list[str] = field(default_factory=list[str])

    def take(self, line: str) -> None:
        verb, *rest = line.split()
        match verb:
            case "record":
                self.records.take(*rest)
            case "file":
                self.versions.take(*rest)
            case "plain":
                self.plain.append(rest[0])
            case _:
                self.letters.take(verb, rest[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """What was looked for after one cut, and what was wrong."""

    records: int
    letters: int
    files: int
    plain: int
    plain_lost: int
    wrong: list[str]


def _run_apart(orders: Orders, system: str, cuts: int, disk: Disk) -> Outcome:
    """The cuts, in a child whose mounts nobody else sees."""
    with outcome(f"power, {system}", "cuts") as found, orders.scratch(f"power-{system}") as place:
        with closing(Pipe()) as pipe, Crew() as crew:
            pid = crew.start(lambda: _cut_all(system, cuts, disk, place, orders.random(system), pipe))
            seen: list[_Cut] = []
            while pid in crew.pids:
                seen += [_Cut(**json.loads(line)) for line in pipe.listen(0.2)]
                orders.progress(found.name, len(seen), cuts, "cuts")
                for ended in crew.ended():
                    if ended.code:
                        found.wrong(f"the rig ended with {ended.code}; see its traceback above")
            seen += [_Cut(**json.loads(line)) for line in pipe.listen(0)]
        _sum_up(found, seen)
    return found


def _sum_up(found: Outcome, cuts: list[_Cut]) -> None:
    for cut in cuts:
        for text in cut.wrong:
            found.wrong(text)
    found.count = len(cuts)
    records, letters, files = (
        sum(getattr(cut, key) for cut in cuts) for key in ("records", "letters", "files")
    )
    found.notes += [
        f"looked for {records:,} records, {letters:,} letters and {files:,} files: {found.violations:,} lost",
        f"of {sum(cut.plain for cut in cuts):,} files renamed without fsync "
        f"{sum(cut.plain_lost for cut in cuts):,} were lost",
    ]


def _cut_all(system: str, cuts: int, disk: Disk, place: Path, random: Random, pipe: Pipe) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NAMESPACE) != 0:
        raise OSError(ctypes.get_errno(), "cannot have mounts of one's own")
    _tool("mount", "--make-rprivate", "/")
    while cuts > 0:
        image = place / "disk.img"
        _make_image(system, image)
        with _mounted(image, place / "live") as live:
            _cut_some(min(cuts, CUTS_EACH), disk, live, image, random, pipe)
        cuts -= CUTS_EACH


def _cut_some(cuts: int, disk: Disk, live: Path, image: Path, random: Random, results: Pipe) -> None:
    """Let writers run on one file system, and cut its power a few times as seen from a copy."""
    told = _Told()
    with closing(Pipe()) as pipe, Crew() as crew:
        for who in ("w1", "w2"):
            crew.start(lambda who=who: write_records(live, SESSION, who, pipe, disk))
        crew.start(lambda: send_mail(live, "s1", pipe, disk))
        crew.start(lambda: use_mail(live, pipe, disk))
        crew.start(lambda: replace_files(live, "f1", pipe, disk))
        crew.start(lambda: _write_plain(live, pipe))
        for _ in range(cuts):
            _listen(told, pipe, random.uniform(0.1, 0.6))
            writers = crew.pids
            if [pid for pid in writers if not crew.stop(pid)]:
                raise AssertionError("a writer ended by itself; see its traceback above")
            _listen(told, pipe, 0)
            results.tell(json.dumps(asdict(_look(told, image))))
            for pid in writers:
                crew.go_on(pid)


def _listen(told: _Told, pipe: Pipe, seconds: float) -> None:
    until = time.monotonic() + seconds
    while True:
        for line in pipe.listen(max(0.0, until - time.monotonic())):
            told.take(line)
        if time.monotonic() >= until:
            return


def _look(told: _Told, image: Path) -> _Cut:
    """What is left of everything told, when the power goes now."""
    copy = image.with_suffix(".copy")
    _copy_still(image, copy)
    known = deepcopy(told)
    with _mounted(copy, image.parent / "left") as left:
        wrong = [*known.records.judge(left, SESSION), *known.letters.judge(left), *known.versions.judge(left)]
        lost = sum(1 for name in known.plain if not _is_kept(left / name))
    files, letters = len(known.versions.newest), len(known.letters.delivered)
    shown = [text[:300] for text in wrong[:_MOST_TEXTS]]
    return _Cut(
        records=known.records.total,
        letters=letters,
        files=files,
        plain=len(known.plain),
        plain_lost=lost,
        wrong=shown,
    )


def _copy_still(image: Path, copy: Path) -> None:
    """A copy of one moment: made again if the file system wrote something out meanwhile."""
    for _ in range(50):
        _tool("cp", "--sparse=always", str(image), str(copy))
        if subprocess.run(["cmp", "-s", str(image), str(copy)], check=False).returncode == 0:
            return
    raise AssertionError("the image does not come to rest though all writers are stopped")


def _write_plain(live: Path, pipe: Pipe) -> None:
    number = 0
    while True:
        number += 1
        keep_unsynced(live / f"plain-{number}", _plain_content(f"plain-{number}"))
        pipe.tell(f"plain plain-{number}")
        time.sleep(0.01)


def _plain_content(name: str) -> bytes:
    return name.encode() * 50


def _is_kept(file: Path) -> bool:
    return file.exists() and file.read_bytes() == _plain_content(file.name)


def _make_image(system: str, image: Path) -> None:
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(SIZES_MB[system] * 1024 * 1024)
    _tool(f"mkfs.{system}", "-q", *(["-F"] if system == "ext4" else ["-f"]), str(image))


@contextmanager
def _mounted(image: Path, where: Path) -> Generator[Path]:
    where.mkdir(exist_ok=True)
    _tool("mount", "-o", "loop", str(image), str(where))
    try:
        yield where
    finally:
        _tool("umount", str(where))


def _tool(*command: str) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PATH": _TOOLS, "LC_ALL": "C"}, check=False
    )
    if done.returncode:
        raise AssertionError(f"{' '.join(command)} failed: {done.stderr.strip()}")
