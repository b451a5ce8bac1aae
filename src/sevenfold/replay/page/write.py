"""The page on disk: a path of the user's own, so plain files and no store of ours."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from sevenfold.core.errors import InputError
from sevenfold.core.os_errors import map_os_errors

PAGE_OPENING = b"<!doctype html>"
"""Of every page. Only what begins so, or is empty, is written over: a transcript named by mistake is not."""


def resolve_page_path(path: Path) -> Path:
    """Where a page of that name would go, links followed."""
    try:
        target = path.expanduser().resolve()
        if target.is_dir():
            raise InputError(f"--html {str(path)!r} is a folder; name a file in it, such as replay.html")
        if target.exists() and not target.is_file():
            raise InputError(f"--html {str(path)!r} is no plain file; name one, such as replay.html")
        if not target.parent.is_dir():
            raise InputError(
                f"--html {str(path)!r}: the folder {str(target.parent)!r} does not exist; make it first"
            )
        if target.exists() and not _is_page(target):
            raise InputError(
                f"--html {str(path)!r} is there and is no page, so it is not written over; "
                "name the page to write, such as replay.html"
            )
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name, ~nobody
        raise InputError(f"--html {str(path)!r} cannot be used: {error}") from error
    return target


def write_page(path: Path, page: str) -> Path:
    """Put the page there, whole or not at all; where it went."""
    target = resolve_page_path(path)
    draft = target.with_name(f".sevenfold-{secrets.token_hex(8)}.tmp")
    with map_os_errors(f"write the page {str(target)!r}"):
        try:
            with draft.open("x", encoding="utf-8", newline="\n") as file:
                file.write(page)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    return target


def _is_page(target: Path) -> bool:
    with target.open("rb") as file:
        beginning = file.read(len(PAGE_OPENING))
    return not beginning or beginning.lower() == PAGE_OPENING
