"""`sevenfold search`: find turns in all past sessions on this machine."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

from sevenfold.cli.replay.command import read_since_date
from sevenfold.cli.screen import Screen, TableCell, Tone, format_count, format_time, shorten_text
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.errors import InputError
from sevenfold.core.events import Event, describe_event
from sevenfold.store.foreign.entries import AGENT_NAMES
from sevenfold.store.foreign.transcripts import find_own_transcripts, find_transcripts, list_default_folders
from sevenfold.store.project.settings_files import find_user_home
from sevenfold.store.session_index.finder import (
    MARKED_WORD,
    SessionHit,
    SessionQuery,
    describe_hit,
    hide_secrets,
    resume_command,
)
from sevenfold.store.session_index.index import IndexUpdate, SessionIndex

_PROJECT_CHARS, _TITLE_CHARS = 40, 76


def run_search(options: Namespace, screen: Screen) -> int:
    query = _read_query(options)
    workspace = open_workspace()

    events: list[Event] = []

    def rebuilt(event: Event) -> None:
        events.append(event)
        screen.note(f"warning: {describe_event(event)}")

    with closing(SessionIndex.open(workspace.home, emit=rebuilt)) as index:
        update = _update(index, workspace.home, screen)
        before = len(events)
        hits = index.search(query)
        if len(events) > before:
            # The index was damaged, and the search was in an empty one.
            update = _update(index, workspace.home, screen)
            hits = index.search(query)
        total = len(index)
    _warn_of(update, screen)
    if options.json:
        screen.show_json([describe_hit(hit) for hit in hits])
    elif hits:
        for hit in hits:
            _show_hit(hit, screen)
    else:
        screen.show_line(_explain_nothing(query, total, is_busy=update.is_busy), "faint")
    return 0 if hits else 1


def _read_query(options: Namespace) -> SessionQuery:
    words = cast("list[str]", options.query)
    if words == ["setup"]:
        raise InputError(
            "`sevenfold search` searches past sessions now. To find memories by meaning, run "
            "`sevenfold recall --setup`; to look for the word itself, run `sevenfold search '\"setup\"'`"
        )
    limit = cast("int", options.limit)
    return SessionQuery(
        text=" ".join(words),
        project=_read_project(cast("str | None", options.project)),
        since=read_since_date(cast("str | None", options.since)),
        limit=limit,
    )


def _read_project(text: str | None) -> str | None:
    """A folder as the path that transcripts have; anything else as a part of such a path."""
    if text is None:
        return None
    path = Path(os.path.expanduser(text))
    is_path = text.startswith((".", "/", "~")) and path.is_dir()
    return os.path.realpath(path) if is_path else text


def _update(index: SessionIndex, home: Path, screen: Screen) -> IndexUpdate:
    folders = list_default_folders(os.environ, find_user_home(os.environ))
    own, others = find_own_transcripts(home), find_transcripts(folders)
    files, unreadable = [*own.files, *others.files], [*own.unreadable, *others.unreadable]

    def tell(done: int, total: int) -> None:
        screen.show_progress(f"indexing {total / 1e6:,.0f} MB", done / max(total, 1))

    try:
        update = index.update(files, tell, kept=[item.path for item in unreadable])
    finally:
        screen.clear_progress()
    return replace(update, unreadable=(*unreadable, *update.unreadable))


def _warn_of(update: IndexUpdate, screen: Screen) -> None:
    if update.is_busy:
        screen.note("another process is updating the index: the newest turns may be missing")
    for item in update.unreadable:
        screen.note(f"warning: cannot read {item.path}: {item.reason}; what was read before is searched")


def _explain_nothing(query: SessionQuery, total: int, *, is_busy: bool) -> str:
    if is_busy and not total:
        return "the index is being built by another process; try again when it is done"
    if not total:
        return "no sessions of Sevenfold, Claude Code or Codex were found on this machine"
    limits = " with these limits" if query.project or query.since else ""
    return f"nothing was found in {format_count(total, 'session')}{limits}; try fewer or other words"


def _show_hit(hit: SessionHit, screen: Screen) -> None:
    where = shorten_text(" ".join((hit.project or str(hit.path)).split()), _PROJECT_CHARS, is_path=True)
    agent = AGENT_NAMES[hit.agent] + (" sub-agent" if hit.conversation else "")
    screen.show_cells(
        [
            TableCell(format_time(hit.at), "strong"),
            TableCell(f"  {where}  "),
            TableCell(f"{agent}, turn {hit.turn}", "faint"),
        ]
    )
    if hit.title:
        screen.show_line(f"  {shorten_text(hide_secrets(hit.title, hit.title), _TITLE_CHARS)}")
    snippet = hide_secrets(hit.snippet, hit.context)
    screen.show_cells([TableCell("  "), *_mark_cells(" ".join(snippet.split()))])
    if hit.more:
        screen.show_line(f"  {format_count(hit.more, 'more turn')} of this session", "faint")
    screen.show_line(f"  {resume_command(hit)}", "faint")
    screen.show("")


def _mark_cells(snippet: str) -> Iterator[TableCell]:
    tones: Sequence[Tone] = ("plain", "strong")
    for place, part in enumerate(MARKED_WORD.split(snippet)):
        if part:
            # Also without colours: people who print or pipe it see what was found.
            yield TableCell(f"*{part}*" if place % 2 else part, tones[place % 2])
