"""Checks what a dream made of the memories before it is published.

A fact may disappear only if another memory still states it, or for a valid reason. What a memory newly states
must come from another memory, or it waits for a person. Files between which facts moved are published
together or not at all, so that leaving one out (because it was edited meanwhile) never loses what the other
gave up.

Also here: parsing the reasons in the fork's answer, and rendering the diff and the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from difflib import unified_diff
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from sevenfold.core.memories import (
    ARCHIVE_PREFIX,
    INDEX_FILE,
    MEMORY_KINDS,
    TEAM_PREFIX,
    Memory,
    change_field,
    read_memory,
)
from sevenfold.core.text.absolute_dates import resolve_relative_dates
from sevenfold.core.text.facts import Fact, FactIndex, covers_fact, is_reversed, parse_fact, split_facts
from sevenfold.core.text.stems import find_content_stems, truncate_words
from sevenfold.layers.dreams.policy import DreamMemory, DreamSettings
from sevenfold.layers.memory.trust.evidence import find_evidence
from sevenfold.layers.memory.trust.near_words import may_be_related
from sevenfold.layers.memory.trust.phrases import find_grammar, find_key, parse_sentence
from sevenfold.layers.memory.trust.user_sentences import read_user_sentences

MAX_MERGED_BYTES = 64 * 1024
"""Of one memory: eight times what is ever put before a model at once."""
MAX_MERGED_DESCRIPTION = 400
REWORDED_PERCENT, RELATED_PERCENT, MADE_OF_PERCENT = 40, 25, 60
"""Of a fact's words: to be found where it is said to stand in other words; to be found where it is said to be
contradicted, which is at least on the same matter; to come from what is known, so that it is nothing new."""
SURE_PERCENT = 70
"""Of its words, below which a fact in other words counts as let go of: who is to say that it is the same?"""

_TOPIC = re.compile(r"(?:how|when|where|what|which|who|why|about)\b", re.IGNORECASE)
MAX_DESCRIPTION_CHARS = 150
"""Of a description that is made from a body."""
MAX_COMPARED = 20
"""Facts that a new one is compared with word by word: those with the most words in common."""

_LOG_TIME = re.compile(r"^- \d\d:\d\d (?=\S)", re.MULTILINE)

RemovalCause: TypeAlias = Literal["duplicate", "reworded", "contradicted", "stale"]
REMOVAL_CAUSES: tuple[RemovalCause, ...] = get_args(RemovalCause)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalReason:
    """Why a fact, or a whole memory, was removed."""

    key: str
    why: RemovalCause
    of: str = ""
    """The memory that says it, or says better."""
    fact: str = ""
    """In its own words; empty: every fact of that memory."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class RemovedFact:
    """A fact that is gone, for a valid reason."""

    key: str
    fact: str
    reason: RemovalReason


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamCheck:
    changed: tuple[str, ...]
    """Files that are another, new or gone, by key."""
    refused: Mapping[str, str]
    """What may not be published, and why."""
    gained: Mapping[str, tuple[str, ...]]
    """Facts that no memory and no log said before."""
    losses: tuple[RemovedFact, ...]
    sources: Mapping[str, frozenset[str]]
    """Whose facts went into a changed file beside its own, and on whom a removal leans."""
    facts: int
    """Of all memories before."""
    files: int
    removed: frozenset[str]

    def without(self, keys: Iterable[str]) -> frozenset[str]:
        """The changes that remain if these files, and all files in their groups, stay unchanged."""
        return frozenset(self.changed) - self.find_linked(keys)

    def find_linked(self, keys: Iterable[str]) -> frozenset[str]:
        """The changes that must be published together with any of these files."""
        named, groups = frozenset(keys), _groups(self.changed, self.sources)
        met = {groups[key] for key in self.changed if key in named or self.find_sources([key]) & named}
        return frozenset(key for key in self.changed if groups[key] in met)

    def find_sources(self, keys: Iterable[str]) -> frozenset[str]:
        """The other files that these changes were made from or depend on."""
        return frozenset(source for key in keys for source in self.sources.get(key, ()))


def check_dream(
    before: Mapping[str, DreamMemory],
    after: Mapping[str, str],
    reasons: Sequence[RemovalReason],
    today: date,
    logs: Mapping[str, str] = MappingProxyType({}),
) -> DreamCheck:
    """Compare the memories with what the dream would make of them. `logs` are known too, and no memories."""
    kept = {key: kept.memory.text for key, kept in before.items()}
    changed = tuple(key for key in {**kept, **after} if kept.get(key) != after.get(key))
    look = _Look(before=before, after=after, reasons=reasons, today=today, changed=frozenset(changed))
    look.shelve(logs)
    for key in changed:
        look.check(key)
    return DreamCheck(
        changed=changed,
        refused=look.refused,
        gained={key: tuple(facts) for key, facts in look.gained.items()},
        losses=tuple(look.losses),
        sources={key: frozenset(found) for key, found in look.sources.items()},
        facts=sum(len(facts) for facts in look.old.values()),
        files=len(before),
        removed=frozenset(before.keys() - after.keys()),
    )


def explain_over_budget(checked: DreamCheck, published: frozenset[str], settings: DreamSettings) -> str:
    """Why this is more than one dream may remove; empty if it is not. A single removal is always allowed."""
    facts = [loss for loss in checked.losses if loss.key in published]
    gone = {loss.key for loss in facts if loss.key in checked.removed}
    gone |= {key for key in published if key.startswith(ARCHIVE_PREFIX)}
    checks = ((len(facts), checked.facts, "facts"), (len(gone), checked.files, "memories"))
    for count, total, what in checks:
        if count > max(1, total * settings.drop_percent // 100):
            return (
                f"it would drop {count:,} of {total:,} {what}, and {settings.drop_percent}% is the most "
                "(dream.drop_percent)"
            )
    return ""


@dataclass(slots=True, kw_only=True)
class _Look:
    before: Mapping[str, DreamMemory]
    after: Mapping[str, str]
    reasons: Sequence[RemovalReason]
    today: date
    changed: frozenset[str]
    old: dict[str, tuple[Fact, ...]] = field(default_factory=dict[str, tuple[Fact, ...]])
    new: dict[str, tuple[Fact, ...]] = field(default_factory=dict[str, tuple[Fact, ...]])
    was: FactIndex = field(default_factory=FactIndex)
    now: FactIndex = field(default_factory=FactIndex)
    known: list[Fact] = field(default_factory=list[Fact])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    gained: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    losses: list[RemovedFact] = field(default_factory=list[RemovedFact])
    sources: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def shelve(self, logs: Mapping[str, str]) -> None:
        for key, kept in self.before.items():
            self.old[key] = list_memory_facts(kept.dated, kept.written)
            self.was.add(key, self.old[key])
        for key, text in self.after.items():
            kept = self.before.get(key)
            self.new[key] = list_memory_facts(read_memory(key, text), kept.written if kept else self.today)
            self.now.add(key, self.new[key])
        for key, text in logs.items():
            facts = split_facts(resolve_relative_dates(_LOG_TIME.sub("", text), self.today))
            self.was.add(key, facts)
            self.known += facts

    def check(self, key: str) -> None:
        text = self.after.get(key)
        fault = find_memory_fault(key, text) if text is not None else ""
        if key.startswith(TEAM_PREFIX):
            fault = "it belongs to the team, and a dream leaves what others share alone"
        if fault:
            self.refused[key] = fault
        for fact in self.old.get(key, ()):
            self._check_old(key, fact)
        for fact in self.new.get(key, ()):
            self._check_new(key, fact)

    def _check_old(self, key: str, fact: Fact) -> None:
        """A fact of the old text: still stated here, stated elsewhere, or gone for a reason."""
        where = [other for other in self.now.find(fact) if _is_in_sight(other, key)]
        if key in where:
            return
        if where:
            # Prefer a file that stays unchanged; else the first that changed.
            steady = [other for other in where if other not in self.changed]
            self._link(key, (steady or where)[0])
            return
        reason = self._reason(key, fact)
        if reason is None:
            self.refused.setdefault(key, f"{fact.text[:120]!r} would be gone, and no reason was given")
            return
        objection = self._objection(reason, fact)
        if objection:
            self.refused.setdefault(key, objection)
            return
        if reason.of:
            self._link(key, reason.of)
        is_sure = reason.why in ("duplicate", "reworded") and _shares(
            fact, self.new.get(reason.of, ()), SURE_PERCENT
        )
        if not is_sure:
            self.losses.append(RemovedFact(key, fact.text, reason))

    def _check_new(self, key: str, fact: Fact) -> None:
        """A fact of the new text: stated here before, stated elsewhere, or without a source."""
        where = self.was.find(fact)
        if key not in where and where:
            self._link(key, where[0])
        known = self._list_known(key, where)
        if fact.text in {each.text for each in known} or fact in known:
            return
        if not (where or _made_of(fact, known, MADE_OF_PERCENT)) or _is_altered(fact, known):
            self.gained.setdefault(key, []).append(fact.text)

    def _list_known(self, key: str, where: Sequence[str]) -> list[Fact]:
        """What the file itself said, what gave facts to it, and the logs."""
        known = [*self.known]
        sources = (key, *where, *self.sources.get(key, ()), *self._given_up_to(key))
        for source in dict.fromkeys(sources):
            known += self.old.get(source, ())
        return known

    def _given_up_to(self, key: str) -> Iterator[str]:
        for reason in self.reasons:
            if reason.of == key and reason.key in self.old:
                self._link(key, reason.key)
                yield reason.key

    def _reason(self, key: str, fact: Fact) -> RemovalReason | None:
        mine = [reason for reason in self.reasons if reason.key == key]
        exact = (each for each in mine if each.fact and covers_fact(parse_fact(each.fact), fact))
        return next(exact, next((each for each in mine if not each.fact), None))

    def _objection(self, reason: RemovalReason, fact: Fact) -> str:
        said = f"{fact.text[:120]!r} is said to be {reason.why}"
        there = self.new.get(reason.of, ())
        if reason.why == "stale":
            return "" if reason.note.strip() else f"{said}, and not why"
        if not there:
            return f"{said} by {reason.of or 'nothing'}, and there will be no such memory"
        if reason.why == "contradicted":
            is_so = _shares(fact, there, RELATED_PERCENT)
            return "" if is_so else f"{said} by {reason.of}, which is on another matter"
        is_so = _made_of(fact, there, REWORDED_PERCENT)
        return "" if is_so else f"{said} in {reason.of}, which does not say it"

    def _link(self, key: str, source: str) -> None:
        if source and source != key:
            self.sources.setdefault(key, set()).add(source)


def list_memory_facts(memory: Memory, written: date) -> tuple[Fact, ...]:
    """What a memory states. When its rule applies is a part of what it says."""
    rules = (Fact(rule, (), frozenset([f"applies_to {rule}"])) for rule in memory.applies_to)
    return (*_find_stated_facts(memory, written), *rules)


def _find_stated_facts(memory: Memory, written: date) -> tuple[Fact, ...]:
    """What its words state, dates made absolute; where it has no body, what its description does."""
    found = split_facts(resolve_relative_dates(memory.body, written))
    return found or split_facts(resolve_relative_dates(memory.description, written))


def restrict_descriptions(before: Mapping[str, DreamMemory], after: Mapping[str, str]) -> dict[str, str]:
    """The texts of a dream, each under a description that says no more than its body: the index shows nothing
    else. A description that stood somewhere before stays."""
    known = {kept.memory.description for kept in before.values()}
    return {key: _restricted(read_memory(key, text), known) for key, text in after.items()}


def _restricted(memory: Memory, known: Collection[str]) -> str:
    sentences = read_user_sentences(memory.body, 0, lambda _: False)
    is_own = not find_evidence((memory.description,), sentences).unsupported or _is_topic(memory)
    if is_own or not sentences or memory.description in known or memory.document.fault:
        return memory.text
    return change_field(memory.text, "description", truncate_words(sentences[0].text, MAX_DESCRIPTION_CHARS))


def _is_topic(memory: Memory) -> bool:
    """ "How staging is reached": it tells nobody to do anything, and all its words are in the body."""
    stems = find_content_stems(memory.description)
    return _TOPIC.match(memory.description) is not None and stems <= find_content_stems(memory.body)


def find_memory_fault(key: str, text: str) -> str:
    """Why a file cannot be a memory; empty when it can."""
    memory = read_memory(key, text)
    head, size = memory.document, len(text.encode("utf-8", "surrogatepass"))
    if key == INDEX_FILE:
        return "the index is kept by the engine; change a memory's description instead"
    if size > MAX_MERGED_BYTES:
        return f"it has {size:,} bytes, and {MAX_MERGED_BYTES:,} is the most; split it by topic"
    if head.fault:
        return head.fault
    description = head.text("description")
    if not head.text("name").strip() or not memory.description:
        return "its head lacks a name or a description"
    if "\n" in description.strip() or len(description) > MAX_MERGED_DESCRIPTION:
        return f"its description is no line of at most {MAX_MERGED_DESCRIPTION} characters"
    if memory.kind not in MEMORY_KINDS:
        return f"its type is {memory.kind!r:.40}; it is one of {', '.join(MEMORY_KINDS)}"
    return ""


def _is_in_sight(other: str, key: str) -> bool:
    """What is put aside says nothing any more, but for the memory that is put aside as a whole."""
    return not other.startswith(ARCHIVE_PREFIX) or other.startswith(
        f"{ARCHIVE_PREFIX}{key.removesuffix('.md')}"
    )


def _is_altered(fact: Fact, known: Sequence[Fact]) -> bool:
    """Whether it says less or other than the facts that it was made of: without a condition, a "not", an
    "only", or with two things exchanged. A fact that only leaves words out is compared word by word."""
    near = sorted(known, key=lambda each: -len(fact.bag & each.bag))[:MAX_COMPARED]
    said = [
        sentence
        for at, each in enumerate(near)
        for sentence in read_user_sentences(each.text, at, lambda _: False)
    ]
    if not find_evidence((fact.text,), said).unsupported:
        return False
    inside = [each for each in near if fact.bag <= each.bag]
    if inside:
        return not any(_is_turned(fact.text, each.text) for each in inside)
    restated = (each for each in near if 100 * len(fact.bag & each.bag) >= MADE_OF_PERCENT * len(each.bag))
    return any(is_reversed(each, fact) or not _keeps_limits(fact, each) for each in restated)


def _is_turned(text: str, said: str) -> bool:
    """Whether it is the same with its end in front: "for typo fixes, skip the review"."""
    words, known = find_key(text).split(), find_key(said).split()
    return len(words) == len(known) and f" {' '.join(words)} " in f" {' '.join([*known, *known])} "


def _keeps_limits(fact: Fact, said: Fact) -> bool:
    """Whether it holds all that limits another: what a condition or a preposition leads."""
    grammar = find_grammar(said.text)
    limits = [phrase.words for phrase in parse_sentence(said.text, grammar).phrases if phrase.is_limiting]
    words = [word for phrase in parse_sentence(fact.text, grammar).phrases for word in phrase.words]
    return all(any(may_be_related(one, word) for word in words) for limit in limits for one in limit[1:])


def _made_of(fact: Fact, known: Sequence[Fact], percent: int) -> bool:
    """Whether all it says to the letter is known, and most of its words, negated as often as there."""
    hard = frozenset[str]().union(*(each.hard for each in known))
    overlaps = {each: len(fact.bag & each.bag) for each in known}
    most = max(overlaps.values(), default=0)
    near = [each for each, count in overlaps.items() if 2 * count >= most]
    agrees = any(each.negations == fact.negations for each in near)
    return agrees and fact.hard <= hard and _shares(fact, known, percent)


def _shares(fact: Fact, known: Sequence[Fact], percent: int) -> bool:
    words = frozenset[str]().union(*(each.bag for each in known))
    return 100 * len(fact.bag & words) >= percent * len(fact.bag)


def _groups(keys: Iterable[str], links: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Groups of files that depend on each other, each under the name of one of them."""
    parent = {key: key for key in keys}

    def root(key: str) -> str:
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for key, others in links.items():
        for other in others:
            if key in parent and other in parent:
                parent[root(key)] = root(other)
    return {key: root(key) for key in parent}


# The reasons in the answer of the fork, and what the fork is shown at the start.

REMOVAL_MARK = "LET GO"

_LINE = re.compile(
    rf"[\s*`>-]*{REMOVAL_MARK}[\s:*`]+(?P<key>[^\s:`]+)`?\s*[:,]\s*(?P<reason>.+)",
    re.IGNORECASE,
)
_REASON = re.compile(
    rf"\s*(?P<why>{'|'.join(REMOVAL_CAUSES)})(?:\s+(?:of|in|by|with)\s+`?(?P<of>[^\s:;,`]+)`?)?"
    r"(?:\s*[:;,]\s*[\"“](?P<fact>[^\"”]*)[\"”])?(?:\s*[:;,.–—-]+\s*(?P<note>.*))?\s*",
    re.IGNORECASE | re.DOTALL,
)


def parse_removal_reasons(answer: str) -> tuple[RemovalReason, ...]:
    """The lines of an answer that say what was removed, and why; other lines are ignored."""
    lines = (_LINE.fullmatch(line) for line in answer.splitlines())
    found = (parse_removal_reason(with_md_suffix(line["key"]), line["reason"]) for line in lines if line)
    return tuple(reason for reason in found if reason)


def parse_removal_reason(key: str, text: str) -> RemovalReason | None:
    """`duplicate of other.md`, `contradicted by other.md: "the fact"`, `stale: "the fact": since when`."""
    match = _REASON.fullmatch(text)
    if match is None:
        return None
    why: RemovalCause = next(each for each in REMOVAL_CAUSES if each == match["why"].lower())
    of = with_md_suffix(match["of"].rstrip(".")) if match["of"] else ""
    return RemovalReason(
        key=key, why=why, of=of, fact=(match["fact"] or "").strip(), note=(match["note"] or "").strip()
    )


def render_memory_diff(before: Mapping[str, str], after: Mapping[str, str], keys: Collection[str]) -> str:
    """What changes in these files, as a person reads it; a file that only moves is one line."""
    moved = {
        key: f"{ARCHIVE_PREFIX}{key}"
        for key in keys
        if before.get(key) == after.get(f"{ARCHIVE_PREFIX}{key}", "")
    }
    parts: list[str] = []
    for key in sorted({*keys} - {*moved.values()}):
        if key in moved:
            parts.append(f"{key} is archived as {moved[key]}\n")
            continue
        old, new = before.get(key, ""), after.get(key, "")
        names = (key if key in before else "/dev/null", key if key in after else "/dev/null")
        lines = unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")
        parts.append("".join(f"{line}\n" for line in lines))
    return "\n".join(parts)


def with_md_suffix(name: str) -> str:
    """The name with `.md`, which people and models often leave out."""
    return name if name.endswith(".md") else f"{name}.md"


def render_dream_manifest(memories: Iterable[tuple[Memory, date]]) -> str:
    """One line a memory: what it is, since when, and when it matters."""
    return "\n".join(
        f"- [{memory.kind or 'memory'}] {memory.key} ({day.isoformat()}): {memory.description[:200]}"
        for memory, day in memories
    )
