"""What a transcript costs: to resume, however long it has grown, and to append to.

Resuming must read from the last boundary on and nothing before it, so its time is measured against the size
before the boundary: it has to stay flat. Appending is measured beside the bare system calls, in the same run.
Counting a turn, the other work of every turn, is measured here too, at growing histories.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from counting import BAR, Timing, measure_counting, ratio_of

from sevenfold.core.messages import Message
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import resume
from sevenfold.store.transcript.records import BoundaryRecord, MessageRecord, Record
from sevenfold.store.transcript.transcript import Transcript

MB = 1024 * 1024
AT = datetime(2026, 11, 15, tzinfo=UTC)
LINE_CHARS = 20_000
"""About what a large tool result takes."""

AFTER_BOUNDARY = 200
"""Records after the boundary, the same at every size: what resuming is there to read."""

MAX_RESUME_SECONDS = 2.0
MAX_RESUME_MB = 200
MAX_GROWTH = 1.5
"""A resume of the largest against the smallest: flat, with room for a noisy machine."""

APPENDS = 2_000


@dataclass(frozen=True, slots=True)
class Resume:
    size_mb: int
    seconds: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Append:
    way: str
    per_second: float
    bare_per_second: float


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/transcript.py --sizes 1,10,100 --json",
    )
    parser.add_argument("--sizes", default="1,10,100,1024", help="megabytes before the boundary, rising")
    parser.add_argument(
        "--dir", type=Path, help="where to write (default: a temporary folder; needs the sum of the sizes)"
    )
    parser.add_argument("--json", action="store_true", help="print the figures for a machine")
    parser.add_argument("--resume-only", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.resume_only:
        print(json.dumps(asdict(measure_here(args.resume_only))))
        return 0
    try:
        sizes = [int(size) for size in args.sizes.split(",")]
    except ValueError:
        parser.error(f"--sizes {args.sizes!r}: expected whole numbers with commas, such as 1,10,100")
    with tempfile.TemporaryDirectory(dir=args.dir, prefix="sevenfold-bench-") as folder:
        resumes = [measure_resume(Path(folder), size) for size in sizes]
        appends = [measure_append(Path(folder), durable) for durable in (True, False)]
    progress("counting turns")
    turns = measure_counting()
    failures = check(resumes, turns)
    if args.json:
        figures = {"resume": resumes, "append": appends, "counting": turns}
        plain = {name: [asdict(row) for row in rows] for name, rows in figures.items()}
        print(json.dumps(plain | {"failures": failures}, indent=2))
    else:
        show(resumes, appends, turns, failures)
    return 1 if failures else 0


def measure_resume(folder: Path, size_mb: int) -> Resume:
    """Write a transcript of that size, then resume it in a process of its own, three times."""
    progress(f"writing {size_mb:,} MB")
    write_long(folder, size_mb)
    command = [sys.executable, __file__, "--resume-only", str(folder)]
    runs: list[Resume] = []
    for _ in range(3):
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        runs.append(Resume(**json.loads(answer.stdout)))
    (folder / "long.jsonl").unlink()
    return Resume(size_mb, median(run.seconds for run in runs), max(run.peak_mb for run in runs))


def write_long(folder: Path, size_mb: int) -> None:
    with Folder.open(folder) as opened, Transcript.open(opened, "long") as transcript:
        for _ in range(max(1, size_mb * MB // (LINE_CHARS * 100))):
            transcript.append_all(list(messages(100)), durable=False)
        transcript.append(
            Record(BoundaryRecord(trigger="auto", tokens_before=160_000, last_message=RecordId("last")), AT),
            durable=False,
        )
        transcript.append_all(list(messages(AFTER_BOUNDARY)))


def messages(count: int) -> Iterator[Record]:
    text = "the quick brown fox jumps over the lazy dog\n" * (LINE_CHARS // 44)
    return (Record(MessageRecord(Message("user", text)), AT) for _ in range(count))


def measure_here(folder: Path) -> Resume:
    with Folder.open(folder) as opened:
        start = time.perf_counter()
        resumed = resume(opened, "long")
        seconds = time.perf_counter() - start
    if len(resumed.records) != AFTER_BOUNDARY or resumed.bad or not resumed.boundary:
        raise SystemExit(f"resume returned {len(resumed.records)} records and {len(resumed.bad)} bad lines")
    return Resume(0, seconds, peak_mb())


def peak_mb() -> float:
    """The most memory this process has held; its own, not that of the process it was started from."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def measure_append(folder: Path, durable: bool) -> Append:
    way = "with fsync" if durable else "without fsync"
    progress(f"appending {way}")
    records = list(messages(1))
    with Folder.open(folder) as opened, Transcript.open(opened, f"append-{durable}") as transcript:
        ours = rate(lambda: transcript.append(records[0], durable=durable))
    fd = os.open(folder / f"bare-{durable}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    data = bytes(LINE_CHARS)

    def bare() -> None:
        os.write(fd, data)
        if durable:
            os.fsync(fd)

    try:
        return Append(way, ours, rate(bare))
    finally:
        os.close(fd)


def rate(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(APPENDS):
        act()
    return APPENDS / (time.perf_counter() - start)


def check(resumes: list[Resume], turns: list[Timing]) -> list[str]:
    """Every bar that does not hold, in words."""
    largest, smallest = resumes[-1], resumes[0]
    failures: list[str] = []
    if largest.seconds > MAX_RESUME_SECONDS:
        failures.append(
            f"resume of {largest.size_mb:,} MB took {largest.seconds:.2f} s; the bar is {MAX_RESUME_SECONDS}"
        )
    if largest.peak_mb > MAX_RESUME_MB:
        failures.append(
            f"resume of {largest.size_mb:,} MB took {largest.peak_mb:.0f} MB; the bar is {MAX_RESUME_MB}"
        )
    if largest.seconds > smallest.seconds * MAX_GROWTH:
        failures.append(f"resume is not flat: {largest.seconds / smallest.seconds:.1f} times the smallest")
    if ratio_of(turns) > BAR:
        failures.append(f"counting a turn is not flat: {ratio_of(turns):.1f} times the smallest history")
    return failures


def show(resumes: list[Resume], appends: list[Append], turns: list[Timing], failures: list[str]) -> None:
    bars = f"{MAX_RESUME_SECONDS} s, {MAX_RESUME_MB} MB, flat"
    print(f"resume of {AFTER_BOUNDARY} records behind a boundary (bars: {bars})")
    for row in resumes:
        ratio, millis = row.seconds / resumes[0].seconds, row.seconds * 1000
        print(f"  {row.size_mb:6,} MB before it {millis:8.1f} ms {row.peak_mb:6.0f} MB {ratio:6.2f} x")
    print(f"append of {LINE_CHARS:,}-byte records, beside the bare system calls")
    for row in appends:
        ratio = row.bare_per_second / row.per_second
        print(
            f"  {row.way:14} {row.per_second:8,.0f}/s   bare {row.bare_per_second:8,.0f}/s   {ratio:6.2f} x"
        )
    print("counting one turn, at growing histories (flat)")
    for row in turns:
        ratio = row.microseconds / turns[0].microseconds
        print(f"  {row.history_tokens:9,} tokens {row.microseconds:8.0f} µs {ratio:6.2f} x")
    for failure in failures:
        print(f"FAILED: {failure}")


def progress(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
