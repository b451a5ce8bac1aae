from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from sevenfold.store.files.disk import write_all
from sevenfold.store.files.folder import Folder
from tests.store import children
from tests.store.faults import ACCIDENTS, OPERATIONS, Accident, Fault, FaultyDisk, Operation, can_happen


class Died(BaseException):
    """Instead of the real thing."""


def die() -> NoReturn:
    raise Died


def play(disk: FaultyDisk, place: Path) -> None:
    """One of each operation, in the order of `OPERATIONS`, each handle closed whatever happens."""
    fd = disk.open(str(place / "file"), os.O_RDWR | os.O_CREAT | os.O_APPEND)
    folder = os.open(place, os.O_RDONLY)
    try:
        disk.read(fd, 4, 0)
        disk.write(fd, memoryview(b"1234"))
        disk.fsync(fd)
        disk.rename("file", "moved", old_fd=folder, new_fd=folder)
        disk.link("moved", "again", dir_fd=folder)
        disk.unlink("moved", dir_fd=folder)
        disk.mkdir("made", dir_fd=folder)
        disk.flock(fd, 0x2)
        disk.set_times(fd, 0)
        disk.names(folder)
        disk.stat(fd)
    except OSError:
        os.close(fd)
        raise
    finally:
        os.close(folder)
    disk.close(fd)


def test_without_a_fault_it_counts_and_changes_nothing(tmp_path: Path) -> None:
    disk = FaultyDisk()
    play(disk, tmp_path)
    assert tuple(disk.seen) == OPERATIONS
    assert not disk.struck
    assert sorted(os.listdir(tmp_path)) == ["again", "made"]


@pytest.mark.parametrize("accident", ["ENOSPC", "EIO", "EINTR"])
def test_an_error_strikes_the_operation_it_is_put_at_and_no_other(tmp_path: Path, accident: Accident) -> None:
    for at in range(2, len(OPERATIONS) + 1):
        disk = FaultyDisk(Fault(at, accident))
        (tmp_path / f"{at}").mkdir()
        with pytest.raises(OSError, match=r".") as caught:
            play(disk, tmp_path / f"{at}")
        assert caught.value.errno == getattr(errno, accident)
        assert tuple(disk.seen) == OPERATIONS[:at]
        assert disk.struck


@pytest.mark.parametrize("accident", ["EIO", "EINTR"])
def test_a_handle_is_gone_whatever_closing_it_says(tmp_path: Path, accident: Accident) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match=r"."):
        FaultyDisk(Fault(1, accident)).close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_an_error_can_be_told_of_what_was_done(tmp_path: Path) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match="Input/output"):
        FaultyDisk(Fault(1, "EIO after")).mkdir("made", dir_fd=place)
    with pytest.raises(OSError, match="Input/output"):
        # Its handle, which nobody was told of, is closed: `no_handle_left_open` looks.
        FaultyDisk(Fault(1, "EIO after")).open("file", os.O_RDWR | os.O_CREAT, dir_fd=place)
    os.close(place)
    assert sorted(os.listdir(tmp_path)) == ["file", "made"]


@pytest.mark.parametrize(("accident", "happened"), [("die before", False), ("die after", True)])
def test_dying_before_or_after_leaves_the_operation_undone_or_done(
    tmp_path: Path, accident: Accident, happened: bool
) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(Died):
        FaultyDisk(Fault(1, accident), die=die).mkdir("made", dir_fd=place)
    os.close(place)
    assert (tmp_path / "made").exists() == happened


def test_a_run_does_not_outlive_its_accident_even_where_the_operation_fails(tmp_path: Path) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(Died):
        FaultyDisk(Fault(1, "die after"), die=die).unlink("nothing", dir_fd=place)
    os.close(place)


@pytest.mark.parametrize(("accident", "left"), [("die half way", b"1234"), ("short", b"12345678")])
def test_a_write_is_cut_in_half_and_then_dies_or_goes_on(
    tmp_path: Path, accident: Accident, left: bytes
) -> None:
    disk = FaultyDisk(Fault(1, accident), die=die)
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        write_all(disk, fd, b"12345678")
    except Died:
        assert accident == "die half way"
    os.close(fd)
    assert (tmp_path / "file").read_bytes() == left


def test_a_lasting_error_stays_where_it_can_happen(tmp_path: Path) -> None:
    disk = FaultyDisk(Fault(2, "ENOSPC", lasting=True))
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    place = os.open(tmp_path, os.O_RDONLY)
    assert disk.write(fd, memoryview(b"1")) == 1
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            disk.write(fd, memoryview(b"2"))
    assert disk.read(fd, 9, 0) == b"1"
    disk.unlink("file", dir_fd=place)
    assert os.listdir(tmp_path) == []
    os.close(place)
    os.close(fd)


def test_every_accident_can_happen_somewhere_and_every_operation_can_fail() -> None:
    for accident in ACCIDENTS:
        assert any(can_happen(accident, operation) for operation in OPERATIONS)
    for operation in OPERATIONS:
        assert can_happen("EIO", operation)


@pytest.mark.parametrize(
    ("accident", "operation"),
    [
        ("die half way", "fsync"),
        ("short", "rename"),
        ("ENOSPC", "unlink"),
        ("die before", "read"),
        ("EIO after", "stat"),
    ],
)
def test_accidents_that_mean_nothing_are_left_out(accident: Accident, operation: Operation) -> None:
    assert not can_happen(accident, operation)


def test_the_real_death_is_one_that_nobody_can_catch(tmp_path: Path) -> None:
    def write_half() -> None:
        with Folder.open(tmp_path, disk=FaultyDisk(Fault(5, "die half way"))) as folder:
            folder.replace("file", b"x" * 100)

    assert children.finish(children.start(write_half)) == -9
    with Folder.open(tmp_path) as folder:
        assert folder.names() == []
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [50]
