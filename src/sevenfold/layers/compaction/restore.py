"""Reads files again after a compaction: what the agent had read, as it is on disk now."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from sevenfold.core.errors import FileDamaged, NotRegular, SevenfoldError
from sevenfold.core.events import Emit, ExtraRestored, FileRestored, RestoreSkipped
from sevenfold.core.messages import Text
from sevenfold.core.os_errors import map_os_errors
from sevenfold.core.text.truncate import CountTokens, truncate_tokens
from sevenfold.layers.compaction.restore_policy import (
    RestoredFile,
    RestoreFacts,
    plan_restore,
    render_restored_extra,
    render_restored_file,
)
from sevenfold.layers.compaction.settings import CompactSettings
from sevenfold.store.files.disk import READ_FLAGS, SYSTEM_DISK, Disk, read_fully
from sevenfold.store.files.offload import run_blocking

MAX_RESTORED_BYTES = 1024 * 1024
"""Source files are smaller; of a larger one, a log or a dump, the beginning says little."""

BYTES_PER_TOKEN = 8
"""More than any text has, so that enough is read and no more."""

_LEAST_TOKENS = 50
"""Fewer lines of a file than this hold are of no use to anybody."""


@dataclass(frozen=True, slots=True)
class _Start:
    """The beginning of a file."""

    text: str
    is_whole: bool


async def read_restored_blocks(
    facts: RestoreFacts,
    settings: CompactSettings,
    count: CountTokens,
    emit: Emit,
    *,
    folder: str = "",
    disk: Disk = SYSTEM_DISK,
) -> tuple[Text, ...]:
    """What goes back into view, as blocks. What does not is told, with the reason."""
    plan = plan_restore(facts, settings, count)
    for left in plan.left:
        emit(RestoreSkipped(left.what, left.reason))
    most_bytes = settings.restored_file_tokens * BYTES_PER_TOKEN
    reader = _Reader(disk, folder, facts.barred, most_bytes)
    starts = await run_blocking(lambda: [reader.read(path) for path in plan.files])
    blocks: list[Text] = []
    left_tokens = settings.restored_files_tokens
    for path, start in zip(plan.files, starts, strict=True):
        if isinstance(start, str):
            emit(RestoreSkipped(path, start))
            continue
        shown = truncate_tokens(start.text, min(settings.restored_file_tokens, left_tokens), count)
        if not shown or (left_tokens < _LEAST_TOKENS and len(shown) < len(start.text)):
            reason = "the budget for files is used up" if start.text else "it is empty"
            emit(RestoreSkipped(path, reason))
            continue
        is_cut = len(shown) < len(start.text) or not start.is_whole
        blocks.append(render_restored_file(RestoredFile(path, shown, is_cut)))
        left_tokens -= count(shown)
        emit(FileRestored(path, count(shown), is_cut))
    for extra in plan.extras:
        blocks.append(render_restored_extra(extra))
        emit(ExtraRestored(extra.kind, extra.title, count(extra.text), extra.is_cut))
    return tuple(blocks)


@dataclass(frozen=True, slots=True)
class _Reader:
    disk: Disk
    folder: str
    """What relative paths start from."""
    barred: frozenset[str]
    max_bytes: int

    def read(self, path: str) -> _Start | str:
        """As much of the file as the budget can want, or why it cannot be shown."""
        place = self._place(path)
        if not os.path.isabs(place):
            return "its path is relative, and nobody said to what"
        if place in {self._place(other) for other in self.barred}:
            return "transcripts, plans and instruction files are never restored"
        try:
            return self._read_start(place)
        except SevenfoldError as error:
            return str(error)

    def _place(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.folder, path))

    def _read_start(self, place: str) -> _Start:
        with map_os_errors(f"read {place} again"):
            # No link is followed: the agent read a file, and whoever put a link there may aim elsewhere.
            fd = self.disk.open(place, READ_FLAGS)
            try:
                found = self.disk.stat(fd)
                if not stat.S_ISREG(found.st_mode):
                    raise NotRegular(f"{place} is no plain file any more")
                if found.st_size > MAX_RESTORED_BYTES:
                    raise NotRegular(
                        f"it has {found.st_size:,} bytes now; at most {MAX_RESTORED_BYTES:,} are read again"
                    )
                data = read_fully(self.disk, fd, min(found.st_size, self.max_bytes))
                return _as_text(data, is_whole=found.st_size <= self.max_bytes)
            finally:
                self.disk.close(fd)


def _as_text(data: bytes, *, is_whole: bool) -> _Start:
    if b"\0" in data:
        raise FileDamaged("it is no text")
    # Reading stops anywhere, so the last character may be in two.
    text = data.decode("utf-8", "replace" if is_whole else "ignore")
    if text.count("\N{REPLACEMENT CHARACTER}") > len(text) // 50:
        raise FileDamaged("it is no text in UTF-8")
    return _Start(text, is_whole)
