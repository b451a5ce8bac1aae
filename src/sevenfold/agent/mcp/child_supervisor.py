"""A small process between the agent and an MCP server: when the agent ends, for whatever reason, this process
ends everything that the server has started. It is a script that imports nothing from this package, so it
starts fast.

Each message of a server is one line. A line without end is stopped here, because the reader would keep all of
it in memory.

A process that leaves its group or loses its parent is still found: on Linux the supervisor becomes the parent
of orphaned descendants.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO, cast

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

MAX_MESSAGE_LINE_BYTES = 8 * 1024 * 1024
"""The largest image that a provider takes is five, in the form in which it travels."""

_LAST_SECONDS = 2

_ROUNDS = 500
"""How often what is left is looked for and killed: each round leaves at most what was forked meanwhile."""


def build_supervised_command(command: Sequence[str]) -> list[str]:
    """The command that runs this one under a supervisor. Input, output and exit code are its own."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]


class _Stopped(Exception):
    """We were told to end, or who started us has ended."""


def supervise_child(parent: int, command: Sequence[str]) -> int:
    """Run the command until it, or whoever started us, ends."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _Stopped

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    woken = _open_signal_pipe()
    code = 128 + signal.SIGTERM
    try:
        _ask_kernel()
        if os.getppid() != parent:
            return code  # it died before the kernel was asked to tell us
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        os.close(0)  # the child's alone: it sees the end of it
        passing = threading.Thread(target=_pass_on, args=(cast("BinaryIO", child.stdout),), daemon=True)
        passing.start()
        code = _wait(child, parent, woken)
        # What the child has left in the pipe; others may hold it open.
        passing.join(_LAST_SECONDS)
    except _Stopped:
        pass
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        code = 127
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end_all()
    return code


def _pass_on(source: BinaryIO) -> None:
    """Hand on what the program prints; end it all where a line has no end, or nobody is left to read."""
    length = 0
    try:
        while data := os.read(source.fileno(), 65_536):
            newline = data.rfind(b"\n")
            length = len(data) - newline - 1 if newline >= 0 else length + len(data)
            if length > MAX_MESSAGE_LINE_BYTES:
                os.write(
                    2, f"a message of over {MAX_MESSAGE_LINE_BYTES:,} bytes was not let through\n".encode()
                )
                break
            while data:
                data = data[os.write(1, data) :]
        else:
            return
    except OSError:
        pass  # our reader is gone, and so shall we be
    os.kill(os.getpid(), signal.SIGTERM)


def _ask_kernel() -> None:
    """To be told when our parent dies, and to be the parent of orphans below us. Elsewhere than on Linux we
    look for ourselves, and orphans are found by their group alone."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _open_signal_pipe() -> int:
    """A pipe with something in it once a signal came, an ended child's too.

    Waiting for the child alone would miss one that comes just before the wait begins, and then wait for ever.
    """
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return woken


def _wait(child: subprocess.Popen[bytes], parent: int, woken: int) -> int:
    is_signalled = sys.platform.startswith("linux")
    while (code := child.poll()) is None:
        ready, _, _ = select.select([woken], [], [], None if is_signalled else 1)
        if ready:
            os.read(woken, 4_096)
        elif os.getppid() != parent:
            raise _Stopped
    return code if code >= 0 else 128 - code


def _end_all() -> None:
    """Kill and reap every descendant, again and again until there is none."""
    for _ in range(_ROUNDS):
        found = _descendants(os.getpid())
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return  # whatever was below us would be our child by now
        time.sleep(0.01)


def _descendants(pid: int) -> list[int]:
    """Everything below a process, as far as the system tells."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        here = waiting.pop()
        with suppress(OSError):
            for task in Path(f"/proc/{here}/task").iterdir():
                waiting += map(int, (task / "children").read_text(encoding="ascii").split())
        found += [] if here == pid else [here]
    return found


if __name__ == "__main__":
    sys.exit(supervise_child(int(sys.argv[1]), sys.argv[2:]))
