"""Linux system calls that Python has no function for, and the restrictions built on them.

Capabilities, namespaces with mounts, and Landlock. Runs in the supervisor process.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct

_LIBC = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 38, 36
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

KEPT_CAPABILITIES = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID: without them root could not work in a folder that is another user's.
All are about files, which the rules and mounts hold; the rest (mounting, tracing, raw devices) goes."""


def syscall(number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None, what: str) -> int:
    """A system call by its number. What it was for is said where it fails."""
    given = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    result = int(_LIBC.syscall(ctypes.c_long(number), *given))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def prctl(option: int, value: int, pointer: bytes | None = None) -> None:
    """prctl(2)."""
    result = int(_LIBC.prctl(option, ctypes.c_ulong(value), pointer or ctypes.c_ulong(0), 0, 0))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl {option}: {os.strerror(error)}")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """mount(2)."""
    result = _LIBC.mount(
        os.fsencode(source) if source else None,
        os.fsencode(target),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"mount {target}: {os.strerror(error)}")


def unshare(flags: int) -> None:
    """unshare(2)."""
    if _LIBC.unshare(ctypes.c_int(flags)) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"unshare {flags:#x}: {os.strerror(error)}")


def drop_capabilities() -> None:
    """Keep those about files alone, and let no program bring others."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    version_3 = 0x20080522
    header = version_3.to_bytes(4, "little") + bytes(4)
    found = ctypes.create_string_buffer(24)
    _LIBC.capget(header, found)
    # Three words of 32 bits (effective, permitted, inheritable), and three more for the newer half.
    permitted = int.from_bytes(found.raw[4:8], "little")
    kept = (permitted & KEPT_CAPABILITIES).to_bytes(4, "little")
    if _LIBC.capset(header, kept + kept + bytes(16)) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"capset: {os.strerror(error)}")


# Namespaces: separate files, processes and network for a command.
#
# Landlock does not cover modes, owners and times, and what it allows in a folder it allows in all subfolders.
# Mounts cover both. The network has only a loopback device that is down. When the first process ends, the
# kernel kills all others at once: a fork bomb outruns a process that kills its children one by one.

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
    """Leave the namespaces of this process: its next child is the first process of new ones."""
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
    """In the new namespaces: mount what can be written to, and what cannot. For the first process."""
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


# Landlock: a process and its children permanently give up access to what no rule allows: files, signals,
# sockets.

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""The same on every processor, like all calls younger than 2019."""

MIN_LANDLOCK_VERSION = 6
"""Of the versions of Landlock (Linux 6.12). Those before it hold files but not signals: a command could kill
whoever is meant to end it."""

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR = 1 << 4, 1 << 5, 1 << 6, 1 << 7
MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK = 1 << 8, 1 << 9, 1 << 10, 1 << 11
MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = 1 << 12, 1 << 13, 1 << 14, 1 << 15
ALL_ACCESS = (1 << 16) - 1
NETWORK_ACCESS = 0b11
"""To listen and to connect with TCP; no rule allows either."""
_SCOPES = 0b11
"""Abstract Unix sockets and signals of others."""

READ_ACCESS = EXECUTE | READ_FILE | READ_DIR
WRITE_ACCESS = ALL_ACCESS & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
FILE_ACCESS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""What a rule on something that is no folder may say."""

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
"""Programs expect them; writing to them changes nothing."""


def read_landlock_version() -> int:
    """Which Landlock this kernel has; 0: none."""
    try:
        return syscall(CREATE_RULESET, None, 0, 1, what="ask for Landlock")
    except OSError:
        return 0


def restrict_process(readable: list[str], writable: list[str]) -> None:
    """Restrict this process to these folders. Those that do not exist are skipped."""
    wanted = struct.pack("=QQQ", ALL_ACCESS, NETWORK_ACCESS, _SCOPES)
    rules = syscall(CREATE_RULESET, wanted, len(wanted), 0, what="make Landlock rules")
    try:
        for path in readable:
            _allow(rules, path, READ_ACCESS)
        for path in _DEVICES:
            _allow(rules, path, READ_FILE | WRITE_FILE)
        for path in writable:
            _allow(rules, path, WRITE_ACCESS)
        syscall(RESTRICT_SELF, rules, 0, what="apply Landlock rules")
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= FILE_ACCESS
        syscall(ADD_RULE, rules, 1, struct.pack("=Qi", rights, place), 0, what=f"allow {path}")
    finally:
        os.close(place)
