"""The index of the memories: one line each, generated from the files, around a person's own lines.

A line stays where it stands and as it reads until its memory changes. What goes over the caps is folded,
the oldest first, into lines that name several; the newest is never the one to go.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

MAX_MEMORY_INDEX_LINES = 200
MAX_MEMORY_INDEX_BYTES = 25_000
"""Of the whole index: what a prompt can carry without pushing out the work."""

MAX_INDEX_LINE_CHARS = 150
MAX_INDEX_GROUPS = 12
"""Lines that stand for several memories. More of them would say less than the lines they cost."""

MIN_INDEX_ENTRIES = 50
"""The newest that keep lines of their own, however many lines a person has added."""

INDEX_CUT_WARNING = (
    "[index cut: {lines} not shown. Shorten your own lines in MEMORY.md to bring it under {most} lines and "
    "{bytes:,} bytes; the memories themselves are all there.]"
)

RenderLine: TypeAlias = Callable[[str], str]
"""The line that the engine would write for a memory."""

_ENTRY = re.compile(r"\s*[-*] \[[^\]\n]*\]\(([A-Za-z0-9_][A-Za-z0-9._/-]*\.md)\)")
_GROUP = re.compile(r"- [0-9,]+ older(?: on [a-z0-9]+)?: [A-Za-z0-9_]")
_WORD = re.compile(r"[a-z0-9]+")
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
"""What would turn the rest of a line round, or drive the terminal that it is read on."""


@dataclass(frozen=True, slots=True)
class FittedIndex:
    """As much of an index as a prompt gets."""

    text: str
    cut_lines: int = 0
    warning: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    key: str = ""
    """Of the memory that it is about; empty: somebody's own."""

    @property
    def cost(self) -> int:
        return len(self.text.encode("utf-8", "surrogatepass")) + 1


def render_index_line(key: str, title: str, hook: str) -> str:
    """The line of a memory, on one line and no longer than it may be."""
    plain = " ".join(re.sub(r"[\[\]]", "", _UNSEEN.sub("", title)).split()) or key
    link, text = f"- [{plain[:60]}]({key})", " ".join(_UNSEEN.sub("", hook).split())
    room = MAX_INDEX_LINE_CHARS - len(link) - len(" — ")
    if not text or room < 1:
        return link
    return f"{link} — {text if len(text) <= room else text[: room - 1] + '…'}"


def apply_index(
    text: str,
    ages: Mapping[str, int],
    line_of: RenderLine,
    touched: Collection[str],
    births: Mapping[str, int],
) -> str:
    """An index brought up to date: the same for the same memories, however they came about.

    `ages` has every memory that belongs into it, the newest with the largest number. Those in `touched` were
    changed or removed since the text was arranged. New lines stand in the order of `births`.
    """
    lines = _updated(text, ages, line_of, touched)
    known = {line.key for line in lines}
    missing = [key for key in ages if key not in known]
    if len(missing) > MAX_MEMORY_INDEX_LINES:
        missing = heapq.nlargest(MAX_MEMORY_INDEX_LINES, missing, key=ages.__getitem__)
    fresh = [_Line(line_of(key), key) for key in sorted(missing, key=births.__getitem__)]
    end = _end_of_entries(lines)
    lines[end:end] = fresh
    return "".join(f"{line.text}\n" for line in _folded(lines, ages))


def is_group_line(line: str) -> bool:
    """Whether a line stands for several memories, as only the engine writes them."""
    return bool(_GROUP.match(line))


def is_same_index(kept: str, found: str, ages: Mapping[str, int], line_of: RenderLine) -> bool:
    """Whether somebody's edit of the index says nothing that would not be there anyway.

    Lines about memories may be missing: they are put back.
    """
    before, after = Counter(_split(kept)), Counter(_split(found))
    added = [line for line in after - before if not _is_derived(line, ages, line_of)]
    dropped = [
        line for line in before - after if find_index_key(line) not in ages and not is_group_line(line)
    ]
    shared = before & after
    is_moved = [line for line in _split(kept) if line in shared] != [
        line for line in _split(found) if line in shared
    ]
    return not is_moved and not any(line.strip() for line in (*added, *dropped))


def drop_index_entries(text: str, keys: Collection[str]) -> str:
    """An index without its lines about these memories, and without those that stand for several."""
    lines = [line for line in _split(text) if find_index_key(line) not in keys and not is_group_line(line)]
    return "".join(f"{line}\n" for line in lines)


def fit_index(text: str) -> FittedIndex:
    """The last guard, for an index that a person's own lines have made too long: whole lines, and a warning.

    The memories' lines are kept before any other.
    """
    lines = [
        _Line(line, find_index_key(line) or ("group" if is_group_line(line) else "")) for line in _split(text)
    ]
    if len(lines) <= MAX_MEMORY_INDEX_LINES and sum(line.cost for line in lines) <= MAX_MEMORY_INDEX_BYTES:
        return FittedIndex(text)
    room_lines, room_bytes = MAX_MEMORY_INDEX_LINES - 1, MAX_MEMORY_INDEX_BYTES - len(INDEX_CUT_WARNING) - 20
    kept: set[int] = set()
    for at in (*_numbered(reversed(lines), len(lines)), *(n for n, line in enumerate(lines) if not line.key)):
        if room_lines and lines[at].cost <= room_bytes:
            kept.add(at)
            room_lines, room_bytes = room_lines - 1, room_bytes - lines[at].cost
        elif not lines[at].key:
            break
    cut = len(lines) - len(kept)
    warning = INDEX_CUT_WARNING.format(
        lines=f"{cut:,} lines" if cut > 1 else "1 line",
        most=MAX_MEMORY_INDEX_LINES,
        bytes=MAX_MEMORY_INDEX_BYTES,
    )
    shown = [lines[at].text for at in sorted(kept)]
    return FittedIndex("\n".join([*shown, warning]) + "\n", cut, warning)


def _numbered(lines: Iterable[_Line], count: int) -> list[int]:
    """Where the lines about memories stand, the last first: new ones are added at the end."""
    return [count - 1 - n for n, line in enumerate(lines) if line.key]


def _is_derived(line: str, ages: Mapping[str, int], line_of: RenderLine) -> bool:
    key = find_index_key(line)
    return is_group_line(line) or (key in ages and line_of(key) == line)


def _updated(
    text: str, ages: Mapping[str, int], line_of: RenderLine, touched: Collection[str]
) -> list[_Line]:
    lines: list[_Line] = []
    met: set[str] = set()
    for line in _split(text):
        key = find_index_key(line)
        if key in ages:
            if key not in met:
                met.add(key)
                lines.append(_Line(line_of(key) if key in touched else line, key))
        elif not (key in touched or is_group_line(line)):
            lines.append(_Line(line))
    return lines


def _folded(lines: Sequence[_Line], ages: Mapping[str, int]) -> list[_Line]:
    """The lines within the caps, as far as folding memories brings them there."""
    own = [line for line in lines if not line.key]
    size = sum(line.cost for line in lines)
    shown = sum(1 for line in lines if line.key)
    if len(lines) <= MAX_MEMORY_INDEX_LINES and size <= MAX_MEMORY_INDEX_BYTES and shown == len(ages):
        return list(lines)
    floor = min(MIN_INDEX_ENTRIES, shown)
    kept = max(floor, MAX_MEMORY_INDEX_LINES - len(own) - MAX_INDEX_GROUPS)
    newest = heapq.nlargest(kept, ages, key=ages.__getitem__)
    costs = {line.key: line.cost for line in lines if line.key}
    room = (
        MAX_MEMORY_INDEX_BYTES
        - sum(line.cost for line in own)
        - MAX_INDEX_GROUPS * (MAX_INDEX_LINE_CHARS * 3)
    )
    staying: set[str] = set()
    for key in newest:
        room -= costs.get(key, MAX_INDEX_LINE_CHARS * 3)
        if room < 0 and len(staying) >= floor:
            break
        staying.add(key)
    left = [line for line in lines if not line.key or line.key in staying]
    end = _end_of_entries(left)
    left[end:end] = map(_Line, _groups([key for key in ages if key not in staying]))
    return left


def _groups(keys: Sequence[str]) -> list[str]:
    """A line for each topic that several of these share, the largest first, and one for all the others."""
    topics: dict[str, list[str]] = {}
    for key in sorted(keys):
        word = _WORD.match(key.rpartition("/")[2].lower())
        topics.setdefault(word[0] if word else "", []).append(key)
    shared = sorted(
        (topic for topic in topics if topic and len(topics[topic]) > 1), key=lambda t: -len(topics[t])
    )
    named = shared[: MAX_INDEX_GROUPS - 1]
    others = [key for topic, members in topics.items() if topic not in named for key in members]
    lines = [_group_line(f" on {topic}", topics[topic]) for topic in named]
    return [*lines, *([_group_line("", others)] if others else [])]


def _group_line(topic: str, keys: Sequence[str]) -> str:
    line = f"- {len(keys):,} older{topic}: {keys[0]}"
    for key in keys[1:]:
        if len(line) + len(key) + 4 > MAX_INDEX_LINE_CHARS:
            return f"{line} …"
        line += f", {key}"
    return line


def _end_of_entries(lines: Sequence[_Line]) -> int:
    """After the last line about a memory; at the end where there is none, before empty lines there."""
    last = max((n for n, line in enumerate(lines) if line.key), default=None)
    if last is not None:
        return last + 1
    end = len(lines)
    while end and not lines[end - 1].text.strip():
        end -= 1
    return end


def find_index_key(line: str) -> str:
    found = _ENTRY.match(line)
    return found[1] if found else ""


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []
