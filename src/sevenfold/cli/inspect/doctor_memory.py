"""What is remembered of a project, what waits for a person, and the team it shares with. Reads alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from sevenfold.cli.formatting import format_count
from sevenfold.cli.inspect.doctor_finding import DoctorFinding
from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.events import ignore_event
from sevenfold.core.memories import is_indexed
from sevenfold.core.settings import Settings
from sevenfold.store.files.folder import Folder
from sevenfold.store.git.root import find_project_root
from sevenfold.store.memory.directory import MEMORY_FOLDER as MEMORY
from sevenfold.store.memory.settings import MemorySettings
from sevenfold.store.memory.store import MemoryStore
from sevenfold.store.project.identity import make_project_id
from sevenfold.store.project.place_settings import PlaceSettings
from sevenfold.store.project.settings_files import find_user_home
from sevenfold.team.client.ledger import FolderLedger
from sevenfold.team.client.membership import TEAM_FOLDER as TEAM
from sevenfold.team.client.membership import read_membership


def check_memory(project: Path, settings: Settings, environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    if not settings.of(MemorySettings).enabled:
        yield DoctorFinding("memory", "note", "switched off", "memory.enabled = true switches it on")
        return
    home = settings.of(PlaceSettings).home_folder(find_user_home(environ))
    try:
        place = home / "projects" / make_project_id(find_project_root(project)) / "control"
        if not place.is_dir():
            return
        with Folder.open(place) as control:
            yield from _check_memories(control)
            yield from _check_team(control)
    except SevenfoldError as error:
        yield DoctorFinding(
            "memory", "broken", str(error), "see docs/store.md#memories on what may stand there"
        )


def _check_memories(control: Folder) -> Iterator[DoctorFinding]:
    try:
        folder = control.subfolder(MEMORY, create=False)
    except FileMissing:
        return
    with folder, closing(MemoryStore(folder, ignore_event)) as book:
        book.refresh()
        state = book.state
        shown = sum(map(is_indexed, state.versions))
        yield DoctorFinding("memory", "fine", f"{shown:,} {'memory' if shown == 1 else 'memories'}")
        if state.waiting:
            said = f"{format_count(len(state.waiting), 'change')} of memories, not yours or not known to be"
            yield DoctorFinding("memory", "worry", said, "`sevenfold memory review` shows each and asks")


def _check_team(control: Folder) -> Iterator[DoctorFinding]:
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
            yield DoctorFinding(
                "team", "worry", f"{joined.url} refuses: {refusal}", "`sevenfold team` says more"
            )
        else:
            yield DoctorFinding("team", "fine", f"{joined.repo_name} on {joined.url}, as {joined.member}")
