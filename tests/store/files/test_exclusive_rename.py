"""New names on a file system that has no single step for them: no file lost, none replaced, none stuck."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Generator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.core.errors import FileExists, FileMissing, LockBusy, NotRegular, SevenfoldError
from sevenfold.store.files.disk import Disk, SystemDisk
from sevenfold.store.files.folder import Folder, FolderTimeouts
from tests.store import children
from tests.store.disks import LackingDisk, tree
from tests.store.faults import Accident, Fault, FaultyDisk, Operation, can_happen


@pytest.fixture(params=[SystemDisk, LackingDisk])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Folder]:
    """On a file system with the single step, and on one without."""
    with Folder.open(tmp_path / "either", create=True, disk=request.param()) as folder:
        folder.create("old.md", b"old")
        folder.subfolder("cur").close()
        yield folder


def test_a_move_takes_the_file_from_its_old_name_to_its_new(either: Folder) -> None:
    either.move("old.md", "cur/new.md")
    assert tree(either.path) == {"cur/new.md": b"old"}
    assert either.stat("cur/new.md") is not None


def test_neither_a_move_nor_a_creation_ever_replaces(either: Folder) -> None:
    either.create("cur/taken.md", b"mine")
    (either.path / "cur" / "dangling").symlink_to("nowhere")
    (either.path / "cur" / "folder").mkdir()
    for taken in ("cur/taken.md", "cur/dangling", "cur/folder"):
        with pytest.raises(FileExists):
            either.move("old.md", taken)
        with pytest.raises(FileExists):
            either.create(taken, b"other")
    with pytest.raises(FileExists):
        either.move("old.md", "old.md")
    with pytest.raises(FileMissing):
        either.move("nothing.md", "cur/new.md")
    assert tree(either.path) == {"old.md": b"old", "cur/taken.md": b"mine"}


def prepare(place: Path) -> None:
    with Folder.open(place, create=True) as folder, folder.subfolder("cur"):
        folder.create("old.md", b"old")


def move(place: Path, disk: Disk) -> None:
    with Folder.open(place, disk=disk) as folder:
        folder.move("old.md", "cur/new.md")


def operations(tmp_path: Path) -> list[Operation]:
    """What a move takes on a file system without the single step."""
    counting = FaultyDisk(inner=LackingDisk())
    prepare(tmp_path / "counted")
    move(tmp_path / "counted", counting)
    return counting.seen


@pytest.mark.story
def test_a_death_at_any_moment_of_a_move_leaves_the_file_under_one_of_its_names(tmp_path: Path) -> None:
    seen = operations(tmp_path)
    assert seen.count("rename") == 2, "the single step that is not there, and the plain one"
    deaths: tuple[Accident, ...] = ("die before", "die after")
    for at in [n for n, operation in enumerate(seen, start=1) if can_happen("die after", operation)]:
        for accident in deaths:
            place = tmp_path / f"{accident} {at}"
            prepare(place)
            disk = FaultyDisk(Fault(at, accident), inner=LackingDisk())
            assert children.finish(children.start(lambda place=place, disk=disk: move(place, disk))) == -9
            with Folder.open(place, disk=LackingDisk()) as folder:
                (key,) = tree(place)
                assert folder.read(key, max_bytes=9) == b"old"
                if key == "old.md":
                    folder.move("old.md", "cur/new.md")
            assert tree(place) == {"cur/new.md": b"old"}


@pytest.mark.parametrize("accident", ["EIO", "EIO after", "ENOSPC", "EINTR"])
def test_an_error_at_any_moment_of_a_move_does_too(tmp_path: Path, accident: Accident) -> None:
    seen = operations(tmp_path)
    struck = 0
    for at in [n for n, operation in enumerate(seen, start=1) if can_happen(accident, operation)]:
        place = tmp_path / f"{at}"
        prepare(place)
        disk = FaultyDisk(Fault(at, accident), inner=LackingDisk())
        with suppress(SevenfoldError):
            move(place, disk)
        struck += disk.struck
        assert list(tree(place).values()) == [b"old"]
        with Folder.open(place) as folder:
            assert folder.read(next(iter(tree(place))), max_bytes=9) == b"old"
    assert struck > 3


def test_whoever_makes_a_file_while_another_is_moved_there_waits_and_finds_the_name_taken(
    tmp_path: Path,
) -> None:
    """Between the look at the name and the rename nobody of ours gets in, and nothing is replaced."""
    prepare(tmp_path)
    refused: list[type[SevenfoldError]] = []

    def create_at_once() -> None:
        with Folder.open(tmp_path, disk=LackingDisk(), timeouts=FolderTimeouts(timedelta(0))) as impatient:
            try:
                impatient.create("cur/new.md", b"another")
            except SevenfoldError as error:
                refused.append(type(error))

    with Folder.open(tmp_path, disk=LackingDisk(create_at_once)) as folder:
        folder.move("old.md", "cur/new.md")
        create_at_once()
    assert refused == [LockBusy, FileExists]
    assert tree(tmp_path) == {"cur/new.md": b"old"}


def test_of_many_threads_that_move_to_one_name_one_does(tmp_path: Path) -> None:
    moved: list[int] = []
    with Folder.open(tmp_path, disk=LackingDisk()) as folder:
        for number in range(8):
            folder.create(f"{number}.md", b"%d" % number)

        def try_to_move(number: int) -> None:
            with suppress(FileExists):
                folder.move(f"{number}.md", "won.md")
                moved.append(number)

        threads = [threading.Thread(target=try_to_move, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(moved) == 1
    assert tree(tmp_path)["won.md"] == b"%d" % moved[0]
    assert len(tree(tmp_path)) == 8


def test_a_name_outside_stays_a_reason_to_refuse_a_file(tmp_path: Path) -> None:
    """Nothing about moves makes a file with two names one of ours, wherever the second is."""
    inside = tmp_path / "inside"
    prepare(inside)
    os.link(inside / "old.md", tmp_path / "outside.md")
    with Folder.open(inside, disk=LackingDisk()) as folder:
        folder.move("old.md", "cur/new.md")
        with pytest.raises(NotRegular):
            folder.read("cur/new.md", max_bytes=9)
        os.unlink(tmp_path / "outside.md")
        os.link(inside / "cur" / "new.md", inside / "second.md")
        for key in ("cur/new.md", "second.md"):
            with pytest.raises(NotRegular):
                folder.read(key, max_bytes=9)


def test_a_folder_that_somebody_holds_for_long_is_named(tmp_path: Path) -> None:
    prepare(tmp_path)
    held = os.open(tmp_path / "cur", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with Folder.open(tmp_path, disk=LackingDisk(), timeouts=FolderTimeouts(timedelta(0))) as folder:
        with pytest.raises(LockBusy, match=str(tmp_path)):
            folder.move("old.md", "cur/new.md")
        os.close(held)
        folder.move("old.md", "cur/new.md")
    assert tree(tmp_path) == {"cur/new.md": b"old"}
