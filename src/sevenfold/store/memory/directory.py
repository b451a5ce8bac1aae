"""A project's memories: read, changed all or nothing, and never without a trace.

What is shown is the last accepted text of each. Changes go through `commit`; text that nobody may take at
its word goes through `propose` and waits; an edit past the engine is noticed and waits too. Every change
stands in the history with who made it and why, and can be taken back.
"""

from __future__ import annotations

import heapq
import os
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeAlias

from sevenfold.core import events
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import FileMissing, MemoryConflict
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.json import replace_lone_surrogates
from sevenfold.core.memories import (
    INDEX_FILE,
    USER_WIDE_PREFIX,
    ChangeAuthor,
    MemoryKey,
    Origin,
    is_indexed,
    read_memory,
)
from sevenfold.core.settings import MemorySettings, PlaceSettings
from sevenfold.store.files.disk import may_exist
from sevenfold.store.files.folder import check_memory_key
from sevenfold.store.files.locks import LockSettings
from sevenfold.store.memory.changes import (
    ANYTHING,
    BlameLine,
    IndexText,
    PendingReview,
    PurgeReport,
    Remove,
    SettledReview,
    StoredMemory,
    Transaction,
    TransactionId,
    TransactionKind,
    UndoStep,
    Write,
    make_memory_key,
    plan_new_memory,
)
from sevenfold.store.memory.files import MemoryFiles
from sevenfold.store.memory.history import MemoryHistory, MemoryStore
from sevenfold.store.memory.index_text import fit_index
from sevenfold.store.memory.plan import (
    MergedProposals,
    check_changes,
    find_overtaken,
    is_learnt_in,
    locate_changes,
    merge_proposals,
    plan_changes,
    plan_review,
    was_asked,
)
from sevenfold.store.memory.purge import PurgeSource
from sevenfold.store.memory.records import LoggedChange, LoggedTransaction, new_transaction_id
from sevenfold.store.memory.sidecars import forget_traces, holds_files, report_user_wide
from sevenfold.store.memory.state import MemoryState, MemoryVersion
from sevenfold.store.memory.upkeep import MemoryUpkeep
from sevenfold.store.project.project import Project, locate_user_wide, open_project, open_user_wide
from sevenfold.store.project.settings_files import find_checkout, find_user_home, read_settings

MEMORY_FOLDER = "memory"
"""In the state of the memory directory: the history."""

_Names: TypeAlias = Sequence[str]
_TOLD_KEYS = 10
"""Named in an event; the history has all of them."""

DEFAULT_SCAN_LIMIT = 200
"""The most memories that a manifest lists."""


class MemoryDir:
    """The memories of one project, for any number of threads and processes. Every method blocks on the disk.

    Opening it begins the history of a folder that has none, finishes what a dead process began, and notices
    edits made past the engine.
    """

    def __init__(
        self,
        project: Project,
        *,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
        trusts_outside: bool = False,
    ) -> None:
        self._clock, self._emit = clock or SystemClock(), emit
        self._thread = threading.RLock()
        self._user_wide: MemoryDir | None = None
        self._is_user_wide_tried = False
        self._root = str(project.root) if project.is_memory_shared and not project.is_user_wide else ""
        with ExitStack() as exits:
            self.project, self.path, self._state = project, project.memory.path, project.memory_state
            control = exits.enter_context(project.memory_state.subfolder(MEMORY_FOLDER))
            self._store = MemoryStore(control, emit)
            exits.callback(self._store.close)
            self._history = MemoryHistory(self._store)
            files = MemoryFiles(project.memory, emit)
            self._upkeep = MemoryUpkeep(self._store, files, self._clock, emit, trusts_outside=trusts_outside)
            if self._store.refresh():
                self._upkeep.notice()
            else:
                self._upkeep.adopt(needs_review=project.is_user_wide or holds_files(project))
            self._exits = exits.pop_all()

    @classmethod
    def for_project(
        cls,
        path: str | Path = ".",
        *,
        environ: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
    ) -> Self:
        """The memories of the project that `path` lies in, wherever settings put them. Close it after use."""
        start, known = Path(path), os.environ if environ is None else environ
        sections = (PlaceSettings, LockSettings, MemorySettings)
        settings = read_settings(sections, root=find_checkout(start), environ=known, is_part=True, emit=emit)
        with ExitStack() as exits:
            project = open_project(start, settings, user_home=find_user_home(known), clock=clock, emit=emit)
            exits.enter_context(project)
            trusts = settings.of(MemorySettings).trust_outside
            memory = cls(project, clock=clock, emit=emit, trusts_outside=trusts)
            memory._exits.push(exits.pop_all())
        return memory

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._thread:
            self._exits.close()

    @property
    def user_wide(self) -> MemoryDir | None:
        """What is remembered for all projects; None where nothing is, where it cannot be opened (an
        event), and for these memories themselves."""
        with self._thread:
            if not self._is_user_wide_tried and may_exist(locate_user_wide(self.project)):
                self._is_user_wide_tried = True
                with report_user_wide(self._emit):
                    project = self._exits.enter_context(open_user_wide(self.project.home))
                    opened = MemoryDir(project, clock=self._clock, emit=self._emit)
                    self._user_wide = self._exits.enter_context(opened)
            return self._user_wide

    def keys(self, below: str = "") -> tuple[MemoryKey, ...]:
        """The memories that are shown, sorted; or all those whose names begin so, `archive/` say."""
        with self._fresh() as state:
            named = (key for key in state.versions if (key.startswith(below) if below else is_indexed(key)))
            return tuple(MemoryKey(key) for key in sorted(named))

    def find(self, key: str) -> StoredMemory | None:
        """A memory as it was last accepted; None where there is none."""
        with self._fresh() as state:
            version = state.versions.get(key)
            return None if version is None else self._stored(key, version)

    def read(self, key: str) -> StoredMemory:
        """The same; `FileMissing` where there is none."""
        found = self.find(key)
        if found is None:
            raise FileMissing(f"there is no memory {key!r}; `sevenfold memory list` shows those there are")
        return found

    def scan(self, limit: int | None = DEFAULT_SCAN_LIMIT) -> tuple[StoredMemory, ...]:
        """The memories that are shown, the newest first."""
        with self._fresh() as state:
            shown = [key for key in state.versions if is_indexed(key)]
            count = len(shown) if limit is None else limit
            newest = heapq.nlargest(count, shown, key=lambda key: state.versions[key].order)
            return tuple(self._stored(key, state.versions[key]) for key in newest)

    def scan_user_wide(self) -> tuple[StoredMemory, ...]:
        """What is remembered for all projects, by keys that no memory of a project has."""
        return tuple(
            replace(one, memory=replace(one.memory, key=MemoryKey(f"{USER_WIDE_PREFIX}{one.memory.key}")))
            for one in (self.user_wide.scan(None) if self.user_wide else ())
        )

    def index_text(self) -> IndexText:
        """The index for a prompt, within its caps."""
        with self._fresh():
            part = fit_index(replace_lone_surrogates(self._upkeep.index.render()))
        if part.cut_lines:
            self._emit(events.IndexCut(part.cut_lines, part.warning))
        return IndexText(part.text, part.cut_lines, part.warning)

    def generation(self) -> int:
        """A number that is another one whenever a memory or what waits has changed."""
        with self._fresh() as state:
            return int(state.last or "0", 16)

    def add(
        self,
        name: str,
        text: str,
        *,
        description: str = "",
        kind: str = "project",
        applies_to: Sequence[str] = (),
        why: str = "",
    ) -> Transaction:
        """A new memory in a person's own words. `MemoryConflict` where there is one of that name."""
        write = plan_new_memory(name, text, description=description, kind=kind, applies_to=applies_to)
        return self.commit([write], _by_person(why or "added by hand"))

    def remove(self, name: str, *, why: str = "") -> Transaction:
        """A person wants it forgotten. `undo` brings it back; only `purge` leaves nothing of it."""
        stored = self.read(make_memory_key(name))
        return self.commit([Remove(stored.memory.key, stored.sha256)], _by_person(why or "removed by hand"))

    def commit(self, changes: Sequence[Write | Remove], origin: Origin) -> Transaction:
        """Do all of it or nothing; durable on return.

        `MemoryConflict` where a memory is not as its writer saw it. What changes nothing is only checked.
        """
        return self._change("commit", check_changes(changes), origin)

    def propose(self, changes: Sequence[Write | Remove], origin: Origin, reason: str) -> PendingReview:
        """Keep changes, outside the folder and out of sight, until a person accepts or rejects them."""
        checked = check_changes(changes)

        def plan(state: MemoryState) -> list[LoggedTransaction]:
            proposed = tuple(
                replace(item, before=state.sha_of(item.key) if item.before == ANYTHING else item.before)
                for item in checked
            )
            located = locate_changes(state, proposed, origin, self._root)
            return [self._logged("propose", origin, located, reason=reason)]

        found = self._record(plan)
        for change in found.changes:
            taint = ", ".join(sorted(found.origin_of(change).taint))
            self._emit(events.MemoryQuarantined(found.id, change.key, taint, reason))
        return found.to_review()

    def was_asked(self, changes: Sequence[Write | Remove]) -> bool:
        """Whether a person is asked the same already, or did not want it."""
        checked = check_changes(changes)
        with self._fresh() as state:
            places = (*(item.place for item in state.waiting.values()), *state.rejected.values())
            return was_asked(checked, map(self._store.log.read_at, places))

    def waiting(self) -> tuple[PendingReview, ...]:
        """All that a person has to look at, the oldest first."""
        with self._fresh() as state:
            return tuple(
                replace(self._store.log.read_at(item.place).to_review(), is_outside=item.is_outside)
                for item in state.waiting.values()
            )

    def accept(self, id_: str, why: str = "") -> Transaction:
        """A person agrees: it is shown and trusted from now on. `MemoryConflict` if the memory changed."""
        done = self.settle([id_], why=why)
        for error in done.clashing.values():
            raise error
        return done.transaction

    def reject(self, id_: str, why: str = "", *, who: ChangeAuthor = "user") -> Transaction:
        """A person disagrees: the accepted text stays, and comes back into a file that says otherwise."""
        person = Origin(who=who, why=why or "rejected", said_by="user" if who == "user" else "unknown")
        return self._record(
            lambda _: [self._logged("reject", person, (), of=self._store.waiting(id_).id)]
        ).to_transaction()

    def trust(self, key: str, why: str = "") -> Transaction:
        """A person vouches for a memory as it is, whatever hands it went through."""
        return self.settle(trusted=[key], why=why).transaction

    def settle(
        self, agreed: _Names = (), refused: _Names = (), trusted: _Names = (), why: str = ""
    ) -> SettledReview:
        """A person's answers to what waits, and what they vouch for, as one change. What clashes waits on."""
        with self._fresh():
            asked = [self._upkeep.agree(self._store.waiting(id_)) for id_ in agreed]
        merged = MergedProposals()

        def plan(state: MemoryState) -> list[LoggedTransaction]:
            nonlocal merged
            merged = merge_proposals(state, asked)
            vouched = [self._store.vouch(key) for key in trusted]
            rejects = tuple(self._store.waiting(id_).id for id_ in refused)
            answers = replace(self._logged("accept", _by_person(why), ()), rejects=rejects)
            return plan_review(state, answers, merged, vouched)

        with self._thread:
            self._store.refresh()
            self._upkeep.notice_some(change.key for one in asked for change in one.changes)
            done = self._record(plan)
        return SettledReview(done.to_transaction(), merged.accepted, done.rejects, merged.clashing)

    def notice(self, *, check: bool = False) -> tuple[PendingReview, ...]:
        """Look for edits made past the engine, reading every file with `check`; all that waits now."""
        with self._thread:
            self._upkeep.notice(check=check)
        return self.waiting()

    def record_edit(self, keys: Iterable[str], origin: Origin) -> tuple[Transaction, ...]:
        """Files that a tool of ours has changed in the folder: theirs, and no outside edits.

        With a taint they wait, as any edit does.
        """
        with self._thread:
            named = [key if key == INDEX_FILE else check_memory_key(key) for key in keys]
            self._store.refresh()
            before = self._store.state.end
            if is_learnt_in(self._root, self._store.state, named, origin):
                origin = replace(origin, root=self._root)
            self._upkeep.take_edits(named, origin)
            found = [found.entry for found in self._store.log.read(before)]
        return tuple(
            item.to_transaction()
            for item in found
            if isinstance(item, LoggedTransaction) and item.origin == origin
        )

    def log(self, key: str | None = None, limit: int | None = 50) -> tuple[Transaction, ...]:
        """The last transactions, the newest first: what was done, what waited, and what was taken back."""
        with self._fresh():
            return self._history.log(key, limit)

    def transaction(self, id_: str) -> Transaction:
        with self._fresh():
            return self._history.find(id_).to_transaction()

    def body(self, sha256: str) -> str:
        """Any text that a memory ever had, by its hash."""
        with self._fresh():
            return replace_lone_surrogates(self._history.body(sha256))

    def diff(self, id_: str) -> str:
        """What a transaction changed, or would change, as a unified diff."""
        with self._fresh():
            return self._history.diff(id_)

    def blame(self, key: str) -> tuple[BlameLine, ...]:
        """Each line of a memory with the transaction that brought it."""
        with self._fresh():
            return self._history.blame(key)

    def revert(self, id_: str, why: str = "") -> Transaction:
        """Take a transaction back, byte for byte; `MemoryConflict` if its memories have changed since."""
        with self._fresh():
            entry = self._history.find(id_)
            undone = self._history.plan_revert(entry.id)
        origin = Origin(who="user", why=why or f"takes back {entry.id}")
        return self._change("revert", undone, origin, of=entry.id)

    def undo(self, why: str = "") -> Transaction:
        """Take back the last change of whatever kind, and with every further call the one before.

        What came from a team stays. What was accepted or rejected waits again.
        """
        return self._step("undo", why)

    def redo(self, why: str = "") -> Transaction:
        """Do again what was undone last; `InputError` if something else was changed since."""
        return self._step("redo", why)

    def last_change(self) -> Transaction:
        """What changed a memory last, the team's changes and steps of undo included."""
        with self._fresh():
            return self._history.find(self._history.find_last_change()).to_transaction()

    def restore(self, key: str, id_: str, why: str = "") -> Transaction:
        """Bring a memory back to the text that a transaction gave it, whatever happened since."""
        with self._fresh():
            entry = self._history.find(id_)
            back = self._history.plan_restore(key, entry.id)
        return self._change("revert", [back], Origin(who="user", why=why or f"back to {entry.id}"), of="")

    def purge(self, *, session: str = "", key: str = "", who: str = "") -> PurgeReport:
        """Erase all versions from one source for good, history included. What was there before comes back."""
        source = PurgeSource(session, key, who)
        with self._thread:
            done = self._upkeep.purge(source)
            gone = {key for key in done.keys if key not in self._store.state.versions}
            forget_traces(self._state, done.keys, gone)
        if done.transactions:
            self._emit(events.MemoryPurged(source.kind, done.versions))
        return done

    @contextmanager
    def _fresh(self) -> Generator[MemoryState]:
        with self._thread:
            self._store.refresh()
            yield self._store.state

    def _stored(self, key: str, version: MemoryVersion) -> StoredMemory:
        memory = read_memory(key, replace_lone_surrogates(self._store.text_of(key, version)))
        is_waiting = self._store.state.is_waiting(key)
        return StoredMemory(
            memory=memory,
            sha256=version.sha256,
            modified=version.at,
            origin=version.origin,
            transaction=version.transaction,
            is_waiting=is_waiting,
        )

    def _change(
        self, kind: TransactionKind, changes: Sequence[LoggedChange], origin: Origin, *, of: str = ""
    ) -> Transaction:
        def plan(state: MemoryState) -> list[LoggedTransaction]:
            changed = plan_changes(state, changes)
            changed = locate_changes(state, changed, origin, self._root) if kind == "commit" else changed
            settles = find_overtaken(state, changed)
            return [self._logged(kind, origin, changed, of=of, settles=settles)] if changed else []

        with self._thread:
            self._store.refresh()
            self._upkeep.notice_some(change.key for change in changes)
            return self._record(plan).to_transaction()

    def _step(self, step: UndoStep, why: str) -> Transaction:
        def plan(state: MemoryState) -> list[LoggedTransaction]:
            # Found again with nobody else in between: another process may have undone it meanwhile.
            planned = self._history.plan_step(step)
            id_ = planned.of.id
            try:
                changed = plan_changes(state, planned.changes)
            except MemoryConflict as conflict:
                raise MemoryConflict(
                    f"{', '.join(conflict.keys)}: changed since {id_} by the team or in the folder, and "
                    f"{step} would lose that; use `sevenfold memory review`, or `restore` an older text",
                    keys=conflict.keys,
                ) from conflict
            origin = Origin(who="user", why=why or f"{step} of {id_}")
            settled = (*planned.settles, *find_overtaken(state, changed))
            entry = self._logged("revert", origin, changed, of=id_, settles=settled)
            return [replace(entry, step=step, reopens=planned.reopens)]

        with self._thread:
            self._store.refresh()
            self._upkeep.notice_some(change.key for change in self._history.plan_step(step).changes)
            return self._record(plan).to_transaction()

    def _record(self, plan: Callable[[MemoryState], Sequence[LoggedTransaction]]) -> LoggedTransaction:
        """Add one transaction and see it through; one without changes was not recorded."""
        with self._thread:
            found = self._store.record(plan)
            entry = found[0].entry if found else None
            if not isinstance(entry, LoggedTransaction):
                self._upkeep.settle(self._store.state.end - 1)
                nothing = self._logged("commit", Origin(who="user", why="nothing to do"), ())
                return replace(nothing, id=TransactionId(""))
            self._upkeep.settle(found[0].place.offset)
        if entry.kind != "propose":
            keys = [change.key for change in entry.changes]
            listed = ", ".join(keys[:_TOLD_KEYS]) + (" …" if len(keys) > _TOLD_KEYS else "")
            who, count = entry.origin.who, len(keys)
            self._emit(
                events.MemoryChanged(transaction=entry.id, kind=entry.kind, who=who, keys=listed, count=count)
            )
        return entry

    def _logged(
        self,
        kind: TransactionKind,
        origin: Origin,
        changes: tuple[LoggedChange, ...],
        *,
        of: str = "",
        reason: str = "",
        settles: tuple[str, ...] = (),
    ) -> LoggedTransaction:
        return LoggedTransaction(
            id=new_transaction_id(),
            at=self._clock.now(),
            kind=kind,
            origin=origin,
            changes=changes,
            of=of,
            reason=reason,
            settles=settles,
        )


def _by_person(why: str) -> Origin:
    return Origin(who="user", why=why, said_by="user", is_accepted=True)
