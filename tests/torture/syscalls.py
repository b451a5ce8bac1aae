"""Rig: a kill or an error at every system call of a scenario, and proof that none bypasses the fs port.

The faults rig trusts the port to be the only way to the disk. This one trusts nobody: it asks the kernel.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sevenfold.store.files.disk import FOLDER_FLAGS, SYSTEM_DISK
from tests.torture.crew import Crew
from tests.torture.faults import LONGEST_RUN_SECONDS, SCENARIOS, Make, run_calm
from tests.torture.gang import try_all
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.stage import Scenario, Seen, judged, play
from tests.torture.traced import BEGIN, END

OPERATIONS: dict[str, tuple[str, ...]] = {
    "open": ("open", "openat", "openat2", "creat"),
    "read": ("read", "pread64", "readv", "preadv", "preadv2"),
    "write": ("write", "writev", "pwrite64", "pwritev", "pwritev2"),
    "fsync": ("fsync", "fdatasync"),
    "rename": ("rename", "renameat", "renameat2"),
    "link": ("link", "linkat"),
    "unlink": ("unlink", "unlinkat", "rmdir"),
    "mkdir": ("mkdir", "mkdirat"),
    "flock": ("flock",),
    "set_times": ("utime", "utimes", "futimesat", "utimensat"),
}
"""By which system calls each operation of the port may be carried out."""

NEVER = (
    *("truncate", "ftruncate", "fallocate", "symlink", "symlinkat", "mknod", "mknodat"),
    *("chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "setxattr", "fsetxattr"),
    *("copy_file_range", "sendfile", "splice", "sync", "syncfs", "sync_file_range", "msync"),
    *("io_uring_setup", "io_submit"),
)
"""Ways to change files that the port has no operation for."""

LOOKS = ("stat", "lstat", "fstat", "newfstatat", "fstatat64", "statx")
CLOSES = ("close",)
"""Not matched with the port, as Python looks at a folder and closes it by itself when it lists one."""

STRUCK = (
    *(call for calls in OPERATIONS.values() for call in calls if call != "read"),
    *LOOKS,
    *CLOSES,
)
"""Whatever the scenario itself does, from its first call to its last: strace comes to a process that waits to
begin, and has made its imports. Plain `read` is left alone: files are read by position, and nothing but the
rig itself uses it."""

INJECTIONS = ("signal=SIGKILL", "error=EIO", "error=ENOSPC", "error=EINTR")
"""Strace kills before a call is made, and makes none that it fails: a handle whose close fails stays open.
Looking and closing get the first two."""
SCRIPT = ("-m", "tests.torture.traced")
_CALL = re.compile(r"^\d+ +(\w+)\(")


class CannotTrace(Exception):
    """Strace did not attach; it says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    make: Make
    seed: int
    call: str
    number: int
    injection: str

    def __str__(self) -> str:
        name = self.make.name
        return f"{name} (seed {self.seed}), {self.injection} at {self.call} number {self.number}"


@dataclass(frozen=True, slots=True)
class Traced:
    seen: Seen
    code: int
    log: str


def run_syscalls(orders: Orders, scenarios: Sequence[Make] = SCENARIOS) -> list[Outcome]:
    with outcome("strace, port", "calls matched") as ported, orders.scratch("ported") as place:
        ported.skipped = why_not()
        if not ported.skipped:
            match_port(ported, place, orders.seed)
    with outcome("strace", "system calls struck") as found, orders.scratch("strace") as place:
        found.skipped = ported.skipped
        if not found.skipped:
            _strike_all(orders, scenarios, found, place)
    return [ported, found]


def why_not() -> str | None:
    """Why this machine cannot run the rig, if it cannot."""
    if not shutil.which("strace"):
        return "strace is not installed"
    with Crew() as crew, suppress(CannotTrace):
        pid = crew.start(signal.pause)
        tracer = _attach(pid, Path(os.devnull), None)
        crew.kill(pid)
        tracer.communicate()
        return None
    return "strace may not attach to processes here"


def points_of(make: Make, seed: int, root: Path) -> list[Point]:
    """Every call of an undisturbed run, with everything that can be done to it."""
    # Once here, so that what is imported on first use is there, and no child looks for it.
    run_calm(make(seed), root)
    traced = run_traced(make(seed), root, None)
    if not traced.seen.finished or judged(make(seed), root, traced.seen):
        raise AssertionError(f"{make.name} fails under strace with nothing in its way")
    calls = Counter(match[1] for line in traced.log.splitlines() if (match := _CALL.match(line)))
    return [
        Point(make=make, seed=seed, call=call, number=number, injection=injection)
        for call, count in calls.items()
        if call in STRUCK
        for number in range(1, count + 1)
        for injection in (INJECTIONS[:2] if call in (*LOOKS, *CLOSES) else INJECTIONS)
    ]


def strike(point: Point, root: Path) -> list[str]:
    """Do something to one system call of a scenario, and judge what is left."""
    scenario = point.make(point.seed)
    traced = run_traced(scenario, root, point)
    if traced.code == -signal.SIGALRM:
        return [f"it hung for over {LONGEST_RUN_SECONDS} s"]
    wrong = judged(scenario, root, traced.seen)
    if (point.injection == "signal=SIGKILL") == traced.seen.finished or (
        "INJECTED" not in traced.log and "killed by SIGKILL" not in traced.log
    ):
        wrong.append(f"nothing was done to it: {traced.log[-200:]}")
    return wrong


def run_traced(scenario: Scenario, root: Path, point: Point | None) -> Traced:
    """Play a scenario in a child under strace."""
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    scenario.prepare(root)
    ours, theirs = socket.socketpair()
    log = root.with_suffix(".strace")

    def work() -> None:
        signal.alarm(LONGEST_RUN_SECONDS)
        ours.close()
        theirs.send(b"!")
        theirs.recv(1)
        # By send, not write: telling is no part of what is struck.
        play(scenario, root, SYSTEM_DISK, lambda line: theirs.sendall(line.encode() + b"\n"))

    with Crew() as crew, ours:
        pid = crew.start(work)
        theirs.close()
        # Only now: the child's own call to close its end must not be among those that are counted.
        ours.recv(1)
        tracer = _attach(pid, log, point)
        try:
            ours.send(b"!")
            told = b"".join(iter(lambda: ours.recv(65536), b""))
            code = crew.wait(pid)
        finally:
            for left in crew.pids:
                crew.kill(left)
            tracer.communicate()
    return Traced(Seen.of(told.decode().splitlines()), code, log.read_text("utf-8", "replace"))


def _attach(pid: int, log: Path, point: Point | None) -> subprocess.Popen[str]:
    """Strace at a waiting process; what it counts starts here, not at the interpreter's start."""
    what = ["-e", f"trace={_known(STRUCK) if point is None else point.call}"]
    if point:
        what += ["-e", f"inject={point.call}:{point.injection}:when={point.number}"]
    tracer = subprocess.Popen(
        ["strace", "-f", "-o", str(log), *what, "-p", str(pid)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    said = tracer.stderr.readline() if tracer.stderr else ""
    if "attached" not in said:
        tracer.kill()
        tracer.communicate()
        raise CannotTrace(said)
    return tracer


def _known(calls: Sequence[str]) -> str:
    """The question mark leaves out a name that this processor's table lacks."""
    return ",".join(f"?{call}" for call in calls)


def _strike_all(orders: Orders, scenarios: Sequence[Make], found: Outcome, place: Path) -> None:
    # Here, so that no child has to ask the kernel again whether it knows openat2.
    fd = os.open(place, FOLDER_FLAGS)
    SYSTEM_DISK.close(SYSTEM_DISK.open_beneath(fd, ".", FOLDER_FLAGS))
    os.close(fd)
    points = [point for make in scenarios for point in points_of(make, orders.seed, place / "count")]
    every = len(points)
    if orders.size != "long":
        points = orders.random("calls").sample(points, min(every, orders.pick(tiny=40, short=150, long=0)))
    for verdict in try_all(points, strike, place):
        orders.progress("strace", found.count, len(points), "system calls")
        for wrong in verdict.wrong:
            found.wrong(f"{points[verdict.index] if verdict.index >= 0 else 'the rig'}: {wrong}")
        found.count += 1
    calls = Counter(point.call for point in points)
    found.notes.append(
        f"of {every:,}: " + ", ".join(f"{call} {count:,}" for call, count in calls.most_common())
    )


def match_port(found: Outcome, place: Path, seed: int, script: Sequence[str] = SCRIPT) -> None:
    """Whether the calls that reach the folder are those that the port was asked for, and no others."""
    log = place / "log"
    (place / "play").mkdir()
    watched = [call for calls in OPERATIONS.values() for call in calls]
    watched += [*NEVER, *LOOKS]
    # The interpreter itself, not a shim that starts it.
    command = [os.path.realpath(sys.executable), *script, str(place / "play"), str(seed)]
    done = subprocess.run(
        ["strace", "-f", "-y", "-o", str(log), "-e", f"trace={_known(watched)}", *command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        found.wrong(f"the traced run failed: {done.stderr[-500:]}")
        return
    told = json.loads(done.stdout)
    if told["unfinished"]:
        found.wrong(f"scenarios did not finish under strace: {told['unfinished']}")
    compare_calls(
        found, Counter(told["operations"]), _calls_between(log.read_text("utf-8", "replace"), place)
    )


def compare_calls(found: Outcome, asked: Counter[str], made: Counter[str]) -> None:
    """What the port was asked for against what the kernel saw."""
    for operation, calls in OPERATIONS.items():
        count = sum(made[call] for call in calls)
        # A listing opens its folder anew.
        wanted = asked[operation] + (asked["names"] if operation == "open" else 0)
        if wanted != count:
            found.wrong(f"the port was asked to {operation} {wanted} times, the kernel {count} times")
        found.count += count
    for call in NEVER:
        if made[call]:
            found.wrong(f"{call} reached the folder {made[call]} times, which is no operation of the port")


def _calls_between(log: str, place: Path) -> Counter[str]:
    """The calls between the two marks that name something in the folder."""
    inside = log.partition(BEGIN)[2].partition(END)[0]
    lines = [line for line in inside.splitlines() if str(place) in line]
    return Counter(match[1] for line in lines if (match := _CALL.match(line)))
