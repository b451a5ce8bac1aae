"""Nothing gets out of a folder, whatever the key and whatever lies in it; both ways of opening."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from sevenfold.core.errors import InputError, KeyRefused, NotRegular
from sevenfold.store.files.disk import Disk
from sevenfold.store.files.folder import Folder
from tests.store.disks import tree
from tests.store.files.test_keys import HOSTILE

Attempt = Callable[[Folder, str], object]


def open_and_close(flags: int) -> Attempt:
    return lambda folder, key: os.close(folder.open_file(key, flags))


READING: dict[str, Attempt] = {
    "read": lambda folder, key: folder.read(key, max_bytes=1000),
    "read_range": lambda folder, key: folder.read_range(key, 0, 10),
    "entry": lambda folder, key: folder.stat(key),
    "open": open_and_close(os.O_RDONLY),
    "open to write": open_and_close(os.O_RDWR | os.O_APPEND),
    "open or make": open_and_close(os.O_RDWR | os.O_CREAT),
    "open only to write": open_and_close(os.O_WRONLY | os.O_CREAT),
}
WRITING: dict[str, Attempt] = {
    "replace": lambda folder, key: folder.replace(key, b"changed"),
    "create": lambda folder, key: folder.create(key, b"changed"),
    "remove": lambda folder, key: folder.remove(key),
    "move from": lambda folder, key: folder.move(key, "moved"),
    "move to": lambda folder, key: folder.move("plain", key),
}
ENTERING: dict[str, Attempt] = {
    "subfolder": lambda folder, key: folder.subfolder(key).close(),
    "there": lambda folder, key: folder.subfolder(key, create=False).close(),
    "settle": lambda folder, key: folder.sync_name(key),
}
ALL = READING | WRITING | ENTERING


@pytest.fixture
def everything(folder: Folder, place: Path, outside: Path) -> Folder:
    """The folder, with one of each thing that is no plain file of its own."""
    (place / "plain").write_text("plain", encoding="utf-8")
    (place / "real").mkdir()
    (place / "real" / "file").write_text("inner", encoding="utf-8")
    (place / "to_file").symlink_to(outside / "secret.md")
    (place / "to_inside").symlink_to("plain")
    (place / "to_folder").symlink_to(outside)
    (place / "to_real").symlink_to("real")
    (place / "to_nothing").symlink_to(outside / "new.md")
    (place / "chain").symlink_to("to_file")
    (place / "magic").symlink_to("/proc/self/root")
    os.link(outside / "secret.md", place / "hard")
    os.mkfifo(place / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(place)
        made.bind("socket")
        os.chdir(here)
    return folder


ODD = ["to_file", "to_inside", "to_nothing", "chain", "magic", "hard", "fifo", "socket", "real"]
THROUGH = ["to_folder/secret.md", "to_real/file", "magic/etc/hostname", "plain/below", "fifo/below"]


@pytest.mark.parametrize("key", HOSTILE, ids=lambda key: ascii(key)[:30])
def test_a_hostile_key_is_refused_by_every_operation(
    everything: Folder, place: Path, outside: Path, key: str
) -> None:
    before = tree(place), tree(outside)
    for attempt in ALL.values():
        with pytest.raises(KeyRefused):
            attempt(everything, key)
    assert (tree(place), tree(outside)) == before


@pytest.mark.parametrize("key", ODD)
def test_what_is_no_plain_file_is_neither_read_nor_waited_for(
    everything: Folder, outside: Path, key: str
) -> None:
    for attempt in READING.values():
        with pytest.raises(NotRegular):
            attempt(everything, key)
    assert tree(outside) == {"secret.md": b"secret"}


@pytest.mark.parametrize("key", THROUGH)
def test_no_operation_goes_through_a_link_or_a_file(
    everything: Folder, place: Path, outside: Path, key: str
) -> None:
    before = tree(place)
    for attempt in (READING | WRITING).values():
        with pytest.raises(NotRegular):
            attempt(everything, key)
    assert tree(place) == before
    assert tree(outside) == {"secret.md": b"secret"}


@pytest.mark.parametrize(
    "key", ["to_folder", "to_real", "magic", "to_nothing", "plain", "fifo", "to_folder/x"]
)
@pytest.mark.parametrize("create", [True, False])
def test_only_a_real_folder_is_entered(everything: Folder, outside: Path, key: str, create: bool) -> None:
    with pytest.raises(NotRegular):
        everything.subfolder(key, create=create)
    assert tree(outside) == {"secret.md": b"secret"}


@pytest.mark.parametrize("key", ["to_file", "to_inside", "to_nothing", "hard", "fifo", "socket"])
def test_replacing_puts_a_plain_file_in_its_place_and_touches_nothing_else(
    everything: Folder, place: Path, outside: Path, key: str
) -> None:
    everything.replace(key, b"ours")
    assert everything.read(key, max_bytes=10) == b"ours"
    assert tree(outside) == {"secret.md": b"secret"}
    assert (place / "plain").read_bytes() == b"plain"


@pytest.mark.parametrize("key", ["to_file", "to_nothing", "hard", "fifo"])
def test_removing_and_moving_take_the_name_and_not_what_it_names(
    everything: Folder, place: Path, outside: Path, key: str
) -> None:
    everything.move(key, "elsewhere")
    everything.remove("elsewhere")
    assert not os.path.lexists(place / key)
    assert tree(outside) == {"secret.md": b"secret"}


def test_a_folder_is_neither_replaced_nor_removed_as_a_file(everything: Folder, place: Path) -> None:
    with pytest.raises(NotRegular):
        everything.replace("real", b"x")
    with pytest.raises(NotRegular):
        everything.remove("real")
    assert (place / "real" / "file").read_bytes() == b"inner"


def test_a_device_is_not_opened(disk: Disk) -> None:
    with Folder.open(Path("/dev"), disk=disk) as devices, pytest.raises(NotRegular, match="no plain file"):
        devices.read("null", max_bytes=1)


def test_a_file_is_never_emptied_before_it_is_checked(everything: Folder, outside: Path) -> None:
    for flags in (os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_CREAT | os.O_TRUNC):
        with pytest.raises(InputError, match="replace"):
            everything.open_file("hard", flags)
    assert tree(outside) == {"secret.md": b"secret"}


def test_a_file_whose_name_was_replaced_while_it_was_open_is_still_read_whole(folder: Folder) -> None:
    folder.replace("file", b"old")
    with folder.opened("file", os.O_RDONLY) as fd:
        folder.replace("file", b"newer")
        assert folder.disk.read(fd, 10, 0) == b"old"
    assert folder.read("file", max_bytes=10) == b"newer"


def test_a_subfolder_is_confined_to_itself(everything: Folder, place: Path) -> None:
    with everything.subfolder("real") as real:
        assert real.read("file", max_bytes=10) == b"inner"
        assert real.path == place / "real"
        with pytest.raises(KeyRefused):
            real.read("../plain", max_bytes=10)


def test_a_folder_moved_away_is_still_the_one_that_was_opened(
    folder: Folder, place: Path, outside: Path
) -> None:
    folder.replace("file", b"mine")
    place.rename(place.with_name("moved"))
    place.symlink_to(outside)
    folder.replace("new.md", b"also mine")
    assert folder.read("file", max_bytes=10) == b"mine"
    assert tree(outside) == {"secret.md": b"secret"}


def test_own_names_may_be_hidden(tmp_path: Path, disk: Disk) -> None:
    own = frozenset([".face"])
    with Folder.open(tmp_path, disk=disk, own=own) as folder, folder.subfolder("below") as below:
        folder.replace(".face", b"1")
        below.replace(".face", b"2")
        assert folder.read(".face", max_bytes=1) == b"1"
        assert folder.names() == ["below"]
        with pytest.raises(KeyRefused):
            folder.read(".faces", max_bytes=1)
