"""Linux system calls that Python has no function for, and the restrictions built on them.

Capabilities, namespaces with mounts and a network that is down, Landlock, and a system call filter. Runs in
the supervisor process.
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


# Mounts restrict what Landlock does not: modes, owners and times, and single subfolders. When the first
# process of a PID namespace ends, the kernel kills all others at once; a fork bomb outruns single kills.
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


# Landlock: a process and its children permanently give up access to files, signals and sockets that no rule
# allows.
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
"""What a rule on something that is not a folder may say."""

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


# The system call filter, for what Landlock does not cover: sockets, modes, owners, and ways out of it.

X86, ARM = "x86_64", "aarch64"
ARCHITECTURES = {X86: 0xC000003E, ARM: 0xC00000B7}
"""As the kernel names them to a filter."""

DENIED_SYSCALLS: dict[str, dict[str, int]] = {
    X86: {
        "socket": 41,
        "ptrace": 101,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "unshare": 272,
        "perf_event_open": 298,
        "open_by_handle_at": 304,
        "setns": 308,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "bpf": 321,
        "userfaultfd": 323,
    },
    ARM: {
        "unshare": 97,
        "ptrace": 117,
        "socket": 198,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "perf_event_open": 241,
        "open_by_handle_at": 265,
        "setns": 268,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "bpf": 280,
        "userfaultfd": 282,
    },
}
"""Denied to every sandboxed command. No kind of socket can be opened; a pair of connected ones can."""

DENIED_NEW_SYSCALLS = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "pidfd_getfd": 438,
}
"""The same on every processor. A ring opens sockets and files by itself, past any filter."""

WRITE_SYSCALLS: dict[str, dict[str, int]] = {
    X86: {
        "shmget": 29,
        "semget": 64,
        "msgget": 68,
        "chmod": 90,
        "fchmod": 91,
        "chown": 92,
        "fchown": 93,
        "lchown": 94,
        "utime": 132,
        "setxattr": 188,
        "lsetxattr": 189,
        "fsetxattr": 190,
        "removexattr": 197,
        "lremovexattr": 198,
        "fremovexattr": 199,
        "utimes": 235,
        "mq_open": 240,
        "fchownat": 260,
        "futimesat": 261,
        "fchmodat": 268,
        "utimensat": 280,
    },
    ARM: {
        "setxattr": 5,
        "lsetxattr": 6,
        "fsetxattr": 7,
        "removexattr": 14,
        "lremovexattr": 15,
        "fremovexattr": 16,
        "fchmod": 52,
        "fchmodat": 53,
        "fchownat": 54,
        "fchown": 55,
        "utimensat": 88,
        "mq_open": 180,
        "msgget": 186,
        "semget": 190,
        "shmget": 194,
    },
}
"""Denied where nothing may be changed: Landlock lets modes, owners and times of any file be set."""

NEW_WRITE_SYSCALLS = {"fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "file_setattr": 469}

_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD, _FOURTH = 0, 4, 16, 24, 32, 40
"""Where a filter finds the call's number, the processor and the low halves of its arguments."""

MODE_SYSCALLS: dict[str, dict[int, int]] = {
    X86: {85: _SECOND, 90: _SECOND, 91: _SECOND, 133: _SECOND, 259: _THIRD, 268: _THIRD, 452: _THIRD},
    ARM: {33: _THIRD, 52: _SECOND, 53: _THIRD, 452: _THIRD},
}
"""`creat`, `chmod`, `mknod` and their like, with the argument that is the mode of a file."""
OPEN_SYSCALLS: dict[str, dict[int, int]] = {X86: {2: _SECOND, 257: _THIRD}, ARM: {56: _THIRD}}
"""`open` and `openat`, with the argument that is the flags. The mode of a new file is the next one."""
OPENAT2 = 437
CREATING_FLAGS = 0o100 | 0o20000000
SET_ID_MODES = 0o6000
"""A file with one of these runs with the rights of its owner, whoever of the machine's users starts it."""

CLONE = {X86: 56, ARM: 220}
CLONE3 = 435
NEW_NAMESPACES = 0x7E020000
IOCTL = {X86: 16, ARM: 29}
TERMINAL_INPUT_IOCTLS = (0x5412, 0x541C)
"""Requests that put words into a terminal's input, as if a person had typed them."""
FILE_FLAG_IOCTLS = (0x40086602, 0x401C5820)
"""Requests that set a file's flags."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _DENY = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _EACCES, _ENOSYS = 1, 13, 38


def is_supported_machine(machine: str) -> bool:
    return machine in ARCHITECTURES


def build_seccomp_filter(machine: str, *, may_change: bool) -> bytes:
    """The program for a processor, by the name that `uname -m` gives it."""
    denied = [*DENIED_SYSCALLS[machine].values(), *DENIED_NEW_SYSCALLS.values()]
    requests: list[int] = [*TERMINAL_INPUT_IOCTLS]
    if not may_change:
        denied += [*WRITE_SYSCALLS[machine].values(), *NEW_WRITE_SYSCALLS.values()]
        requests += FILE_FLAG_IOCTLS
    lines = [
        _line(_LOAD, _ARCHITECTURE),
        # Another processor's numbers mean other calls.
        _line(_EQUAL, ARCHITECTURES[machine], 1, 0),
        _line(_RETURN, _KILL),
        _line(_LOAD, _NUMBER),
    ]
    if machine == X86:
        # The numbers of a second, never used interface to the same calls.
        lines += [_line(_AT_LEAST, 0x40000000, 0, 1), _line(_RETURN, _DENY | _ENOSYS)]
    for number in sorted(denied):
        lines += [_line(_EQUAL, number, 0, 1), _line(_RETURN, _DENY | _EACCES)]
    # Their flags are behind a pointer, where no filter can look; programs fall back to `clone` and `openat`.
    for number in (CLONE3, OPENAT2):
        lines += [_line(_EQUAL, number, 0, 1), _line(_RETURN, _DENY | _ENOSYS)]
    for number, argument in MODE_SYSCALLS[machine].items():
        lines += _when(number, argument, [_line(_ANY_BIT, SET_ID_MODES, 0, 1)])
    for number, argument in OPEN_SYSCALLS[machine].items():
        lines += _when_creating(number, argument)
    lines += _when(CLONE[machine], _FIRST, [_line(_ANY_BIT, NEW_NAMESPACES, 0, 1)])
    lines += _when(IOCTL[machine], _SECOND, [_line(_EQUAL, request, 0, 1) for request in requests])
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _when(number: int, argument: int, tests: list[bytes]) -> list[bytes]:
    """For one call: deny it where an argument passes any of the tests, and allow it otherwise."""
    inside = [_line(_LOAD, argument)]
    for test in tests:
        inside += [test, _line(_RETURN, _DENY | _EPERM)]
    inside.append(_line(_RETURN, _ALLOW))
    return [_line(_EQUAL, number, 0, len(inside)), *inside]


def _when_creating(number: int, flags: int) -> list[bytes]:
    """For a call that opens: deny it where it would make a file that runs with its owner's rights."""
    inside = [
        _line(_LOAD, flags),
        _line(_ANY_BIT, CREATING_FLAGS, 0, 3),
        _line(_LOAD, flags + 8),
        _line(_ANY_BIT, SET_ID_MODES, 0, 1),
        _line(_RETURN, _DENY | _EPERM),
        _line(_RETURN, _ALLOW),
    ]
    return [_line(_EQUAL, number, 0, len(inside)), *inside]


def _line(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_so, if_not, value)


def install_seccomp_filter(program: bytes) -> None:
    """For this process and all that it starts, for good."""
    buffer = ctypes.create_string_buffer(program, len(program))
    # Native alignment: the pointer to the lines stands after their count.
    about = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, about)
