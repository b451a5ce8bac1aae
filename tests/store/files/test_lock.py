"""The lock over long work: who may take it when, who may publish, what counts as a success."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import DiskFault, KeyRefused, LeaseLost, LockBusy
from sevenfold.core.events import Event, LeaseReclaimed
from sevenfold.store.files.disk import SystemDisk
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import DEFAULT_LEASE, DEFAULT_LONGEST_HOLD, Lease, Lock, LockSettings, mutex
from tests.store import children
from tests.store.disks import fresh_folder

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
RECORD = "dream.lock.json"


@pytest.fixture
def lock(control: Folder, clock: ManualClock, events: list[Event]) -> Lock:
    return Lock(control, "dream", clock=clock, emit=events.append)


def is_free(lock: Lock) -> bool:
    try:
        lock.acquire()
    except LockBusy:
        return False
    return True


def never() -> None:
    raise AssertionError("a lost lease was published")


def restart(monkeypatch: pytest.MonkeyPatch, clock: ManualClock, boot: str) -> None:
    """The machine goes down and comes up: another boot, and its uptime starts again."""
    monkeypatch.setattr("sevenfold.store.files.locks.read_boot_id", lambda: boot)
    monkeypatch.setattr("sevenfold.store.files.lock_state.read_boot_id", lambda: boot)
    clock.up = timedelta(seconds=5)


def test_a_lock_nobody_ever_took_is_free(lock: Lock, events: list[Event]) -> None:
    state = lock.read_state()
    assert (state.token, state.holder, state.last_success, state.strikes) == (0, None, None, 0)
    assert lock.acquire().token == 1
    assert events == []


@pytest.mark.parametrize(
    ("passed", "stepped", "free"),
    [
        (timedelta(0), timedelta(0), False),
        (DEFAULT_LEASE - SECOND, timedelta(0), False),
        (DEFAULT_LEASE, timedelta(0), True),
        (timedelta(0), 2 * DAY, False),
        (timedelta(0), -2 * DAY, False),
        (DEFAULT_LEASE - SECOND, 2 * DAY, False),
        (DEFAULT_LEASE - SECOND, -2 * DAY, False),
        (DEFAULT_LEASE, 2 * DAY, True),
        (DEFAULT_LEASE, -2 * DAY, True),
    ],
)
def test_a_lease_ends_by_uptime_whatever_the_wall_clock_says(
    lock: Lock, clock: ManualClock, passed: timedelta, stepped: timedelta, free: bool
) -> None:
    lock.acquire()
    clock.pass_time(passed)
    clock.step_wall(stepped)
    assert is_free(lock) == free


@pytest.mark.parametrize("boot", ["another boot", ""], ids=["named", "unnamed"])
@pytest.mark.parametrize(
    ("passed", "free"),
    [(MINUTE, False), (DEFAULT_LEASE, True), (2 * DAY, True), (-2 * DAY, True), (-MINUTE, True)],
)
def test_after_a_restart_the_wall_clock_decides_and_a_stamp_too_far_ahead_is_a_wrong_one(
    lock: Lock,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    boot: str,
    passed: timedelta,
    free: bool,
) -> None:
    if not boot:
        restart(monkeypatch, clock, boot)
        clock.up = 30 * DAY
    lock.acquire()
    restart(monkeypatch, clock, boot)
    clock.wall += passed
    assert is_free(lock) == free


def test_a_holder_that_renews_keeps_it_for_an_hour_and_no_longer(
    lock: Lock, clock: ManualClock, events: list[Event]
) -> None:
    lease = lock.acquire()
    step = DEFAULT_LEASE / 3
    for _ in range(DEFAULT_LONGEST_HOLD // step):
        clock.pass_time(step)
        assert not is_free(lock)
        lease.renew()
    clock.pass_time(SECOND)
    with pytest.raises(LeaseLost, match="over 1:00:00"):
        lease.renew()
    assert lock.acquire().token == 2
    assert isinstance(events[0], LeaseReclaimed)
    assert "held it for over" in events[0].reason
    with pytest.raises(LeaseLost):
        lease.publish(never)


def test_who_held_it_too_long_publishes_nothing_even_where_nobody_took_over(
    lock: Lock, clock: ManualClock
) -> None:
    lease = lock.acquire()
    clock.pass_time(DEFAULT_LONGEST_HOLD + SECOND)
    with pytest.raises(LeaseLost, match="over 1:00:00; nothing was published"):
        lease.publish(never)
    assert lock.read_state().last_success is None
    lease.release()
    assert lock.read_state().strikes == 1


def test_renewing_late_is_fine_as_long_as_nobody_took_over(lock: Lock, clock: ManualClock) -> None:
    lease = lock.acquire()
    clock.pass_time(DEFAULT_LEASE * 2)
    lease.renew()
    assert not is_free(lock)
    done: list[int] = []
    lease.publish(lambda: done.append(1))
    assert done == [1]


def test_who_was_away_too_long_publishes_nothing(lock: Lock, clock: ManualClock, events: list[Event]) -> None:
    late = lock.acquire()
    clock.pass_time(DEFAULT_LEASE)
    other = lock.acquire()
    assert other.token > late.token
    for attempt in (late.renew, lambda: late.publish(never)):
        with pytest.raises(LeaseLost, match="our token 1, now 2"):
            attempt()
    late.release()
    other.renew()
    done: list[int] = []
    other.publish(lambda: done.append(other.token))
    with pytest.raises(LeaseLost):
        late.publish(never)
    assert done == [2]
    assert [type(event) for event in events] == [LeaseReclaimed]


def test_a_lease_publishes_once(lock: Lock) -> None:
    lease = lock.acquire()
    lease.publish(lambda: None)
    with pytest.raises(LeaseLost):
        lease.publish(never)
    with pytest.raises(LeaseLost):
        lease.renew()
    lease.release()
    assert lock.read_state().strikes == 0
    assert is_free(lock)


def test_nobody_takes_over_in_the_middle_of_publishing(
    lock: Lock, clock: ManualClock, control: Folder
) -> None:
    busy: list[str] = []

    def try_to_take() -> None:
        clock.pass_time(DEFAULT_LEASE * 2)
        with pytest.raises(LockBusy) as caught, mutex(control, "dream", wait=timedelta(0)):
            pass
        busy.append(str(caught.value))

    lock.acquire().publish(try_to_take)
    assert len(busy) == 1
    assert lock.read_state().last_success == clock.now()


def test_success_is_recorded_when_work_is_published_and_at_no_other_time(
    lock: Lock, clock: ManualClock
) -> None:
    lock.acquire()
    clock.pass_time(DEFAULT_LEASE)
    assert lock.read_state().last_success is None, "it crashed"
    lock.acquire().release()
    assert lock.read_state().last_success is None, "it gave up"
    lease = lock.acquire()
    clock.pass_time(MINUTE)
    lease.renew()
    assert lock.read_state().last_success is None, "it is at work"
    lease.publish(lambda: None)
    published = clock.now()
    clock.pass_time(DAY)
    lock.acquire().release()
    state = lock.read_state()
    assert state.last_success == published
    assert state.last_attempt == clock.now()


def test_strikes_outlive_the_process_and_end_with_a_success(
    lock: Lock, control: Folder, clock: ManualClock
) -> None:
    lock.acquire()
    clock.pass_time(DEFAULT_LEASE)
    lock.acquire().release()
    again = Lock(control, "dream", clock=clock)
    assert again.read_state().strikes == 2, "a crash and a failure"
    again.acquire().publish(lambda: None)
    assert again.read_state().strikes == 0


def test_a_commit_that_fails_is_no_success_and_the_lease_goes_on(lock: Lock) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    lease = lock.acquire()
    with pytest.raises(ZeroDivisionError):
        lease.publish(fail)
    assert lock.read_state().last_success is None
    assert not is_free(lock)
    lease.release()
    assert (lock.read_state().strikes, lock.read_state().last_success) == (1, None)


class WearyDisk(SystemDisk):
    """Stops renaming when it is told to."""

    weary = False

    def rename(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        if self.weary:
            raise OSError(errno.EIO, "broken")
        super().rename(old, new, old_fd=old_fd, new_fd=new_fd)


def test_a_success_that_could_not_be_recorded_is_an_error(tmp_path: Path, clock: ManualClock) -> None:
    disk = WearyDisk()
    with Folder.open(tmp_path, disk=disk) as folder:
        lock = Lock(folder, "dream", clock=clock)
        with pytest.raises(DiskFault):
            lock.acquire().publish(lambda: setattr(disk, "weary", True))
        state = lock.read_state()
    assert state.last_success is None
    assert state.holder is not None


def test_times_that_lie_ahead_count_as_now(lock: Lock, clock: ManualClock) -> None:
    lock.acquire().publish(lambda: None)
    clock.step_wall(-2 * DAY)
    state = lock.read_state()
    assert (state.last_success, state.last_attempt) == (clock.now(), clock.now())


def test_a_lock_needs_a_plain_name(control: Folder) -> None:
    with pytest.raises(KeyRefused):
        Lock(control, "../dream").acquire()


@pytest.mark.story
def test_sixteen_at_once_get_one_lease(control: Folder) -> None:
    results, told = os.pipe()

    def try_once() -> None:
        os.write(told, b"1" if is_free(Lock(control, "dream")) else b"0")

    children.expect_success([try_once] * 16)
    assert sorted(os.read(results, 100)) == sorted(b"1" + b"0" * 15)
    os.close(results)
    os.close(told)


steps = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["acquire", "renew", "publish", "give up", "wait", "sleep", "step"]),
    ),
    max_size=40,
)


@given(steps)
def test_whatever_the_schedule_tokens_are_published_in_order_and_only_by_their_holder(
    schedule: list[tuple[int, str]],
) -> None:
    """Four workers, one of them asleep now and then; the newest token is the only one that ever publishes."""
    with fresh_folder() as control:
        clock = ManualClock()
        lock = Lock(control, "dream", clock=clock)
        leases: dict[int, Lease] = {}
        published: list[int] = []
        newest = 0
        for who, step in schedule:
            lease = leases.get(who)
            match step:
                case "wait" | "sleep":
                    clock.pass_time(MINUTE if step == "wait" else DEFAULT_LEASE)
                case "step":
                    clock.step_wall(DAY if who % 2 else -DAY)
                case "acquire" if lease is None:
                    with suppress(LockBusy):
                        leases[who] = lock.acquire()
                        assert leases[who].token > newest
                        newest = leases[who].token
                case "renew" | "publish" | "give up" if lease:
                    act: dict[str, Callable[[], None]] = {
                        "renew": lease.renew,
                        "publish": partial(lease.publish, partial(published.append, lease.token)),
                        "give up": lease.release,
                    }
                    before = len(published)
                    try:
                        act[step]()
                    except LeaseLost:
                        assert lease.token < newest or before == len(published)
                        del leases[who]
                    else:
                        if step != "renew":
                            del leases[who]
                    assert published[before:] in ([], [newest])
                case _:
                    pass
        assert published == sorted(set(published))
        assert (lock.read_state().last_success is None) == (not published)


def test_settings_say_how_long_a_lease_and_a_hold_last(control: Folder, clock: ManualClock) -> None:
    settings = LockSettings(lease_seconds=10, longest_hold_seconds=25)
    lock = Lock(control, "dream", clock=clock, lease=settings.lease, longest_hold=settings.longest_hold)
    lease = lock.acquire()
    for _ in range(3):
        clock.pass_time(timedelta(seconds=8))
        lease.renew()
    clock.pass_time(timedelta(seconds=2))
    with pytest.raises(LeaseLost, match="0:00:25"):
        lease.renew()
    assert lock.acquire().token == 2
