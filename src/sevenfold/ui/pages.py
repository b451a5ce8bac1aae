"""Everything that the page can show of one project, opened together and closed together.

`RecallPages` says what a prompt would bring and why: it asks the search that a session uses, with the same
settings, and nothing is recorded as a use. `DreamPages`, `SpendPages` and `TeamPages` have the switch, or the
choice, that takes back what they show. The other pages have modules of their own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from difflib import unified_diff

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import InputError, TeamError
from sevenfold.core.events import ignore_event
from sevenfold.core.memories import TEAM_FOLDER, TEAM_PREFIX
from sevenfold.core.settings.sections import SyncSettings
from sevenfold.layers.dreams.dreamer import Dreamer
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.layers.memory.recall.finder import MemoryFinder, MemoryLibrary
from sevenfold.layers.memory.recall.policy import (
    MIN_CERTAINTY,
    RecallFacts,
    RecallSettings,
    choose_recalled,
    describe_candidate,
)
from sevenfold.session.budget import SPEND_DAY, SpendSettings
from sevenfold.session.governor import Governor, SpendStore, describe_spend
from sevenfold.session.opening import Workspace
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import LockSettings
from sevenfold.store.memory.changes import describe_transaction
from sevenfold.team.client.local_state import TeamAccess, TokenStore, read_membership
from sevenfold.team.client.memory import TeamMemory
from sevenfold.team.client.status import (
    ResolvedConflict,
    choose_conflict_text,
    describe_team_status,
    find_conflict,
    find_conflicts,
    settle_conflict,
)
from sevenfold.ui.access import GuardedApp, PageAccess
from sevenfold.ui.app import PageCall, PageRoute, make_page_app, route_get, route_post
from sevenfold.ui.conversation import ConversationPages
from sevenfold.ui.live import LiveWatcher
from sevenfold.ui.memories import MemoryPages, clip_diff
from sevenfold.ui.sessions import SessionCatalog, SessionPages

MAX_FOUND_MEMORIES = 50


class RecallPages:
    """What the page asks of the search. The index stays open, and one question is answered at a time."""

    def __init__(self, workspace: Workspace, clock: Clock) -> None:
        self._workspace, self._clock = workspace, clock
        self._lock = threading.Lock()
        self._finder: MemoryFinder | None = None

    def routes(self) -> Sequence[PageRoute]:
        return (route_get("recall", self.recall), route_get("memories/search", self.search))

    def close(self) -> None:
        with self._lock:
            if self._finder is not None:
                self._finder.close()
                self._finder = None

    def recall(self, call: PageCall) -> object:
        """The memories that come nearest to a prompt, which of them would be recalled, and by what."""
        settings = self._workspace.settings.of(RecallSettings)
        with self._lock:
            finder = self._open()
            found = finder.explain(call.text("q"), call.number("limit", 10, MAX_FOUND_MEMORIES))
            has_meanings = finder.has_meanings
        chosen = choose_recalled(found, RecallFacts(), settings)
        return {
            "is_enabled": settings.enabled,
            "has_meanings": has_meanings,
            "min_certainty": MIN_CERTAINTY,
            "max_files": settings.max_files,
            "found": [
                {**describe_candidate(one, is_recalled=one in chosen), "bytes": one.size_bytes}
                for one in found
            ],
        }

    def search(self, call: PageCall) -> object:
        """Keys of memories that hold the words or the meaning of a query, best first."""
        with self._lock:
            ranked = self._open().rank(call.text("q"), call.number("limit", 30, MAX_FOUND_MEMORIES))
        # By meaning, every memory has a rank.
        return {"keys": [one.key for one in ranked if one.overlap.words or (one.margin or 0.0) > 0]}

    def _open(self) -> MemoryFinder:
        if self._finder is None:
            workspace = self._workspace
            library = MemoryLibrary(workspace.project, workspace.memory, workspace.home, workspace.root)
            finder = MemoryFinder(library, self._clock, ignore_event)
            if workspace.settings.of(RecallSettings).vectors:
                finder.load_encoder()
            self._finder = finder
        while self._finder.embed():
            pass  # somebody waits for an answer by meaning
        return self._finder


SPEND_DAYS = 14


class DreamPages:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def routes(self) -> Sequence[PageRoute]:
        return (
            route_get("dreams", self.list),
            route_get("dream", self.show),
            route_post("dream/undo", self.undo),
            route_post("dream/stop", self.stop),
        )

    def list(self, _: PageCall) -> object:
        with closing(self._open()) as dreamer:
            running = dreamer.find_running()
            records = dreamer.records.list(running=running)
        undone = self._find_undone()
        return {
            "running": running,
            "dreams": [{**asdict(one), "is_undone": one.transaction in undone} for one in records],
        }

    def show(self, call: PageCall) -> object:
        with closing(self._open()) as dreamer:
            record = dreamer.records.read(call.text("id"))
            diff = dreamer.records.diff(record.id)
        return {**asdict(record), **clip_diff(diff), "is_undone": record.transaction in self._find_undone()}

    def undo(self, call: PageCall) -> object:
        with closing(self._open()) as dreamer:
            record = dreamer.records.read(call.text("id"))
        if not record.transaction:
            raise InputError(f"dream {record.id} changed nothing, so there is nothing to take back")
        done = self._workspace.memory.revert(record.transaction, f"dream {record.id} was undone")
        return describe_transaction(done)

    def stop(self, _: PageCall) -> object:
        with closing(self._open()) as dreamer:
            running = dreamer.find_running()
            if not running:
                raise InputError("no dream is under way")
            dreamer.records.ask_to_stop(running)
        return {"id": running}

    def _find_undone(self) -> set[str]:
        return {one.of for one in self._workspace.memory.log(limit=None) if one.kind == "revert" and one.of}

    def _open(self) -> Dreamer:
        workspace = self._workspace
        settings = workspace.settings
        return Dreamer(
            workspace.project,
            workspace.memory,
            settings.of(DreamSettings),
            locks=settings.of(LockSettings),
            templates=workspace.templates,
        )


class SpendPages:
    """What background work of all processes spent, against its caps."""

    def __init__(self, workspace: Workspace, clock: Clock) -> None:
        self._workspace, self._clock = workspace, clock

    def routes(self) -> Sequence[PageRoute]:
        return (
            route_get("spend", self.show),
            route_post("spend/stop", self.stop),
            route_post("spend/resume", self.resume),
            route_post("spend/forgive", self.forgive),
        )

    def show(self, _: PageCall) -> object:
        now, rules = self._clock.now(), self._workspace.settings.of(SpendSettings)
        with closing(SpendStore.open(self._workspace.home)) as store:
            state = Governor(store, rules).state()
            charges = list(store.charges((now - SPEND_DAYS * SPEND_DAY).date(), now.date()))
        billed = [charge for charge in charges if not charge.is_unbilled]
        recent = [charge for charge in billed if charge.at > now - SPEND_DAY]
        days: dict[str, int] = {}
        for charge in billed:
            day = charge.at.date().isoformat()
            days[day] = days.get(day, 0) + (charge.micro_usd or 0)
        return {
            **describe_spend(state, recent, rules, now),
            "is_allowed": rules.background,
            "unbilled_calls": len(state.held)
            + sum(charge.is_unbilled and charge.at > now - SPEND_DAY for charge in charges),
            "days": days,
        }

    def stop(self, call: PageCall) -> object:
        """The kill switch: no model is asked for anything but conversations."""
        with closing(SpendStore.open(self._workspace.home)) as store:
            self._govern(store).stop(f"on the page on {self._clock.now():%Y-%m-%d %H:%M} (UTC)")
        return self.show(call)

    def resume(self, call: PageCall) -> object:
        with closing(SpendStore.open(self._workspace.home)) as store:
            self._govern(store).resume()
        return self.show(call)

    def forgive(self, call: PageCall) -> object:
        kind = call.text("kind")
        with closing(SpendStore.open(self._workspace.home)) as store:
            governor = self._govern(store)
            if kind not in governor.state().strikes:
                raise InputError(f"{kind[:40]!r} has no failures to forgive")
            governor.forgive(kind)
        return self.show(call)

    def _govern(self, store: SpendStore) -> Governor:
        return Governor(store, self._workspace.settings.of(SpendSettings))


TEAM_WAIT = timedelta(seconds=10)
"""For another process that exchanges just now: somebody waits for the page."""


class TeamPages:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def routes(self) -> Sequence[PageRoute]:
        return (route_get("team", self.show), route_post("team/resolve", self.resolve))

    def show(self, _: PageCall) -> object:
        """No server is asked."""
        with self._opened() as team:
            if team is None:
                return {"joined": None}
            files = team.files.read_all()
            conflicts = [
                {
                    "memory": one.key,
                    "copy": one.copy,
                    "seen": self._find_hash(one.key),
                    "diff": "\n".join(
                        unified_diff(
                            (files[one.key].text if one.key in files else "").splitlines(),
                            files[one.copy].text.splitlines(),
                            one.key,
                            one.copy,
                            lineterm="",
                        )
                    ),
                }
                for one in find_conflicts(team)
            ]
            return {**describe_team_status(team), "conflicts": conflicts}

    def resolve(self, call: PageCall) -> object:
        """Keep one of two texts. The others hear of it now, or with the next exchange."""
        take, copy = call.text("take"), call.text("copy")
        if take not in ("original", "copy"):
            raise InputError(f"take is {take[:40]!r}; expected original or copy")
        with self._opened() as team:
            if team is None:
                raise InputError("this project has joined no server; `sevenfold team join URL` does that")
            conflict = find_conflict(team, copy)
            text = choose_conflict_text(team, conflict, take)
            resolved = ResolvedConflict(conflict, text, call.text("seen", "") or None)
            asyncio.run(settle_conflict(team, self._workspace.memory, resolved, wait=TEAM_WAIT))
            return {"memory": conflict.key, "waiting": _exchange(team)}

    def _find_hash(self, key: str) -> str:
        stored = self._workspace.memory.find(f"{TEAM_PREFIX}{key}")
        return "" if stored is None else stored.sha256

    @contextmanager
    def _opened(self) -> Generator[TeamMemory | None]:
        workspace = self._workspace
        with (
            workspace.project.memory_state.subfolder(TEAM_FOLDER) as folder,
            Folder.open(workspace.home, create=True) as home,
        ):
            place = read_membership(folder)
            if place is None:
                yield None
                return
            access = TeamAccess(place, TokenStore(home).find(place.url, place.org))
            settings = workspace.settings.of(SyncSettings)
            yield TeamMemory(access, workspace.memory, folder, settings, emit=ignore_event)


def _exchange(team: TeamMemory) -> str:
    """Why the others do not know yet; empty: they do."""
    try:
        asyncio.run(team.exchange(wait=TEAM_WAIT))
    except TeamError as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class UiPages:
    workspace: Workspace
    sessions: SessionCatalog
    watcher: LiveWatcher
    routes: tuple[PageRoute, ...]

    def make_app(self, access: PageAccess) -> GuardedApp:
        project = str(self.workspace.project_root)
        return make_page_app(self.routes, access, project=project, stream=self.watcher.stream)


@contextmanager
def open_pages(workspace: Workspace, clock: Clock | None = None) -> Generator[UiPages]:
    """The pages of a workspace. It is not closed with them."""
    now = clock or SystemClock()
    catalog = SessionCatalog(
        workspace.home,
        workspace.catalog,
        now,
        environ=workspace.environ,
        user_home=workspace.user_home,
    )
    watcher, recall = LiveWatcher(workspace, catalog, now), RecallPages(workspace, now)
    pages = (
        SessionPages(catalog, workspace.home),
        ConversationPages(catalog, workspace),
        MemoryPages(workspace, now),
        recall,
        DreamPages(workspace),
        SpendPages(workspace, now),
        TeamPages(workspace),
        watcher,
    )
    catalog.refresh()
    try:
        yield UiPages(workspace, catalog, watcher, tuple(one for page in pages for one in page.routes()))
    finally:
        recall.close()
        catalog.join()
