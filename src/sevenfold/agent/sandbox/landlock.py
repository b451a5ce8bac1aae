"""Landlock: a process gives up for good what it and its children may do with files, signals and sockets."""

from __future__ import annotations

import os
import stat
import struct

from sevenfold.agent.sandbox.kernel import syscall

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
    """Hold this process to these folders. What does not exist is passed over: there is nothing to allow."""
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
