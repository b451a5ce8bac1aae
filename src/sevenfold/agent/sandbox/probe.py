"""Find out what can be held on this machine, by running commands that try to get out."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sevenfold.agent.sandbox.command import SupervisedCommand
from sevenfold.agent.sandbox.landlock import MIN_LANDLOCK_VERSION, read_landlock_version
from sevenfold.agent.sandbox.sandbox import Sandbox, SandboxBackend, find_bubblewrap
from sevenfold.agent.sandbox.seccomp import is_supported_machine
from sevenfold.core.events import Emit, SandboxFailed, ignore_event
from sevenfold.core.profile import SandboxProfile
from sevenfold.core.settings.sandbox import SandboxSettings
from sevenfold.core.tool_context import ToolContext

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
    """What holds here. Takes a tenth of a second, once; that something is missing is told."""
    found = await _find(settings, environ)
    for profile in SANDBOXED_PROFILES:
        if not found.holds(profile):
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
    """Why a profile is not held; None: it is."""
    with tempfile.TemporaryDirectory(prefix="sevenfold-trial-") as folder, socket.socket() as listener:
        ground = _Ground(folder, listener)
        ground.lay()
        place = ToolContext(root=ground.inside, cwd=ground.inside, environ=environ)
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                printed = await _run(sandbox, profile, ground.command(), place)
        except TimeoutError:
            return f"a trial took longer than {_LONGEST_SECONDS} s"
        if _DONE not in printed:
            return f"a trial failed: {printed[-200:]!r}"
        return "a trial could signal the agent" if SIGNALLED in printed else ground.escape(profile)


async def _run(sandbox: Sandbox, profile: SandboxProfile, line: str, place: ToolContext) -> str:
    command = SupervisedCommand(sandbox.orders(profile, line, place))
    printed = b""
    try:
        while part := await command.read():
            printed += part
    finally:
        ended = await command.close()
    return ended.failure or printed.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class _Ground:
    """Where a trial is held: a folder to work in, one to stay out of, and a door that nobody may knock at."""

    folder: str
    listener: socket.socket

    @property
    def inside(self) -> Path:
        return Path(self.folder).resolve() / "project"

    @property
    def outside(self) -> Path:
        return Path(self.folder).resolve() / "outside"

    def lay(self) -> None:
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
