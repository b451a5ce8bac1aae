"""How many small faults in the source the tests of the same folder notice.

    python -m bench.mutation                  # 60 mutants; exit code 1 if less than 85% are noticed
    python -m bench.mutation --list           # which ones, without running anything
    python -m bench.mutation --packages core store --count 20 --seed 7

A mutant is the source with one changed line: a negated condition, another comparison, `and` for `or`, a
number that is off by one, another string in a comparison or a look-up, a statement dropped, a return too
early or of None. Which ones are chosen depends on the seed and the source alone: lines by chance, and of each
line one change by chance.

Every mutant lives in a temporary copy of the repository; the work tree is never changed. It is run against
the tests in the folder that mirrors its module (`tests/store/files` for `store/files/disk.py`), or in the
nearest folder above it that exists. Stories, torture and gates are left out. First each of these folders is
run once without a mutant, with probes in the source that tell which tests run which line; tests that fail
there are left out
and named. Then a mutant gets the tests that run its line, or the whole folder if none does. It is noticed if
a test fails or hangs.

A survivor is a question and not always a fault: some changes make no difference to what a program does.
Ctrl-C ends all runs, removes the copies and prints what was found so far.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Literal, cast

from bench.mutation_plugin import PLAN, LineMap, Plan
from bench.mutation_sites import Mutant, add_probes, compiles, read_mutants

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src") / "sevenfold"
PACKAGES = ("core", "layers", "session", "store")
COUNT, SEED, LEAST_SHARE = 60, 1, 0.85
MARKS = "not story and not torture and not gate"
MAP_SECONDS = 1_800
LEAST_SECONDS, TIMES = 60, 10
"""A mutant hangs if it takes ten times as long as its tests did without it, and a minute at least."""
NOT_COPIED = (".git", ".venv*", ".pytest_cache", ".ruff_cache", ".hypothesis", "build", "dist")
NO_TESTS = 5
"""How pytest ends if it found nothing to run."""

Outcome = Literal["noticed", "hung", "survived"]


@dataclass(frozen=True, slots=True)
class Verdict:
    mutant: Mutant
    outcome: Outcome
    tests: int
    """That were chosen; 0 for a whole folder."""
    seconds: float


@dataclass(slots=True)
class Programs:
    """The test runs that are under way, so that all of them can be ended."""

    is_over: bool = False
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set[subprocess.Popen[bytes]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, command: Sequence[str], cwd: Path, environ: dict[str, str], seconds: float) -> int | None:
        """Its exit code, or None if it took too long."""
        with self._lock:
            if self.is_over:
                raise KeyboardInterrupt
            log = (cwd / "mutation.log").open("wb")
            # A session of its own: whatever the tests start ends with them.
            process = subprocess.Popen(
                command, cwd=cwd, env=environ, stdout=log, stderr=log, start_new_session=True
            )
            self._running.add(process)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)
            log.close()
            with self._lock:
                self._running.discard(process)

    def stop(self) -> None:
        with self._lock:
            self.is_over = True
            for process in self._running:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the repository in which mutants are made, one at a time."""

    root: Path
    programs: Programs

    def run_tests(self, paths: Iterable[str], plan: Plan, seconds: float, *options: str) -> int | None:
        file = self.root / "mutation.json"
        file.write_text(json.dumps(plan), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", MARKS]
        command += ["-p", "bench.mutation_plugin", "--hypothesis-seed=0", *options, *sorted(paths)]
        environ = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        environ |= {"PYTHONPATH": f"{self.root / 'src'}{os.pathsep}{self.root}", PLAN: str(file)}
        # What is compiled from a changed file must not be there for the next run.
        environ |= {"PYTHONDONTWRITEBYTECODE": "1"}
        return self.programs.run(command, self.root, environ, seconds)

    def map_folder(self, folder: str, mutants: Iterable[Mutant]) -> LineMap:
        lines: defaultdict[str, list[int]] = defaultdict(list)
        for mutant in mutants:
            lines[mutant.path].append(mutant.line)
        out = self.root / "mutation-map.json"
        out.unlink(missing_ok=True)
        with ExitStack() as changes:
            for path, numbers in lines.items():
                changes.enter_context(self._changed(path, partial(add_probes, lines=numbers)))
            started = time.monotonic()
            code = self.run_tests([folder], {"out": str(out)}, MAP_SECONDS)
            taken = time.monotonic() - started
        # Otherwise tests did not run at all, such as those of a module that cannot be imported.
        if code not in (0, 1):
            how = f"took over {MAP_SECONDS} s" if code is None else f"ended with {code}"
            raise RuntimeError(f"pytest {folder} {how} without a mutant:\n{self.tail()}")
        text = out.read_text(encoding="utf-8").replace(f"{self.root}{os.sep}", "")
        known = cast("LineMap", json.loads(text))
        # Under no test's name: what it takes to start, which on a busy machine is most of it.
        known["seconds"][""] = max(0.0, taken - sum(known["seconds"].values()))
        return known

    def judge(self, mutant: Mutant, folder: str, known: LineMap) -> Verdict:
        started = time.monotonic()
        tests = choose_tests(mutant, known)
        paths = {test.partition("::")[0] for test in tests} or {folder}
        plan: Plan = {"tests": tests} if tests else {}
        limit = max(LEAST_SECONDS, TIMES * sum(known["seconds"].get(test, 0.0) for test in ("", *tests)))
        if not tests:
            limit = max(LEAST_SECONDS, TIMES * sum(known["seconds"].values()))
        left_out = [f"--deselect={test}" for test in known["failed"]]
        with self._changed(mutant.path, mutant.apply):
            code = self.run_tests(paths, plan, limit, "-x", *left_out)
        if code == NO_TESTS:
            raise RuntimeError(f"no test ran for {mutant.path}:{mutant.line}:\n{self.tail()}")
        outcome: Outcome = "hung" if code is None else "survived" if code == 0 else "noticed"
        return Verdict(mutant, outcome, len(tests), round(time.monotonic() - started, 1))

    @contextmanager
    def _changed(self, path: str, change: Callable[[str], str]) -> Generator[None]:
        file = self.root / path
        source = file.read_text(encoding="utf-8")
        # Compiled files are told apart by their time in seconds, which is not enough here.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)
        file.write_text(change(source), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(source, encoding="utf-8")

    def tail(self) -> str:
        log = self.root / "mutation.log"
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
        return "\n".join(lines[-15:])


def choose_tests(mutant: Mutant, known: LineMap) -> list[str]:
    """The tests that run the line; none, for the whole folder, if they cannot be told."""
    tests = known["runs"].get(f"{mutant.path}:{mutant.line}", [])
    # Run outside of a test, or once for many.
    if "" in tests or mutant.is_cached:
        return []
    return [test for test in tests if test not in known["failed"]]


def mirrored_folder(path: str, root: Path = ROOT) -> str:
    """The folder of the tests for this module."""
    folder = Path("tests") / Path(path).relative_to(SOURCE).parent
    while not any((root / folder).glob("**/test_*.py")):
        folder = folder.parent
    return folder.as_posix()


def choose_mutants(packages: Sequence[str], count: int, seed: int, root: Path = ROOT) -> list[Mutant]:
    folders = [root / SOURCE / package for package in packages]
    by_line: defaultdict[tuple[str, int], list[Mutant]] = defaultdict(list)
    for mutant in read_mutants(root, folders):
        by_line[mutant.path, mutant.line].append(mutant)
    random = Random(seed)
    chosen: list[Mutant] = []
    for place in random.sample(sorted(by_line), len(by_line)):
        if len(chosen) == count:
            break
        mutant = random.choice(by_line[place])
        if compiles(mutant, (root / mutant.path).read_text(encoding="utf-8")):
            chosen.append(mutant)
    return sorted(chosen)


@contextmanager
def copies(root: Path, count: int, programs: Programs) -> Generator[SimpleQueue[Copy]]:
    free: SimpleQueue[Copy] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="mutation-", ignore_cleanup_errors=True) as folder:
        for number in range(count):
            target = Path(folder).resolve() / str(number)
            shutil.copytree(root, target, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
            free.put(Copy(target, programs))
        yield free


@contextmanager
def borrowed(free: SimpleQueue[Copy]) -> Generator[Copy]:
    copy = free.get()
    try:
        yield copy
    finally:
        free.put(copy)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run_mutants(mutants: Sequence[Mutant], jobs: int, root: Path = ROOT) -> list[Verdict]:
    """A verdict on each, or on as many as there was time for before Ctrl-C."""
    by_folder: defaultdict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_folder[mirrored_folder(mutant.path, root)].append(mutant)
    programs, verdicts = Programs(), list[Verdict]()
    with copies(root, jobs, programs) as free, ThreadPoolExecutor(jobs) as pool:

        def map_folder(folder: str) -> LineMap:
            with borrowed(free) as copy:
                say(f"{folder}: running its tests without a mutant")
                known = copy.map_folder(folder, by_folder[folder])
                for test in known["failed"]:
                    say(f"{folder}: left out, because it fails without a mutant: {test}")
                return known

        def judge(mutant: Mutant, folder: str, known: LineMap) -> Verdict:
            with borrowed(free) as copy:
                return copy.judge(mutant, folder, known)

        # Asked to end, it ends as by Ctrl-C: test runs and copies go with it.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            maps = {folder: pool.submit(map_folder, folder) for folder in by_folder}
            runs: list[Future[Verdict]] = [
                pool.submit(judge, mutant, folder, maps[folder].result())
                for folder, some in by_folder.items()
                for mutant in some
            ]
            for run in as_completed(runs):
                verdict = run.result()
                verdicts.append(verdict)
                say(f"{len(verdicts)}/{len(mutants)} {verdict.outcome:8} {_place(verdict)}")
        except KeyboardInterrupt:
            say("interrupted: ending the runs under way")
        finally:
            signal.signal(signal.SIGTERM, before)
            programs.stop()
            pool.shutdown(cancel_futures=True)
    return sorted(verdicts, key=lambda verdict: verdict.mutant)


def _place(verdict: Verdict) -> str:
    mutant = verdict.mutant
    tests = f"{verdict.tests} tests" if verdict.tests else "whole folder"
    return f"{mutant.path}:{mutant.line} ({mutant.operator}, {tests}, {verdict.seconds:.0f} s)"


def show(mutant: Mutant) -> None:
    print(f"  - {mutant.original.strip()}\n  + {mutant.mutated.strip()}")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=COUNT, help=f"how many mutants ({COUNT})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"which ones ({SEED})")
    parser.add_argument(
        "--packages", nargs="+", default=PACKAGES, metavar="FOLDER", help=f"where ({' '.join(PACKAGES)})"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time, each in its own copy (1)")
    parser.add_argument("--list", action="store_true", help="print the chosen mutants and run none")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    for name in options.packages:
        if not (ROOT / SOURCE / name).is_dir():
            parser.error(f"{SOURCE / name} is no folder; choose folders of {SOURCE}, such as core")
    if options.count < 1 or options.jobs < 1:
        parser.error("--count and --jobs are 1 or more")
    mutants = choose_mutants(options.packages, options.count, options.seed)
    if options.list:
        list_mutants(mutants, as_json=options.json)
        return 0
    verdicts = run_mutants(mutants, options.jobs)
    noticed = sum(verdict.outcome != "survived" for verdict in verdicts)
    share = noticed / max(1, len(verdicts))
    if options.json:
        found = {"seed": options.seed, "wanted": len(mutants), "run": len(verdicts), "noticed": noticed}
        rows = [{**asdict(verdict.mutant), **_row(verdict)} for verdict in verdicts]
        print(json.dumps({**found, "share": round(share, 4), "mutants": rows}))
    else:
        print(f"noticed {noticed} of {len(verdicts)} ({share:.0%})")
        for verdict in verdicts:
            if verdict.outcome == "survived":
                print(f"survived: {_place(verdict)}")
                show(verdict.mutant)
    if len(verdicts) < len(mutants):
        say(f"{len(mutants) - len(verdicts)} of {len(mutants)} mutants were not run")
        return 130
    return 0 if share >= LEAST_SHARE else 1


def _row(verdict: Verdict) -> dict[str, object]:
    return {"outcome": verdict.outcome, "tests": verdict.tests, "seconds": verdict.seconds}


def list_mutants(mutants: Sequence[Mutant], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(mutant) for mutant in mutants]))
        return
    for mutant in mutants:
        print(f"{mutant.path}:{mutant.line} ({mutant.operator})")
        show(mutant)


if __name__ == "__main__":
    sys.exit(main())
