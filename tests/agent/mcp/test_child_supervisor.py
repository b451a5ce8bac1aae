"""Nothing that a kept program has started outlives its keeper."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import IO

from sevenfold.agent.mcp.child_supervisor import MAX_MESSAGE_LINE_BYTES, build_supervised_command

PATIENCE_SECONDS = 20
"""For a machine that is busy; a process that is told to end does so at once."""

FAMILY = (
    "sh -c 'sleep 1000 & echo child; exec sleep 1000' & "
    "setsid sh -c 'sleep 1000 & echo session; exec sleep 1000' & "
    "(setsid sh -c 'echo orphan; exec sleep 1000 >&- 2>&-' &); "
    "echo first; exec sleep 1000"
)
"""The first process, a child with a child, a session of its own with a child, and one whose parent has ended.
Each prints a line once it and its child are there."""

FAMILY_LINES = {b"first\n", b"child\n", b"session\n", b"orphan\n"}
FAMILY_SIZE = 6


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_gone(pids: list[int]) -> list[int]:
    """Those that do not end: the system tells when a process does, and a kill takes it a moment."""
    return [pid for pid in pids if not has_ended(pid)]


def has_ended(pid: int) -> bool:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], PATIENCE_SECONDS)[0])
    finally:
        os.close(fd)


def below(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text(encoding="ascii").split()):
            found += [child, *below(child)]
    return found


def find_family(keeper: int, output: IO[bytes]) -> list[int]:
    assert {output.readline() for _ in FAMILY_LINES} == FAMILY_LINES
    found = below(keeper)
    assert len(found) == FAMILY_SIZE
    return found


def test_a_kept_program_has_its_own_input_output_and_exit_code() -> None:
    done = subprocess.run(
        build_supervised_command(["sh", "-c", "cat; exit 7"]),
        input=b"hello",
        capture_output=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == (b"hello", 7)


def test_a_program_that_is_not_there_is_said_on_the_error_stream() -> None:
    done = subprocess.run(build_supervised_command(["no-such-program"]), capture_output=True, check=False)
    assert done.returncode == 127
    assert b"no-such-program" in done.stderr


def test_all_that_a_program_prints_comes_through_in_order() -> None:
    script = "seq 1 200000; printf 'no newline at the end'"
    done = subprocess.run(build_supervised_command(["sh", "-c", script]), capture_output=True, check=False)
    assert done.stdout == "".join(f"{at}\n" for at in range(1, 200_001)).encode() + b"no newline at the end"


def test_a_line_without_end_is_stopped_and_so_is_who_prints_it() -> None:
    script = "echo fine; tr '\\0' x < /dev/zero"
    done = subprocess.run(build_supervised_command(["sh", "-c", script]), capture_output=True, check=False)
    assert done.stdout.startswith(b"fine\nxxx")
    assert len(done.stdout) <= MAX_MESSAGE_LINE_BYTES + len(b"fine\n")
    assert b"was not let through" in done.stderr


def test_a_program_that_nobody_reads_any_more_is_ended() -> None:
    with subprocess.Popen(build_supervised_command(["yes"]), stdout=subprocess.PIPE) as kept:
        assert kept.stdout is not None
        kept.stdout.read(10)
        kept.stdout.close()
        assert kept.wait(PATIENCE_SECONDS) != 0


def test_what_a_program_leaves_behind_ends_with_it() -> None:
    script = "setsid sleep 1000 >&- 2>&- & echo $!"
    done = subprocess.run(build_supervised_command(["sh", "-c", script]), capture_output=True, check=False)
    assert not is_alive(int(done.stdout))


def test_told_to_end_a_keeper_takes_everything_with_it() -> None:
    with subprocess.Popen(build_supervised_command(["sh", "-c", FAMILY]), stdout=subprocess.PIPE) as kept:
        assert kept.stdout is not None
        try:
            found = find_family(kept.pid, kept.stdout)
        finally:
            kept.terminate()
    assert wait_gone(found) == []


def test_nothing_outlives_an_agent_that_is_killed() -> None:
    code = (
        "import subprocess, sys, time\n"
        "from sevenfold.agent.mcp.child_supervisor import build_supervised_command\n"
        "kept = subprocess.Popen(build_supervised_command(sys.argv[1:]), start_new_session=True)\n"
        "print(kept.pid, flush=True)\n"
        "kept.wait()\n"
    )
    command = [sys.executable, "-c", code, "sh", "-c", FAMILY]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        try:
            keeper = int(agent.stdout.readline())
            found = [keeper, *find_family(keeper, agent.stdout)]
        finally:
            agent.kill()
    assert wait_gone(found) == []
