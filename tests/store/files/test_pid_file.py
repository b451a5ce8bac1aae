"""`.consolidate-lock`: shown to other programs, respected when they hold it, and never relied upon."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import LockBusy
from sevenfold.core.events import Event, LeaseReclaimed, LockFaceFailed
from sevenfold.store.files.disk import SystemDisk
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.lock_state import (
    FOREIGN_HOLD,
    PID_FILE,
    PidFile,
    PidStamp,
    find_outside_success,
    make_pid_stamp,
)
from sevenfold.store.files.locks import DEFAULT_LEASE, Lock
from tests.store import children
from tests.store.faults import Fault, FaultyDisk

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
EPOCH = datetime.fromtimestamp(0, UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Folder]:
    with Folder.open(tmp_path / "memory", create=True, own=frozenset([PID_FILE])) as folder:
        yield folder


@pytest.fixture
def file(memory: Folder) -> Path:
    return memory.path / PID_FILE


@pytest.fixture
def lock(control: Folder, memory: Folder, clock: ManualClock, events: list[Event]) -> Lock:
    return Lock(control, "dream", clock=clock, emit=events.append, pid_file=PidFile(memory))


@pytest.fixture
def dead() -> int:
    """The PID of a process that was."""
    pid = children.start(lambda: None)
    children.finish(pid)
    return pid


@pytest.fixture
def alive() -> Generator[int]:
    """The PID of a process that is not ours and lives as long as the test."""
    waiting, go_on = os.pipe()
    pid = children.start(lambda: os.read(waiting, 1))
    yield pid
    os.write(go_on, b"x")
    children.finish(pid)
    os.close(waiting)
    os.close(go_on)


def shown(file: Path) -> tuple[str, datetime]:
    return file.read_text("ascii"), datetime.fromtimestamp(file.stat().st_mtime, UTC)


def write_foreign(file: Path, pid: int | str, when: datetime) -> None:
    file.write_text(str(pid), encoding="ascii")
    os.utime(file, (when.timestamp(), when.timestamp()))


def test_it_shows_who_holds_the_lock_since_when_and_then_the_success(
    lock: Lock, file: Path, clock: ManualClock
) -> None:
    lease = lock.acquire()
    assert shown(file) == (str(os.getpid()), clock.now())
    clock.pass_time(10 * MINUTE)
    lease.publish(lambda: None)
    assert shown(file) == (str(os.getpid()), clock.now())


def test_giving_up_rolls_the_time_back_to_the_last_success_or_to_none(
    lock: Lock, file: Path, clock: ManualClock
) -> None:
    lock.acquire().release()
    assert shown(file)[1] == EPOCH
    lock.acquire().publish(lambda: None)
    success = clock.now()
    clock.pass_time(DAY)
    lock.acquire().release()
    assert shown(file)[1] == success
    assert lock.read_state().last_success == success


@pytest.mark.parametrize("crashes", [1, 2, 3])
def test_a_crash_leaves_its_time_on_the_pid_file_and_that_is_no_success(
    lock: Lock, file: Path, clock: ManualClock, events: list[Event], crashes: int
) -> None:
    for _ in range(crashes):
        lock.acquire()
        assert shown(file)[1] == clock.now()
        clock.pass_time(DEFAULT_LEASE)
    state = lock.read_state()
    assert state.last_success is None
    lock.acquire()
    assert lock.read_state().strikes == crashes
    assert {type(event) for event in events} == {LeaseReclaimed}


def test_a_crash_between_the_record_and_the_pid_file_is_no_success_either(
    control: Folder, memory: Folder, clock: ManualClock
) -> None:
    def crash_before_pid_file() -> None:
        counting = FaultyDisk()
        with Folder.open(memory.path, disk=counting, own=frozenset([PID_FILE])) as faulty:
            counting.seen.clear()
            PidFile(faulty).read()
            reads = 2 * len(counting.seen)
        fatal = FaultyDisk(Fault(2 + reads + 2, "die before"))
        with Folder.open(memory.path, disk=fatal, own=frozenset([PID_FILE])) as faulty:
            Lock(control, "dream", clock=clock, pid_file=PidFile(faulty)).acquire()

    lock = Lock(control, "dream", clock=clock, pid_file=PidFile(memory))
    for turn in range(3):
        assert children.finish(children.start(crash_before_pid_file)) == -9
        assert lock.read_state().token == turn + 1
        assert lock.read_state().last_success is None
        clock.pass_time(DEFAULT_LEASE)
    lock.acquire().publish(lambda: None)
    assert lock.read_state().last_success == clock.now()


def test_a_consolidation_by_another_program_counts(
    lock: Lock, file: Path, clock: ManualClock, dead: int
) -> None:
    lock.acquire().publish(lambda: None)
    clock.pass_time(DAY)
    theirs = clock.now() - MINUTE
    write_foreign(file, dead, theirs)
    assert lock.read_state().last_success == theirs
    lock.acquire().release()
    assert lock.read_state().last_success == theirs, "it is kept in the record"
    assert shown(file)[1] == theirs


def touch(file: Path, when: datetime) -> None:
    os.utime(file, (when.timestamp(), when.timestamp()))


def test_a_backup_that_touches_our_pid_file_is_no_success(lock: Lock, file: Path, clock: ManualClock) -> None:
    lock.acquire().publish(lambda: None)
    success = clock.now()
    clock.pass_time(30 * timedelta(hours=1))
    touch(file, clock.now())
    assert lock.read_state().last_success == success
    lock.acquire().release()
    assert lock.read_state().last_success == success, "nor is it kept in the record"
    assert shown(file)[1] == success, "what was touched is put right"


def test_a_touch_while_we_hold_the_lock_is_put_right_when_we_let_go(
    lock: Lock, file: Path, clock: ManualClock
) -> None:
    lease = lock.acquire()
    clock.pass_time(MINUTE)
    touch(file, clock.now())
    lease.release()
    assert shown(file)[1] == EPOCH
    assert lock.read_state().last_success is None


def test_a_touched_pid_file_of_a_process_of_ours_that_lives_on_holds_nothing(
    lock: Lock, file: Path, clock: ManualClock, alive: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: alive)
    lock.acquire().publish(lambda: None)
    monkeypatch.undo()
    clock.pass_time(DAY)
    touch(file, clock.now())
    assert lock.acquire().token == 2


def test_another_program_that_lives_on_may_succeed_more_than_once(
    lock: Lock, file: Path, clock: ManualClock, dead: int
) -> None:
    for _ in range(3):
        clock.pass_time(DAY)
        write_foreign(file, dead, clock.now())
        assert lock.read_state().last_success == clock.now()
        # It is seen in the PID file when we take the lock, and is not ours for that.
        lock.acquire().release()


def test_an_older_consolidation_does_not_undo_a_newer_one(
    lock: Lock, file: Path, clock: ManualClock, dead: int
) -> None:
    lock.acquire().publish(lambda: None)
    write_foreign(file, dead, clock.now() - DAY)
    assert lock.read_state().last_success == clock.now()


@pytest.mark.parametrize(
    ("age", "busy"),
    [
        (timedelta(0), True),
        (FOREIGN_HOLD - MINUTE, True),
        (FOREIGN_HOLD + MINUTE, False),
        (-FOREIGN_HOLD + MINUTE, True),
        (-FOREIGN_HOLD - MINUTE, False),
        (-365 * DAY, False),
    ],
)
def test_a_live_holder_of_another_program_is_respected_for_an_hour(
    lock: Lock, file: Path, clock: ManualClock, alive: int, age: timedelta, busy: bool
) -> None:
    write_foreign(file, alive, clock.now() - age)
    if busy:
        with pytest.raises(LockBusy, match="another program"):
            lock.acquire()
    else:
        assert lock.acquire().token == 1


@pytest.mark.parametrize("body", ["", "0", "-1", "me", "9" * 400, "1\n2", "\x00"])
def test_what_names_no_process_holds_nothing(lock: Lock, file: Path, clock: ManualClock, body: str) -> None:
    write_foreign(file, body, clock.now())
    assert lock.acquire().token == 1


def test_a_dead_holder_and_our_own_process_hold_nothing(
    lock: Lock, file: Path, clock: ManualClock, dead: int
) -> None:
    for pid in (dead, os.getpid()):
        write_foreign(file, pid, clock.now())
        lock.acquire().release()
    assert lock.read_state().token == 2


@pytest.mark.parametrize("ahead", [timedelta(seconds=10), FOREIGN_HOLD])
def test_a_clock_a_little_ahead_counts_as_now(ahead: timedelta) -> None:
    now = ManualClock().now()
    stamp = PidStamp(1, make_pid_stamp(now + ahead).modified_ns)
    assert find_outside_success(stamp, (), now) == now


@pytest.mark.parametrize(
    "modified_ns", [2**62, 2**63 - 1, 10**24, make_pid_stamp(ManualClock().now() + DAY).modified_ns]
)
def test_a_time_far_ahead_says_nothing(modified_ns: int) -> None:
    """Else an agent's one `touch` would keep dreams away for ever."""
    assert find_outside_success(PidStamp(1, modified_ns), (), ManualClock().now()) is None


def test_times_before_the_epoch_say_nothing() -> None:
    assert find_outside_success(PidStamp(1, -5), (), ManualClock().now()) is None
    assert find_outside_success(PidStamp(1, 0), (), ManualClock().now()) is None


@pytest.mark.parametrize("ending", ["publish", "give up"])
def test_a_pid_file_that_another_program_took_meanwhile_is_theirs(
    lock: Lock, file: Path, clock: ManualClock, alive: int, ending: str
) -> None:
    lease = lock.acquire()
    clock.pass_time(MINUTE)
    write_foreign(file, alive, clock.now())
    theirs = shown(file)
    lease.publish(lambda: None) if ending == "publish" else lease.release()
    assert shown(file) == theirs
    assert lock.read_state().last_success == clock.now()
    with pytest.raises(LockBusy):
        lock.acquire()


def plant_folder(file: Path) -> None:
    file.mkdir()


def plant_twin(file: Path) -> None:
    file.with_name(PID_FILE.upper()).touch()


@pytest.mark.parametrize("plant", [plant_folder, plant_twin])
def test_a_spoilt_pid_file_stops_nobody_and_is_told(
    lock: Lock, file: Path, events: list[Event], plant: Callable[[Path], None], clock: ManualClock
) -> None:
    plant(file)
    lease = lock.acquire()
    done: list[int] = []
    lease.publish(lambda: done.append(1))
    assert done == [1]
    assert lock.read_state().last_success == clock.now()
    assert [type(event) for event in events] == [LockFaceFailed] * 2


class DenyingDisk(SystemDisk):
    def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
        if path == PID_FILE:
            raise PermissionError(13, "Permission denied")
        return super().open_beneath(root_fd, path, flags)


def test_a_pid_file_that_an_agent_took_the_rights_from_stops_nobody(
    control: Folder, memory: Folder, clock: ManualClock
) -> None:
    with Folder.open(memory.path, disk=DenyingDisk(), own=frozenset([PID_FILE])) as denied:
        lock = Lock(control, "dream", clock=clock, pid_file=PidFile(denied))
        lock.acquire().publish(lambda: None)
        assert lock.read_state().last_success == clock.now()


def test_a_link_in_place_of_the_pid_file_is_replaced_and_not_followed(
    lock: Lock, file: Path, outside: Path
) -> None:
    file.symlink_to(outside / "secret.md")
    lock.acquire()
    assert (outside / "secret.md").read_text("utf-8") == "secret"
    assert not file.is_symlink()


def test_what_stands_on_the_pid_file_is_read_from_one_file(memory: Folder, file: Path) -> None:
    assert PidFile(memory).read() is None
    PidFile(memory).write(PidStamp(12, 4_000_000_000))
    assert PidFile(memory).read() == PidStamp(12, 4_000_000_000)
    file.write_bytes(b"12" + b" " * 5000)
    os.utime(file, (4, 4))
    assert PidFile(memory).read() == PidStamp(12, 4_000_000_000)
    file.unlink()
    os.mkfifo(file)
    assert PidFile(memory).read() is None


def test_our_mark_is_in_even_seconds_which_every_file_system_keeps() -> None:
    for when in (ManualClock().now() + timedelta(seconds=1.999), None):
        assert make_pid_stamp(when).modified_ns % 2_000_000_000 == 0
        assert make_pid_stamp(when).pid == os.getpid()


def test_a_holder_that_belongs_to_somebody_else_is_alive(
    lock: Lock, file: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_yours(pid: int, signal: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    write_foreign(file, 1, clock.now())
    monkeypatch.setattr(os, "kill", not_yours)
    with pytest.raises(LockBusy, match="process 1"):
        lock.acquire()
