"""A dream without a model: merges duplicates, makes dates absolute, sets stale memories aside, distils daily
logs.

Nothing is judged here: only what is provably the same goes. A memory goes if a newer one has the same text,
and a list item if one above it in its list has.
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
from sevenfold.core.text.facts import FactIndex, parse_fact, split_facts
from sevenfold.layers.dreams.check import (
    MAX_MERGED_BYTES,
    RemovalReason,
    find_memory_fault,
    list_memory_facts,
)
from sevenfold.layers.dreams.policy import DreamMemory, DreamSettings
from sevenfold.layers.memory.extraction.statements import Statement, find_statements

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
    work.merge_all([item for item in own if item.memory.key in work.texts])
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

    def tidy(self, item: DreamMemory) -> None:
        """Dates absolute, a list item that stands above it already taken out."""
        memory = item.dated
        body = memory.body if _LOGLIKE.search(memory.name) else without_repeated_items(memory.body)
        self.texts[memory.key] = memory.text if body == memory.body else change_body(memory.text, body)

    def merge_all(self, items: Sequence[DreamMemory]) -> None:
        """Take each into a newer one with the same text, if there is one."""
        seen: dict[tuple[str, ...], str] = {}
        for item in items:
            key = item.memory.key
            memory = read_memory(key, self.texts[key])
            said = (memory.kind, *_normal_lines(memory.body))
            if split_facts(memory.body) and not (said in seen and self._take_in(seen[said], memory)):
                seen.setdefault(said, key)

    def archive(self, key: str, why: str) -> None:
        self.texts[f"{ARCHIVE_PREFIX}{key}"] = self.texts.pop(key)
        self.reasons.append(RemovalReason(key=key, why="stale", of=f"{ARCHIVE_PREFIX}{key}", note=why))

    def _take_in(self, newer: str, older: Memory) -> bool:
        """Whether the older could go: the newer has its text, and gets the conditions that it lacks."""
        into = read_memory(newer, self.texts[newer])
        if not _is_about(older, into):
            return False
        text = into.text
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
        del self.texts[older.key]
        self.reasons.append(RemovalReason(key=older.key, why="duplicate", of=newer))
        return True


def _is_about(older: Memory, newer: Memory) -> bool:
    """Whether the newer one names all that the older one's name and description say: "the port is 5432" is
    one thing in a memory on staging and another in one on production."""
    said = split_facts("\n\n".join((newer.name.replace("-", " "), newer.description, newer.body)))
    known = {word for fact in said for word in (*fact.words, *fact.hard)}
    named = re.split(r"[-_/\s]+", f"{older.name} {older.description}")
    return all(
        {*fact.words, *fact.hard} <= known
        for fact in (parse_fact(part) for part in named)
        if fact.text.casefold() not in _PLAIN and not fact.text.isdigit()
    )


_LOGLIKE = re.compile(r"\b(?:logs?|journal|diary|history|changelog|timeline|minutes)\b", re.IGNORECASE)
"""Where the same line twice means that it happened twice."""
_STATUS = frozenset(
    [
        *("done", "todo", "ok", "open", "closed", "pending", "blocked", "fixed", "yes", "no", "none", "wip"),
        *("in", "progress", "not", "started", "unknown", "tbd", "same", "as", "see", "above", "below"),
        *("ready", "to", "do", "n", "a", "before", "after", "ditto"),
    ]
)
"""Words of an item that speaks of the one before it."""


_STEP = re.compile(
    r"\b(?:wait|then|again|repeat|next|finally|afterwards|until|first|once more)\b|^. \[[ x]\]", re.IGNORECASE
)
"""In an item that is done after another: what is done twice stands there twice."""


def without_repeated_items(body: str) -> str:
    """The text without list items that stand above in the same list, word for word. A heading, a paragraph or
    code between two items parts them, and so does a numbered item."""
    seen: set[tuple[str, ...]] = set()
    kept: list[str] = []
    before: tuple[str, ...] = ()
    blocks = _blocks(body)
    items = [block for block in blocks if block[:2] in _MARKS]
    is_log = is_procedure = any(_STEP.search(item) for item in items) or _is_paired(items)
    for block in blocks:
        is_item = block[:2] in _MARKS
        if not is_item:
            seen.clear()
            is_log = is_procedure or (bool(_LOGLIKE.search(block)) if block.strip() else is_log)
        said = _normal_lines(block)
        if is_item and not is_log and said in seen and _is_rule(block, items, is_next=said == before):
            if not kept[-1].endswith("\n\n"):
                kept.append(block[len(block.rstrip("\n")) + 1 :])  # the line between a list and what follows
            continue
        before = said
        if is_item:
            seen.add(said)
        kept.append(block)
    return "".join(kept)


def _is_paired(items: Sequence[str]) -> bool:
    """Whether different items have the same label: each "Q: why?" belongs to its own "A: …"."""
    said = {(label[1], item.strip()) for item in items if (label := _LABEL.match(item))}
    return len({label for label, _ in said}) < len(said)


def _is_rule(item: str, items: Sequence[str], *, is_next: bool) -> bool:
    """Whether an item says the same wherever it stands in its list. A step, a status or a measured value does
    not: "check health" may be done twice."""
    text = item[2:].strip()
    words = _item_words(item)
    if len(words) < 2 or _STATUS.issuperset(re.findall(r"\w+", text.casefold())) or _VALUE.search(text):
        return False
    if _LASTING.match(text):
        return True
    is_sentence = len(words) >= SENTENCE_WORDS or _ENDED.search(text) is not None
    if is_next:
        return len(words) > 2 and not _ACTION.match(text)
    is_stative = not _ENGLISH.search(text) or _STATIVE.search(text) is not None
    return is_sentence and is_stative and not _ACTION.match(text) and not _is_turn(words, items)


def _is_turn(words: Sequence[str], items: Sequence[str]) -> bool:
    """Whether another item differs in one word: "Ann is on call", "Ben is on call", then Ann again."""
    return any(
        len(other) == len(words) and sum(a != b for a, b in zip(words, other, strict=True)) == 1
        for other in map(_item_words, items)
    )


def _item_words(item: str) -> list[str]:
    return item[2:].strip().rstrip(".;").casefold().split()


def _normal_lines(text: str) -> tuple[str, ...]:
    """The lines of a text as they are compared: but for space, the kind of bullet, a capital at the beginning
    and a full stop at the end, they have to be the same. In code, space counts."""
    if _CODE.search(text):
        return tuple(line.rstrip() for line in text.rstrip().splitlines())
    spaced = ((line, _SPACE.sub(lambda found: found[1] or " ", line.strip())) for line in text.splitlines())
    rows = ((_NESTED.match(line), row.rstrip(".;")) for line, row in spaced)
    return tuple(
        ("  " if nested else "") + _with_small_start(_BULLET.sub("- ", line)) for nested, line in rows if line
    )


def _with_small_start(line: str) -> str:
    bare = line.removeprefix("- ")
    is_word = bare[1:2].islower() or bare[1:2].isspace()
    small = bare[:1].lower() + bare[1:] if is_word else bare
    return line.removesuffix(bare) + small


SENTENCE_WORDS = 4
"""Fewer words without a full stop may be a step, a name or a value."""
_LASTING = re.compile(
    r"(?:always|never|use|prefer|avoid|do not|don['’]t|no|only|every|each|all|keep|must)\b",
    re.IGNORECASE,
)
"""How an item begins that holds at all times."""
_ACTION = re.compile(
    r"(?:restart|start|stop|check|verify|open|close|press|click|tap|build|compile|test|run|rerun|push|pull|"
    r"deploy|ship|release|reload|refresh|ring|call|ping|log|sign in|sign out|turn|switch|save|commit|boot|"
    r"reboot|mount|unmount|connect|disconnect|reconnect|apply|enable|disable|clear|flush|drain|scale|"
    r"deployed|restarted|tested|fixed|failed|passed|merged|released|rolled|reverted|read|write|send|"
    r"install|move|copy|delete|remove|add|insert|select|type|enter|confirm|accept|scroll|look|watch|begin|end)\b",
    re.IGNORECASE,
)
"""How an item begins that is done, or was, and may have been twice."""
_ENGLISH = re.compile(r"\b(?:the|and|of|with|it|your|you|for|from|to)\b", re.IGNORECASE)
_STATIVE = re.compile(
    r"\b(?:is|are|has|have|lives?|owns?|belongs?|means?|requires?|needs?|must|should|can|cannot|depends? on|"
    r"uses?|stands for|knows?|always|never|only)\b(?!.*\?)",
    re.IGNORECASE,
)
"""In an English sentence that tells how something is, and not what is done."""
_VALUE = re.compile(r"```|\?$|^[^:\n]{1,20}:\s|\d\s*(?:ms|s|min|h|%|[kmg]?i?b)$", re.IGNORECASE)
_ENDED = re.compile(r"[.。．!！।]$")
_MARKS = ("- ", "* ", "+ ")
_LABEL = re.compile(r". ([^:\n]{1,20}):\s")
_BULLET = re.compile(r"^[*+-] ")
_SPACE = re.compile(r"(`[^`]*`)|\s+")
_CODE = re.compile(r"^\s*(?:```|~~~)|^(?: {4}|\t)(?![*+-] )|<pre\b", re.MULTILINE)
_NESTED = re.compile(r"\s+[*+-] ")
"""An item below another: it says something else there."""


def _blocks(body: str) -> list[str]:
    """A text in pieces that may be taken out or moved alone: list items with what is indented below them,
    paragraphs, fenced code; every byte is in one of them."""
    numbered: list[tuple[int, str]] = []
    number, fence, before = 0, False, ""
    for line in body.splitlines(keepends=True):
        starts = line.lstrip()[:2] in _MARKS and not line[:1].isspace()
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
    known = FactIndex()
    for key, text in texts.items():
        known.add(key, list_memory_facts(read_memory(key, text), today))
    made: dict[str, str] = {}
    for log, text in logs.items():
        day = _day_of(log, today)
        for statement in _statements(text.splitlines()):
            said = resolve_relative_dates(statement.text, day, events_only=True)
            facts = split_facts(said)
            if not facts or all(known.find(fact, is_strict=True) for fact in facts):
                continue
            key = _free_key(said, {*texts, *made})
            kind = _KINDS.get(statement.kind, "project")
            made[key] = write_memory(key.removesuffix(".md"), said[:150], kind, said)
            known.add(key, facts)
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
