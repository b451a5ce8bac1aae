"""`sevenfold hook` and `sevenfold resident`: a hook of another agent, and the process that answers it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from argparse import Namespace
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

from sevenfold.cli.inspect.doctor_store import DoctorFinding
from sevenfold.cli.screen import Screen, format_count
from sevenfold.core.errors import ResidentUnavailable
from sevenfold.resident.client import LOCK_NAME, SOCKET_NAME, STOPPING, exchange, find_run_folder, request
from sevenfold.resident.hook_script import read_input, run_hook

HOOK_SECONDS = 5.0
"""Somebody who types this command waits longer than an agent."""
START_SECONDS = 30.0
STATUS_SECONDS = 3.0
END_SECONDS = 5.0
"""For a process that does not answer to begin its end, before it is killed."""
NAME_SECONDS = 0.2
"""For a process that has just taken the lock to write its name there."""
MAX_STOPPING_SECONDS = 60.0
"""What has begun gets a third of that; a process that takes longer hangs."""


@dataclass(frozen=True, slots=True)
class ResidentHolder:
    """The process that holds the lock of the one resident process."""

    pid: int
    is_stopping: bool
    """It finishes what it has begun, and then ends by itself."""


def run_hook_command(options: Namespace, screen: Screen) -> int:
    said = run_hook(cast("str", options.event), read_input(0), os.environ, seconds=HOOK_SECONDS)
    if said:
        screen.show_text(said.decode("utf-8", "replace"))
    return 0


def run_resident_command(options: Namespace, screen: Screen) -> int:
    action = cast("str", options.action)
    try:
        if action == "start":
            found = request("status", {}, deadline_seconds=START_SECONDS)
        else:
            found = ask_running("stop" if action == "stop" else "status")
    except ResidentUnavailable as error:
        if action == "start":
            raise
        holder = find_holder()
        if holder is not None:
            return _handle_silent(holder, action, options, screen)
        if options.json:
            screen.show_json({"is_running": False})
        else:
            has_socket = os.path.exists(os.path.join(find_run_folder(os.environ), SOCKET_NAME))
            why = f" ({error})" if has_socket else ""
            screen.show_line(f"not running; it starts when a hook or an MCP server needs it{why}", "faint")
        return 0
    if options.json:
        screen.show_json({"is_running": action != "stop", **found})
    elif action == "stop":
        screen.show_line(f"process {found['pid']} ends")
    else:
        screen.show_line(describe_resident(found))
        for root in cast("list[str]", found["projects"]):
            screen.show_line(f"  {root}", "faint")
    return 0


def find_holder() -> ResidentHolder | None:
    """The process that holds the lock of the one resident process, whether or not it answers."""
    try:
        fd = os.open(os.path.join(find_run_folder(os.environ), LOCK_NAME), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    end = time.monotonic() + NAME_SECONDS
    try:
        while True:
            before = os.pread(fd, 100, 0)
            if not _is_locked(fd):
                return None
            words = os.pread(fd, 100, 0).decode("ascii", "replace").split()
            if words and words[0].isdecimal() and words == before.decode("ascii", "replace").split():
                pid, age = int(words[0]), time.time() - os.fstat(fd).st_mtime
                if _has_open(pid, fd):
                    return ResidentHolder(pid, STOPPING in words and age < MAX_STOPPING_SECONDS)
            if time.monotonic() > end:
                return None
            time.sleep(0.02)
    finally:
        os.close(fd)


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _has_open(pid: int, fd: int) -> bool:
    """Whether a process has the same file open; one that was named by an earlier holder has not. Where the
    system does not say, whether there is such a process."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        if os.path.isdir("/proc/self/fd"):
            return False
        with suppress(OSError, OverflowError):
            os.kill(pid, 0)
            return True
        return False
    wanted = os.fstat(fd)
    for name in names:
        with suppress(OSError):  # closed meanwhile
            if os.path.samestat(os.stat(f"{folder}/{name}"), wanted):
                return True
    return False


def _handle_silent(holder: ResidentHolder, action: str, options: Namespace, screen: Screen) -> int:
    """It lives and does not answer. What one that hangs was doing is taken up again by the next one."""
    is_killed = False
    if action == "stop" and not holder.is_stopping:
        now = _end_hung(holder.pid)
        is_killed, holder = now is None, now or holder
    if options.json:
        state = "is_stopping" if holder.is_stopping else "is_hung"
        screen.show_json({"is_running": not is_killed, "pid": holder.pid, state: True})
    elif is_killed:
        screen.show_line(
            f"process {holder.pid} did not answer, and was ended; the next request starts another"
        )
    else:
        screen.show_line(describe_silent(holder))
    return 0 if action == "stop" or holder.is_stopping else 1


def _end_hung(pid: int) -> ResidentHolder | None:
    """Ask a process to end, and kill it if it does not begin to; returned if it does."""
    end = time.monotonic() + END_SECONDS
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        while (found := find_holder()) is not None and found.pid == pid:
            if found.is_stopping:
                return found
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
                break
            time.sleep(0.02)
    return None


def describe_silent(holder: ResidentHolder) -> str:
    """What it is, and what to do about it."""
    if holder.is_stopping:
        return f"process {holder.pid} is stopping: it finishes what it has begun, and then ends by itself"
    return (
        f"process {holder.pid} does not answer; end it with `sevenfold resident stop`: "
        "the next request starts one"
    )


def ask_running(operation: str) -> dict[str, object]:
    """Ask the process if there is one; nothing is started."""
    body = json.dumps({"operation": operation, "arguments": {}, "environ": {}}).encode()
    deadline = time.monotonic() + STATUS_SECONDS
    return cast(
        "dict[str, object]", json.loads(exchange(body, os.environ, deadline=deadline, starts=False)[1:])
    )


def describe_resident(found: dict[str, object]) -> str:
    projects, requests = cast("list[str]", found["projects"]), cast("int", found["requests"])
    span = format_count(cast("int", found["uptime_seconds"]) // 60, "minute")
    return (
        f"running as process {found['pid']}, version {found['version']}, for {span}: "
        f"{format_count(requests, 'request')}, {format_count(len(projects), 'project')} open"
    )


def check_resident() -> DoctorFinding:
    """For `sevenfold doctor`."""
    try:
        return DoctorFinding("resident", "fine", describe_resident(ask_running("status")))
    except ResidentUnavailable:
        holder = find_holder()
        if holder is not None:
            level = "fine" if holder.is_stopping else "broken"
            return DoctorFinding("resident", level, describe_silent(holder))
        where = find_run_folder(os.environ)
        said = f"not running, and started when a hook or an MCP server needs it ({where})"
        return DoctorFinding("resident", "fine", said)
