"""Kill, starve, race and unplug the store, and look at what is left: `python -m tests.torture --help`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.torture.adversary import run_adversary
from tests.torture.bills import run_bills
from tests.torture.canaries import run_canaries
from tests.torture.contention import run_lock
from tests.torture.dreams import run_dreams
from tests.torture.faults import run_faults
from tests.torture.files import run_files
from tests.torture.kills import run_kills
from tests.torture.lines import run_lines
from tests.torture.memory import run_memory
from tests.torture.paths import run_paths
from tests.torture.post import run_mail
from tests.torture.power import run_power
from tests.torture.races import run_races
from tests.torture.rig import Orders, Outcome, Progress, Rig, Size
from tests.torture.schedules import run_sync
from tests.torture.server import run_server_api, run_server_keys
from tests.torture.shell import run_shell
from tests.torture.syscalls import run_syscalls

RIGS: Mapping[str, Rig] = {
    "faults": run_faults,
    "strace": run_syscalls,
    "kills": run_kills,
    "bills": run_bills,
    "mail": run_mail,
    "lock": run_lock,
    "memory": run_memory,
    "paths": run_paths,
    "races": run_races,
    "power": run_power,
    "dream": run_dreams,
    "shell": run_shell,
    "files": run_files,
    "server-keys": run_server_keys,
    "server-api": run_server_api,
    "sync": run_sync,
    "sync-line": run_lines,
    "canaries": run_canaries,
    "adversary": run_adversary,
}
WHAT = """\
rigs:
  faults   an accident (death, ENOSPC, EIO, EINTR, short write) at every operation of the fs port,
           in a child process, on file systems with and without an exclusive rename; then recovery, and
           what must hold afterwards
  strace   a kill or an error at every system call, looking and closing too, and proof that none
           bypasses the port (needs strace)
  kills    writers and readers killed at random moments while others go on
  bills    an agent killed while it talks to a model: each billed request is counted, or shown as unknown
  mail     eight agents that write to each other and are killed: each message told exactly once
  lock     sixteen processes stopped, resumed and killed over one lock; sixteen editors of one file
  memory   memories struck at every operation, cut off the power, and changed by sixteen processes at once
  paths    hostile keys against a folder full of links, FIFOs and devices; roots that look alike
  races    a folder swapped for a link while it is used
  power    power cuts: simulated at every change, and on a loop-mounted file system (needs root)
  dream    dreams struck at every operation, and dreamers killed while others edit what they rewrite
  files    hostile paths for every file tool under every permission, and links swapped in between
  shell    hostile command lines under every permission, with canaries, doors and a victim around
  sync     team memory on a seeded scheduler: up to five devices, lost, doubled and late requests, power cuts
  sync-line    the same with real folders, HTTP and databases, over a line that loses, cuts, doubles, delays
  canaries made-up secrets in a team's folder: none leaves the device
  adversary    a stranger's repository in every mode, text that tells a terminal what to do, and endpoints
               that send without end, stall, redirect or unpack to gigabytes, against every provider
  server-keys  hostile keys against the team server, put and committed
  server-api   Schemathesis over the team server's whole API

examples:
  python -m tests.torture                          the short form of everything: a minute
  python -m tests.torture --long                   the long form: up to 25 minutes
  python -m tests.torture --only races --long      one rig
  python -m tests.torture --only faults --seed 7   the same accidents again, or others

exit code: 0 nothing wrong, 1 something was lost, torn, shared or let out, 2 bad usage, 130 interrupted.
Where SEVENFOLD_NO_SKIP is set, a rig that this machine cannot run counts as wrong.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parse(arguments)
    size: Size = "long" if asked.long else "short"
    progress = Progress(quiet=asked.quiet)
    # A shell that starts a job in the background has it ignore SIGINT, which would be inherited.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    place = Path(tempfile.mkdtemp(prefix="sevenfold-torture-", dir=asked.dir or _real_disk()))
    began = time.monotonic()
    outcomes: list[Outcome] = []
    try:
        for name in asked.only or RIGS:
            outcomes += _run(name, Orders(size, asked.seed, place, progress))
            progress.clear()
    except KeyboardInterrupt:
        progress.clear()
        print("interrupted: what follows is what was found until then", file=sys.stderr)
        _show(outcomes, asked.seed, size, time.monotonic() - began, as_json=asked.json)
        return 130
    finally:
        shutil.rmtree(place, ignore_errors=True)
    _show(outcomes, asked.seed, size, time.monotonic() - began, as_json=asked.json)
    return 1 if any(_is_wrong(line) for line in outcomes) else 0


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture",
        description="Torture the store: no record lost, no file torn, no second holder, no way out.",
        epilog=WHAT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--short", action="store_true", help="a minute for all rigs (the default; runs in CI)")
    size.add_argument("--long", action="store_true", help="up to 25 minutes for all rigs; before a release")
    parser.add_argument(
        "--only", action="append", choices=list(RIGS), metavar="NAME", help="one rig; repeatable"
    )
    parser.add_argument("--seed", type=int, default=1, help="where random numbers start (default: 1)")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("--dir", type=_folder, metavar="DIR", help="a folder on the disk to torture")
    return parser.parse_args(arguments)


def _folder(text: str) -> Path:
    if not os.path.isdir(text) or not os.access(text, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text!r} is not a folder that can be written to; make it first")
    return Path(text).resolve()


def _real_disk() -> Path:
    """Temporary files may live in memory; these are meant to meet a disk."""
    kept = Path("/var/tmp")
    return kept if os.access(kept, os.W_OK) else Path(tempfile.gettempdir())


def _run(name: str, orders: Orders) -> list[Outcome]:
    try:
        return RIGS[name](orders)
    except Exception as error:
        traceback.print_exc()
        failed = Outcome(name=name, unit="")
        failed.wrong(f"the rig itself failed: {type(error).__name__}: {error}")
        return [failed]


def _is_wrong(line: Outcome) -> bool:
    return bool(line.violations or (line.skipped and os.environ.get("SEVENFOLD_NO_SKIP")))


def _show(outcomes: Sequence[Outcome], seed: int, size: Size, seconds: float, *, as_json: bool) -> None:
    if as_json:
        rows = [asdict(line) for line in outcomes]
        print(json.dumps({"size": size, "seed": seed, "seconds": round(seconds, 1), "rigs": rows}, indent=2))
        return
    print(f"{'rig':<24}{'count':>12} {'of what':<24}{'violations':>11}{'seconds':>9}")
    for line in outcomes:
        print(f"{line.name:<24}{line.count:>12,} {line.unit:<24}{line.violations:>11,}{line.seconds:>9.1f}")
        if line.skipped:
            print(f"    skipped: {line.skipped}")
        for note in line.notes:
            print(f"    {note}")
        for wrong in line.shown:
            print(f"    WRONG: {wrong}")
        if line.violations > len(line.shown):
            print(f"    … and {line.violations - len(line.shown):,} more")
    total = sum(line.violations for line in outcomes)
    skipped = sum(1 for line in outcomes if line.skipped)
    print(f"{total:,} violations, {skipped} skipped, {seconds:,.0f} s, {size}, seed {seed}")


if __name__ == "__main__":
    sys.exit(main())
