"""Where `sevenfold replay` finds transcripts: what is named, else the usual places, else the sample."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import as_file, files
from pathlib import Path

from sevenfold.replay.report import ReportOrigin
from sevenfold.store.foreign.transcripts import (
    TranscriptFile,
    TranscriptSearch,
    UnreadableFile,
    find_own_transcripts,
    find_transcripts,
    list_default_folders,
    merge_searches,
)
from sevenfold.store.project.settings_files import find_user_home


@dataclass(frozen=True, slots=True)
class TranscriptSource:
    """Files to read, and how they were come upon."""

    origin: ReportOrigin
    found: tuple[TranscriptFile, ...]
    unreadable: tuple[UnreadableFile, ...]


def explain_no_transcripts(since: datetime | None) -> str:
    """What to say where no transcript was found."""
    if since is None:
        return "no transcript was found there; name a .jsonl file, or a folder that holds some"
    return f"no transcript there was written to since {since:%Y-%m-%d}; give an earlier day, or no --since"


def find_transcript_sources(
    paths: Sequence[Path], since: datetime | None, limit: int | None, home: Path
) -> Iterator[TranscriptSource]:
    """The places to try, best first: the next one counts only if this one holds no session.

    `home` is Sevenfold's own, below which its sessions are.
    """

    def place(origin: ReportOrigin, search: TranscriptSearch) -> TranscriptSource:
        least_ns = 0 if since is None else since.timestamp() * 1_000_000_000
        found = [item for item in search.files if since is None or item.modified_ns >= least_ns]
        return TranscriptSource(origin, tuple(found[:limit]), search.unreadable)

    if paths:
        yield place("named", find_transcripts(paths))
        return
    folders = list_default_folders(os.environ, find_user_home(os.environ))
    search = merge_searches(find_transcripts(folders), find_own_transcripts(home))
    if search.files:
        yield place("usual places", search)
    with as_file(files("sevenfold.replay") / "sample" / "session.jsonl") as sample:
        yield place("sample", find_transcripts([sample]))
