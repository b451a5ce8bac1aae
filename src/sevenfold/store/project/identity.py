"""Whose folder is it? A name that two roots never share, and a file inside that says so in full."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NewType

from sevenfold.core.errors import FileDamaged, FileExists, FileMissing, InputError, NotRegular, ProjectError
from sevenfold.core.json import freeze, read_object, write_json
from sevenfold.store.files.folder import Folder

ProjectId = NewType("ProjectId", str)

IDENTITY_FILE = "project.json"

_READABLE_CHARS = 32
"""Enough to find a project by eye in a listing."""

_MAX_IDENTITY_BYTES = 64 * 1024


def make_project_id(root: Path) -> ProjectId:
    """A folder name for a real path: some of its own name to read, and 128 bits that no other root has."""
    readable = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")[:_READABLE_CHARS].strip("-")
    return ProjectId(f"{readable or 'project'}-{hash_path(root)[:32]}")


def hash_path(root: Path) -> str:
    """Of the path's bytes as they are: paths that differ in case or Unicode form are different paths."""
    return hashlib.sha256(os.fsencode(root)).hexdigest()


def claim_folder(folder: Folder, key: str, root: Path) -> None:
    """Write the identity file, or check the one that is there; `ProjectError` when it names another root."""
    ours = hash_path(root)
    shown = os.fsencode(root).decode("utf-8", "backslashreplace")
    with suppress(FileExists):
        if read_claim(folder, key) is None:
            folder.create(key, write_json(freeze({"root": shown, "fingerprint": ours})) + b"\n")
    found = read_claim(folder, key)
    if found != ours:
        raise ProjectError(
            f"{folder.path} belongs to another project (see {key} in it), not to {shown}; "
            "move it away, or point this project at another folder"
        )


def read_claim(folder: Folder, key: str) -> str | None:
    """The fingerprint in an identity file, or None where there is no such file."""
    try:
        wire = read_object(folder.read(key, max_bytes=_MAX_IDENTITY_BYTES))
    except FileMissing:
        return None
    except (InputError, FileDamaged, NotRegular) as error:
        raise ProjectError(
            f"{folder.path}/{key} cannot be read ({error}); restore it or move it away"
        ) from error
    found = wire.get("fingerprint")
    if not isinstance(found, str):
        raise ProjectError(f"{folder.path}/{key} names no fingerprint; restore it or move it away")
    return found
