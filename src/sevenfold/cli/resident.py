"""`sevenfold hook` and `sevenfold resident`: a hook of another agent, and the process that answers it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from argparse import Namespace
from typing import cast

from sevenfold.cli.inspect.doctor_store import DoctorFinding
from sevenfold.cli.screen import Screen, format_count
from sevenfold.core.errors import ResidentUnavailable
from sevenfold.resident.client import LOCK_NAME, SOCKET_NAME, exchange, find_run_folder, request
from sevenfold.resident.hook_script import read_input, run_hook

HOOK_SECONDS = 5.0
"""Somebody who types this command waits longer than an agent."""
START_SECONDS = 30.0
STATUS_SECONDS = 3.0


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
        pid = find_holder()
        if pid is not None:
            return _handle_hung(pid, action, options, screen)
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


def find_holder() -> int | None:
    """The process that holds the lock of the one resident process, whether or not it answers."""
    try:
        fd = os.open(os.path.join(find_run_folder(os.environ), LOCK_NAME), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        first = os.pread(fd, 100, 0).partition(b" ")[0]
        return int(first) if first.isdigit() else None
    finally:
        os.close(fd)
    return None


def _handle_hung(pid: int, action: str, options: Namespace, screen: Screen) -> int:
    """It lives and says nothing. What it was doing is taken up again by the next one."""
    if action == "stop":
        os.kill(pid, signal.SIGKILL)
    if options.json:
        screen.show_json({"is_running": action != "stop", "pid": pid, "is_hung": True})
    elif action == "stop":
        screen.show_line(f"process {pid} did not answer, and was killed; the next request starts another")
    else:
        screen.show_line(describe_hung(pid))
    return 0 if action == "stop" else 1


def describe_hung(pid: int) -> str:
    """What it is, and what to do about it."""
    return (
        f"process {pid} does not answer; end it with `sevenfold resident stop`: the next request starts one"
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
        pid = find_holder()
        if pid is not None:
            return DoctorFinding("resident", "broken", describe_hung(pid))
        where = find_run_folder(os.environ)
        said = f"not running, and started when a hook or an MCP server needs it ({where})"
        return DoctorFinding("resident", "fine", said)
