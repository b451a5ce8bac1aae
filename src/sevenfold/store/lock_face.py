"""The visible face of the dream lock (SPEC G2): `.consolidate-lock` in the memory folder, body the holder's
PID, time the last consolidation. Other programs that share the folder read it, and may hold it themselves.

It is shown and respected, but exclusion between our own processes never rests on it: agents can write there.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from sevenfold.core.errors import FileMissing, LockBusy, StoreError
from sevenfold.store.folder import Folder
from sevenfold.store.lock_state import FaceStamp

FACE = ".consolidate-lock"

FOREIGN_HOLD = timedelta(minutes=60)
"""After this a live holder of another program is thought stuck, by that program's own rule."""


class LockFace:
    """`folder` must have been opened with `FACE` among its own names."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def read(self) -> FaceStamp | None:
        """What stands there, or None; something unreadable is nobody's lock."""
        try:
            body = self._folder.read(FACE, max_bytes=1024)
            entry = self._folder.entry(FACE)
        except FileMissing:
            return None
        except StoreError:
            return None
        text = body.strip()
        pid = int(text) if text.isdigit() and len(text) < 10 else 0
        return FaceStamp(pid, entry.modified_ns) if entry else None

    def write(self, stamp: FaceStamp) -> None:
        self._folder.replace(FACE, str(stamp.pid).encode(), modified_ns=stamp.modified_ns)


def stamp(when: datetime | None) -> FaceStamp:
    """Our face at a time; the epoch where there never was a success."""
    elapsed = when - datetime.fromtimestamp(0, UTC) if when else timedelta(0)
    # Even seconds, which every file system keeps as they are: we must recognise our own mark when we read it.
    return FaceStamp(os.getpid(), elapsed // timedelta(seconds=2) * 2_000_000_000)


def outside_success(face: FaceStamp | None, ours: tuple[FaceStamp, ...], now: datetime) -> datetime | None:
    """When another program last consolidated, as far as the face tells. The future is clamped to now."""
    if face is None or face in ours or face.modified_ns <= 0:
        return None
    return min(now, datetime.fromtimestamp(face.modified_ns / 1e9, UTC))


def refuse_foreign_holder(face: FaceStamp | None, ours: tuple[FaceStamp, ...], now: datetime) -> None:
    """`LockBusy` while a live process that is not ours holds the face."""
    since = outside_success(face, ours, now)
    if face is None or since is None or now - since > FOREIGN_HOLD or not _is_alive(face.pid):
        return
    raise LockBusy(f"another program (process {face.pid}) holds {FACE} since {since.isoformat()}")


def _is_alive(pid: int) -> bool:
    if pid <= 0 or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
