"""What a folder does: files whole or absent, and nothing else visible. `test_confined` has the rest."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import (
    AccessDenied,
    DiskFault,
    DiskFull,
    FileDamaged,
    FileExists,
    FileMissing,
    InputError,
    KeyRefused,
    NotRegular,
    SevenfoldError,
    StoreError,
)
from sevenfold.core.events import Event, TempSwept, ignore_event
from sevenfold.store.files.disk import SystemDisk
from sevenfold.store.files.folder import TEMP_LIFE, FileStat, Folder
from tests.store.disks import QuickDisk, effects, fresh_folder, temps, tree
from tests.store.faults import Accident, Fault, FaultyDisk, Operation

LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


def now() -> datetime:
    return datetime.now(UTC)


@given(contents=st.lists(st.binary(max_size=2000), min_size=1, max_size=4))
def test_a_file_holds_what_was_last_put_in_it(contents: list[bytes]) -> None:
    with fresh_folder() as folder:
        folder.create("file.md", contents[0])
        for content in contents:
            folder.replace("file.md", content)
            assert folder.read("file.md", max_bytes=2000) == content
        assert tree(folder.path) == {"file.md": contents[-1]}


def test_create_refuses_what_is_there_and_leaves_it(folder: Folder, place: Path) -> None:
    folder.create("file.md", b"first")
    with pytest.raises(FileExists):
        folder.create("file.md", b"second")
    assert tree(place) == {"file.md": b"first"}
    assert temps(place) == []


def test_files_and_folders_are_their_owners_alone(folder: Folder, place: Path) -> None:
    folder.replace("file.md", b"x")
    folder.subfolder("a/b").close()
    modes = [path.stat().st_mode & 0o077 for path in (place, *place.rglob("*"))]
    assert modes == [0, 0, 0, 0]


@pytest.mark.parametrize("key", ["file.md", "a/file.md", "a/b/file.md"])
def test_keys_of_any_depth_are_read_written_and_removed(folder: Folder, place: Path, key: str) -> None:
    folder.subfolder("a/b").close()
    folder.create(key, b"one")
    assert folder.stat(key) == FileStat(3, (place / key).stat().st_mtime_ns)
    folder.replace(key, b"three")
    assert folder.read(key, max_bytes=5) == b"three"
    folder.remove(key)
    assert folder.stat(key) is None
    with pytest.raises(FileMissing):
        folder.remove(key)
    with pytest.raises(FileMissing):
        folder.read(key, max_bytes=5)


def test_a_file_over_its_limit_is_refused_rather_than_cut(folder: Folder) -> None:
    folder.replace("file.md", b"12345")
    with pytest.raises(FileDamaged, match="5 bytes"):
        folder.read("file.md", max_bytes=4)


def test_a_range_is_cut_only_where_the_file_ends(folder: Folder) -> None:
    folder.replace("file.md", b"0123456789")
    ranges = [(0, 3), (7, 100), (10, 1), (99, 1), (3, 0), (0, 1 << 70), (1 << 40, 1 << 40)]
    found = [folder.read_range("file.md", start, size) for start, size in ranges]
    assert found == [b"012", b"789", b"", b"", b"", b"0123456789", b""]


@pytest.mark.parametrize(("start", "size"), [(-1, 5), (0, -1)])
def test_a_range_that_makes_no_sense_is_refused(folder: Folder, start: int, size: int) -> None:
    folder.replace("file.md", b"0123456789")
    with pytest.raises(InputError, match="0 or more"):
        folder.read_range("file.md", start, size)


def test_only_names_that_a_key_could_name_are_listed(folder: Folder, place: Path) -> None:
    for name in ("b.md", "a.md", ".hidden", ".tmp-1", "with space", "é", "con.md"):
        (place / name).touch()
    assert folder.names() == ["a.md", "b.md"]
    assert folder.all_names() == sorted(["b.md", "a.md", ".hidden", ".tmp-1", "with space", "é", "con.md"])


def test_move_renames_without_replacing(folder: Folder, place: Path) -> None:
    folder.subfolder("cur").close()
    folder.create("one", b"1")
    folder.create("two", b"2")
    folder.move("one", "cur/one")
    with pytest.raises(FileExists):
        folder.move("two", "cur/one")
    with pytest.raises(FileMissing):
        folder.move("one", "elsewhere")
    assert tree(place) == {"cur/one": b"1", "two": b"2"}


@pytest.mark.parametrize("other", ["NOTES.md", "notes.MD", "\u212aey.md", "pa\u017f\u017f.md"])
def test_a_name_that_differs_in_case_alone_is_refused(folder: Folder, place: Path, other: str) -> None:
    (place / other).touch()
    name = other.casefold()
    (place / "plain").touch()
    for attempt in (
        lambda: folder.replace(name, b""),
        lambda: folder.create(name, b""),
        lambda: folder.move("plain", name),
        lambda: folder.subfolder(name),
        lambda: folder.open_file(name, os.O_RDWR | os.O_CREAT),
    ):
        with pytest.raises(KeyRefused, match="case alone"):
            attempt()
    assert sorted(path.name for path in place.iterdir()) == sorted([other, "plain"])


def test_a_file_can_be_replaced_though_its_own_name_is_there(folder: Folder) -> None:
    folder.replace("notes.md", b"1")
    folder.replace("notes.md", b"2")
    assert folder.read("notes.md", max_bytes=9) == b"2"


def list_operations(place: Path, *, fresh: bool) -> list[Operation]:
    disk = FaultyDisk(inner=QuickDisk())
    with Folder.open(place, disk=disk) as folder:
        disk.seen.clear()
        folder.create("new.md", b"new content") if fresh else folder.replace("file.md", b"new content")
        return [*disk.seen]


@pytest.mark.parametrize("fresh", [False, True], ids=["replace", "create"])
@pytest.mark.parametrize("accident", ["EIO", "ENOSPC", "EINTR", "short"])
def test_whatever_fails_the_old_content_stays_or_the_new_is_whole(
    tmp_path: Path, accident: Accident, fresh: bool
) -> None:
    (tmp_path / "count").mkdir()
    operations = list_operations(tmp_path / "count", fresh=fresh)
    assert operations == ["names", "open", "write", "fsync", "close", "rename", "fsync"]
    for at, operation in enumerate(operations, start=1):
        place = tmp_path / f"{at}"
        place.mkdir()
        (place / "file.md").write_bytes(b"old content")
        disk = FaultyDisk(Fault(2 + at, accident), inner=QuickDisk())
        with Folder.open(place, disk=disk) as folder:
            try:
                folder.create("new.md", b"new content") if fresh else folder.replace(
                    "file.md", b"new content"
                )
                done = True
            except (DiskFault, DiskFull):
                done = False
        changed = (
            {"file.md": b"old content", "new.md": b"new content"} if fresh else {"file.md": b"new content"}
        )
        unchanged = {"file.md": b"old content"}
        # Only the last fsync comes after the new content is in place; it is there, but not acknowledged.
        assert tree(place) == (changed if done or at == len(operations) else unchanged), operation
        assert temps(place) == []
        assert done == (accident == "short" or (accident == "EINTR" and operation == "write"))


def test_a_dead_device_leaves_only_what_is_swept_later(tmp_path: Path) -> None:
    (tmp_path / "file.md").write_bytes(b"old")
    disk = FaultyDisk(Fault(5, "EIO", lasting=True), inner=QuickDisk())
    with pytest.raises(DiskFault), Folder.open(tmp_path, disk=disk) as folder:
        folder.replace("file.md", b"new")
    with Folder.open(tmp_path) as folder:
        assert folder.names() == ["file.md"]
        assert folder.read("file.md", max_bytes=9) == b"old"
        assert len(temps(tmp_path)) == 1
        assert folder.sweep(now() + TEMP_LIFE * 2, ignore_event) == 1
        assert temps(tmp_path) == []


def test_sweeping_takes_old_temporary_files_and_nothing_else(
    folder: Folder, place: Path, events: list[Event]
) -> None:
    folder.replace("file.md", b"kept")
    for name in (".tmp-1", ".tmp-2", ".hidden"):
        (place / name).touch()
    (place / ".tmp-folder").mkdir()
    (place / ".tmp-link").symlink_to("file.md")
    assert folder.sweep(now(), events.append) == 0
    assert folder.sweep(now() + TEMP_LIFE * 2, events.append) == 2
    left = sorted(path.name for path in place.iterdir())
    assert left == [".hidden", ".tmp-folder", ".tmp-link", "file.md"]
    assert events == [TempSwept(str(place), 2)]


def test_a_live_writer_that_sets_an_old_time_is_not_swept(folder: Folder, place: Path) -> None:
    temp = place / ".tmp-live"
    temp.touch()
    os.utime(temp, (0, 0))
    assert folder.sweep(now(), ignore_event) == 0
    assert temp.exists()


class RivalDisk(SystemDisk):
    """Somebody else sweeps the same folder, and is always first."""

    def unlink(self, name: str, *, dir_fd: int) -> None:
        super().unlink(name, dir_fd=dir_fd)
        super().unlink(name, dir_fd=dir_fd)


def test_two_may_sweep_at_once(tmp_path: Path, events: list[Event]) -> None:
    (tmp_path / ".tmp-1").touch()
    with Folder.open(tmp_path, disk=RivalDisk()) as folder:
        assert folder.sweep(now() + TEMP_LIFE * 2, events.append) == 0
    assert events == []


def test_a_time_can_be_set_with_the_content(folder: Folder, place: Path) -> None:
    folder.replace("face", b"1", modified_ns=2_000_000_000)
    assert (place / "face").stat().st_mtime == 2


def test_missing_parents_are_made_and_each_is_durable_before_the_next(tmp_path: Path) -> None:
    disk = FaultyDisk()
    with Folder.open(tmp_path / "a" / "b", create=True, disk=disk) as folder:
        folder.replace("file", b"x")
    first, *rest = "open fsync", "mkdir open fsync", "mkdir open fsync", "open"
    assert " ".join(effects(disk.seen)).startswith(" ".join([first, *rest]))
    with Folder.open(tmp_path / "a" / "b", create=True) as folder:
        assert folder.names() == ["file"]


def test_a_folder_found_there_is_made_durable_too(tmp_path: Path) -> None:
    """Whoever made it may have died between making it and making its name durable."""
    disk = FaultyDisk()
    with Folder.open(tmp_path, create=True, disk=disk) as folder:
        assert effects(disk.seen) == ["open", "fsync", "open"]
        disk.seen.clear()
        for _ in range(2):
            folder.subfolder("below").close()
        assert effects(disk.seen) == ["names", "mkdir", "fsync", "open"] * 2
        disk.seen.clear()
        folder.sync_name("below/name")
        assert effects(disk.seen) == ["open", "fsync"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("x" * 300, KeyRefused), ("a\0b", KeyRefused), ("\ud800", KeyRefused), ("file/below", NotRegular)],
    ids=["long", "NUL", "half a character", "below a file"],
)
@pytest.mark.parametrize("create", [True, False])
def test_a_folder_that_cannot_be_is_refused_in_our_own_words(
    tmp_path: Path, name: str, kind: type[SevenfoldError], create: bool
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(kind):
        Folder.open(tmp_path / name, create=create)


def test_a_parent_that_cannot_be_looked_into_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path) -> bool:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(Path, "exists", denied)
    with pytest.raises(AccessDenied):
        Folder.open(tmp_path / "x", create=True)


def test_a_folder_must_be_there_unless_it_is_to_be_made(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        Folder.open(tmp_path / "nothing")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(NotRegular):
        Folder.open(tmp_path / "link", create=True)
    with Folder.open(tmp_path / "real") as folder, pytest.raises(FileMissing):
        folder.subfolder("nothing", create=False)


def test_a_closed_folder_says_so(folder: Folder) -> None:
    folder.replace("file", b"x")
    folder.close()
    folder.close()
    for attempt in (
        folder.names,
        lambda: folder.read("file", max_bytes=9),
        lambda: folder.create("new", b""),
    ):
        with pytest.raises(DiskFault, match="closed already"):
            attempt()


def test_a_removed_folder_takes_no_more_files(folder: Folder, place: Path) -> None:
    place.rmdir()
    with pytest.raises(FileMissing):
        folder.replace("file", b"x")


class DeafDisk(SystemDisk):
    def stat(self, fd: int) -> os.stat_result:
        raise OSError(errno.EIO, "broken")


def test_a_folder_that_cannot_be_looked_at_is_not_left_open(tmp_path: Path) -> None:
    with pytest.raises(DiskFault):
        Folder.open(tmp_path, disk=DeafDisk())


def test_two_names_left_by_a_crash_in_the_middle_of_two_steps_become_one_when_it_is_read(
    folder: Folder, place: Path
) -> None:
    """Where the kernel cannot rename without replacing, a file has two names for a moment."""
    (place / ".tmp-crashed").write_bytes(b"whole")
    os.link(place / ".tmp-crashed", place / "file.md")
    assert folder.read("file.md", max_bytes=9) == b"whole"
    assert folder.all_names() == ["file.md"]


class ElsewhereDisk(SystemDisk):
    """Every plain file lies on another device than its folder."""

    def stat(self, fd: int) -> os.stat_result:
        found = super().stat(fd)
        fields = list(found)
        if stat.S_ISREG(found.st_mode):
            fields[stat.ST_DEV] += 1
        return os.stat_result(fields)


def test_a_file_on_another_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mounted").touch()
    with Folder.open(tmp_path, disk=ElsewhereDisk()) as folder, pytest.raises(NotRegular, match="device"):
        folder.read("mounted", max_bytes=1)


@dataclass
class UnstableDisk(SystemDisk):
    """A network file system that forgets a handle: looking at it or closing it fails."""

    failing: str = ""

    def stat(self, fd: int) -> os.stat_result:
        if self.failing == "stat":
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return super().stat(fd)

    def close(self, fd: int) -> None:
        super().close(fd)
        if self.failing == "close":
            raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("failing", ["stat", "close"])
def test_a_handle_that_fails_to_be_looked_at_or_closed_is_one_of_our_errors(
    tmp_path: Path, failing: str
) -> None:
    disk = UnstableDisk()
    folder = Folder.open(tmp_path, disk=disk)
    folder.replace("a.md", b"x")
    folder.subfolder("below").close()
    disk.failing = failing
    for act in (
        lambda: folder.read("a.md", max_bytes=10),
        lambda: folder.stat("a.md"),
        lambda: folder.replace("below/b.md", b"x") if failing == "close" else folder.stat("a.md"),
        lambda: folder.subfolder("below", create=False) if failing == "stat" else folder.close(),
    ):
        with pytest.raises(StoreError):
            act()
    disk.failing = ""
    folder.close()


def test_what_is_appended_stands_behind_the_rest_and_a_full_disk_is_an_error_of_ours(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert folder.append("log.jsonl", b"one\n") == 4
    assert folder.append("log.jsonl", b"two\n", durable=False) == 8

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SystemDisk, "write", refuse)
    with pytest.raises(DiskFull, match=r"append to .*log\.jsonl: No space left"):
        folder.append("log.jsonl", b"three\n")
    assert folder.read("log.jsonl", max_bytes=100) == b"one\ntwo\n"
