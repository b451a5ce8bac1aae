"""The kernel's own calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os

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
