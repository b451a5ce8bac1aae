"""`sevenfold memory log`, `diff`, `blame`, `revert`, `undo`, `restore` and `purge`."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import asdict, dataclass
from typing import cast

from sevenfold.cli.layout import format_count, format_time, shorten_text
from sevenfold.cli.memory.context import MemoryContext
from sevenfold.cli.screen import TableCell, Tone
from sevenfold.core.errors import InputError
from sevenfold.core.memories import Origin
from sevenfold.store.files.keys import check_memory_key
from sevenfold.store.memory.changes import Transaction


def show_memory_log(options: Namespace, desk: MemoryContext) -> int:
    key = _key(cast("str | None", options.memory))
    changes = desk.memory.log(key, limit=cast("int", options.limit))
    if desk.is_json:
        desk.screen.show_json([_described(change) for change in changes])
    elif changes:
        desk.screen.show_table([_row(change) for change in changes])
    else:
        desk.screen.show_line("no change is known", "faint")
    return 0


def show_memory_diff(options: Namespace, desk: MemoryContext) -> int:
    change = desk.memory.transaction(cast("str", options.id))
    text = desk.memory.diff(change.id)
    if desk.is_json:
        desk.screen.show_json({**_described(change), "diff": text})
        return 0
    desk.screen.show_table([_row(change)])
    show_diff_text(desk, text)
    return 0


def show_diff_text(desk: MemoryContext, text: str) -> None:
    for line in text.splitlines():
        desk.screen.show_line(line, _TONES.get(line[:1], "plain"))


_TONES: dict[str, Tone] = {"+": "strong", "-": "error", "@": "faint"}


def blame_memory(options: Namespace, desk: MemoryContext) -> int:
    lines = desk.memory.blame(desk.find(cast("str", options.memory)).memory.key)
    if desk.is_json:
        desk.screen.show_json(
            [
                {
                    "line": line.line,
                    "change": line.transaction,
                    "at": line.at.isoformat(),
                    **_origin(line.origin),
                }
                for line in lines
            ]
        )
    elif lines:
        desk.screen.show_table(
            [
                TableCell(line.transaction, "faint"),
                TableCell(format_time(line.at)),
                TableCell(line.origin.who),
                TableCell(line.line),
            ]
            for line in lines
        )
    return 0


def revert_memory(options: Namespace, desk: MemoryContext) -> int:
    change = desk.memory.transaction(cast("str", options.id))
    return desk.report(desk.memory.revert(change.id, "by hand"), f"change {change.id} is taken back")


def undo_transaction(_options: Namespace, desk: MemoryContext) -> int:
    return desk.report(desk.memory.undo(), "the last change is taken back")


def restore_memory(options: Namespace, desk: MemoryContext) -> int:
    key = check_memory_key(f"{cast('str', options.memory).removesuffix('.md')}.md")
    return desk.report(desk.memory.restore(key, cast("str", options.id)), f"{key} is as it was")


def purge_memory(options: Namespace, desk: MemoryContext) -> int:
    key = _key(cast("str | None", options.memory))
    source = _Source(cast("str | None", options.session), key, cast("str | None", options.who))
    found = [change for change in desk.memory.log(limit=None) if source.has(change)]
    if not found:
        raise InputError("nothing came from there; `sevenfold memory log` shows what came from where")
    if not options.yes:
        _ask(desk, found, source)
    done = desk.memory.purge(session=source.session or "", key=key or "", who=source.who or "")
    if desk.is_json:
        desk.screen.show_json(asdict(done))
        return 0
    desk.screen.show_line(
        f"erased: {format_count(done.versions, 'version')} of {', '.join(done.keys) or 'none'}"
    )
    for other in done.still_holding:
        told = f"{other} repeats words of it, now or in its history"
        desk.screen.show_line(f"{told}; `sevenfold memory purge --memory` erases it too", "warning")
    return 0


@dataclass(frozen=True, slots=True)
class _Source:
    """Where what is to be erased came from: one of these."""

    session: str | None
    key: str | None
    who: str | None

    def has(self, change: Transaction) -> bool:
        if self.key is not None:
            return any(one.key == self.key for one in change.changes)
        origins = (change.origin, *(one.origin for one in change.changes))
        if self.session is not None:
            return any(origin.session == self.session for origin in origins)
        return any(origin.who == self.who for origin in origins)


def _ask(desk: MemoryContext, found: list[Transaction], source: _Source) -> None:
    """What goes is said before it goes; without a person only --yes will do."""
    keys = sorted({one.key for change in found for one in change.changes if source.key in (None, one.key)})
    said = f"{format_count(len(found), 'change')} of {', '.join(keys)} would be erased, history included"
    if not desk.is_attended:
        raise InputError(f"{said}; add --yes if that is meant")
    desk.screen.show_line(f"{said}. This cannot be undone.", "warning")
    desk.screen.show_line("Erase it? [y/N]", "strong")
    desk.screen.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError("nothing was erased")


def _key(name: str | None) -> str | None:
    return None if name is None else check_memory_key(f"{name.removesuffix('.md')}.md")


def _row(change: Transaction) -> list[TableCell]:
    keys = ", ".join(one.key.removesuffix(".md") or "(erased)" for one in change.changes)
    return [
        TableCell(change.id, "strong"),
        TableCell(format_time(change.at)),
        TableCell(change.origin.who),
        TableCell(change.kind),
        TableCell(shorten_text(f"{keys}: {change.origin.why}" if keys else change.origin.why, 100)),
    ]


def _described(change: Transaction) -> dict[str, object]:
    return {
        "id": change.id,
        "at": change.at.isoformat(),
        "kind": change.kind,
        "of": change.of,
        **_origin(change.origin),
        "changes": [
            {"key": one.key, "before": one.before, "after": one.after, **_origin(one.origin)}
            for one in change.changes
        ],
    }


def _origin(origin: Origin) -> dict[str, object]:
    return {
        "who": origin.who,
        "why": origin.why,
        "session": origin.session,
        "messages": list(origin.messages),
        "said_by": origin.said_by,
        "taint": sorted(origin.taint),
    }
