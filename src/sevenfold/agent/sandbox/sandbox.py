"""Which sandbox this machine supports, found by trying, and how a command is launched in it.

Landlock, mounts and a system call filter where the kernel has them; bubblewrap where it has not. A profile
that neither supports is refused, never run without a sandbox.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.agent.sandbox.command import (
    PLAIN_VARIABLES,
    SupervisedCommand,
    build_open_environ,
    build_sandboxed_environ,
    list_secret_variables,
)
from sevenfold.agent.sandbox.folders import choose_writable_root, list_guarded_paths, list_readable_folders
from sevenfold.agent.sandbox.kernel import (
    MIN_LANDLOCK_VERSION,
    SCRATCH,
    build_seccomp_filter,
    is_supported_machine,
    read_landlock_version,
)
from sevenfold.agent.sandbox.supervisor import LaunchSpec
from sevenfold.core.events import Emit, SandboxFailed, VariablesHeld, ignore_event
from sevenfold.core.settings.sections import SandboxSettings
from sevenfold.core.tool_kinds import SandboxProfile, ToolContext

SandboxBackend: TypeAlias = Literal["namespaces", "landlock", "bubblewrap"]
"""`namespaces`: Landlock and more; `landlock`: Landlock alone, which holds what may change nothing, unless it
is root's: no limit of the kernel's keeps root from starting processes."""


FILTER_FD = 9
"""Where bubblewrap is handed the filter; any number that nothing else has."""


CPU_SECONDS = 3_600
"""Of one process. What runs longer than an hour at full speed has been forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """Which profiles this machine supports, and how."""

    means: Mapping[SandboxProfile, SandboxBackend] = field(
        default_factory=dict[SandboxProfile, SandboxBackend]
    )
    why_not: str = ""
    """What is missing for the profiles that are not supported, and what to do about it."""
    settings: SandboxSettings = field(default_factory=SandboxSettings)
    bubblewrap: str | None = None
    reported: set[str] = field(default_factory=set[str], compare=False, repr=False)
    """Variables that were held back and reported."""

    def _report_withheld(self, place: ToolContext) -> None:
        """One event for the variables that were held back, and another only where there are new ones."""
        withheld = list_secret_variables(place.environ, self.settings.pass_variables)
        if not self.reported.issuperset(withheld):
            self.reported.update(withheld)
            place.emit(VariablesHeld(", ".join(withheld)))

    def supports(self, profile: SandboxProfile) -> bool:
        return profile in self.means

    def build_launch_spec(self, profile: SandboxProfile, command: str, place: ToolContext) -> LaunchSpec:
        """How to run a command. The profile must be supported."""
        argv = [find_shell(), "-c", command]
        if profile == "open":
            return LaunchSpec(argv, build_open_environ(place.environ), str(place.cwd), _limits(None), 0)
        environ = build_sandboxed_environ(place.environ, profile, self.settings.pass_variables)
        self._report_withheld(place)
        orders = LaunchSpec(
            argv, environ, str(place.cwd), _limits(self.settings), max_processes=self.settings.processes
        )
        orders.filter = build_seccomp_filter(os.uname().machine, may_change=profile == "workspace")
        orders.readable = list_readable_folders(place, self.settings.read)
        if profile == "workspace":
            root = choose_writable_root(place)
            # Mounted over a project that lies there, scratch space would hide it.
            orders.writable = [str(root)] if root.is_relative_to(SCRATCH) else [str(root), SCRATCH]
            orders.guarded = list_guarded_paths(root)
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
    """No core files; sandboxed commands also have resource limits."""
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
    # Root owns the files in `/proc/sys`, and needs no privilege to write them: one of them names the program
    # that the kernel starts, outside, when any process crashes.
    line += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    for path in orders.writable:
        if path != SCRATCH:
            line += ["--bind", path, path]
    for path in orders.guarded:
        line += ["--ro-bind", path, path]
    # What is left around them is memory: a write there would seem to work, and be gone.
    line += ["--remount-ro", "/"] if orders.writable else ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [*line, "--chdir", orders.cwd, "--"]


# Probes: commands that try to get out of the sandbox.
SANDBOXED_PROFILES: tuple[SandboxProfile, ...] = ("read-only", "workspace")
_DONE, SIGNALLED = "the trial is over", "the agent was signalled"
PROBE_SCRIPT = """\
cat inside && echo changed >> inside
echo changed >> {outside}/canary
chmod 700 {outside}/canary
: > {outside}/new
: <> /dev/tcp/127.0.0.1/{port}
kill -0 {agent} && echo {signalled}
echo {done}
"""
_LONGEST_SECONDS = 10


async def probe_sandbox(
    settings: SandboxSettings, environ: Mapping[str, str], emit: Emit = ignore_event
) -> Sandbox:
    """The sandbox of this machine. Takes a tenth of a second, once; reports what is missing."""
    found = await _find(settings, environ)
    for profile in SANDBOXED_PROFILES:
        if not found.supports(profile):
            emit(SandboxFailed(profile, found.why_not))
    return found


async def _find(settings: SandboxSettings, environ: Mapping[str, str]) -> Sandbox:
    nothing = Sandbox(settings=settings, bubblewrap=find_bubblewrap())
    reason = _why_nothing(settings)
    if reason:
        return replace(nothing, why_not=reason)
    means: dict[SandboxProfile, SandboxBackend] = {}
    reasons: list[str] = []
    for profile in SANDBOXED_PROFILES:
        for way in _ways(nothing, profile):
            failure = await _try(replace(nothing, means={profile: way}), profile, environ)
            if failure is None:
                means[profile] = way
                break
            reasons.append(f"{way} does not hold {profile} commands: {failure}")
    if len(means) == len(SANDBOXED_PROFILES):
        return replace(nothing, means=means)
    return replace(nothing, means=means, why_not="; ".join([*reasons, _advice(nothing)]))


def _why_nothing(settings: SandboxSettings) -> str:
    if not settings.enabled:
        return "it is turned off; set sandbox.enabled to true"
    if sys.platform != "linux":
        return f"there is none for {sys.platform} yet; commands can run after asking"
    if not is_supported_machine(os.uname().machine):
        return f"the processor {os.uname().machine} is not known; commands can run after asking"
    return ""


def _ways(sandbox: Sandbox, profile: SandboxProfile) -> list[SandboxBackend]:
    """The best one first."""
    ways: list[SandboxBackend] = ["namespaces"] if read_landlock_version() >= MIN_LANDLOCK_VERSION else []
    if sandbox.bubblewrap:
        ways.append("bubblewrap")
    if profile == "read-only" and read_landlock_version() >= MIN_LANDLOCK_VERSION and os.getuid() != 0:
        ways.append("landlock")
    return ways


def _advice(sandbox: Sandbox) -> str:
    if sandbox.bubblewrap is None:
        return "install bubblewrap, or use Linux 6.12 or newer with user namespaces"
    return "allow user namespaces, which bubblewrap needs too"


async def _try(sandbox: Sandbox, profile: SandboxProfile, environ: Mapping[str, str]) -> str | None:
    """Why a profile does not work; None: it does."""
    with tempfile.TemporaryDirectory(prefix="sevenfold-trial-") as folder, socket.socket() as listener:
        area = _TrialArea(folder, listener)
        area.create()
        # The user's own variables have no part in a trial: nobody need look through them for secrets yet.
        plain = {name: value for name, value in environ.items() if name in PLAIN_VARIABLES}
        place = ToolContext(root=area.inside, cwd=area.inside, environ=plain)
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                printed = await _run(sandbox, profile, area.command(), place)
        except TimeoutError:
            return f"a trial took longer than {_LONGEST_SECONDS} s"
        if _DONE not in printed:
            return f"a trial failed: {printed[-200:]!r}"
        return "a trial could signal the agent" if SIGNALLED in printed else area.escape(profile)


async def _run(sandbox: Sandbox, profile: SandboxProfile, line: str, place: ToolContext) -> str:
    command = SupervisedCommand(sandbox.build_launch_spec(profile, line, place))
    printed = b""
    try:
        while part := await command.read():
            printed += part
    finally:
        ended = await command.close()
    return ended.failure or printed.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class _TrialArea:
    """What a probe runs against: a folder to work in, one to stay out of, and a socket not to connect to."""

    folder: str
    listener: socket.socket

    @property
    def inside(self) -> Path:
        return Path(self.folder).resolve() / "project"

    @property
    def outside(self) -> Path:
        return Path(self.folder).resolve() / "outside"

    def create(self) -> None:
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.listener.setblocking(False)
        self.inside.mkdir()
        self.outside.mkdir()
        (self.inside / "inside").write_text("ours\n", encoding="utf-8")
        canary = self.outside / "canary"
        canary.write_text("theirs\n", encoding="utf-8")
        canary.chmod(0o600)

    def command(self) -> str:
        port: int = self.listener.getsockname()[1]
        return PROBE_SCRIPT.format(
            outside=self.outside, port=port, agent=os.getpid(), done=_DONE, signalled=SIGNALLED
        )

    def escape(self, profile: SandboxProfile) -> str | None:
        """What a command did that it may not; None: nothing."""
        canary = self.outside / "canary"
        is_changed = (self.inside / "inside").read_text(encoding="utf-8") != "ours\n"
        if os.listdir(self.outside) != ["canary"] or canary.read_text(encoding="utf-8") != "theirs\n":
            return "a trial got out of its folder"
        if canary.stat().st_mode & 0o777 != 0o600:
            return "a trial changed a mode outside its folder"
        if is_changed != (profile == "workspace"):
            return "a trial changed its folder" if is_changed else "a trial could not change its folder"
        try:
            self.listener.accept()[0].close()
        except BlockingIOError:
            return None
        return "a trial reached the network"
