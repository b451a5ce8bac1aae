"""The files of a session: what happened to each, and the pointers that a later reader needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sevenfold.layers.session_notes.sections import NotesEntry
from sevenfold.layers.session_notes.tool_calls import ToolAction

RANGES_EACH = 3
_NAMES_EACH = 16
_MAX_FILES = 2_000
"""Beyond it the one not met for longest is let go: a session that touches more is a listing."""
_SCANNED_CHARS = 60_000
"""Of a search's result: more than a tool shows whole, and a bound on the work for the rest."""
MAX_GROUPED_FILES = 30
"""Files that one line names beside their folder."""

_MATCH = re.compile(r"((?:[\w.@+~-]*/)*[\w.@+-]+\.\w{1,8})(?:[:-]\d+[:-]|:|$)")
_DOCUMENTS = re.compile(
    r"(?:^|/)(?:README|CLAUDE|AGENTS|CONTRIBUTING|ARCHITECTURE|CHANGELOG|DESIGN)[^/]*$|(?:^|/)docs?/"
    r"|\.(?:md|rst|toml|ya?ml|cfg|ini|mod)$|(?:^|/)(?:Makefile|Dockerfile|package\.json)$",
    re.IGNORECASE,
)


@dataclass(slots=True, kw_only=True)
class FileFacts:
    path: str
    last: int = 0
    """When it was last met, in messages."""
    reads: int = 0
    edits: int = 0
    writes: int = 0
    failures: int = 0
    mentions: int = 0
    ranges: list[str] = field(default_factory=list[str])
    names: dict[str, None] = field(default_factory=dict[str, None])

    @property
    def is_changed(self) -> bool:
        return bool(self.edits or self.writes)

    @property
    def is_opened(self) -> bool:
        return bool(self.reads or self.edits or self.writes)

    @property
    def is_document(self) -> bool:
        return bool(_DOCUMENTS.search(self.path))

    def render_outcome(self) -> str:
        """What happened, in a few words."""
        parts = [
            f"written {_times(self.writes)}" if self.writes else "",
            f"edited {_times(self.edits)}" if self.edits else "",
            f"read {_times(self.reads)}" if self.reads else "",
            f"{self.failures} failed" if self.failures else "",
            f"lines {', '.join(self.ranges)}" if self.ranges else "",
        ]
        return ", ".join(part for part in parts if part)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count}×"


class FileLedger:
    """Every path met, by path. Taking an action costs the same however many there are."""

    __slots__ = ("_files", "_spelled", "dropped")

    def __init__(self) -> None:
        self._files: dict[str, FileFacts] = {}
        self._spelled: dict[str, str] = {}
        """By file name: the spelling met last."""
        self.dropped = 0

    def take(self, action: ToolAction, at: int) -> None:
        for path in action.paths:
            facts = self._met(path, at)
            match action.kind:
                case "edit":
                    facts.edits += max(1, action.changes)
                case "write":
                    facts.writes += 1
                case _:
                    facts.reads += 1
            if action.lines:
                facts.ranges = [*(item for item in facts.ranges if item != action.lines), action.lines]
                del facts.ranges[:-RANGES_EACH]
            _remember(facts.names, action.names)
        self.mention(action.mentions, at)

    def mention(self, paths: Iterable[str], at: int) -> None:
        for path in paths:
            self._met(path, at).mentions += 1

    def fail(self, action: ToolAction) -> None:
        """The call did not do what was asked: it is taken back."""
        for path in action.paths:
            facts = self._files.get(path)
            if facts is None:
                continue
            facts.failures += 1
            if action.kind == "edit":
                facts.edits = max(0, facts.edits - max(1, action.changes))
            elif action.kind == "write":
                facts.writes = max(0, facts.writes - 1)

    def files(self) -> list[FileFacts]:
        """Those met last come first."""
        return sorted(self._files.values(), key=lambda facts: -facts.last)

    def _met(self, path: str, at: int) -> FileFacts:
        path = self._known(path.removeprefix("./"))
        # Taken out and put back, so that the dict's first is always the one not met for longest.
        facts = self._files.pop(path, None) or FileFacts(path=path)
        facts.last = at
        self._files[path] = facts
        if len(self._files) > _MAX_FILES:
            del self._files[next(iter(self._files))]
            self.dropped += 1
        return facts

    def _known(self, path: str) -> str:
        """The longer spelling of a path that was met before: `src/a.py` may be `/home/me/src/a.py`."""
        if path in self._files:
            return path
        name = path.rpartition("/")[2]
        known = self._spelled.get(name)
        if known is None or known not in self._files:
            self._spelled[name] = path
            return path
        if path.startswith(("/", "~")) and known == path[len(path) - len(known) :] and known[0] != "/":
            self._files[path] = facts = self._files.pop(known)
            facts.path = self._spelled[name] = path
            return path
        return known if known.endswith(f"/{path}") else path


def _remember(names: dict[str, None], fresh: Iterable[str]) -> None:
    for name in fresh:
        names.pop(name, None)
        names[name] = None
    while len(names) > _NAMES_EACH:
        del names[next(iter(names))]


def find_result_paths(text: str) -> Iterator[str]:
    """The files that a search's result names, each at the head of a line, as often as it matched."""
    seen: set[str] = set()
    for line in text[:_SCANNED_CHARS].split("\n"):
        found = _MATCH.match(line)
        if found and found[1] not in seen:
            seen.add(found[1])
            yield found[1]


def render_working_entries(files: list[FileFacts]) -> list[NotesEntry]:
    """Files that were opened: changed ones first in weight, then by how lately."""
    opened = [facts for facts in files if facts.is_opened]
    ranks = {facts.path: place for place, facts in enumerate(opened)}
    return [
        NotesEntry(
            f"- {facts.path} — {facts.render_outcome()}{_named(facts)}",
            brief=f"- {facts.path}",
            weight=_weight(facts, ranks[facts.path]),
        )
        for facts in opened
    ]


def _named(facts: FileFacts) -> str:
    return f"; in it: {', '.join(facts.names)}" if facts.names else ""


def _weight(facts: FileFacts, rank: int) -> float:
    changed = 40 if facts.is_changed else 0
    return changed + min(20, facts.reads + facts.edits) - rank


def render_pointer_entries(files: list[FileFacts]) -> list[NotesEntry]:
    """Documents that were read, then paths that searches and commands named and nobody opened: each by itself
    where there is room, else together with the others of its folder."""
    documents = [
        NotesEntry(f"- {facts.path} — read", brief=f"- {facts.path}", weight=1_000.0 - place)
        for place, facts in enumerate(item for item in files if item.is_document and item.reads)
    ]
    folders: dict[str, list[FileFacts]] = {}
    for facts in files:
        if not facts.is_opened:
            folders.setdefault(facts.path.rpartition("/")[0], []).append(facts)
    ranks = {name: place for place, name in enumerate(folders)}
    return documents + [
        NotesEntry(
            "\n".join(f"- {facts.path}" for facts in inside),
            brief=_grouped(folder, inside),
            weight=min(100.0, 4.0 * sum(facts.mentions for facts in inside)) - ranks[folder] / 4,
        )
        for folder, inside in folders.items()
    ]


def _grouped(folder: str, inside: list[FileFacts]) -> str:
    if len(inside) == 1:
        return f"- {inside[0].path}"
    chosen = sorted(inside, key=lambda facts: -facts.mentions)[:MAX_GROUPED_FILES]
    more = f" and {len(inside) - MAX_GROUPED_FILES:,} more" if len(inside) > MAX_GROUPED_FILES else ""
    return f"- {folder}/: {', '.join(facts.path.rpartition('/')[2] for facts in chosen)}{more}"
