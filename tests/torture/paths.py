"""Rig: hostile keys against a folder full of traps, and roots that differ as little as roots can."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from random import Random

from sevenfold.core.errors import SevenfoldError
from sevenfold.store.files.disk import FOLDER_FLAGS, READ_FLAGS, Disk
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.project import make_project_id
from tests.torture.gang import try_all
from tests.torture.hostile import Outside, hostile_keys, set_traps
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.stage import QuickDisk

MAX_BYTES = 1_000_000
CHUNK = 1_000
RESET_EVERY = 250
"""Traps are used up by being replaced and removed; they are set again this often."""
PLANTED = b"planted"
HARMLESS = (None, b"", b"inside", PLANTED)
"""All that can be read without getting out."""
LONGEST_SECONDS = 10


class WalkingDisk(QuickDisk):
    """The portable way, for systems without openat2."""

    def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
        return self.walk_beneath(root_fd, path, flags)


@dataclass(frozen=True, slots=True)
class Way:
    name: str
    disk: Disk


WAYS = (Way("openat2", QuickDisk()), Way("portable walk", WalkingDisk()))


class Hung(Exception):
    """An operation that waits for something which never comes."""


@dataclass(frozen=True, slots=True)
class Attack:
    """A thousand keys, and the operations they are tried with."""

    seed: str
    disk: Disk


def run_paths(orders: Orders, ways: Sequence[Way] = WAYS) -> list[Outcome]:
    return [*(_attack(orders, way, len(ways)) for way in ways), run_identity(orders)]


def _attack(orders: Orders, way: Way, share: int) -> Outcome:
    chunks = orders.pick(tiny=2_000, short=20_000, long=400_000) // share // CHUNK
    attacks = [Attack(f"{orders.seed} {way.name} {number}", way.disk) for number in range(chunks)]
    with outcome(f"paths, {way.name}", "hostile keys") as found, orders.scratch("paths") as place:
        for verdict in try_all(attacks, attack, place, workers=2):
            found.count += CHUNK
            for wrong in verdict.wrong:
                found.wrong(wrong)
            orders.progress(found.name, found.count, chunks * CHUNK, "hostile keys")
    return found


def attack(attack: Attack, place: Path) -> list[str]:
    """Everything that went wrong with a thousand keys."""
    random = Random(attack.seed)
    shutil.rmtree(place, ignore_errors=True)
    root, outside = place / "root", Outside(place / "outside")
    os.chdir(outside.path)
    keys = hostile_keys(random, outside.path)
    before = outside.digest()
    wrong: list[str] = []
    for _ in range(CHUNK // RESET_EVERY):
        set_traps(root, outside.path)
        tried: list[str] = []
        with Folder.open(root, disk=attack.disk) as folder:
            for key in islice(keys, RESET_EVERY):
                verb = random.choice(list(_OPERATIONS))
                tried.append(f"{verb} {key!r}")
                wrong += [f"{verb} {key!r} {what}" for what in _try(folder, verb, key, next(keys))]
        wrong += [f"{names} differ in case alone" for names in _twins(root)]
        if outside.digest() != before:
            return [f"something outside was changed by one of: {'; '.join(tried)}"[:800], *wrong]
    return wrong


def _try(folder: Folder, verb: str, key: str, other: str) -> Iterator[str]:
    """One operation with one key; what it reads and how it fails are looked at."""
    signal.signal(signal.SIGALRM, _hung)
    signal.alarm(LONGEST_SECONDS)
    try:
        if _OPERATIONS[verb](Attempt(folder, key, other)) not in HARMLESS:
            yield "brought in what is outside"
    except SevenfoldError:
        return
    except Hung:
        yield "hung"
    except Exception as error:
        yield f"failed with {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)


def _hung(number: int, frame: object) -> None:
    raise Hung


def _twins(root: Path) -> list[str]:
    names = sorted(os.listdir(root), key=str.casefold)
    return [f"{one!r} and {two!r}" for one, two in pairwise(names) if one.casefold() == two.casefold()]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A folder and the key it is asked for; a second key where an operation takes two."""

    folder: Folder
    key: str
    other: str

    def opened(self, flags: int) -> bytes:
        fd = self.folder.open_file(self.key, flags)
        try:
            return os.pread(fd, MAX_BYTES, 0)
        finally:
            os.close(fd)

    def planted(self) -> None:
        with self.folder.subfolder(self.key, create=len(self.other) % 2 == 0) as below:
            below.replace("planted.md", PLANTED)

    def beneath(self) -> bytes:
        """The second wall alone, without the grammar of keys before it."""
        fd = os.open(self.folder.path, FOLDER_FLAGS)
        try:
            below = self.folder.disk.open_beneath(fd, self.key, READ_FLAGS)
        except (OSError, UnicodeEncodeError) as error:
            raise SevenfoldError(str(error)) from error
        finally:
            os.close(fd)
        try:
            place = Path(os.readlink(f"/proc/self/fd/{below}"))
            return b"" if place.is_relative_to(self.folder.path) else os.fsencode(place)
        finally:
            os.close(below)


_OPERATIONS: dict[str, Callable[[Attempt], object]] = {
    "read": lambda at: at.folder.read(at.key, max_bytes=MAX_BYTES),
    "read_range": lambda at: at.folder.read_range(at.key, 0, MAX_BYTES),
    "entry": lambda at: at.folder.stat(at.key) and None,
    "replace": lambda at: at.folder.replace(at.key, PLANTED),
    "create": lambda at: at.folder.create(at.key, PLANTED),
    "remove": lambda at: at.folder.remove(at.key),
    "move": lambda at: at.folder.move(at.key, at.other),
    "move a.md to": lambda at: at.folder.move("a.md", at.key),
    "subfolder": lambda at: at.planted(),
    "open_file to read": lambda at: at.opened(READ_FLAGS),
    "open_file to write": lambda at: at.opened(os.O_RDWR),
    "open_file to make": lambda at: at.opened(os.O_RDWR | os.O_CREAT | os.O_APPEND),
    "open_beneath": lambda at: at.beneath(),
}
"""What each of them reads, if anything."""


def run_identity(orders: Orders, name: Callable[[Path], str] = make_project_id) -> Outcome:
    """Different roots, different names, on a disk that ignores case too."""
    wanted = orders.pick(tiny=5_000, short=50_000, long=1_000_000)
    random = orders.random("roots")
    with outcome("paths, identity", "roots") as found:
        roots: set[bytes] = set()
        names: set[bytes] = set()
        while len(roots) < wanted:
            for root in _relatives(random, len(roots)):
                short = _digest(os.fsencode(root))
                if short in roots:
                    continue
                roots.add(short)
                names.add(_digest(name(root).casefold().encode()))
                if len(names) < len(roots) - found.violations:
                    found.wrong(f"{str(root)!r} shares its name with another root")
            orders.progress(found.name, len(roots), wanted, "roots")
        found.count = len(roots)
    return found


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _relatives(random: Random, number: int) -> set[Path]:
    """A root and everything that is easily taken for it."""
    words = ("src", "Work-Place", "café", "名前", "straße", "İzmir", "a b", "x_y", "v1.2", "raw\udcff", "ﬁne")
    parts = random.sample(words, random.randrange(1, 4))
    path = f"/{'/'.join(parts)}/{random.choice(words)}{number}"
    forms = [unicodedata.normalize(form, path) for form in ("NFC", "NFD", "NFKC", "NFKD")]
    cases = [path.lower(), path.upper(), path.swapcase(), path.casefold(), path.title()]
    marks = [path.replace(old, new) for old in "-/_. " for new in "-/_. " if old != new]
    ends = [path + end for end in ("-", ".", " ", "/x", "-x", "_", "~", "2", "\u200b")] + [path[:-1]]
    return {Path("/" + each) for each in (path, *forms, *cases, *marks, *ends)}
