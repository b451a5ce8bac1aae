"""Runs tests again and again under load, and reports each one that failed at least once.

`make repeat` runs it; `python -m tests.repeat --help` tells its options. In each pytest that it starts, this
module is a plugin too, which writes down the failures.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pytest

FAILURES = "REPEAT_FAILURES"
"""The environment variable that names the file for the failures of one run."""

BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"
"""Keeps a core busy for as long as the parent lives, even if the parent is killed."""

RAN = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
"""With any other exit code pytest did not run the tests to their end."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    path = os.environ.get(FAILURES)
    if path and report.failed:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps([report.nodeid, report.longreprtext]) + "\n")


class RunBroken(Exception):
    """pytest ended without running the tests to their end."""

    def __init__(self, code: int, output: str) -> None:
        super().__init__(f"pytest exited with {code}:\n{output}")


@dataclass(slots=True)
class Findings:
    """Which tests failed, in how many runs, and how each failed first."""

    runs: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    texts: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, failures: dict[str, str]) -> None:
        self.runs += 1
        self.counts.update(failures.keys())
        self.texts = failures | self.texts

    def render(self) -> str:
        if not self.counts:
            return f"no test failed in {self.runs} runs\n"
        ranked = self.counts.most_common()
        shown = [f"{self.texts[name]}\n{name}: the first of its failures is above\n" for name, _ in ranked]
        shown += [f"{count} of {self.runs}  {name}" for name, count in ranked]
        return "\n".join(shown) + "\n"


@contextmanager
def load(processes: int) -> Generator[list[subprocess.Popen[bytes]]]:
    """So many busy processes beside us, until the block ends."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(processes):
            started.append(subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())]))  # noqa: PERF401
        yield started
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def run_once(arguments: Sequence[str]) -> dict[str, str]:
    """The tests that failed in one run of pytest, each with its report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "failures"
        path.touch()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "tests.repeat", "-p", "no:cacheprovider", *arguments],
            env={**os.environ, FAILURES: str(path)},
            capture_output=True,
            text=True,
            check=False,
        )
        failures: dict[str, str] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            name, text = json.loads(line)
            failures.setdefault(name, text)
    if done.returncode not in RAN or (done.returncode and not failures):
        raise RunBroken(done.returncode, done.stdout + done.stderr)
    return failures


def _stop(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.repeat", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="how often to run the tests (%(default)s)")
    parser.add_argument(
        "--load",
        type=int,
        default=os.cpu_count() or 1,
        help="how many busy processes to run beside (%(default)s)",
    )
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    chosen = parser.parse_args(argv)
    # So that the busy processes end with us, however we are asked to.
    signal.signal(signal.SIGTERM, _stop)
    found = Findings()
    try:
        with load(chosen.load):
            for number in range(1, chosen.runs + 1):
                failures = run_once(chosen.pytest)
                found.add(failures)
                sys.stdout.write(f"run {number} of {chosen.runs}: {len(failures)} failed\n")
                sys.stdout.flush()
    except RunBroken as error:
        sys.stderr.write(f"error: {error}")
        return 2
    sys.stdout.write(found.render())
    return 1 if found.counts else 0


if __name__ == "__main__":
    sys.exit(main())
