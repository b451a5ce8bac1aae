"""A system call filter, for what Landlock does not cover: sockets, modes, owners, and ways out of it."""

from __future__ import annotations

import ctypes
import struct

from sevenfold.agent.sandbox.kernel import PR_SET_SECCOMP, SECCOMP_MODE_FILTER, prctl

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
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Where a filter finds the call's number, the processor and the low halves of two arguments."""


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
    # Its flags are behind a pointer, where no filter can look; programs fall back to `clone`.
    lines += [_line(_EQUAL, CLONE3, 0, 1), _line(_RETURN, _DENY | _ENOSYS)]
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


def _line(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_so, if_not, value)


def install_seccomp_filter(program: bytes) -> None:
    """For this process and all that it starts, for good."""
    held = ctypes.create_string_buffer(program, len(program))
    # Native alignment: the pointer to the lines stands after their count.
    about = struct.pack("@HP", len(program) // 8, ctypes.addressof(held))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, about)
