"""Which memories claim what is not there: marked by hash, so that a mended one is free of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.json import Json, JsonObject
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.sidecar_file import SidecarFile, read_time

MARKS_NAME = "memory-marks"


@dataclass(frozen=True, slots=True)
class BrokenMark:
    """What was wrong with one version of a memory."""

    sha256: str
    broken: tuple[str, ...]
    """Each claim with its reason."""
    at: datetime


class MarkStore:
    """The marks of a project. Every method blocks on the disk."""

    def __init__(self, control: Folder, *, emit: Emit = ignore_event) -> None:
        self._file = SidecarFile(control, MARKS_NAME, emit=emit)

    def read(self) -> Mapping[str, BrokenMark]:
        """By key. A mark whose hash is not the memory's own any more says nothing of it."""
        read = ((key, _read_mark(value)) for key, value in self._file.read().items())
        return {key: mark for key, mark in read if mark is not None}

    def put(self, marks: Mapping[str, BrokenMark | None]) -> None:
        """Mark these, and take the mark off those with None; others stay as they are."""
        if marks:
            self._file.change(lambda before: _with(before, marks))


def _with(before: JsonObject, marks: Mapping[str, BrokenMark | None]) -> JsonObject:
    kept = dict(before.without(*marks))
    put = {key: _written(mark) for key, mark in marks.items() if mark is not None}
    return JsonObject({**kept, **put})


def _written(mark: BrokenMark) -> JsonObject:
    return JsonObject({"sha256": mark.sha256, "broken": mark.broken, "at": mark.at.isoformat()})


def _read_mark(value: Json) -> BrokenMark | None:
    if not isinstance(value, JsonObject):
        return None
    sha256, broken, at = value.get("sha256"), value.get("broken"), read_time(value.get("at"))
    if not isinstance(sha256, str) or not isinstance(broken, tuple) or at is None:
        return None
    return BrokenMark(sha256, tuple(text for text in broken if isinstance(text, str)), at)
