"""The supervisor process: starts one command, applies its restrictions, and ends everything that it started.

Its standard input is the connection to the agent. A byte asks for a graceful end. When the pipe closes, the
agent is gone, for whatever reason, and the supervisor ends the command a moment later. Whatever the command
starts, also in a session of its own, stays a descendant: orphaned processes become children of the
supervisor.
"""

from __future__ import annotations

import marshal
import os
import select
import time

from sevenfold.agent.sandbox.kernel import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    drop_capabilities,
    install_seccomp_filter,
    mount_sandbox,
    prctl,
    restrict_process,
    unshare_namespaces,
)

# What the agent sends to the supervisor: the command and its restrictions.


class LaunchSpec:
    """What to run, and its restrictions. A plain class: see the package."""

    __slots__ = (
        "argv",
        "cwd",
        "environ",
        "filter",
        "filter_file",
        "guarded",
        "has_namespaces",
        "has_rules",
        "limits",
        "max_processes",
        "readable",
        "writable",
    )

    def __init__(
        self, argv: list[str], environ: dict[str, str], cwd: str, limits: list[list[int]], max_processes: int
    ) -> None:
        self.argv = argv
        self.environ = environ
        self.cwd = cwd
        self.limits = limits
        """Pairs of a resource's number and its most."""
        self.max_processes = max_processes
        """Counted by whoever started it, since root is bound by no limit of the kernel; 0: any number."""
        self.has_rules = False
        """Landlock restricts it to `readable` and `writable`."""
        self.has_namespaces = False
        """All but `writable` is read-only for it; processes, network and scratch space are its own."""
        self.readable: list[str] = []
        self.writable: list[str] = []
        self.guarded: list[str] = []
        """Inside what is writable, and not to be changed all the same."""
        self.filter = b""
        """A seccomp program."""
        self.filter_file = 0
        """Where the first program of `argv` reads the filter, to install it after its own work; 0: it is
        installed before anything runs."""

    def pack(self) -> bytes:
        """Both ends are the same interpreter, so that its own format will do."""
        return marshal.dumps([getattr(self, name) for name in self.__slots__])


def unpack_launch_spec(body: bytes) -> LaunchSpec:
    orders = LaunchSpec([], {}, "", [], 0)
    for name, value in zip(LaunchSpec.__slots__, marshal.loads(body), strict=True):
        setattr(orders, name, value)
    return orders


TERM, KILL, STOP = 15, 9, 19
"""Signals, as on every Linux; the module that names them costs as much to load as all else here."""

INIT_PID = 1
"""The number of the first process of a namespace. When it ends, the kernel ends all others there."""

_FAILED = 125
TERMINATION_GRACE_SECONDS = 2.0
"""Between a polite end and the other one: enough to write a file out, short for whoever waits."""
_LAST_SECONDS = 5.0
"""How long to try to end what does not die, such as a program that became another user's."""
COUNT_INTERVAL_SECONDS = (0.05, 0.5)
"""How often processes are counted: at first, when a fork bomb would go off, and later."""


def supervise_command(orders_file: int, status_file: int) -> None:
    """Run what the one file says, and tell the other how it ended, a line each: `failed <why>`, `crowded`,
    `ended <exit code, 128 and more for a signal> <processes left over>`."""
    os.set_inheritable(status_file, False)
    orders = unpack_launch_spec(_read(orders_file))
    try:
        if orders.has_namespaces:
            unshare_namespaces()
            first = os.fork()
            if first:
                _turn_away(0, 1, 2)
                os.waitpid(first, 0)
                os._exit(0)
            # It is the first process of its namespace: nothing in there can end it.
            prctl(PR_SET_PDEATHSIG, KILL)
            mount_sandbox(orders.writable, orders.guarded, orders.max_processes)
    except OSError as error:
        _tell(status_file, f"failed {error}")
        os._exit(_FAILED)
    _supervise(orders, status_file)


def _supervise(orders: LaunchSpec, status_file: int) -> None:
    """Start the command and stay until nothing of it is left."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _become(orders, parent, status_file)
    # The reader is to see the end of the output when the command's processes are gone.
    _turn_away(1, 2)
    watch = SupervisorLoop(child, orders.max_processes)
    watch.run()
    left = kill_descendants()
    if watch.is_crowded:
        _tell(status_file, "crowded")
    _tell(status_file, f"ended {watch.code} {left}")
    os._exit(0)


class SupervisorLoop:
    """Waits for the command to end, or for the agent to want it ended or to be gone."""

    def __init__(self, child: int, max_processes: int) -> None:
        self._child = child
        self._max = max_processes
        self._began = time.monotonic()
        self._deadline = 0.0
        self.code = 128 + KILL
        self.is_crowded = False

    def run(self) -> None:
        alive = os.pidfd_open(self._child)
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(alive, select.POLLIN)
        while True:
            ready = {number for number, _ in poll.poll(self._pause())}
            if self._has_ended():
                return
            if 0 in ready and not self._may_go_on():
                return
            if self._deadline and time.monotonic() >= self._deadline:
                return
            if self._max and has_too_many_descendants(self._max):
                self.is_crowded = True
                return

    def _pause(self) -> int:
        is_new = time.monotonic() - self._began < 2
        return int(COUNT_INTERVAL_SECONDS[0 if is_new or self._deadline else 1] * 1000)

    def _may_go_on(self) -> bool:
        if not os.read(0, 1):
            return False
        for pid in list_descendants(os.getpid()):
            _signal(pid, TERM)
        self._deadline = time.monotonic() + TERMINATION_GRACE_SECONDS
        return True

    def _has_ended(self) -> bool:
        """Takes in whoever has died; orphans too, for they are ours now."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == self._child:
                code = os.waitstatus_to_exitcode(status)
                self.code = 128 - code if code < 0 else code
                return True
            if pid == 0:
                return False


def kill_descendants() -> int:
    """Kill everything below this process, again and again until there is none; how many were ours.

    Where the first process of a namespace is a child, one kill is enough; else, what is stopped forks not.
    """
    _reap()
    left = _children(os.getpid())
    # From the first process of a namespace one call hits all, whatever forks meanwhile as well.
    for pid in [-1] if os.getpid() == INIT_PID else left:
        _signal(pid, KILL)
    until = time.monotonic() + _LAST_SECONDS
    while _reap() and time.monotonic() < until:
        found = list_descendants(os.getpid())
        for number in (KILL, STOP):
            for pid in found:
                _signal(pid, number)
            found = list_descendants(os.getpid())
        time.sleep(0.001)
    return len(left)


def has_too_many_descendants(most: int) -> bool:
    """Whether there are more descendants than that."""
    if os.getpid() == INIT_PID:
        # It sees nobody but itself and them, which is quick to count.
        return sum(name.isdigit() for name in os.listdir("/proc")) > most + 1
    return len(list_descendants(os.getpid(), most + 1)) > most


def _reap() -> bool:
    """Take in the dead. Whether anybody is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def list_descendants(root: int, most: int = 1_000_000) -> list[int]:
    """Every process below one, or so many of them."""
    found = _children(root)
    for pid in found:
        if len(found) > most:
            break
        found += _children(pid)
    return found


def _children(pid: int) -> list[int]:
    """Of all threads of a process; gone ones have none."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            file = os.open(f"/proc/{pid}/task/{thread}/children", os.O_RDONLY)
            try:
                while part := os.read(file, 65_536):
                    found += map(int, part.split())
            finally:
                os.close(file)
    except OSError:
        return found
    return found


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def _become(orders: LaunchSpec, parent: int, status_file: int) -> None:
    """Exec the command. Never returns: failures are reported, and nothing runs without its restrictions."""
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, KILL)
        if os.getppid() != parent:
            os._exit(_FAILED)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        _confine(orders)
        os.execve(orders.argv[0], orders.argv, orders.environ)
    except BaseException as error:
        _tell(status_file, f"failed {error}")
    finally:
        os._exit(_FAILED)


def _confine(orders: LaunchSpec) -> None:
    os.chdir(orders.cwd)
    if orders.limits:
        import resource

        for number, most in orders.limits:
            resource.setrlimit(number, (most, most))
    if orders.has_rules:
        drop_capabilities()
        restrict_process(orders.readable, orders.writable)
    if orders.filter_file:
        _lay_out(orders.filter, orders.filter_file)
    elif orders.filter:
        install_seccomp_filter(orders.filter)


def _lay_out(program: bytes, number: int) -> None:
    file = os.memfd_create("filter", 0)
    os.write(file, program)
    os.lseek(file, 0, os.SEEK_SET)
    os.dup2(file, number)
    os.close(file)


def _turn_away(*files: int) -> None:
    nothing = os.open("/dev/null", os.O_RDWR)
    for file in files:
        os.dup2(nothing, file)


def _read(file: int) -> bytes:
    body = b""
    while part := os.read(file, 1 << 20):
        body += part
    os.close(file)
    return body


def _tell(file: int, text: str) -> None:
    os.write(file, text.replace("\n", " ").encode("utf-8", "replace")[:500] + b"\n")
