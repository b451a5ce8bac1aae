"""The record of a lease, and the PID file of the dream lock.

`.consolidate-lock` in the memory folder shows the dream lock to other programs: its body is the holder's
PID, its modification time the last consolidation. Other programs that share the folder read it, and may hold
it themselves. It is written and respected, but exclusion between our own processes never rests on it, because
agents can write there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Annotated

from sevenfold.core.errors import AccessDenied, FileMissing, LockBusy, NotRegular
from sevenfold.core.fields import JsonForm, NonNegative
from sevenfold.core.system import is_process_alive, map_os_errors
from sevenfold.store.files.disk import READ_FLAGS, read_fully
from sevenfold.store.files.folder import Folder


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """Who holds the lock. The PID is for people to read: PIDs are reused, exclusion does not rest on them."""

    pid: NonNegative
    boot: str
    started: datetime
    started_up: timedelta
    until: datetime
    until_up: timedelta
    nonce: str = ""
    """Of this holder alone: where the record was removed or an older copy put back, tokens may repeat."""

    def has_lapsed(self, now: datetime, up: timedelta, lease: timedelta) -> bool:
        if self._is_this_boot():
            return up >= self.until_up
        # Another machine, or this one before a restart: only the wall clock is shared. A stamp further ahead
        # than a lease can reach comes from a clock that was wrong.
        left = self.until - now
        return left <= timedelta(0) or left > lease

    def held_for(self, now: datetime, up: timedelta) -> timedelta:
        return up - self.started_up if self._is_this_boot() else now - self.started

    def _is_this_boot(self) -> bool:
        """Whether its uptimes can be compared with ours; never where the system does not name its boots."""
        return bool(self.boot) and self.boot == read_boot_id()


@dataclass(frozen=True, slots=True)
class PidStamp:
    """The visible lock file as one value: the PID in its body, and its modification time."""

    pid: NonNegative
    modified_ns: NonNegative


@dataclass(frozen=True, slots=True, kw_only=True)
class LockState:
    token: Annotated[int, JsonForm(at_least=0, is_required=True)] = 0
    """Grows with every holder and never goes back."""
    holder: LockHolder | None = None
    last_success: datetime | None = None
    last_attempt: datetime | None = None
    strikes: NonNegative = 0
    """Attempts in a row that ended in failure or a crash; persisted, so that a crash loop cannot hide."""
    stamps: Annotated[tuple[PidStamp, ...], JsonForm(name="faces")] = ()
    """What we may have left in the PID file; any other PID there was written by another program."""

    def renewed(self, now: datetime, up: timedelta, lease: timedelta) -> LockState:
        holder = self.holder
        return replace(self, holder=holder and replace(holder, until=now + lease, until_up=up + lease))


@cache
def read_boot_id() -> str:
    """Which run of which machine this is; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


PID_FILE = ".consolidate-lock"

FOREIGN_HOLD = timedelta(minutes=60)
"""After this a live holder of another program is thought stuck, by that program's own rule."""

_MAX_BODY_BYTES = 1024
_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)


class PidFile:
    """`folder` must have been opened with `PID_FILE` among its own names."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def close(self) -> None:
        self._folder.close()

    def read(self) -> PidStamp | None:
        """What stands there, or None; something that is no file is nobody's lock."""
        disk = self._folder.disk
        try:
            # Both from one handle: by name, the body could be one program's and the time another's.
            with self._folder.opened(PID_FILE, READ_FLAGS) as fd, map_os_errors(f"read {PID_FILE}"):
                text = read_fully(disk, fd, _MAX_BODY_BYTES).strip()
                modified_ns = disk.stat(fd).st_mtime_ns
        except (AccessDenied, FileMissing, NotRegular):
            # Any other failure is told: a disk that fails to read it for once frees nobody's lock.
            return None
        pid = int(text) if text.isdigit() and len(text) < 10 else 0
        return PidStamp(pid, modified_ns)

    def write(self, stamp: PidStamp) -> None:
        self._folder.replace(PID_FILE, str(stamp.pid).encode(), modified_ns=stamp.modified_ns)


def make_pid_stamp(when: datetime | None) -> PidStamp:
    """Our PID, with the time of the last success; the epoch where there was none."""
    elapsed = when - _EPOCH if when else timedelta(0)
    # Even seconds, which every file system keeps as they are: we must recognise our own mark when we read it.
    return PidStamp(os.getpid(), elapsed // timedelta(seconds=2) * 2_000_000_000)


def is_our_stamp(stamp: PidStamp, ours: tuple[PidStamp, ...]) -> bool:
    """Whether the PID file names a holder that we wrote there, even if the file was touched since.

    The time alone proves nothing: backups, copies and agents set it, and a program that consolidates writes
    its own PID as well.
    """
    return any(stamp.pid == mark.pid for mark in ours)


def find_outside_success(
    stamp: PidStamp | None, ours: tuple[PidStamp, ...], now: datetime
) -> datetime | None:
    """When another program last consolidated, as far as the PID file shows.

    A little ahead is a clock that is a little wrong, and counts as now. Far ahead is a clock that was set, or
    an agent that touched the file: it says nothing, or it would say "just now" for as long as it lies ahead.
    """
    if stamp is None or is_our_stamp(stamp, ours) or stamp.modified_ns <= 0:
        return None
    ahead_us = stamp.modified_ns // 1000 - (now - _EPOCH) // _MICROSECOND
    if ahead_us > FOREIGN_HOLD // _MICROSECOND:
        return None
    return now if ahead_us > 0 else now + ahead_us * _MICROSECOND


def refuse_foreign_holder(stamp: PidStamp | None, ours: tuple[PidStamp, ...], now: datetime) -> None:
    """`LockBusy` while a live process that is not ours holds the PID file."""
    since = find_outside_success(stamp, ours, now)
    if stamp is None or since is None or now - since > FOREIGN_HOLD or not _is_alive(stamp.pid):
        return
    raise LockBusy(f"another program (process {stamp.pid}) holds {PID_FILE} since {since.isoformat()}")


def _is_alive(pid: int) -> bool:
    return pid > 0 and pid != os.getpid() and is_process_alive(pid)
