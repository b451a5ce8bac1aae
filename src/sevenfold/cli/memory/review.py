"""`sevenfold memory review`: what waits for a person, one by one."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from difflib import unified_diff
from typing import cast

from sevenfold.cli.formatting import format_time
from sevenfold.cli.memory.context import MemoryContext
from sevenfold.cli.memory.history import show_diff_text
from sevenfold.core.errors import InputError
from sevenfold.core.memories import INDEX_FILE
from sevenfold.store.memory.changes import PendingReview

_KEYS = {"a": "accept", "r": "reject", "s": "skip", "": "skip", "q": "quit"}


def review_memories(options: Namespace, desk: MemoryContext) -> int:
    accepted, rejected = cast("list[str]", options.accept), cast("list[str]", options.reject)
    trusted = cast("list[str]", options.trust)
    if accepted or rejected or trusted:
        done = [desk.memory.accept(_find(desk, start).id) for start in accepted]
        done += [desk.memory.reject(_find(desk, start).id) for start in rejected]
        done += [desk.memory.trust(desk.find(name).memory.key) for name in trusted]
        if desk.is_json:
            desk.screen.show_json([{"id": one.id, "kind": one.kind, "of": one.of} for one in done])
        for one in () if desk.is_json else done:
            desk.screen.show_line(f"{one.kind}: {one.of or ', '.join(change.key for change in one.changes)}")
        return 0
    waiting = desk.memory.waiting()
    if desk.is_json:
        desk.screen.show_json([_described(desk, one) for one in waiting])
        return 0
    if not waiting:
        desk.screen.show_line("nothing waits", "faint")
    elif desk.is_attended:
        _walk(desk, waiting)
    else:
        _list(desk, waiting)
    return 0


def _walk(desk: MemoryContext, waiting: Sequence[PendingReview]) -> None:
    for number, one in enumerate(waiting, 1):
        _show(desk, one, f"{number} of {len(waiting)}: ")
        answer = _ask(desk)
        if answer == "quit":
            return
        if answer == "accept":
            desk.memory.accept(one.id)
        elif answer == "reject":
            desk.memory.reject(one.id)
        desk.screen.show_line(
            {"accept": "accepted", "reject": "rejected"}.get(answer, "left waiting"), "faint"
        )


def _ask(desk: MemoryContext) -> str:
    while True:
        desk.screen.show_line("[a]ccept, [r]eject, [s]kip, [q]uit?", "strong")
        desk.screen.flush()
        line = sys.stdin.readline()
        answer = _KEYS.get(line.strip().lower()[:1], "") if line else "quit"
        if answer:
            return answer


def _list(desk: MemoryContext, waiting: Sequence[PendingReview]) -> None:
    for one in waiting:
        _show(desk, one)
    desk.screen.show_line("`sevenfold memory review --accept ID` or `--reject ID` settles one", "faint")


def _show(desk: MemoryContext, waiting: PendingReview, number: str = "") -> None:
    origin = waiting.origin
    desk.screen.show_line(f"{number}{waiting.id}, {format_time(waiting.at)}, by {origin.who}", "strong")
    through = f" It went through {', '.join(sorted(origin.taint))}." if origin.taint else ""
    desk.screen.show_line(f"{waiting.reason or origin.why}.{through}", "warning")
    if origin.session:
        desk.screen.show_line(f"from session {origin.session}", "faint")
    for proposed in waiting.changes:
        show_diff_text(desk, _diff(desk, proposed.key, proposed.text))


def _diff(desk: MemoryContext, key: str, text: str | None) -> str:
    """What would change, against what is shown now."""
    stored = desk.memory.find(key)
    shown = desk.memory.index_text().text if key == INDEX_FILE else stored.memory.text if stored else ""
    before = shown.splitlines()
    after = (text or "").splitlines()
    return "\n".join(
        unified_diff(before, after, key, key if text is not None else "removed", lineterm="", n=2)
    )


def _find(desk: MemoryContext, start: str) -> PendingReview:
    found = [one for one in desk.memory.waiting() if one.id.startswith(start)]
    if len(found) != 1:
        raise InputError(
            f"{len(found) or 'nothing'} of what waits begins with {start!r}; see `memory review`"
        )
    return found[0]


def _described(desk: MemoryContext, waiting: PendingReview) -> dict[str, object]:
    origin = waiting.origin
    return {
        "id": waiting.id,
        "at": waiting.at.isoformat(),
        "who": origin.who,
        "reason": waiting.reason or origin.why,
        "taint": sorted(origin.taint),
        "session": origin.session,
        "outside": waiting.is_outside,
        "changes": [
            {"key": one.key, "text": one.text, "diff": _diff(desk, one.key, one.text)}
            for one in waiting.changes
        ],
    }
