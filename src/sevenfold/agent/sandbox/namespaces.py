"""A world of its own for a command: files, processes and network.

Landlock says nothing of modes, owners and times, and what it allows in a folder it allows in all below it.
Mounts hold both. The network has no device but a loopback that is down. And all processes are gone with the
first one, at once and whatever they do: a fork bomb outruns whoever kills its processes one by one.
"""

from __future__ import annotations

import os
import struct

from sevenfold.agent.sandbox.kernel import mount, syscall, unshare

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = (
    1 << 17,
    1 << 27,
    1 << 28,
    1 << 29,
    1 << 30,
)
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = (
    1 << 1,
    1 << 2,
    1 << 3,
    1 << 12,
    1 << 14,
    1 << 18,
)
MOUNT_SETATTR, AT_RECURSIVE, MOUNT_ATTR_RDONLY, AT_FDCWD = 442, 0x8000, 1, -100

RESERVED_PIDS = 301
"""Numbers of processes that the kernel does not give out twice: the smallest highest number is this."""

SCRATCH = "/dev/shm"
"""Where scratch space is mounted: programs look for shared memory there, and no project lies below it."""
SCRATCH_SIZE = "size=1g,mode=1777"
"""It is memory, and it is gone with the last process."""


def unshare_namespaces() -> None:
    """Leave the world that this process was started in: its next child is the first process of another."""
    own = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID
    try:
        unshare(own)
    except PermissionError:
        # Who is not root is given the right to mount in a user namespace, and nowhere else.
        user, group = os.getuid(), os.getgid()
        unshare(own | CLONE_NEWUSER)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def mount_sandbox(writable: list[str], guarded: list[str], max_processes: int) -> None:
    """In the new world: what can be written to, and what cannot. For its first process."""
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    if _has_own_numbers():
        _write("/proc/sys/kernel/pid_max", str(RESERVED_PIDS + max_processes))
    places = [path for path in writable if path != SCRATCH]
    for path in (*places, *guarded):
        # A mount point cannot be moved or removed, and has a read-only flag of its own.
        mount(path, path, None, MS_BIND | MS_REC)
    _set_read_only("/", is_on=True, flags=AT_RECURSIVE)
    for path in places:
        _set_read_only(path, is_on=False)
    if SCRATCH in writable:
        mount("tmpfs", SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV, SCRATCH_SIZE)


def _has_own_numbers() -> bool:
    """Whether the highest number of a process is each namespace's own, as since Linux 6.14. It bounds root,
    which no other limit does; before, it was the whole machine's."""
    version = os.uname().release.split(".")[:2]
    return [int(part) for part in version if part.isdecimal()] >= [6, 14]


def _set_read_only(path: str, *, is_on: bool, flags: int = 0) -> None:
    wanted = struct.pack("=QQQQ", MOUNT_ATTR_RDONLY if is_on else 0, 0 if is_on else MOUNT_ATTR_RDONLY, 0, 0)
    syscall(
        MOUNT_SETATTR, AT_FDCWD, os.fsencode(path) + b"\0", flags, wanted, len(wanted), what=f"remount {path}"
    )


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)
