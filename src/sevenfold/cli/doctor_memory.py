"""What is remembered of a project, what waits for a person, and the team it shares with. Reads alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from sevenfold.cli.doctor_finding import Finding
from sevenfold.cli.figures import spell_count
from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.events import ignore
from sevenfold.core.memories import is_shown
from sevenfold.core.settings import Settings
from sevenfold.store.folder import Folder
from sevenfold.store.git_root import find_root
from sevenfold.store.identity import identify
from sevenfold.store.memory_book import MemoryBook
from sevenfold.store.memory_dir import FOLDER as MEMORY
from sevenfold.store.memory_settings import MemorySettings
from sevenfold.store.places import PlaceSettings
from sevenfold.store.settings_files import find_user_home
from sevenfold.sync.ledger import FolderLedger
from sevenfold.sync.membership import FOLDER as TEAM
from sevenfold.sync.membership import read_membership


def check_memory(project: Path, settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    if not settings.of(MemorySettings).enabled:
        yield Finding("memory", "note", "switched off", "memory.enabled = true switches it on")
        return
    home = settings.of(PlaceSettings).home_folder(find_user_home(environ))
    try:
        place = home / "projects" / identify(find_root(project)) / "control"
        if not place.is_dir():
            return
        with Folder.open(place) as control:
            yield from _check_memories(control)
            yield from _check_team(control)
    except SevenfoldError as error:
        yield Finding("memory", "broken", str(error), "see docs/store.md#memories on what may stand there")


def _check_memories(control: Folder) -> Iterator[Finding]:
    try:
        folder = control.subfolder(MEMORY, create=False)
    except FileMissing:
        return
    with folder, closing(MemoryBook(folder, ignore)) as book:
        book.refresh()
        state = book.state
        shown = sum(map(is_shown, state.versions))
        yield Finding("memory", "fine", f"{shown:,} {'memory' if shown == 1 else 'memories'}")
        if state.waiting:
            said = f"{spell_count(len(state.waiting), 'change')} of memories, not yours or not known to be"
            yield Finding("memory", "worry", said, "`sevenfold memory review` shows each and asks")


def _check_team(control: Folder) -> Iterator[Finding]:
    try:
        folder = control.subfolder(TEAM, create=False)
    except FileMissing:
        return
    with folder:
        joined = read_membership(folder)
        if joined is None:
            return
        refusal = FolderLedger(folder).read_pace().refusal
        if refusal:
            yield Finding("team", "worry", f"{joined.url} refuses: {refusal}", "`sevenfold team` says more")
        else:
            yield Finding("team", "fine", f"{joined.repo_name} on {joined.url}, as {joined.member}")
