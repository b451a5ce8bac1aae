"""What the agent sends to the supervisor: the command and its restrictions."""

from __future__ import annotations

import marshal


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
