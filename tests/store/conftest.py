from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.events import Event
from sevenfold.store.files.disk import Disk, SystemDisk
from sevenfold.store.files.folder import Folder
from sevenfold.store.mailbox import Mailbox
from sevenfold.store.project.git import real_path
from tests.store.disks import CountingDisk, WalkingDisk, find_left_open, open_handles
from tests.store.mails import opened


@pytest.fixture(autouse=True)
def no_handle_left_open() -> Generator[None]:
    """Every handle that a test opens, or makes the store open, is closed again, whatever went wrong."""
    before = open_handles()
    yield
    # Fewer is fine: what an earlier test of the same process left to the garbage collector may go meanwhile.
    assert find_left_open(before) == {}


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture(params=["openat2", "walk"])
def disk(request: pytest.FixtureRequest) -> Disk:
    """Both ways of staying inside a folder."""
    return SystemDisk() if request.param == "openat2" else WalkingDisk()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the confined one, with a file that nobody may read or change."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret.md").write_text("secret", encoding="utf-8")
    return place


@pytest.fixture
def place(tmp_path: Path, outside: Path) -> Path:
    return tmp_path / "inside"


@pytest.fixture
def folder(place: Path, disk: Disk) -> Generator[Folder]:
    with Folder.open(place, create=True, disk=disk) as opened:
        yield opened


@pytest.fixture
def control(tmp_path: Path) -> Generator[Folder]:
    with Folder.open(tmp_path / "control", create=True) as opened:
        yield opened


@pytest.fixture
def mail(tmp_path: Path) -> Generator[Folder]:
    with Folder.open(tmp_path / "mail", create=True) as folder:
        yield folder


@pytest.fixture
def box(mail: Folder, control: Folder, events: list[Event]) -> Generator[Mailbox]:
    with opened(mail, control, events=events) as made:
        yield made


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def sessions(tmp_path: Path) -> Generator[Folder]:
    """Where transcripts lie, on a disk that counts what is read."""
    with Folder.open(tmp_path / "sessions", create=True, disk=CountingDisk()) as opened_folder:
        yield opened_folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A project's root, under its one name."""
    made = real_path(tmp_path) / "work"
    made.mkdir()
    return made


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    return tmp_path / "elsewhere"
