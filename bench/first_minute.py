"""From a clone to the first useful screen: what is downloaded, how long it takes, and the size of the wheel.

    python bench/first_minute.py [--cold]

Clones this repository into a scratch folder and runs `make try` there as a newcomer does: once with the
packages from the index (`--cold` stops there), once with packages that are on disk. It prints the bytes that
are downloaded, the size of `.venv`, the seconds until the first line, the first bill and the end of the tour,
and the longest time without output. The exit code is 1 if a bar is missed. It needs a package index.
"""

from __future__ import annotations

import argparse
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST_SCREEN, FIRST_BILL = b"Sevenfold in", b"so far: $"
MAX_INSTALLED_BYTES = 150_000_000
MAX_WARM_SECONDS = 60.0
"""From `make try` to the first bill, with a warm package cache."""
MAX_TOUR_SECONDS = 90.0
MAX_QUIET_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What a newcomer saw, in seconds since `make try`."""

    first_screen: float
    first_bill: float
    end: float
    quiet: float
    """The longest time without output from the first screen on."""


def measure_folder(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def visit(clone: Path, environ: Mapping[str, str]) -> Visit:
    """Run `make try` on a terminal and note when something appears."""
    start = time.monotonic()
    terminal, end = pty.openpty()
    process = subprocess.Popen(["make", "try"], cwd=clone, env=environ, stdin=end, stdout=end, stderr=end)
    os.close(end)
    seen, last, quiet = b"", start, 0.0
    first: dict[bytes, float] = {}
    while part := _read(terminal):
        now = time.monotonic()
        if FIRST_SCREEN in first:
            quiet = max(quiet, now - last)
        seen, last = seen + part, now
        for sign in (FIRST_SCREEN, FIRST_BILL):
            if sign in seen:
                first.setdefault(sign, now - start)
    os.close(terminal)
    if process.wait() != 0:
        sys.exit(f"make try failed:\n{seen.decode(errors='replace')[-3_000:]}")
    return Visit(
        first_screen=first[FIRST_SCREEN],
        first_bill=first[FIRST_BILL],
        end=time.monotonic() - start,
        quiet=quiet,
    )


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other end is closed
        return b""


def download(clone: Path, target: Path) -> int:
    """The bytes of all packages that the tour needs."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    subprocess.run([*pip, "-r", str(clone / "constraints-try.txt"), "-d", str(target)], check=True)
    return measure_folder(target)


def build_wheel(clone: Path) -> int:
    build = [str(clone / ".venv/bin/python"), "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    subprocess.run(build, cwd=clone, check=True, capture_output=True)
    (wheel,) = (clone / "dist").glob("*.whl")
    return wheel.stat().st_size


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cold", action="store_true", help="leave out the second run")
    options = parser.parse_args()
    missed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="sevenfold-first-minute-") as scratch:
        clone, packages = Path(scratch) / "clone", Path(scratch) / "packages"
        environ = {**os.environ, "HOME": scratch, "COLUMNS": "100", "TERM": "xterm"}
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", str(clone)], check=True)
        print(f"downloaded: {download(clone, packages):,} bytes")
        for name in ("cold", "warm")[: 1 if options.cold else 2]:
            shutil.rmtree(clone / ".venv", ignore_errors=True)
            if name == "warm":
                environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages)}
            seen = visit(clone, environ)
            installed = measure_folder(clone / ".venv")
            print(f"{name}: .venv {installed:,} bytes")
            print(
                f"{name}: first screen {seen.first_screen:.1f} s, first bill {seen.first_bill:.1f} s, "
                f"end {seen.end:.1f} s; longest quiet time {seen.quiet:.1f} s"
            )
            missed += [f"{name}: .venv is larger than {MAX_INSTALLED_BYTES:,}"] * (
                installed > MAX_INSTALLED_BYTES
            )
            tour = seen.end - seen.first_screen
            missed += [f"{name}: the tour took {tour:.0f} s"] * (tour > MAX_TOUR_SECONDS)
            missed += [f"{name}: nothing was shown for {seen.quiet:.1f} s"] * (seen.quiet > MAX_QUIET_SECONDS)
            if name == "warm" and seen.first_bill > MAX_WARM_SECONDS:
                missed.append(f"warm: the first bill came after {seen.first_bill:.0f} s")
        print(f"wheel: {build_wheel(clone):,} bytes")
    for miss in missed:
        print(f"missed: {miss}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
