"""`sevenfold memory list`, `show` and `search`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from typing import cast

from sevenfold.cli.memory.context import MemoryContext
from sevenfold.cli.screen import TableCell, Tone, format_count, format_duration, format_time, shorten_text
from sevenfold.core.memories import (
    ARCHIVE_PREFIX,
    MEMORY_USE_KINDS,
    MemoryUseKind,
    MemoryUses,
    read_memory,
)
from sevenfold.layers.memory.overview import MemoryOverview
from sevenfold.store.memory.changes import StoredMemory

_HEADS = ("memory", "type", "age", "used", "about")


def list_memories(options: Namespace, context: MemoryContext) -> int:
    wanted = cast("str | None", options.type)
    if options.archived:
        stored = tuple(context.memory.read(key) for key in context.memory.keys(ARCHIVE_PREFIX))
    else:
        stored = context.memory.scan(None)
    chosen = [one for one in context.read_overviews(stored) if wanted in (None, one.stored.memory.kind)]
    if context.is_json:
        context.screen.show_json([one.describe(context.now()) for one in chosen])
    elif chosen:
        rows = (row for one in chosen for row in (_row(one, context), *_rule_rows(one)))
        context.screen.show_table([[TableCell(head, "strong") for head in _HEADS], *rows])
    else:
        context.screen.show_line(
            "nothing of that kind is remembered" if wanted or options.archived else _NOTHING, "faint"
        )
    _tell_user_wide(context)
    _tell_waiting(context)
    return 0


def _tell_user_wide(context: MemoryContext) -> None:
    user_wide = context.memory.user_wide
    count = len(user_wide.keys()) if user_wide else 0
    if count and not context.is_json:
        more = f"{count:,} more for all projects: `sevenfold memory list --user`"
        context.screen.show_line(more, "faint")


def show_memory(options: Namespace, context: MemoryContext) -> int:
    known = context.read_overviews([context.find(cast("str", options.memory))])[0]
    text, at = known.stored.memory.text, cast("str | None", options.at)
    if at is not None:
        text = _text_at(context, known.stored.memory.key, at)
    if context.is_json:
        context.screen.show_json({**known.describe(context.now()), "text": text})
        return 0
    if at is None:
        _show_origin(known, context)
    context.screen.show_line(text.rstrip("\n"))
    return 0


def search_memories(options: Namespace, context: MemoryContext) -> int:
    # Not at the top: only a search needs it.
    from sevenfold.cli.memory.recall import open_memory_finder

    with closing(open_memory_finder(context)) as finder:
        ranked = finder.rank(cast("str", options.query), cast("int", options.limit))
        read = {hit.key: finder.read(hit.key) for hit in ranked}
    stored: dict[str, StoredMemory] = {key: one for key, one in read.items() if one is not None}
    # By meaning, every memory has a rank.
    hits = [hit for hit in ranked if hit.key in stored and (hit.overlap.words or (hit.margin or 0.0) > 0)]
    found: dict[str, MemoryOverview] = {
        one.stored.memory.key: one for one in context.read_overviews([stored[hit.key] for hit in hits])
    }
    if context.is_json:
        now = context.now()
        context.screen.show_json(
            [{"score": round(hit.score, 4), **found[hit.key].describe(now)} for hit in hits]
        )
        return 0
    if not hits:
        context.screen.show_line("no memory holds these words", "faint")
        return 1
    context.screen.show_table(
        [TableCell(hit.key, "strong"), TableCell(shorten_text(stored[hit.key].memory.description, 90))]
        for hit in hits
    )
    return 0


_NOTHING = "nothing is remembered of this project yet; `sevenfold memory add` adds a memory, and so do agents"


def _row(known: MemoryOverview, context: MemoryContext) -> list[TableCell]:
    memory, tone = known.stored.memory, _tone(known)
    about = shorten_text(memory.description, 80)
    return [
        TableCell(memory.key.removesuffix(".md"), tone),
        TableCell(memory.kind or "-"),
        TableCell(format_duration(context.now() - known.stored.modified)),
        TableCell(_used(known.uses)),
        TableCell(f"[{known.state}] {about}" if known.state else about, tone),
    ]


def _tone(known: MemoryOverview) -> Tone:
    return "warning" if known.state else "plain"


def _used(uses: MemoryUses) -> str:
    """How often it was recalled."""
    return f"{uses.count('recalled') or '-'}"


def _rule_rows(known: MemoryOverview) -> Iterator[list[TableCell]]:
    """Of a rule: when it fires, how often it did and what came of that."""
    rule = known.rule.rule if known.stored.memory.applies_to else None
    if rule is None:
        return
    kind = "gate" if rule.is_gate else "rule"
    fires = "" if known.stored.is_trusted else "never, as it is not trusted: "
    when = shorten_text(f"{fires}{', '.join(map(str, rule.conditions))}", 80)
    row = ("", kind, "", _outcomes(known, is_gate=rule.is_gate), when)
    yield [TableCell(text, "faint") for text in row]


def _outcomes(known: MemoryOverview, *, is_gate: bool) -> str:
    shown = known.uses.count("shown")
    if not shown:
        return "never shown"
    # A call that passes a gate is counted once more by how it came back.
    kinds: tuple[MemoryUseKind, ...] = () if is_gate else ("changed", "unchanged")
    rest = (f", {known.uses.count(kind)} {kind}" for kind in kinds if known.uses.count(kind))
    return f"shown {shown}, {known.heeded} heeded{''.join(rest)}"


def _show_origin(known: MemoryOverview, context: MemoryContext) -> None:
    stored, origin, screen = known.stored, known.stored.origin, context.screen
    screen.show_line(stored.memory.key, "strong")
    # Who acted is named already; whose words they are is told where that is somebody else.
    words = [] if origin.said_by in (origin.who, "unknown") else [f"words of {origin.said_by}"]
    taint = [f"source: {', '.join(sorted(origin.taint))}"] if origin.taint else []
    about = f" ({', '.join((*words, *taint))})" if words or taint else ""
    who = f"{origin.author}, a teammate" if origin.author else origin.who
    screen.show_line(f"{format_time(stored.modified)} by {who}{about}: {origin.why}", "faint")
    for sentence in origin.evidence:
        screen.show_line(f"the user said: {sentence}", "faint")
    if origin.session:
        messages = f", messages {', '.join(origin.messages)}" if origin.messages else ""
        screen.show_line(f"from session {origin.session}{messages}", "faint")
    counts = ", ".join(
        f"{kind} {known.uses.count(kind)}" for kind in MEMORY_USE_KINDS if known.uses.count(kind)
    )
    if counts:
        screen.show_line(f"{counts}; last {format_time(known.uses.last)}", "faint")
    for problem in known.broken:
        screen.show_line(f"could not be confirmed: {problem}", "warning")
    if not stored.is_trusted:
        name = stored.memory.key.removesuffix(".md")
        screen.show_line(
            "not trusted: it is quoted at most, and fires no rule; if you vouch for it: "
            f"`sevenfold memory review --trust {name}`",
            "warning",
        )
    if stored.is_waiting:
        screen.show_line("another text for it waits: `sevenfold memory review`", "warning")
    screen.show_line("")


def _text_at(context: MemoryContext, key: str, at: str) -> str:
    change = context.memory.transaction(at)
    after = next((one.after for one in change.changes if one.key == key), None)
    if after is None:
        context.screen.note(f"note: change {change.id} left no text of {key}")
        return ""
    return read_memory(key, context.memory.body(after)).text


def _tell_waiting(context: MemoryContext) -> None:
    waiting = len(context.memory.waiting())
    if waiting and not context.is_json:
        verb = "waits" if waiting == 1 else "wait"
        said = f"{format_count(waiting, 'change')} {verb} for you: `sevenfold memory review`"
        context.screen.show_line(said, "warning")
