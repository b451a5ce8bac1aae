"""How fast `sevenfold replay` reads, in how much memory: 500 MB of real transcripts in under a minute.

Builds a corpus in a temporary folder by repeating the transcripts of --data with fresh ids, runs the command
on it as a user would, watches its processes, and reads every line with plain `json.loads` in the same run.

    python bench/replay.py --data DIR --again              # 500 sessions, read twice

With `--again` the command runs three times over 500 sessions with a home of its own: the first run reads
everything, the second finds it kept, the third finds one session that grew. The bar is a ratio of processor
time, so that it holds on a busy machine; the seconds are printed beside it.
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
from pathlib import Path

MOST_SECONDS_PER_500_MB = 60.0
MOST_MEMORY_MB = 300.0
AGAIN_FILES = 500
MOST_AGAIN_RATIO = 0.10
"""Of the processor time of the first run. On a quiet machine with two cores, that is a second."""
WATCH_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A run of the command, as seen from outside."""

    seconds: float
    cpu_seconds: float
    memory_mb: float
    """The largest that each of its processes ever was, added up: never less than the true peak."""
    processes: int
    output: bytes


@dataclass(frozen=True, slots=True)
class Decoder:
    name: str
    megabytes_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    files: int
    megabytes: float
    calls: int
    seconds: float
    megabytes_per_second: float
    cpu_seconds: float
    """Of all its processes: what it takes, whoever else is at work on the machine."""
    cores_used: float
    memory_mb: float
    processes: int
    json_seconds: float
    """One process, every line through `json.loads`, nothing else."""
    times_json: float
    """Wall time of the command over that."""
    decoders: tuple[Decoder, ...]
    is_met: bool


def build_corpus(data: Path, folder: Path, megabytes: float, most: int | None = None) -> int:
    """Copies of the raw transcripts, each with ids of its own, until there is enough. How many files.

    With `most`, so many of the smallest quarter: sessions as most are, and no more of them.
    """
    sources = sorted((data / "raw").rglob("*.jsonl"))
    if not sources:
        raise SystemExit(f"error: no raw/**/*.jsonl in {data}; give --data the folder above raw/")
    if most is not None:
        sources = sorted(sources, key=lambda path: path.stat().st_size)[: len(sources) // 4 + 1]
    contents = [path.read_bytes() for path in sources]
    written, copy = 0.0, 0
    while written < megabytes * 1e6 and (most is None or copy < most):
        source = sources[copy % len(sources)]
        text = contents[copy % len(sources)]
        fresh = text.replace(b"msg_", b"msg_%04dx" % copy).replace(
            source.stem.encode(), b"session-%04d" % copy
        )
        (folder / f"{copy % 7}").mkdir(exist_ok=True)
        (folder / f"{copy % 7}" / f"{copy:04}.jsonl").write_bytes(fresh)
        written += len(fresh)
        copy += 1
    return copy


def watch(command: list[str], environ: dict[str, str] | None = None) -> Watched:
    """Run it and look at its processes while it runs."""
    peaks: dict[int, int] = {}
    before, started = os.times(), time.perf_counter()
    with tempfile.TemporaryFile() as out, subprocess.Popen(command, stdout=out, env=environ) as process:
        while process.poll() is None:
            for pid in _tree(process.pid):
                peaks[pid] = max(peaks.get(pid, 0), _peak_kb(pid))
            time.sleep(WATCH_S)
        seconds = time.perf_counter() - started
        after = os.times()
        out.seek(0)
        output = out.read()
    if process.returncode != 0:
        raise SystemExit(f"error: {' '.join(command)} ended with {process.returncode}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Watched(
        seconds=seconds,
        cpu_seconds=cpu,
        memory_mb=sum(peaks.values()) / 1024,
        processes=len(peaks),
        output=output,
    )


def _tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return
    for child in children:
        yield from _tree(int(child))


def _peak_kb(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
    return int(line.split()[1])


def time_json(files: list[Path]) -> float:
    started = time.perf_counter()
    for path in files:
        with path.open("rb") as file:
            for line in file:
                json.loads(line)
    return time.perf_counter() - started


def compare_decoders(files: list[Path]) -> tuple[Decoder, ...]:
    """Decoding alone, by what is installed: what a faster decoder could save at most."""
    lines = [line for path in files for line in path.read_bytes().splitlines()]
    size = sum(map(len, lines)) / 1e6
    return tuple(Decoder(name, size / _seconds(decode, lines)) for name, decode in _decoders().items())


def _decoders() -> dict[str, Callable[[bytes], object]]:
    found: dict[str, Callable[[bytes], object]] = {"json": json.loads}
    try:
        import msgspec
    except ImportError:
        return found

    message = msgspec.defstruct(
        "Message",
        [("id", object, None), ("model", object, None), ("content", object, None), ("usage", object, None)],
    )
    fields = (
        "type",
        "subtype",
        "uuid",
        "parentUuid",
        "timestamp",
        "isSidechain",
        "agentId",
        "payload",
        "data",
    )
    line = msgspec.defstruct(
        "Line", [*((name, object, None) for name in fields), ("message", message | None, None)]
    )
    found["msgspec, all of it"] = msgspec.json.Decoder().decode
    found["msgspec, wanted fields"] = msgspec.json.Decoder(line).decode
    return found


def _seconds(decode: Callable[[bytes], object], lines: list[bytes]) -> float:
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        for line in lines:
            decode(line)
        best = min(best, time.process_time() - started)
    return best


def measure(data: Path, megabytes: float, jobs: int | None) -> Result:
    with tempfile.TemporaryDirectory(prefix="sevenfold-replay-") as name:
        say(f"building {megabytes:,.0f} MB of transcripts")
        count = build_corpus(data, Path(name), megabytes)
        files = sorted(Path(name).rglob("*.jsonl"))
        size = sum(path.stat().st_size for path in files) / 1e6
        say(f"replaying {count} files")
        command = [sys.executable, "-m", "sevenfold", "replay", name, "--json"]
        seen = watch([*command, *(["--jobs", str(jobs)] if jobs else [])])
        say("reading every line with json.loads")
        json_seconds = time_json(files)
        decoders = compare_decoders(files[: min(len(files), 16)])
    calls: int = json.loads(seen.output)["total"]["calls"]
    is_met = seen.seconds < MOST_SECONDS_PER_500_MB * size / 500 and seen.memory_mb < MOST_MEMORY_MB
    return Result(
        files=count,
        megabytes=size,
        calls=calls,
        seconds=seen.seconds,
        megabytes_per_second=size / seen.seconds,
        cpu_seconds=seen.cpu_seconds,
        cores_used=seen.cpu_seconds / seen.seconds,
        memory_mb=seen.memory_mb,
        processes=seen.processes,
        json_seconds=json_seconds,
        times_json=seen.seconds / json_seconds,
        decoders=decoders,
        is_met=is_met,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainResult:
    files: int
    megabytes: float
    first: float
    second: float
    grown: float
    """After one session grew."""
    first_cpu: float
    second_cpu: float
    grown_cpu: float
    start_cpu: float
    """`sevenfold --version`: what no run can be without."""

    @property
    def is_met(self) -> bool:
        return max(self.second_cpu, self.grown_cpu) <= MOST_AGAIN_RATIO * self.first_cpu


def measure_again(data: Path) -> AgainResult:
    with tempfile.TemporaryDirectory(prefix="sevenfold-replay-") as name:
        corpus, home = Path(name, "logs"), Path(name, "home")
        corpus.mkdir()
        home.mkdir()
        count = build_corpus(data, corpus, 1e9, AGAIN_FILES)
        files = sorted(corpus.rglob("*.jsonl"))
        # With byte code kept, as where it is installed: compiling takes longer than everything else.
        environ = {**os.environ, "HOME": str(home), "PYTHONPYCACHEPREFIX": str(Path(name, "bytecode"))}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        program = [sys.executable, "-m", "sevenfold"]
        runs: list[Watched] = []
        for label in ("first", "second", "one session grew"):
            say(f"replaying {count} files: {label}")
            if label == "one session grew":
                with files[0].open("ab") as file:
                    file.write(b'{"type":"user"}\n')
            runs.append(watch([*program, "replay", str(corpus)], environ))
        start = watch([*program, "--version"], environ)
        size = sum(path.stat().st_size for path in files) / 1e6
    first, second, grown = runs
    return AgainResult(
        files=count,
        megabytes=size,
        first=first.seconds,
        second=second.seconds,
        grown=grown.seconds,
        first_cpu=first.cpu_seconds,
        second_cpu=second.cpu_seconds,
        grown_cpu=grown.cpu_seconds,
        start_cpu=start.cpu_seconds,
    )


def print_again(result: AgainResult) -> None:
    print(f"{result.files} sessions, {result.megabytes:,.0f} MB")
    rows = (
        ("first", result.first, result.first_cpu),
        ("second", result.second, result.second_cpu),
        ("one grew", result.grown, result.grown_cpu),
    )
    for label, seconds, cpu in rows:
        print(f"{label:9} {seconds:6.2f} s  {cpu:6.2f} s of CPU  {cpu / result.first_cpu:.3f} of the first")
    print(f"the program itself starts in {result.start_cpu:.2f} s of CPU")
    print(f"{'met   ' if result.is_met else 'MISSED'} {MOST_AGAIN_RATIO} of the first")


def print_result(result: Result) -> None:
    print(f"{result.files} files, {result.megabytes:,.0f} MB, {result.calls:,} calls")
    print(
        f"replay     {result.seconds:6.1f} s  {result.megabytes_per_second:6.1f} MB/s  "
        f"{result.cpu_seconds:.1f} s of CPU on {result.cores_used:.1f} cores  "
        f"{result.memory_mb:.0f} MB in {result.processes} processes"
    )
    print(
        f"json.loads {result.json_seconds:6.1f} s  {result.megabytes / result.json_seconds:6.1f} MB/s  "
        f"1 core; replay takes {result.times_json:.1f} times as long"
    )
    for decoder in result.decoders:
        print(f"  decoding alone, {decoder.name}: {decoder.megabytes_per_second:.0f} MB/s")
    bar = MOST_SECONDS_PER_500_MB * result.megabytes / 500
    print(f"{'met   ' if result.is_met else 'MISSED'} {bar:.0f} s and {MOST_MEMORY_MB:.0f} MB")


def say(text: str) -> None:
    print(f"· {text}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder that holds raw/**/*.jsonl")
    parser.add_argument(
        "--megabytes", type=float, default=500.0, metavar="N", help="size of the corpus (500)"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="processes to use (one a core)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--again", action="store_true", help=f"read {AGAIN_FILES} sessions three times")
    options = parser.parse_args()
    if options.again:
        again = measure_again(options.data)
        print(json.dumps(asdict(again), indent=2)) if options.json else print_again(again)
        return 0 if again.is_met else 1
    result = measure(options.data, options.megabytes, options.jobs)
    if options.json:
        print(json.dumps(asdict(result), indent=2))
    else:
        print_result(result)
    return 0 if result.is_met else 1


if __name__ == "__main__":
    sys.exit(main())
