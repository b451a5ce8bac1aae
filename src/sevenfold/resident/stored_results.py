"""Tool results that sessions of ours have stored on disk, read a part at a time for other agents."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sevenfold.core.errors import FileMissing, InputError
from sevenfold.layers.tool_results.spill import SPILL_FOLDER

MAX_RESULT_BYTES = 48 * 1024
"""Of a stored tool result at once: about 12,000 tokens."""

_RESULT_NAME = re.compile(r"[\w.-]{1,160}", re.ASCII)


def read_stored_result(path: Path, offset: int, limit: int) -> dict[str, object]:
    """A part of a result as text, and where the next one begins."""
    with path.open("rb") as file:
        total = os.fstat(file.fileno()).st_size
        file.seek(offset)
        data = file.read(limit)
    is_end = offset + len(data) >= total
    text = _decode_part(data, is_end=is_end)
    end = offset + (len(data) if is_end else len(text.encode()))
    return {
        "path": str(path),
        "text": text,
        "offset": offset,
        "next_offset": end if end < total else None,
        "total_bytes": total,
    }


def find_stored_result(sessions: Path, path: str, name: str) -> Path:
    """A stored result by its path or by the id of its call. Only what lies among a session's results."""
    root = os.path.realpath(sessions)
    if path:
        real = Path(os.path.realpath(path))
        is_stored = real.parent.name == SPILL_FOLDER and str(real.parent.parent.parent) == root
        if is_stored and real.is_file():
            return real
        raise FileMissing(f"{path!r:.300} is no stored tool result of this project")
    if not _RESULT_NAME.fullmatch(name):
        raise InputError("name a stored tool result by path or id")
    found = [
        file
        for end in ("", ".txt", ".json")
        for file in Path(root).glob(f"*/{SPILL_FOLDER}/{name}{end}")
        if file.is_file()
    ]
    if not found:
        raise FileMissing(f"no stored tool result of this project has the id {name!r}")
    return max(found, key=lambda file: file.stat().st_mtime_ns)


def _decode_part(data: bytes, *, is_end: bool) -> str:
    """A part of a text, without the beginning of a character that its end has cut in two."""
    for cut in range(0 if is_end else 4):
        try:
            return data[: len(data) - cut].decode()
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "replace")
