"""What holds commands on this machine: found by trying, never by believing.

Landlock, mounts and a filter of system calls where the kernel has them; bubblewrap where it has not. What
neither can hold is not held, and whoever wants it held is refused.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sevenfold.agent.sandbox.environment import build_open_environ, build_sandboxed_environ
from sevenfold.agent.sandbox.folders import choose_writable_root, list_guarded_names, list_readable_folders
from sevenfold.agent.sandbox.launch_spec import LaunchSpec
from sevenfold.agent.sandbox.namespaces import SCRATCH
from sevenfold.agent.sandbox.seccomp import build_seccomp_filter
from sevenfold.core.profile import SandboxProfile
from sevenfold.core.settings.sandbox import SandboxSettings
from sevenfold.core.tool_context import ToolContext

SandboxBackend: TypeAlias = Literal["namespaces", "landlock", "bubblewrap"]
"""`namespaces`: Landlock and more; `landlock`: Landlock alone, which holds what may change nothing, unless it
is root's: no limit of the kernel's keeps root from starting processes."""


FILTER_FD = 9
"""Where bubblewrap is handed the filter; any number that nothing else has."""


CPU_SECONDS = 3_600
"""Of one process. What runs longer than an hour at full speed has been forgotten."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What can be held here, and by what."""

    means: Mapping[SandboxProfile, SandboxBackend] = field(
        default_factory=dict[SandboxProfile, SandboxBackend]
    )
    why_not: str = ""
    """What is missing for the profiles that cannot be held, and what to do about it."""
    settings: SandboxSettings = field(default_factory=SandboxSettings)
    bubblewrap: str | None = None

    def holds(self, profile: SandboxProfile) -> bool:
        return profile in self.means

    def orders(self, profile: SandboxProfile, command: str, place: ToolContext) -> LaunchSpec:
        """How to run a command. A profile that cannot be held must not get here."""
        argv = [find_shell(), "-c", command]
        if profile == "open":
            return LaunchSpec(argv, build_open_environ(place.environ), str(place.cwd), _limits(None), 0)
        environ = build_sandboxed_environ(place.environ, profile)
        orders = LaunchSpec(
            argv, environ, str(place.cwd), _limits(self.settings), max_processes=self.settings.processes
        )
        orders.filter = build_seccomp_filter(os.uname().machine, may_change=profile == "workspace")
        orders.readable = list_readable_folders(place, self.settings.read)
        if profile == "workspace":
            root = choose_writable_root(place)
            # Mounted over a project that lies there, scratch space would hide it.
            orders.writable = [str(root)] if root.is_relative_to(SCRATCH) else [str(root), SCRATCH]
            orders.guarded = [str(root / name) for name in sorted(list_guarded_names(root))]
        if self.means[profile] == "bubblewrap":
            orders.argv = [*_wrapped(self.bubblewrap or "bwrap", orders), *argv]
            orders.filter_file = FILTER_FD
        else:
            orders.has_rules = True
            orders.has_namespaces = self.means[profile] == "namespaces"
            # Counted for each user in each user namespace; bubblewrap makes its own, later.
            most = self.settings.processes + (0 if orders.has_namespaces else count_threads())
            orders.limits.append([resource.RLIMIT_NPROC, most])
        return orders


def find_shell() -> str:
    """bash, which models write for, or what there is."""
    return next((path for path in ("/bin/bash", "/usr/bin/bash") if os.access(path, os.X_OK)), "/bin/sh")


def count_threads() -> int:
    """Of this user, as the kernel counts them against the limit."""
    found = 0
    for entry in os.scandir("/proc"):
        with suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                found += len(os.listdir(f"{entry.path}/task"))
    return found


def find_bubblewrap() -> str | None:
    return shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")


def _limits(settings: SandboxSettings | None) -> list[list[int]]:
    """Nothing leaves a core file behind; what is held is also bound."""
    most = [[resource.RLIMIT_CORE, 0]]
    if settings is None:
        return most
    megabyte = 1024 * 1024
    most += [[resource.RLIMIT_CPU, CPU_SECONDS], [resource.RLIMIT_FSIZE, settings.file_mb * megabyte]]
    # Data, and not addresses: some runtimes reserve far more of those than they ever touch.
    return [*most, [resource.RLIMIT_DATA, settings.memory_mb * megabyte]]


def _wrapped(bubblewrap: str, orders: LaunchSpec) -> list[str]:
    """The command line of bubblewrap, up to the command."""
    line = [bubblewrap, "--unshare-all", "--die-with-parent", "--seccomp", str(FILTER_FD)]
    line += ["--cap-drop", "ALL"]
    for path in orders.readable:
        if path != "/proc":
            line += ["--ro-bind-try", path, path]
    line += ["--proc", "/proc", "--dev", "/dev"]
    for path in orders.writable:
        if path != SCRATCH:
            line += ["--bind", path, path]
    for path in orders.guarded:
        line += ["--ro-bind", path, path]
    # What is left around them is memory: a write there would seem to work, and be gone.
    line += ["--remount-ro", "/"] if orders.writable else ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [*line, "--chdir", orders.cwd, "--"]
