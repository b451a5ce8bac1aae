"""Keeping a file of ours out of git, by the repository's own `info/exclude`, which is never committed.

Whoever packed a repository chose what its `.git` is: nothing is followed out of it, and a git folder that
does not belong to the checkout is left alone.
"""

from __future__ import annotations

from pathlib import Path

from sevenfold.core.errors import SevenfoldError
from sevenfold.store.project.git import find_own_git_folders
from sevenfold.store.project.user_files import find_file_state, replace_file, resolve_path

MAX_EXCLUDE_BYTES = 1024 * 1024
"""Of the file that is added to: a larger one was not written by a person."""


def exclude_from_git(checkout: Path, name: str) -> str:
    """Have git ignore a file by its path from the top of the checkout; why not, or nothing where it does."""
    try:
        folders = find_own_git_folders(checkout)
        if folders is None:
            return "its .git leads to a folder that does not name this checkout"
        path = folders.common / "info" / "exclude"
        real = resolve_path(str(path))
        if real != str(path):
            return f"{path} is a link, to {real}"
        _add_line(real, f"/{name}")
    except SevenfoldError as error:
        return str(error)
    return ""


def _add_line(real: str, line: str) -> None:
    before = find_file_state(real, max_bytes=MAX_EXCLUDE_BYTES)
    data = before.data if before else b""
    if line.encode() in (known.strip() for known in data.splitlines()):
        return
    gap = b"" if not data or data.endswith(b"\n") else b"\n"
    replace_file(real, data + gap + line.encode() + b"\n", expected=before, max_bytes=MAX_EXCLUDE_BYTES)
