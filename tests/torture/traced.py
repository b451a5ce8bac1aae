"""Every scenario played once by an interpreter of its own, for somebody who watches its system calls.

Run as `python -m tests.torture.traced FOLDER SEED`. Between two looks at files that do not exist, nothing may
touch the folder but the fs port; what the port was asked to do is printed at the end.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

from sevenfold.store.files.disk import FOLDER_FLAGS, SYSTEM_DISK
from tests.store.faults import FaultyDisk
from tests.torture.faults import SCENARIOS
from tests.torture.stage import Seen, play

BEGIN, END = "/no such file/sevenfold begins", "/no such file/sevenfold ends"


def main(place: Path, seed: int) -> None:
    # The disk asks the kernel once what it can do; that is no operation of anybody's.
    fd = os.open(place, FOLDER_FLAGS)
    SYSTEM_DISK.close(SYSTEM_DISK.open_beneath(fd, ".", FOLDER_FLAGS))
    for make in SCENARIOS:
        make(seed).prepare(place / make.name)
    disk = FaultyDisk(None)
    notes: list[str] = []
    unfinished: list[str] = []
    _look(BEGIN)
    for make in SCENARIOS:
        scenario = make(seed)
        notes.clear()
        play(scenario, place / scenario.name, disk, notes.append)
        if not Seen.of(notes).finished:
            unfinished.append(scenario.name)
    _look(END)
    print(json.dumps({"unfinished": unfinished, "operations": Counter(disk.seen)}))


def _look(path: str) -> None:
    with suppress(OSError):
        os.stat(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
