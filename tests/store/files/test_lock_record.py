"""The lock's record on disk: read back as it was written, and started anew when it cannot be."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import LeaseLost
from sevenfold.core.events import Event, LockRebuilt
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import read_object, thaw
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.lock_state import (
    LockHolder,
    LockState,
    PidStamp,
    read_boot_id,
)
from sevenfold.store.files.locks import DEFAULT_LEASE, Lock

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
RECORD = "dream.lock.json"


@pytest.fixture
def lock(control: Folder, clock: ManualClock, events: list[Event]) -> Lock:
    return Lock(control, "dream", clock=clock, emit=events.append)


def never() -> None:
    raise AssertionError("a lost lease was published")


def spoilt(field: str, value: object) -> bytes:
    """A good record of a holder with token 5, but for one field."""
    at = datetime(2026, 11, 15, tzinfo=UTC)
    holder = LockHolder(pid=1, boot="boot", started=at, started_up=SECOND, until=at, until_up=MINUTE)
    state = LockState(
        token=5, holder=holder, last_success=at, last_attempt=at, strikes=1, stamps=(PidStamp(1, 2),)
    )
    record = cast("dict[str, object]", thaw(write_fields(state)))
    inner = cast("dict[str, object]", record["holder"])
    (inner if field in inner else record)[field] = value
    return json.dumps(record).encode()


DAMAGED = {
    "empty": b"",
    "zeros": bytes(100),
    "half": b'{"token":5,',
    "list": b"[]",
    "binary": b"\xff\xfe",
    "deep": b"[" * 10_000,
    "too long": b" " * 100_000 + b"{}",
    "nothing in it": b"{}",
    "no token": spoilt("token", None),
    "negative token": spoilt("token", -5),
    "true token": spoilt("token", True),
    "token in words": spoilt("token", "five"),
    "endless token": spoilt("token", 10**700),
    "holder in words": spoilt("holder", "me"),
    "holder without times": spoilt("until", None),
    "time without zone": spoilt("until", "2026-11-15T00:00:00"),
    "no time": spoilt("started", "yesterday"),
    "endless span": spoilt("until_up", 1e300),
    "endless whole span": spoilt("until_up", 10**400),
    "span in words": spoilt("started_up", "long"),
    "boot in numbers": spoilt("boot", 7),
    "strikes in words": spoilt("strikes", "many"),
    "faces in words": spoilt("faces", "many"),
    "no pid file": spoilt("faces", ["a pid file"]),
    "half a pid file": spoilt("faces", [{"pid": 1}]),
    "success in numbers": spoilt("last_success", 5),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_record_is_started_anew_above_any_token_it_can_have_held(
    lock: Lock, control: Folder, events: list[Event], content: bytes
) -> None:
    for _ in range(4):
        lock.acquire().release()
    held = lock.acquire()
    control.replace(RECORD, content)
    with pytest.raises(LeaseLost):
        held.publish(never)
    with pytest.raises(LeaseLost):
        held.renew()
    held.release()
    lease = lock.acquire()
    assert lease.token > held.token
    assert {type(event) for event in events} == {LockRebuilt}
    lease.publish(lambda: None)
    assert lock.read_state().token == lease.token


def test_a_record_survives_its_own_file(lock: Lock, control: Folder, clock: ManualClock) -> None:
    lock.acquire()
    state = lock.read_state()
    now, up = clock.now(), clock.uptime()
    assert state.holder
    assert state.holder == LockHolder(
        pid=os.getpid(),
        boot=read_boot_id(),
        started=now,
        started_up=up,
        until=now + DEFAULT_LEASE,
        until_up=up + DEFAULT_LEASE,
        nonce=state.holder.nonce,
    )
    assert len(state.holder.nonce) == 16
    wire = read_object(control.read(RECORD, max_bytes=10_000))
    assert read_fields(LockState, wire) == state


def test_a_system_that_does_not_name_its_boots_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Path, encoding: str) -> str:
        raise FileNotFoundError

    read_boot_id.cache_clear()
    monkeypatch.setattr(Path, "read_text", missing)
    assert read_boot_id() == ""
    read_boot_id.cache_clear()


def test_a_removed_record_does_not_let_two_publish(lock: Lock, control: Folder) -> None:
    lost = lock.acquire()
    control.remove(RECORD)
    held = lock.acquire()
    with pytest.raises(LeaseLost):
        lost.publish(never)
    lost.release()
    done: list[int] = []
    held.publish(lambda: done.append(held.token))
    assert done == [held.token]


def test_an_older_copy_put_back_gives_nobody_the_lock_twice(lock: Lock, control: Folder) -> None:
    before = lock.acquire()
    older = control.read(RECORD, max_bytes=10_000)
    before.release()
    between = lock.acquire()
    control.replace(RECORD, older)
    with pytest.raises(LeaseLost):
        between.publish(never)
