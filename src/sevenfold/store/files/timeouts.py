"""How long those who share a project's folders leave one another alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class FolderTimeouts:
    """Kept by a `Folder` and those below it, so that whoever works there need not be told."""

    mutex: timedelta = timedelta(seconds=15)
    """For somebody else's change of a few milliseconds."""

    mark: timedelta = timedelta(minutes=2)
    """Who says that it is at work, and said so longer ago than this, has died."""

    sweep: timedelta = timedelta(days=1)
    """Half-made files are looked for this often: they cost nothing but room, and looking goes through every
    folder there is."""


FOLDER_TIMEOUTS = FolderTimeouts()
