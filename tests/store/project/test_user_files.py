"""The user's files are opened by real path, replaced whole, and never through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sevenfold.core.errors import (
    DiskFull,
    FileDamaged,
    FileExists,
    FileMissing,
    KeyRefused,
    NotRegular,
    SevenfoldError,
    StoreError,
)
from sevenfold.store.files.disk import SystemDisk
from sevenfold.store.project.user_files import (
    PRIVATE_MASK,
    find_file_state,
    read_file_state,
    replace_file,
    resolve_path,
)

CAP = 1_000


def put(path: Path, data: bytes) -> None:
    real = str(path)
    replace_file(real, data, expected=find_file_state(real, max_bytes=CAP), max_bytes=CAP)


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "script.sh"
    path.write_bytes(b"old")
    path.chmod(0o754)
    put(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert os.listdir(tmp_path) == ["script.sh"]


def test_a_new_file_and_its_folders_have_the_modes_that_the_users_own_would(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/file").write_bytes(b"")
    put(tmp_path / "a/b/c.txt", b"new")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"new"
    assert (tmp_path / "a/b").stat().st_mode == (tmp_path / "model").stat().st_mode
    assert (tmp_path / "a/b/c.txt").stat().st_mode == (tmp_path / "model/file").stat().st_mode


def test_what_is_made_with_a_private_mask_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder/below/file"
    replace_file(str(path), b"one", expected=None, max_bytes=CAP, mask=PRIVATE_MASK)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)} == {0o700}


def test_what_was_changed_or_made_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    before = read_file_state(str(path), max_bytes=CAP)
    path.write_bytes(b"two")
    with pytest.raises(FileDamaged, match="changed meanwhile"):
        replace_file(str(path), b"three", expected=before, max_bytes=CAP)
    with pytest.raises(FileExists, match="made meanwhile"):
        replace_file(str(path), b"three", expected=None, max_bytes=CAP)
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a"]


def test_no_link_is_followed_anywhere_on_the_way(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (tmp_path / "folder").symlink_to(outside)
    (tmp_path / "file").symlink_to(outside / "secret")
    for path in (tmp_path / "folder/secret", tmp_path / "file"):
        with pytest.raises(NotRegular):
            read_file_state(str(path), max_bytes=CAP)
        with pytest.raises(SevenfoldError):
            replace_file(str(path), b"x", expected=None, max_bytes=CAP)
    with pytest.raises(NotRegular):
        replace_file(str(tmp_path / "folder/new"), b"x", expected=None, max_bytes=CAP)
    assert (outside / "secret").read_bytes() == b"secret"
    assert os.listdir(outside) == ["secret"]


def test_a_second_name_of_a_file_keeps_what_it_had(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    os.link(other, tmp_path / "here")
    put(tmp_path / "here", b"ours")
    assert other.read_bytes() == b"theirs"


def test_what_is_no_plain_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "fifo", tmp_path / "folder", Path("/dev/zero"), Path("/dev/tty")):
        with pytest.raises(SevenfoldError):
            read_file_state(str(path), max_bytes=CAP)
    with pytest.raises(NotRegular, match="run a command"):
        read_file_state("/proc/self/status", max_bytes=CAP)


def test_a_file_over_the_limit_is_refused_and_not_cut(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * (CAP + 1))
    with pytest.raises(FileDamaged, match="1,001 bytes"):
        read_file_state(str(tmp_path / "big"), max_bytes=CAP)


@pytest.mark.parametrize("path", ["relative", "/tmp/../etc/passwd", "/tmp//x", "/tmp/", "/"])
def test_a_path_that_is_not_real_is_refused(path: str) -> None:
    with pytest.raises(KeyRefused, match="resolve it first"):
        read_file_state(path, max_bytes=CAP)


def test_what_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        read_file_state(str(tmp_path / "none/a"), max_bytes=CAP)
    assert find_file_state(str(tmp_path / "none/a"), max_bytes=CAP) is None


def test_a_path_that_no_file_can_have_is_refused() -> None:
    for path in ("/a\0b", "/\ud800"):
        with pytest.raises(KeyRefused):
            resolve_path(path)


class FullDisk(SystemDisk):
    def __init__(self, at: str) -> None:
        self.at = at

    def write(self, fd: int, data: memoryview) -> int:
        if self.at == "write":
            raise OSError(28, "No space left on device")
        return super().write(fd, data)

    def fsync(self, fd: int) -> None:
        if self.at == "fsync":
            raise OSError(28, "No space left on device")
        super().fsync(fd)

    def rename(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        if self.at == "rename":
            raise OSError(28, "No space left on device")
        super().rename(old, new, old_fd=old_fd, new_fd=new_fd)


@pytest.mark.parametrize("at", ["write", "fsync", "rename"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(at: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    state = read_file_state(str(path), max_bytes=CAP)
    with pytest.raises(StoreError) as caught:
        replace_file(str(path), b"new", expected=state, max_bytes=CAP, disk=FullDisk(at))
    assert isinstance(caught.value, DiskFull)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


class SyncingDisk(SystemDisk):
    """Notes in which order files and folders are made durable."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def fsync(self, fd: int) -> None:
        self.done.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        super().fsync(fd)

    def rename(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        self.done.append("rename")
        super().rename(old, new, old_fd=old_fd, new_fd=new_fd)


def test_a_replaced_file_and_then_its_name_are_durable(tmp_path: Path) -> None:
    path, disk = tmp_path / "a", SyncingDisk()
    path.write_bytes(b"old")
    state = read_file_state(str(path), max_bytes=CAP)
    replace_file(str(path), b"new", expected=state, max_bytes=CAP, disk=disk)
    assert disk.done == ["file", "rename", "folder"]
