"""The memories of the project: the list, one of them with its history and blame, the review, and rules.

Every change goes through `MemoryDir`, as on the command line: it is in the history, and can be undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from sevenfold.core.clock import Clock
from sevenfold.core.errors import FileMissing, InputError
from sevenfold.core.memories import ARCHIVE_PREFIX, MEMORY_USE_KINDS
from sevenfold.layers.memory.overview import MemoryOverview, describe_review, read_memory_overviews
from sevenfold.session.opening import Workspace
from sevenfold.store.memory.changes import (
    StoredMemory,
    Transaction,
    describe_origin,
    describe_transaction,
)
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.sidecars import MarkStore, UseStore
from sevenfold.ui.app import PageCall, PageRoute, route_get, route_post

MAX_LOG_ROWS = 500
MAX_SHOWN_LINES = 5_000
"""Of one diff: more is for an editor."""
PERSON_WHY = "on the page"


class MemoryPages:
    """What the page asks about memories. The scope `user` is what is remembered for all projects."""

    def __init__(self, workspace: Workspace, clock: Clock) -> None:
        self._workspace, self._clock = workspace, clock

    def routes(self) -> Sequence[PageRoute]:
        return (
            route_get("memories", self.list),
            route_get("memory", self.show),
            route_get("log", self.log),
            route_get("diff", self.diff),
            route_get("blame", self.blame),
            route_get("review", self.review),
            route_get("rules", self.rules),
            route_post("review/accept", self.accept),
            route_post("review/reject", self.reject),
            route_post("memory/trust", self.trust),
            route_post("memory/undo", self.undo),
            route_post("memory/redo", self.redo),
            route_post("memory/revert", self.revert),
            route_post("memory/restore", self.restore),
        )

    def find_memory(self, call: PageCall) -> MemoryDir:
        """The directory that a call is about."""
        scope = call.text("scope", "project")
        if scope == "project":
            return self._workspace.memory
        if scope != "user":
            raise InputError(f"the scope {scope[:40]!r} is not known; expected project or user")
        wide = self._workspace.memory.user_wide
        if wide is None:
            raise FileMissing("nothing is remembered for all projects; `sevenfold memory add --user` does")
        return wide

    def list(self, call: PageCall) -> object:
        memory = self.find_memory(call)
        stored = list(memory.scan(None))
        if call.text("archived", ""):
            stored = [memory.read(key) for key in memory.keys(ARCHIVE_PREFIX)]
        wide = self._workspace.memory.user_wide
        return {
            "memories": self._describe_all(memory, stored),
            "waiting": len(memory.waiting()),
            "user_wide": 0 if wide is None else len(wide.keys()),
            "folder": str(memory.path),
        }

    def show(self, call: PageCall) -> object:
        memory, key = self.find_memory(call), call.text("key")
        stored = memory.read(key)
        (known,) = self._describe_all(memory, [stored])
        changes = memory.log(key, limit=MAX_LOG_ROWS)
        waiting = [one for one in memory.waiting() if any(change.key == key for change in one.changes)]
        return {
            **known,
            "text": stored.memory.text,
            "log": [describe_transaction(change) for change in changes],
            "review": [describe_review(memory, one) for one in waiting],
        }

    def log(self, call: PageCall) -> object:
        memory = self.find_memory(call)
        changes = memory.log(call.text("key", "") or None, limit=call.number("limit", 100, MAX_LOG_ROWS))
        return {"changes": [describe_transaction(change) for change in changes]}

    def diff(self, call: PageCall) -> object:
        memory = self.find_memory(call)
        change = memory.transaction(call.text("id"))
        return {**describe_transaction(change), **clip_diff(memory.diff(change.id))}

    def blame(self, call: PageCall) -> object:
        lines = self.find_memory(call).blame(call.text("key"))
        return {
            "lines": [
                {
                    "line": line.line,
                    "change": line.transaction,
                    "at": line.at.isoformat(),
                    **describe_origin(line.origin),
                }
                for line in lines
            ]
        }

    def review(self, call: PageCall) -> object:
        memory = self.find_memory(call)
        return {"waiting": [describe_review(memory, one) for one in memory.waiting()]}

    def rules(self, call: PageCall) -> object:
        """The memories that say when they apply, with how often they did and what came of it."""
        memory = self.find_memory(call)
        known = self._overviews(memory, memory.scan(None))
        return {
            "rules": [
                {
                    **one.describe(self._clock.now()),
                    "refused": [f"{item.text}: {item.reason}" for item in one.rule.refused],
                    "text": one.stored.memory.body,
                }
                for one in known
                if one.rule.rule is not None or one.rule.refused
            ],
            "kinds": list(MEMORY_USE_KINDS),
        }

    def accept(self, call: PageCall) -> object:
        return self._done(self.find_memory(call).accept(call.text("id")))

    def reject(self, call: PageCall) -> object:
        return self._done(self.find_memory(call).reject(call.text("id")))

    def trust(self, call: PageCall) -> object:
        return self._done(self.find_memory(call).trust(call.text("key")))

    def undo(self, call: PageCall) -> object:
        return self._done(self.find_memory(call).undo())

    def redo(self, call: PageCall) -> object:
        return self._done(self.find_memory(call).redo())

    def revert(self, call: PageCall) -> object:
        memory = self.find_memory(call)
        return self._done(memory.revert(memory.transaction(call.text("id")).id, PERSON_WHY))

    def restore(self, call: PageCall) -> object:
        return self._done(self.find_memory(call).restore(call.text("key"), call.text("id")))

    def _done(self, done: Transaction) -> object:
        return describe_transaction(done)

    def _describe_all(self, memory: MemoryDir, stored: Sequence[StoredMemory]) -> list[dict[str, object]]:
        now = self._clock.now()
        return [{**one.describe(now), "state": one.state} for one in self._overviews(memory, stored)]

    def _overviews(self, memory: MemoryDir, stored: Sequence[StoredMemory]) -> list[MemoryOverview]:
        state = memory.project.memory_state
        return read_memory_overviews(stored, UseStore(state), MarkStore(state))


def clip_diff(diff: str) -> dict[str, object]:
    """The beginning of a diff, and how much of it is left out."""
    lines = diff.splitlines()
    return {
        "diff": "\n".join(islice(lines, MAX_SHOWN_LINES)),
        "left_out": max(0, len(lines) - MAX_SHOWN_LINES),
    }
