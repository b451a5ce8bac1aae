"""All sessions on this machine, ours and those of other agents: the list, one of them, and searching them.

Transcripts are read as by `sevenfold replay`: what has not changed comes from the reports that are kept. The
list is read in the background, so a page gets what is known at once, and how far the reading is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path, PurePath

from sevenfold.core.clock import Clock
from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.json import read_object
from sevenfold.core.prices import Catalog
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.calls import BREAK_CAUSES
from sevenfold.replay.page import describe_page_session
from sevenfold.replay.parallel import ReadProgress, read_accounts
from sevenfold.replay.report import SessionReport
from sevenfold.replay.stored_reports import StoredReports
from sevenfold.store.foreign.transcripts import (
    TranscriptFile,
    UnreadableFile,
    find_own_transcripts,
    find_transcripts,
    list_default_folders,
)
from sevenfold.store.project.project import IDENTITY_FILE
from sevenfold.store.session_index.database import DerivedValues
from sevenfold.store.session_index.finder import SessionQuery, describe_hit
from sevenfold.store.session_index.index import SessionIndex
from sevenfold.ui.app import PageCall, PageRoute, route_get

REFRESH_AFTER = timedelta(seconds=2)
"""A list that is younger is not looked at again: several tabs ask at once."""
FIRST_WAIT_SECONDS = 0.8
"""A page waits so long for a list that is being read, and then hears how far it is."""
SPARK_POINTS = 40
MAX_SEARCH_HITS = 50


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session and the name by which the page asks for it: no path ever comes from a page."""

    key: str
    report: SessionReport


@dataclass(frozen=True, slots=True)
class SessionList:
    sessions: tuple[ListedSession, ...] = ()
    """The newest first."""
    unreadable: tuple[UnreadableFile, ...] = ()
    stamp: tuple[TranscriptFile, ...] = ()
    """The files as they were read."""
    number: int = 0
    """Grows with every reading that found something new."""


class SessionCatalog:
    """Reads the list of sessions, in a thread of its own. Safe to use from several threads."""

    def __init__(
        self, home: Path, catalog: Catalog, clock: Clock, *, environ: Mapping[str, str], user_home: Path
    ) -> None:
        self._home, self._terms, self._clock = home, ReplayTerms(catalog), clock
        self._find_folders = lambda: list_default_folders(environ, user_home)
        self._lock, self._ready = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._list = SessionList()
        self._checked_at: timedelta | None = None
        self.progress, self.error = 0.0, ""
        self.on_change: Callable[[int], None] | None = None

    def read(self, wait_seconds: float = FIRST_WAIT_SECONDS) -> SessionList:
        """What is known now; a reading begins if it may be out of date, and only the first is waited for."""
        self.refresh()
        self._ready.wait(wait_seconds)
        return self._list

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    def refresh(self) -> None:
        """Begin a reading, unless there is one or the last was just now."""
        with self._lock:
            now = self._clock.uptime()
            is_fresh = self._checked_at is not None and now - self._checked_at < REFRESH_AFTER
            if is_fresh or (self._thread is not None and self._thread.is_alive()):
                return
            self._checked_at = now
            self._thread = threading.Thread(target=self._update, name="sevenfold-sessions", daemon=True)
            self._thread.start()

    def join(self) -> None:
        """Wait for a reading that is under way."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def find(self, key: str) -> SessionReport:
        for one in self.read().sessions:
            if one.key == key:
                return one.report
        raise FileMissing(f"there is no session {key!r}; it may have been deleted: reload the list")

    def _update(self) -> None:
        try:
            found, unreadable = self.find_files()
            if found != self._list.stamp or not self._ready.is_set():
                self._list = self._read_list(found, unreadable)
                if self.on_change is not None:
                    self.on_change(self._list.number)
            self.error = ""
        except SevenfoldError as error:
            self.error = str(error)
        finally:
            self._ready.set()

    def find_files(self) -> tuple[tuple[TranscriptFile, ...], tuple[UnreadableFile, ...]]:
        own, others = find_own_transcripts(self._home), find_transcripts(self._find_folders())
        return (*own.files, *others.files), (*own.unreadable, *others.unreadable)

    def _read_list(
        self, found: tuple[TranscriptFile, ...], unreadable: tuple[UnreadableFile, ...]
    ) -> SessionList:
        def tell(progress: ReadProgress) -> None:
            self.progress = progress.done_bytes / progress.total_bytes if progress.total_bytes else 1.0

        with closing(DerivedValues.open(self._home)) as values:
            stored = StoredReports(values, self._terms)
            outcome = read_accounts(found, self._terms, stored=stored, on_progress=tell)
        reports = [_with_project(one) for file in outcome.files for one in file.sessions]
        listed = [ListedSession(make_session_key(one), one) for one in reports]
        listed.sort(key=lambda one: (-_last_seconds(one.report), one.key))
        return SessionList(
            tuple(listed), (*unreadable, *outcome.unreadable), stamp=found, number=self._list.number + 1
        )


def make_session_key(session: SessionReport) -> str:
    name = f"{session.path}\n{session.name}".encode("utf-8", "surrogateescape")
    return blake2b(name, digest_size=9).hexdigest()


def _last_seconds(session: SessionReport) -> float:
    return session.last_at.timestamp() if session.last_at else 0.0


def _with_project(session: SessionReport) -> SessionReport:
    """Our own transcripts do not name the project; the folder that they are in does."""
    if session.project or session.agent != "sevenfold":
        return session
    with suppress(SevenfoldError, OSError):
        root = read_object((session.path.parent.parent / IDENTITY_FILE).read_bytes()).get("root")
        if isinstance(root, str):
            return replace(session, project=root)
    return session


class SessionPages:
    """What the page asks about sessions."""

    def __init__(self, catalog: SessionCatalog, home: Path) -> None:
        self._catalog, self._home = catalog, home
        self._search_lock = threading.Lock()

    def routes(self) -> Sequence[PageRoute]:
        return (
            route_get("sessions", self.list),
            route_get("session", self.show),
            route_get("search", self.search),
        )

    def list(self, _: PageCall) -> object:
        found = self._catalog.read()
        return {
            "is_ready": self._catalog.is_ready,
            "progress": round(self._catalog.progress, 3),
            "error": self._catalog.error,
            "number": found.number,
            "sessions": [describe_listed(one) for one in found.sessions],
            "unreadable": [[str(item.path), item.reason] for item in found.unreadable[:100]],
        }

    def show(self, call: PageCall) -> object:
        """One session as the replay page shows it."""
        key = call.text("key")
        return {
            **describe_page_session(self._catalog.find(key)),
            "key": key,
            "causes": list(BREAK_CAUSES),
        }

    def search(self, call: PageCall) -> object:
        """Turns of all sessions that a query is about."""
        query = SessionQuery(text=call.text("q"), limit=call.number("limit", 20, MAX_SEARCH_HITS))
        found, unreadable = self._catalog.find_files()
        with self._search_lock, closing(SessionIndex.open(self._home)) as index:
            index.update(found, kept=[item.path for item in unreadable])
            hits = index.search(query)
        keys = {str(one.report.path): one.key for one in reversed(self._catalog.read().sessions)}
        return {"hits": [{**describe_hit(hit), "key": keys.get(str(hit.path))} for hit in hits]}


def describe_listed(one: ListedSession) -> dict[str, object]:
    """A row of the list."""
    session, totals = one.report, one.report.totals
    lost = [item.lost_usd for item in session.breaks if item.lost_usd is not None]
    return {
        "key": one.key,
        "id": session.id,
        "sub_agent": session.sub_agent,
        "title": session.title,
        "agent": session.agent,
        "project": session.project,
        "folder": PurePath(session.project).name,
        "first_at": session.first_at and round(session.first_at.timestamp()),
        "last_at": session.last_at and round(session.last_at.timestamp()),
        "models": [bill.model for bill in session.bills],
        "calls": totals.calls,
        "usd": None if totals.calls and totals.unpriced_calls == totals.calls else float(totals.cost.total),
        "is_estimated": totals.estimated_usd > 0,
        "hit_rate": totals.hit_rate,
        "breaks": len(session.breaks),
        "lost_usd": float(sum(lost)),
        "cuts": len(session.compactions) + len(session.clearings),
        "largest": session.largest_prompt_tokens,
        "spark": thin_peaks([point.prompt_tokens for point in session.series]),
    }


def thin_peaks(values: Sequence[int], most: int = SPARK_POINTS) -> list[int]:
    """So many values that keep the shape: the largest of each stretch."""
    if len(values) <= most:
        return list(values)
    edges = [round(place * len(values) / most) for place in range(most + 1)]
    return [max(values[first:last]) for first, last in pairwise(edges)]
