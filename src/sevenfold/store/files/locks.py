"""Mutexes for short changes, and leases for long work such as a dream.

A mutex is a flock on a permanent file, held for milliseconds. It is not enough for long work, which waits for
a model for minutes in a process that may be stopped, suspended or killed meanwhile. So for a lease the mutex
only guards a small record of who holds it and until when. The record has a fencing token, which grows with
every holder and is checked again, under the mutex, when the work is published: a holder that was away too
long finds its token out of date and publishes nothing.

`last_success` is written when work is published and at no other time, so a crash does not count as one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from sevenfold.core import events
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import (
    FileDamaged,
    FileMissing,
    InputError,
    LeaseLost,
    LockBusy,
    SevenfoldError,
    StoreError,
)
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import read_object, write_json
from sevenfold.core.settings import amount
from sevenfold.core.system import map_os_errors
from sevenfold.store.files.disk import close_in_children, drop_flock, take_flock
from sevenfold.store.files.folder import Folder, FolderTimeouts
from sevenfold.store.files.lock_state import (
    LockHolder,
    LockState,
    PidFile,
    PidStamp,
    find_outside_success,
    is_our_stamp,
    make_pid_stamp,
    read_boot_id,
    refuse_foreign_holder,
)

# The kernel releases a flock when its holder dies, so no lock can go stale. The file is never removed: after
# an unlink two processes could hold the lock, one on the old inode and one on the new.


@contextmanager
def mutex(folder: Folder, name: str, *, wait: timedelta | None = None) -> Generator[None]:
    """Hold `name`.mutex in `folder` for the block; `LockBusy` when it cannot be had in time.

    That is `wait`, or the timeout of the folder.
    """
    key = f"{name}.mutex"
    while True:
        with _handle(folder, key) as fd:
            with map_os_errors(f"lock {folder.path}/{key}"):
                take_flock(
                    folder.disk, fd, folder.timeouts.mutex if wait is None else wait, f"{folder.path}/{key}"
                )
                if folder.disk.stat(fd).st_nlink == 0:
                    continue  # somebody cleaned up while we waited: others lock a new file of that name
            yield
            return


def edit_file(
    folder: Folder,
    key: str,
    change: Callable[[bytes | None], bytes | None],
    *,
    control: Folder,
    max_bytes: int,
    wait: timedelta | None = None,
) -> bytes | None:
    """Read, change and replace a file with nobody else in between; what it now holds.

    `change` gets None when there is no file, and returns None to leave everything as it is. The mutex lives
    in `control`, apart from the folder, because agents may write to the folder.
    """
    with mutex(control, "edit", wait=wait):
        try:
            before = folder.read(key, max_bytes=max_bytes)
        except FileMissing:
            before = None
        after = change(before)
        if after is None or after == before:
            if after is not None:
                folder.sync_name(key)
            return before
        folder.replace(key, after)
        return after


@contextmanager
def _handle(folder: Folder, key: str) -> Generator[int]:
    """One for each block: flock belongs to the open file, so threads exclude each other too."""
    fd, holder = _open(folder, key), os.getpid()
    try:
        with close_in_children(fd):
            yield fd
    finally:
        # In a child that was forked inside the block it is closed already, and the number may be another's.
        if os.getpid() == holder:
            # Nothing was written through it, so an error here says nothing about what the block did.
            with suppress(OSError):
                drop_flock(folder.disk, fd)
            with suppress(OSError):
                folder.disk.close(fd)


def _open(folder: Folder, key: str) -> int:
    try:
        return folder.open_file(key, os.O_RDWR)
    except FileMissing:
        return folder.open_file(key, os.O_RDWR | os.O_CREAT)


@dataclass(frozen=True, slots=True)
class LockSettings:
    SECTION: ClassVar[str] = "lock"

    lease_seconds: int = amount(120, at_least=1)
    """How long a dead holder keeps others out; renewed every third of it, so that two may fail."""

    longest_hold_seconds: int = amount(3_600, at_least=1)
    """A live holder is cut off here: work that takes longer has gone wrong."""

    wait_seconds: int = amount(15)
    """For the few milliseconds of somebody else's change: enough for a queue of writers on a slow disk, and
    short enough that a person sees the error."""

    mark_seconds: int = amount(120, at_least=1)
    """A mark that notes are being updated, older than this, was left by a writer that died."""

    @property
    def timeouts(self) -> FolderTimeouts:
        return FolderTimeouts(timedelta(seconds=self.wait_seconds), timedelta(seconds=self.mark_seconds))

    @property
    def lease(self) -> timedelta:
        return timedelta(seconds=self.lease_seconds)

    @property
    def longest_hold(self) -> timedelta:
        return timedelta(seconds=self.longest_hold_seconds)


DEFAULT_LEASE = LockSettings().lease
DEFAULT_LONGEST_HOLD = LockSettings().longest_hold

_MAX_STATE_BYTES = 64 * 1024


class Lease:
    """The right to publish, as long as it lasts."""

    def __init__(self, lock: Lock, token: int, nonce: str) -> None:
        self._lock = lock
        self._nonce = nonce
        self.token = token

    def renew(self) -> None:
        """Say that the work goes on. `LeaseLost`: it was taken over or lasted too long; stop the work."""
        self._lock.renew(self.token, self._nonce)

    def publish(self, commit: Callable[[], None]) -> None:
        """Run `commit` while nobody can take over, then record the success and let go."""
        self._lock.publish(self.token, commit, self._nonce)

    def release(self) -> None:
        """Let go without a success. Harmless when the lease is lost already."""
        self._lock.release(self.token, self._nonce)


class Lock:
    """A named lock whose record lives in `control`, a folder that no agent can write to."""

    def __init__(
        self,
        control: Folder,
        name: str,
        *,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
        pid_file: PidFile | None = None,
        lease: timedelta = DEFAULT_LEASE,
        longest_hold: timedelta = DEFAULT_LONGEST_HOLD,
    ) -> None:
        self._control = control
        self._name = name
        self._file = f"{name}.lock.json"
        self._clock = clock or SystemClock()
        self._emit = emit
        self._pid_file = pid_file
        self._lease = lease
        self._longest = longest_hold

    def read_state(self) -> LockState:
        """What the record says now. A consolidation by another program, seen in the PID file, counts too."""
        stamp = self._read_pid_stamp()
        while True:
            state = self._read()
            # Only what stood there before and after is explained by the record in between: without the mutex
            # somebody of ours may take the lock meanwhile, and that is no success of another program's.
            again = self._read_pid_stamp()
            if again == stamp:
                return self._with_outside_success(state, stamp)
            stamp = again

    def acquire(self) -> Lease:
        """Take the lock, or `LockBusy` at once: nobody waits minutes for somebody else's dream."""
        with mutex(self._control, self._name):
            stamp = self._read_pid_stamp()
            state = self._with_outside_success(self._read(), stamp)
            reason = self._why_free(state)
            now, up = self._clock.now(), self._clock.uptime()
            refuse_foreign_holder(stamp, state.stamps, now)
            token, nonce = state.token + 1, os.urandom(8).hex()
            taken = replace(
                state,
                token=token,
                holder=LockHolder(
                    pid=os.getpid(),
                    boot=read_boot_id(),
                    started=now,
                    started_up=up,
                    until=now + self._lease,
                    until_up=up + self._lease,
                    nonce=nonce,
                ),
                last_attempt=now,
                # A holder still in the record means that the attempt before us ended in a crash.
                strikes=state.strikes + (state.holder is not None),
            )
            self._write(taken, stamp, make_pid_stamp(now))
            if state.holder:
                self._emit(events.LeaseReclaimed(self._name, state.token, token, reason))
        return Lease(self, token, nonce)

    def renew(self, token: int, nonce: str = "") -> None:
        """See `Lease.renew`."""
        with mutex(self._control, self._name):
            state = self._owned(token, nonce)
            self._write(state.renewed(self._clock.now(), self._clock.uptime(), self._lease))

    def publish(self, token: int, commit: Callable[[], None], nonce: str = "") -> None:
        """See `Lease.publish`."""
        with mutex(self._control, self._name):
            state = self._owned(token, nonce)
            commit()
            now = self._clock.now()
            self._let_go(replace(state, holder=None, last_success=now, strikes=0), now)

    def release(self, token: int, nonce: str = "") -> None:
        """See `Lease.give_up`."""
        with mutex(self._control, self._name):
            state = self._read()
            if _is_held(state, token, nonce):
                self._let_go(replace(state, holder=None, strikes=state.strikes + 1), state.last_success)

    def _owned(self, token: int, nonce: str) -> LockState:
        state = self._read()
        if not _is_held(state, token, nonce):
            raise LeaseLost(
                f"lock {self._name!r} was taken over (our token {token}, now {state.token}); "
                "nothing was published, start the work again"
            )
        if state.holder and state.holder.held_for(self._clock.now(), self._clock.uptime()) > self._longest:
            raise LeaseLost(
                f"lock {self._name!r} was held for over {self._longest}; nothing was published, start again"
            )
        return state

    def _why_free(self, state: LockState) -> str:
        """Why the lock may be taken; `LockBusy` when it may not."""
        holder = state.holder
        if holder is None:
            return "nobody holds it"
        now, up = self._clock.now(), self._clock.uptime()
        if holder.has_lapsed(now, up, self._lease):
            return f"process {holder.pid} stopped renewing it"
        if holder.held_for(now, up) > self._longest:
            return f"process {holder.pid} held it for over {self._longest}"
        raise LockBusy(
            f"lock {self._name!r} is held by process {holder.pid} until {holder.until.isoformat()}"
        )

    def _with_outside_success(self, state: LockState, stamp: PidStamp | None) -> LockState:
        outside = find_outside_success(stamp, state.stamps, self._clock.now())
        if outside and (state.last_success is None or outside > state.last_success):
            return replace(state, last_success=outside)
        return state

    def _let_go(self, state: LockState, when: datetime | None) -> None:
        """Write the record of a lock that is free now, and in the PID file where that is still ours."""
        try:
            stamp = self._read_pid_stamp()
        except StoreError as error:
            # What was published counts, whatever becomes of the PID file.
            self._emit(events.LockFaceFailed(self._name, str(error)))
            self._write(state)
            return
        # Where another program took it meanwhile it is theirs to change.
        ours = stamp is None or is_our_stamp(stamp, state.stamps)
        self._write(state, stamp, make_pid_stamp(when) if ours else None)

    def _read_pid_stamp(self) -> PidStamp | None:
        return self._pid_file.read() if self._pid_file else None

    def _read(self) -> LockState:
        try:
            return self._clamped(self._read_file())
        except FileMissing:
            return LockState()
        except (InputError, FileDamaged) as error:
            # The token must never go back: microseconds since 1970 are beyond any count of holders.
            token = int(self._clock.now().timestamp() * 1_000_000)
            self._emit(events.LockRebuilt(self._name, token, str(error)))
            return LockState(token=token)

    def _read_file(self) -> LockState:
        return read_fields(LockState, read_object(self._control.read(self._file, max_bytes=_MAX_STATE_BYTES)))

    def _clamped(self, state: LockState) -> LockState:
        """A time that lies ahead is from a clock that was wrong; the latest it can have been is now."""
        now = self._clock.now()
        return replace(
            state,
            last_success=state.last_success and min(state.last_success, now),
            last_attempt=state.last_attempt and min(state.last_attempt, now),
        )

    def _write(self, state: LockState, seen: PidStamp | None = None, mark: PidStamp | None = None) -> None:
        """Write the record first. It names what we left in the PID file and what we will write: anything else
        there is not ours."""
        if self._pid_file and mark:
            before = (seen,) if seen and is_our_stamp(seen, state.stamps) else ()
            state = replace(state, stamps=(*before, mark))
        self._control.replace(self._file, write_json(write_fields(state)) + b"\n")
        if self._pid_file and mark:
            try:
                self._pid_file.write(mark)
            except SevenfoldError as error:
                # Exclusion does not rest on it, so whoever spoils it must not stop the work.
                self._emit(events.LockFaceFailed(self._name, str(error)))


def _is_held(state: LockState, token: int, nonce: str) -> bool:
    """Whether the record is still that holder's. The nonce tells when a removed record gave a token again."""
    return state.token == token and state.holder is not None and nonce in ("", state.holder.nonce)
