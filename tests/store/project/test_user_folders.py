"""Folders on the way to a user's file: made where they are missing, also when somebody else is faster."""

from __future__ import annotations

import os
from pathlib import Path

from sevenfold.store.files.disk import SystemDisk
from sevenfold.store.project.user_files import find_file_state, replace_file, resolve_path


class Overtaken(SystemDisk):
    """Somebody else makes each folder at the moment before we do."""

    def mkdir(self, name: str, *, dir_fd: int | None = None) -> None:
        os.mkdir(name, dir_fd=dir_fd)
        super().mkdir(name, dir_fd=dir_fd)


def test_folders_on_the_way_to_a_new_file_are_made(tmp_path: Path) -> None:
    real = resolve_path(str(tmp_path / "a" / "b" / "new.md"))
    replace_file(real, b"new", expected=None, max_bytes=100)
    assert Path(real).read_bytes() == b"new"


def test_a_folder_that_somebody_else_makes_meanwhile_is_used(tmp_path: Path) -> None:
    real = resolve_path(str(tmp_path / "a" / "b" / "new.md"))
    replace_file(real, b"new", expected=None, max_bytes=100, disk=Overtaken())
    found = find_file_state(real, max_bytes=100)
    assert found is not None
    assert found.data == b"new"
