"""A dream without a model: merges duplicates, makes dates absolute, sets stale memories aside, distils daily
logs.

Nothing is judged here. A memory is merged into another only if both agree on every number and name; the newer
wording wins, and what only the older one says is added to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import groupby

from sevenfold.core.errors import InputError
from sevenfold.core.memories import (
    ARCHIVE_PREFIX,
    TEAM_PREFIX,
    Memory,
    change_body,
    change_field,
    read_memory,
    write_memory,
)
from sevenfold.core.text.absolute_dates import resolve_relative_dates
from sevenfold.core.text.facts import Fact, FactIndex, parse_fact, split_facts
from sevenfold.layers.dreams.check import (
    MAX_MERGED_BYTES,
    RemovalReason,
    find_memory_fault,
    find_stated_facts,
    list_memory_facts,
)
from sevenfold.layers.dreams.policy import DreamMemory, DreamSettings
from sevenfold.layers.memory.extraction.statements import Statement, find_statements

MIN_LIKENESS = 0.7
"""Of two facts' words, at which they are about one thing, all numbers and names being the same."""
MIN_COVERED_SHARE = 0.6
"""Of an older memory's facts that a newer one says, or nearly says, when the two belong together."""
UNUSED_AGE_FACTOR = 4
"""Times as long as for a broken memory until one that nothing speaks against is put aside for its age."""

_PLAIN = frozenset(("about", "info", "memory", "note", "notes", "old", "project", "rule", "rules", "topic"))
"""Parts of names that say nothing of what a memory is about."""


@dataclass(frozen=True, slots=True)
class MemoryUseFacts:
    """What is known of how a memory was used."""

    last_use: datetime | None = None
    is_broken: bool = False
    """It names something that the project no longer has."""


@dataclass(frozen=True, slots=True)
class DreamDraft:
    """What a dream would make of the memories: the new files, and why some are removed."""

    texts: Mapping[str, str]
    reasons: tuple[RemovalReason, ...] = ()


def plan_merge(
    kept: Sequence[DreamMemory], uses: Mapping[str, MemoryUseFacts], now: datetime, settings: DreamSettings
) -> DreamDraft:
    """The draft of a dream without a model. `kept` has the newest first."""
    work = _Work({item.memory.key: item.memory.text for item in kept})
    # Team memories are changed by their owners, and untrusted text must not be merged into trusted memories.
    own = [item for item in kept if not item.memory.key.startswith(TEAM_PREFIX) and item.origin.is_trusted]
    for item in own:
        work.tidy(item)
    for item in own:
        # Before merging: archiving a merged memory would also hide what it took in.
        why = _why_stale(item, uses.get(item.memory.key, MemoryUseFacts()), now, settings)
        if why:
            work.archive(item.memory.key, why)
    while work.merge_all([item for item in own if item.memory.key in work.texts]):
        pass  # what was merged may say what another says now
    return DreamDraft(work.texts, tuple(work.reasons))


def _why_stale(item: DreamMemory, use: MemoryUseFacts, now: datetime, settings: DreamSettings) -> str:
    """Why a memory is archived; empty if not. User, feedback and rule memories do not expire by age alone."""
    day = max(item.written, use.last_use.date()) if use.last_use else item.written
    idle, limit = now.date() - day, timedelta(days=settings.stale_days)
    if use.is_broken and idle >= limit:
        return f"the project no longer has what it names, and it was not used for {idle.days} days"
    lasts = item.memory.kind in ("user", "feedback") or bool(item.memory.applies_to)
    if not lasts and idle >= UNUSED_AGE_FACTOR * limit:
        return f"it was not used for {idle.days} days"
    return ""


@dataclass(slots=True)
class _Work:
    texts: dict[str, str]
    reasons: list[RemovalReason] = field(default_factory=list[RemovalReason])
    shelf: FactIndex = field(default_factory=FactIndex)
    facts: dict[str, tuple[Fact, ...]] = field(default_factory=dict[str, tuple[Fact, ...]])

    def tidy(self, item: DreamMemory) -> None:
        """Dates absolute, a line that says again what one above it says taken out."""
        memory = item.dated
        body = without_repeated_blocks(memory.body)
        self.texts[memory.key] = memory.text if body == memory.body else change_body(memory.text, body)

    def merge_all(self, items: Sequence[DreamMemory]) -> bool:
        """Take each into a newer one that says the same, if there is one; whether any was."""
        self.shelf, count = FactIndex(), len(self.reasons)
        for item in items:
            key = item.memory.key
            self.facts[key] = find_stated_facts(read_memory(key, self.texts[key]), item.written)
            newer = self._same(self.facts[key]) or self._alike(item)
            if newer is None or not self._take_in(newer, item):
                self.shelf.add(key, self.facts[key])
        return len(self.reasons) > count

    def archive(self, key: str, why: str) -> None:
        self.texts[f"{ARCHIVE_PREFIX}{key}"] = self.texts.pop(key)
        self.reasons.append(RemovalReason(key=key, why="stale", of=f"{ARCHIVE_PREFIX}{key}", note=why))

    def _same(self, facts: tuple[Fact, ...]) -> str | None:
        """A newer memory that states every one of these."""
        common: set[str] | None = None
        for fact in facts:
            found = {*self.shelf.find(fact, is_strict=True)}
            common = found if common is None else common & found
            if not common:
                return None
        return min(common) if common else None

    def _alike(self, item: DreamMemory) -> str | None:
        """A newer memory of the same kind that says, or nearly says, most of it."""
        facts = self.facts[item.memory.key]
        near: dict[str, int] = {}
        for fact in facts:
            for key in {*self.shelf.find_like(fact, MIN_LIKENESS), *self.shelf.find(fact, is_strict=True)}:
                near[key] = near.get(key, 0) + 1
        fit = [
            key
            for key, count in near.items()
            if count >= MIN_COVERED_SHARE * len(facts)
            and read_memory(key, self.texts[key]).kind == item.memory.kind
        ]
        return min(fit, key=lambda key: (-near[key], key)) if fit else None

    def _take_in(self, newer: str, item: DreamMemory) -> bool:
        """Add what only the older says to the newer; False where the two would not fit in one file."""
        key = item.memory.key
        into, older = read_memory(newer, self.texts[newer]), read_memory(key, self.texts[key])
        if not _is_about(older, into):
            return False
        more = _blocks_beyond(older.body if split_facts(older.body) else older.description, into.body)
        text = into.text
        if more:
            joined = into.body.rstrip("\n") + "\n\n" + "\n".join(more) + "\n"
            # One block may say what the block before it adds, now that both are in one text.
            text = change_body(text, without_repeated_blocks(joined))
        rules = tuple(dict.fromkeys((*into.applies_to, *older.applies_to)))
        if rules != into.applies_to:
            try:
                text = change_field(text, "applies_to", rules)
            except InputError:
                return False
        is_better = not find_memory_fault(newer, text) or find_memory_fault(newer, into.text)
        if len(text.encode("utf-8", "surrogatepass")) > MAX_MERGED_BYTES or not is_better:
            return False
        self.texts[newer] = text
        del self.texts[key]
        self.reasons.append(RemovalReason(key=key, why="duplicate", of=newer))
        self.facts[newer] = find_stated_facts(read_memory(newer, text), item.written)
        self.shelf.add(newer, self.facts[newer])
        return True


def _is_about(older: Memory, newer: Memory) -> bool:
    """Whether the newer one names all that the older one's name says: "the port is 5432" is one thing in a
    memory on staging and another in one on production."""
    said = split_facts("\n\n".join((newer.name.replace("-", " "), newer.description, newer.body)))
    known = {word for fact in said for word in (*fact.words, *fact.hard)}
    named = re.split(r"[-_/\s]+", older.name)
    return all(
        {*fact.words, *fact.hard} <= known
        for fact in (parse_fact(part) for part in named)
        if fact.text.casefold() not in _PLAIN and not fact.text.isdigit()
    )


def without_repeated_blocks(body: str) -> str:
    """The text without blocks all of whose facts stand in one above, under the same heading; code stays."""
    shelf = FactIndex()
    kept: list[str] = []
    for block in _blocks(body):
        facts = split_facts(block)
        if block.startswith("#"):
            shelf = FactIndex()
        if facts and "```" not in block and all(shelf.find(fact, is_strict=True) for fact in facts):
            continue
        shelf.add("", facts)
        kept.append(block)
    return "".join(kept)


def _blocks_beyond(older: str, newer: str) -> list[str]:
    """The blocks of the older text that state something that the newer does not."""
    shelf = FactIndex()
    shelf.add("", split_facts(newer))
    return [
        block.strip("\n")
        for block in _blocks(older)
        if any(not shelf.find(fact, is_strict=True) for fact in split_facts(block))
    ]


def _blocks(body: str) -> list[str]:
    """A text in pieces that may be taken out or moved alone: list items with what is indented below them,
    paragraphs, fenced code; every byte is in one of them."""
    numbered: list[tuple[int, str]] = []
    number, fence, before = 0, False, ""
    for line in body.splitlines(keepends=True):
        starts = line.lstrip()[:2] in ("- ", "* ", "+ ") and not line[:1].isspace()
        is_first = not before.strip() or before.startswith("#") or line.startswith(("#", "|"))
        if not fence and (starts or (is_first and line.strip() and not line[:1].isspace())):
            number += 1
        if line.lstrip().startswith(("```", "~~~")):
            number += not fence and not is_first
            fence = not fence
        numbered.append((number, line))
        before = line
    return ["".join(line for _, line in group) for _, group in groupby(numbered, key=lambda each: each[0])]


# Daily logs: what a person stated explicitly becomes a memory, by the rules of extraction without a model.
# The rest of a log is left for a model.

_LINE = re.compile(r"- (?:\d\d:\d\d )?(?P<said>.+)")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)\.md$")
_KINDS = {"about you": "user", "pointer": "reference", "rule": "feedback", "correction": "feedback"}
NAME_WORDS = 5


def distil_logs(logs: Mapping[str, str], texts: Mapping[str, str], today: date) -> dict[str, str]:
    """New memories by key, for what the logs state and no memory says."""
    shelf = FactIndex()
    for key, text in texts.items():
        shelf.add(key, list_memory_facts(read_memory(key, text), today))
    made: dict[str, str] = {}
    for log, text in logs.items():
        day = _day_of(log, today)
        for statement in _statements(text.splitlines()):
            said = resolve_relative_dates(statement.text, day)
            facts = split_facts(said)
            if not facts or all(shelf.find(fact, is_strict=True) for fact in facts):
                continue
            key = _free_key(said, {*texts, *made})
            made[key] = _written(key, said, _KINDS.get(statement.kind, "project"))
            shelf.add(key, facts)
    return made


def _statements(lines: Iterable[str]) -> Iterable[Statement]:
    for line in lines:
        match = _LINE.fullmatch(line)
        yield from find_statements(match["said"]) if match else ()


def _day_of(log: str, today: date) -> date:
    match = _DAY.search(log)
    try:
        return date.fromisoformat(match[1]) if match else today
    except ValueError:
        return today


def _free_key(said: str, taken: set[str]) -> str:
    words = re.findall(r"[a-z0-9]+", said.lower())
    name = "-".join([word for word in words if len(word) > 2][:NAME_WORDS]) or "said"
    key, number = f"{name[:60]}.md", 1
    while key in taken:
        number += 1
        key = f"{name[:60]}-{number}.md"
    return key


def _written(key: str, said: str, kind: str) -> str:
    name = key.removesuffix(".md")
    try:
        return write_memory(name, said[:150], kind, said)
    except InputError:
        return write_memory(name, name, kind, said)
