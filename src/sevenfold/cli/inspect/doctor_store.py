"""The checks of `sevenfold doctor` that read files: settings, home, project, spending, memory, team."""

from __future__ import annotations

import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.agent.subagents.socket_mail import choose_socket_folder, find_stale_sockets
from sevenfold.agent.subagents.worktree import WORKTREES_FOLDER, list_leftover_worktrees
from sevenfold.cli.screen import format_count, format_time
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.events import ignore_event
from sevenfold.core.memories import TEAM_FOLDER, is_indexed
from sevenfold.core.settings import MemorySettings
from sevenfold.session.budget import SpendSettings
from sevenfold.session.governor import SPEND_FOLDER, Governor, SpendStore
from sevenfold.session.opening import Workspace
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.directory import MEMORY_FOLDER
from sevenfold.store.memory.history import MemoryStore
from sevenfold.store.project.settings_files import Proposal
from sevenfold.store.transcript.reader import BadLine, scan_transcript
from sevenfold.store.transcript.transcript import SessionEntry, list_sessions, read_events
from sevenfold.team.client.local_state import FolderLedger, read_membership

FindingLevel: TypeAlias = Literal["fine", "note", "worry", "broken"]
"""`note`: something optional is not there. `worry`: it works, and will not for long or not as wished."""

FindingPart: TypeAlias = Literal["needed", "optional", "agents"]
"""What every command needs, what some commands need, and other agents on this machine."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    area: str
    level: FindingLevel
    said: str
    advice: str = ""
    """What to do about it; empty where nothing has to be done."""
    part: FindingPart = field(default="needed", kw_only=True)


LOW_SPACE_BYTES = 1024**3
MIN_FREE_BYTES = 64 * 1024**2
"""A transcript of a long session fits; below it the next write may fail."""

MAX_CHECKED_SESSIONS = 5
"""Sessions whose transcripts are gone through, the newest."""
_MAX_READ_BYTES = 64 * 1024**2
RECENT_PERIOD = timedelta(days=7)

_TROUBLES = frozenset(
    {
        "BreakerOpened", "BreakerStateLost", "CallRefused", "EventsLost", "HookFailed", "KindPaused",
        "LineQuarantined", "MailQuarantined", "MemoryLagged", "NotesRecordLost", "PrefixBroken",
        "RulesSkipped", "SpendStateLost", "SpillFailed", "SweepFailed", "TailSealed", "TeamStopped",
        "TranscriptFailed", "UsesLost", "WriterFailed",
    }
)  # fmt: skip
"""Events that say something worked less well than it should."""


@dataclass(frozen=True, slots=True)
class SettingsCheck:
    findings: tuple[DoctorFinding, ...]
    workspace: Workspace | None
    """None: the settings cannot be used."""


def check_settings(project: Path) -> SettingsCheck:
    try:
        workspace = open_workspace(project)
        settings, _ = workspace.settings, workspace.catalog
    except SevenfoldError as error:
        broken = DoctorFinding(
            "settings", "broken", str(error), "correct it; `sevenfold settings` shows what counts"
        )
        return SettingsCheck((broken,), None)
    proposals = workspace.proposals
    answerable = {(item.source, item.key) for proposal in proposals for item in proposal.waiting}
    refused = [
        DoctorFinding(
            "settings", "worry", f"{each.source}: {each.key} was refused: {each.reason}", "move or remove it"
        )
        for each in settings.refused
        if (each.source, each.key) not in answerable
    ]
    changed = sum(item.value != item.spec.default for item in settings.resolved)
    fine = DoctorFinding("settings", "fine", f"read; {format_count(changed, 'setting')} not at the default")
    return SettingsCheck((fine, *_check_proposals(proposals), *refused), workspace)


def _check_proposals(proposals: tuple[Proposal, ...]) -> Iterator[DoctorFinding]:
    """What the files that came with the repository want, and what became of it."""
    for proposal in proposals:
        path = proposal.file.path
        if proposal.free:
            said = f"{path} may set without your agreement: {', '.join(proposal.free)}"
            yield DoctorFinding("settings", "fine", said)
        if not proposal.waiting:
            continue
        if proposal.consent == "agreed":
            yield DoctorFinding("settings", "fine", f"{path} sets, as you have agreed: {proposal.keys}")
        elif proposal.consent == "refused":
            yield DoctorFinding("settings", "fine", f"{path} wants, and you have refused: {proposal.keys}")
        else:
            said = f"{path} wants, and is ignored since nobody has agreed to it: {proposal.keys}"
            todo = "look at the file; `sevenfold settings --trust` agrees to it, `--refuse` does not"
            yield DoctorFinding("settings", "worry", said, todo)


def check_home(workspace: Workspace) -> Iterator[DoctorFinding]:
    home = workspace.home
    try:
        found = home.stat()
    except FileNotFoundError:
        yield DoctorFinding("home", "fine", f"{home} is made when it is first needed")
        yield from _check_room(_nearest(home))
        return
    except OSError as error:
        yield DoctorFinding("home", "broken", f"{home}: {error}", "make it readable, or set SEVENFOLD_HOME")
        return
    if found.st_uid != os.getuid():
        yield DoctorFinding(
            "home", "worry", f"{home} belongs to somebody else", "chown it, or set SEVENFOLD_HOME"
        )
    elif stat.S_IMODE(found.st_mode) & 0o077:
        yield DoctorFinding("home", "worry", f"others can look into {home}", f"chmod 700 {home}")
    elif not os.access(home, os.W_OK | os.X_OK):
        yield DoctorFinding("home", "broken", f"{home} cannot be written to", f"chmod u+rwx {home}")
    else:
        yield DoctorFinding("home", "fine", str(home))
    yield from _check_room(home)


def _nearest(path: Path) -> Path:
    return next(each for each in (path, *path.parents) if each.exists())


def _check_room(place: Path) -> Iterator[DoctorFinding]:
    free = shutil.disk_usage(place).free
    said = f"{free / 1024**3:.1f} GB free at {place}"
    if free < MIN_FREE_BYTES:
        yield DoctorFinding("disk", "broken", said, "make room: the next transcript may not be written")
    elif free < LOW_SPACE_BYTES:
        yield DoctorFinding("disk", "worry", said, "make room soon")
    else:
        yield DoctorFinding("disk", "fine", said)


def check_project(workspace: Workspace) -> Iterator[DoctorFinding]:
    try:
        root, place = workspace.project_root, workspace.project_folder
        if not place.is_dir():
            yield DoctorFinding("project", "fine", f"{root}: nothing was kept for it yet")
            return
        with Folder.open(place) as folder, folder.subfolder("sessions", create=False) as sessions:
            listed = list_sessions(sessions)
            yield DoctorFinding(
                "project", "fine", f"{root}: {format_count(len(listed), 'session')} in {place}"
            )
            yield from _check_transcripts(sessions, listed[:MAX_CHECKED_SESSIONS])
            yield from _check_troubles(sessions, listed)
            yield from _check_mail(folder)
            yield from _check_worktrees(folder)
    except SevenfoldError as error:
        yield DoctorFinding("project", "broken", str(error), "see docs/store.md on what may stand there")


def _check_transcripts(sessions: Folder, newest: list[SessionEntry]) -> Iterator[DoctorFinding]:
    bad: Counter[str] = Counter()
    for session in newest:
        if session.size_bytes <= _MAX_READ_BYTES:
            bad[session.id] = sum(isinstance(line, BadLine) for line in scan_transcript(sessions, session.id))
    damaged = {session: count for session, count in bad.items() if count}
    if damaged:
        said = ", ".join(f"{session}: {format_count(count, 'line')}" for session, count in damaged.items())
        yield DoctorFinding(
            "transcripts",
            "worry",
            f"lines that cannot be read: {said}",
            "they stay in place and are passed over; check the disk",
        )
    elif newest:
        yield DoctorFinding("transcripts", "fine", f"the newest {len(newest)} read whole")


def _check_troubles(sessions: Folder, listed: list[SessionEntry]) -> Iterator[DoctorFinding]:
    """What went wrong lately, by the sessions' own word."""
    since = SystemClock().now() - RECENT_PERIOD
    counts: Counter[str] = Counter()
    last: dict[str, str] = {}
    for session in (each for each in listed if each.modified >= since):
        try:
            with sessions.subfolder(session.id, create=False) as folder:
                for event in read_events(folder):
                    if event.name in _TROUBLES and event.at >= since:
                        counts[event.name] += 1
                        last[event.name] = f"{format_time(event.at)} in {session.id[:8]}"
        except FileMissing:
            continue  # a session without a folder has no events
    for name, count in counts.most_common():
        said = f"{name} {format_count(count, 'time')} in a week, last {last[name]}"
        yield DoctorFinding("events", "worry", said, f"docs/events.md says what to do about {name}")
    if not counts:
        yield DoctorFinding("events", "fine", "nothing went wrong in the last seven days")


def _check_mail(folder: Folder) -> Iterator[DoctorFinding]:
    with folder.subfolder("mail", create=False) as mail:
        aside = 0
        for name in mail.names():
            try:
                with mail.subfolder(f"{name}/bad", create=False) as box:
                    aside += len(box.names())
            except FileMissing:
                continue  # nothing was ever set aside there
        if aside:
            said = f"{format_count(aside, 'message')} set aside as forged or damaged"
            yield DoctorFinding("mail", "worry", said, f"look at {mail.path}; remove them when you have")


def _check_worktrees(folder: Folder) -> Iterator[DoctorFinding]:
    with folder.subfolder("control", create=False) as control:
        left = list_leftover_worktrees(Path(folder.path) / WORKTREES_FOLDER, control)
    if left:
        said = f"{format_count(len(left), 'worktree')} of agents that have ended: {', '.join(map(str, left))}"
        todo = "merge what was changed there, then `git worktree remove` each"
        yield DoctorFinding("worktrees", "worry", said, todo)


def check_sockets(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Sockets of sessions that ended without closing them."""
    stale = find_stale_sockets(choose_socket_folder(workspace.home, workspace.environ))
    if stale:
        said = (
            f"{format_count(len(stale), 'socket')} of sessions that have died: {', '.join(map(str, stale))}"
        )
        yield DoctorFinding("sockets", "worry", said, "remove them: nobody listens there")


def check_spend(workspace: Workspace) -> Iterator[DoctorFinding]:
    home, settings = workspace.home, workspace.settings
    if not (home / SPEND_FOLDER).is_dir():
        yield DoctorFinding("spend", "fine", "background work has spent nothing yet")
        return
    try:
        store = SpendStore.open(home)
        try:
            state = Governor(store, settings.of(SpendSettings)).state()
        finally:
            store.close()
    except SevenfoldError as error:
        yield DoctorFinding("spend", "broken", str(error), "background work waits until this can be read")
        return
    if state.stopped or not settings.of(SpendSettings).background:
        yield DoctorFinding(
            "spend", "worry", "background work is stopped", "`sevenfold spend resume`, or spend.background"
        )
    now = SystemClock().now()
    for kind, strikes in sorted(state.strikes.items()):
        if strikes.until > now:
            rests = f"{kind} rests until {format_time(strikes.until)}"
            said = f"{rests} after {format_count(strikes.count, 'failure')}: {strikes.reason}"
            yield DoctorFinding(
                "spend", "worry", said, f"`sevenfold spend forgive {kind}` once the cause is gone"
            )
    yield DoctorFinding("spend", "fine", "`sevenfold spend` shows the caps")


# Memory: what is stored, what waits for a person, and the team that shares it.


def check_memory(workspace: Workspace) -> Iterator[DoctorFinding]:
    if not workspace.settings.of(MemorySettings).enabled:
        yield DoctorFinding("memory", "note", "switched off", "memory.enabled = true switches it on")
        return
    try:
        place = workspace.memory_state_folder
        if not place.is_dir():
            return
        with Folder.open(place) as state:
            yield from _check_memories(state)
            yield from _check_team(state)
    except SevenfoldError as error:
        yield DoctorFinding(
            "memory", "broken", str(error), "see docs/store.md#memories on what may stand there"
        )


def _check_memories(kept: Folder) -> Iterator[DoctorFinding]:
    try:
        folder = kept.subfolder(MEMORY_FOLDER, create=False)
    except FileMissing:
        return
    with folder, closing(MemoryStore(folder, ignore_event)) as store:
        store.refresh()
        state = store.state
        shown = sum(map(is_indexed, state.versions))
        yield DoctorFinding("memory", "fine", f"{shown:,} {'memory' if shown == 1 else 'memories'}")
        if state.waiting:
            said = f"{format_count(len(state.waiting), 'change')} of memories, not yours or not known to be"
            yield DoctorFinding("memory", "worry", said, "`sevenfold memory review` shows each and asks")


def _check_team(kept: Folder) -> Iterator[DoctorFinding]:
    try:
        folder = kept.subfolder(TEAM_FOLDER, create=False)
    except FileMissing:
        return
    with folder:
        joined = read_membership(folder)
        if joined is None:
            return
        refusal = FolderLedger(folder).read_retry().refusal
        if refusal:
            yield DoctorFinding(
                "team", "worry", f"{joined.url} refuses: {refusal}", "`sevenfold team` says more"
            )
        else:
            yield DoctorFinding("team", "fine", f"{joined.repo_name} on {joined.url}, as {joined.member}")
