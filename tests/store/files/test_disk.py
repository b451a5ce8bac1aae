"""The port itself: whole writes and reads, errors of our own tree, and staying beneath, both ways."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core import errors
from sevenfold.core.errors import DiskFault, FileMissing, KeyRefused, NotRegular, SevenfoldError
from sevenfold.core.system import map_os_error, map_os_errors
from sevenfold.store.files.disk import FOLDER_FLAGS, READ_FLAGS, Disk, SystemDisk, read_fully, write_all
from tests.store.disks import QuickDisk, WalkingDisk

EXPECTED = {
    errors.DiskFull: ("ENOSPC", "EDQUOT", "EFBIG"),
    errors.AccessDenied: ("EACCES", "EPERM", "EROFS"),
    errors.FileMissing: ("ENOENT",),
    errors.FileExists: ("EEXIST", "ENOTEMPTY"),
    errors.NotRegular: ("ELOOP", "ENOTDIR", "EISDIR", "ENXIO"),
    errors.KeyRefused: ("EXDEV", "ENAMETOOLONG", "EILSEQ"),
    errors.DiskFault: ("EIO", "EINTR", "EINVAL", "EMFILE", "ENOLCK", "EBADF", "ESTALE", "ETIMEDOUT"),
}


@pytest.mark.parametrize("code", sorted(errno.errorcode), ids=lambda code: errno.errorcode[code])
def test_every_error_of_the_system_becomes_one_of_ours_and_says_what_to_do(code: int) -> None:
    error = map_os_error(OSError(code, os.strerror(code)), "write the notes")
    wanted = [kind for kind, names in EXPECTED.items() if errno.errorcode[code] in names]
    assert type(error) in (wanted or [DiskFault])
    assert str(error).startswith(f"cannot write the notes: {os.strerror(code)}; ")


def test_a_file_that_its_server_forgot_is_to_be_opened_again() -> None:
    error = map_os_error(OSError(errno.ESTALE, os.strerror(errno.ESTALE)), "read the notes")
    assert "open it again" in str(error)


@pytest.mark.parametrize("name", ["EINVAL", "ENOLCK", "ENOTSUP"])
def test_a_file_system_that_lacks_something_is_not_blamed_on_a_name(name: str) -> None:
    error = map_os_error(OSError(getattr(errno, name), "no"), "fsync")
    assert "local" in str(error)
    assert "letters" not in str(error)


@pytest.mark.parametrize("error", [OSError(), OSError("plain"), TimeoutError(), OSError(99999, "odd")])
def test_an_error_without_a_known_number_is_a_fault_with_its_reason(error: OSError) -> None:
    found = map_os_error(error, "read")
    assert type(found) is DiskFault
    assert str(found).startswith("cannot read: ")
    assert ": ;" not in str(found)


def test_only_errors_of_the_system_are_mapped_and_the_cause_is_kept() -> None:
    with pytest.raises(DiskFault) as caught, map_os_errors("try"):
        raise OSError(errno.EIO, "broken")
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(KeyRefused, match="mine"), map_os_errors("try"):
        raise KeyRefused("mine")
    with pytest.raises(ZeroDivisionError), map_os_errors("try"):
        raise ZeroDivisionError


class FitfulDisk(QuickDisk):
    """Takes and gives as many bytes as it likes, and is interrupted (0) now and then."""

    def __init__(self, portions: list[int]) -> None:
        self.portions = portions

    def read(self, fd: int, size: int, offset: int) -> bytes:
        return super().read(fd, self._portion(size), offset)

    def write(self, fd: int, data: memoryview) -> int:
        return super().write(fd, data[: self._portion(len(data))])

    def _portion(self, size: int) -> int:
        portion = self.portions.pop() if self.portions else size
        if portion == 0:
            raise InterruptedError(errno.EINTR, "interrupted")
        return min(size, portion)


portions = st.lists(st.integers(0, 40), max_size=30)


@given(data=st.binary(max_size=300), writes=portions, reads=portions)
def test_every_byte_is_written_and_read_however_few_go_at_a_time(
    data: bytes, writes: list[int], reads: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    fd = os.open(tmp_path_factory.mktemp("fitful") / "file", os.O_RDWR | os.O_CREAT)
    try:
        write_all(FitfulDisk(writes), fd, data)
        assert read_fully(FitfulDisk(reads), fd, len(data)) == data
        assert read_fully(FitfulDisk(reads), fd, len(data) + 50, len(data) // 2) == data[len(data) // 2 :]
    finally:
        os.close(fd)


class StubbornDisk(QuickDisk):
    def write(self, fd: int, data: memoryview) -> int:
        return 0


def test_a_device_that_takes_nothing_is_an_error_and_no_endless_loop() -> None:
    with pytest.raises(OSError, match="took no byte"):
        write_all(StubbornDisk(), -1, b"x")


@pytest.fixture
def root(tmp_path: Path) -> Generator[int]:
    """A folder with one of everything, beside another that is not its own."""
    (tmp_path / "beside").write_text("beside", encoding="utf-8")
    top = tmp_path / "root"
    (top / "a" / "b").mkdir(parents=True)
    (top / "file").write_text("plain", encoding="utf-8")
    (top / "a" / "b" / "deep").write_text("deep", encoding="utf-8")
    for name, target in [
        ("link", "file"),
        ("out", "../beside"),
        ("absolute", str(tmp_path / "beside")),
        ("dangling", "nothing"),
        ("folder", "a"),
        ("magic", "/proc/self/cwd"),
        ("round", "round"),
    ]:
        (top / name).symlink_to(target)
    fd = os.open(top, FOLDER_FLAGS)
    yield fd
    os.close(fd)


@pytest.mark.parametrize(("path", "content"), [("file", b"plain"), ("a/b/deep", b"deep")])
def test_a_plain_file_beneath_is_opened(disk: Disk, root: int, path: str, content: bytes) -> None:
    fd = disk.open_beneath(root, path, READ_FLAGS)
    assert read_fully(disk, fd, 100) == content
    assert not os.get_inheritable(fd)
    disk.close(fd)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("../beside", KeyRefused),
        ("a/../../beside", KeyRefused),
        ("..", KeyRefused),
        ("/etc/hostname", KeyRefused),
        ("fi\0le", KeyRefused),
        ("file\0/../../beside", KeyRefused),
        ("link", NotRegular),
        ("out", NotRegular),
        ("absolute", NotRegular),
        ("dangling", NotRegular),
        ("round", NotRegular),
        ("magic", NotRegular),
        ("folder/b/deep", NotRegular),
        ("magic/file", NotRegular),
        ("file/below", NotRegular),
        ("nothing", FileMissing),
        ("nothing/below", FileMissing),
        ("x" * 300, KeyRefused),
    ],
)
@pytest.mark.parametrize("flags", [READ_FLAGS, os.O_RDWR | os.O_NONBLOCK], ids=["read", "write"])
def test_what_is_not_a_plain_path_beneath_is_refused_the_same_both_ways(
    disk: Disk, root: int, path: str, kind: type[SevenfoldError], flags: int
) -> None:
    with pytest.raises(kind), map_os_errors("open"):
        disk.open_beneath(root, path, flags)


@pytest.mark.parametrize("path", ["new", "a/b/new"])
def test_a_file_made_beneath_is_its_owners_alone(disk: Disk, root: int, path: str) -> None:
    fd = disk.open_beneath(root, path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    assert disk.stat(fd).st_mode & 0o077 == 0
    disk.close(fd)
    with pytest.raises(FileExistsError):
        disk.open_beneath(root, path, os.O_RDWR | os.O_CREAT | os.O_EXCL)


@pytest.mark.parametrize("path", ["proc/version", "proc"])
@pytest.mark.skipif(not Path("/proc/version").exists(), reason="nothing is known to be mounted here")
def test_a_mount_inside_the_folder_is_not_entered(disk: Disk, path: str) -> None:
    top = os.open("/", FOLDER_FLAGS)
    try:
        with pytest.raises(KeyRefused), map_os_errors("open"):
            disk.open_beneath(top, path, READ_FLAGS)
    finally:
        os.close(top)


class WatchedWalk(WalkingDisk):
    walked = 0

    def walk_beneath(self, root_fd: int, path: str, flags: int) -> int:
        self.walked += 1
        return super().walk_beneath(root_fd, path, flags)

    def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
        return SystemDisk.open_beneath(self, root_fd, path, flags)


def test_a_kernel_without_openat2_is_noticed_once_and_walked_around(
    root: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sevenfold.store.files.disk._OpenAt2.NUMBER", 100_000)
    monkeypatch.setattr("sevenfold.store.files.disk._OPENAT2._works", None)
    disk = WatchedWalk()
    for _ in range(2):
        os.close(disk.open_beneath(root, "a/b/deep", READ_FLAGS))
    assert disk.walked == 2
    with pytest.raises(OSError, match="leaves"):
        disk.open_beneath(root, "../beside", READ_FLAGS)


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="openat2 is Linux's")
def test_a_kernel_with_openat2_is_not_walked_around(root: int) -> None:
    disk = WatchedWalk()
    os.close(disk.open_beneath(root, "file", READ_FLAGS))
    assert disk.walked == 0


def test_an_interrupted_openat2_is_tried_again(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def interrupted_once(result: int, name: str) -> int:
        calls.append(result)
        if len(calls) == 1:
            os.close(result)
            raise InterruptedError(errno.EINTR, "interrupted", name)
        return result

    os.close(SystemDisk().open_beneath(root, "file", READ_FLAGS))
    monkeypatch.setattr("sevenfold.store.files.disk._checked", interrupted_once)
    os.close(SystemDisk().open_beneath(root, "file", READ_FLAGS))
    assert len(calls) == 2


def test_rename_new_moves_a_file_to_a_free_name(root: int) -> None:
    SystemDisk().rename_new("file", "moved", old_fd=root, new_fd=root)
    names = SystemDisk().names(root)
    assert "moved" in names
    assert "file" not in names


@pytest.mark.parametrize("taken", ["other", "dangling", "a"])
def test_neither_renaming_anew_nor_linking_ever_replaces(root: int, taken: str) -> None:
    os.close(os.open("other", os.O_CREAT | os.O_WRONLY, dir_fd=root))
    with pytest.raises(FileExistsError):
        SystemDisk().rename_new("file", taken, old_fd=root, new_fd=root)
    with pytest.raises(FileExistsError):
        SystemDisk().link("file", taken, dir_fd=root)


def test_what_is_not_there_gets_no_new_name(root: int) -> None:
    with pytest.raises(FileNotFoundError):
        SystemDisk().rename_new("nothing", "new", old_fd=root, new_fd=root)
    with pytest.raises(FileNotFoundError):
        SystemDisk().link("nothing", "new", dir_fd=root)


def test_a_drive_that_cannot_be_flushed_through_is_flushed_as_far_as_it_goes(
    root: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []

    def full_flush(fd: int, command: int) -> int:
        flushed.append("full")
        raise OSError(errno.ENOTSUP, "not here")

    def plain_flush(fd: int) -> None:
        flushed.append("plain")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full_flush)
    monkeypatch.setattr(os, "fsync", plain_flush)
    SystemDisk().fsync(root)
    assert flushed == ["full", "plain"]


def test_a_failed_full_flush_is_a_failure(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(fd: int, command: int) -> int:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", broken)
    with pytest.raises(OSError, match="broken"):
        SystemDisk().fsync(root)


def test_what_is_wrong_with_the_folder_is_not_taken_for_a_lack_of_openat2(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sevenfold.store.files.disk._OPENAT2._works", None)
    with pytest.raises(DiskFault, match="closed already"), map_os_errors("open"):
        SystemDisk().open_beneath(1 << 20, "file", READ_FLAGS)


@pytest.mark.parametrize("name", ["ENOSYS", "EINVAL", "ENOTSUP"])
def test_a_file_system_without_the_single_step_says_so_in_one_way(
    root: int, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def lacking(result: int, path: str) -> int:
        raise OSError(getattr(errno, name), "not here", path)

    monkeypatch.setattr("sevenfold.store.files.disk._checked", lacking)
    with pytest.raises(OSError, match="moved") as caught:
        SystemDisk().rename_new("file", "moved", old_fd=root, new_fd=root)
    assert caught.value.errno == errno.ENOTSUP


def test_so_does_a_library_without_it(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sevenfold.store.files.disk._libc", object)
    with pytest.raises(OSError, match="moved") as caught:
        SystemDisk().rename_new("file", "moved", old_fd=root, new_fd=root)
    assert caught.value.errno == errno.ENOTSUP
    assert "file" in os.listdir(root)


def test_threads_that_list_by_one_handle_all_get_everything(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"{number}").touch()
    short: list[int] = []
    fd = os.open(tmp_path, FOLDER_FLAGS)

    def look() -> None:
        found = [len(SystemDisk().names(fd)) for _ in range(30)]
        short.extend(count for count in found if count != 600)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(fd)
    assert short == []
