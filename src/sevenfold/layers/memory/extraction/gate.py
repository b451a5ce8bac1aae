"""The gate for new memories: what may be written, whose words it is, and the reason for a refusal.

Every draft passes it, whoever wrote it. In doubt it refuses: what is not saved can be said again, but a wrong
memory comes back for months.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal, TypeAlias

from sevenfold.core.errors import InputError
from sevenfold.core.memories import (
    MEMORY_KINDS,
    Memory,
    Origin,
    join_taint,
    read_memory,
    rewrite_memory,
    write_memory,
)
from sevenfold.core.secrets import refuse_secrets
from sevenfold.core.text.absolute_dates import resolve_relative_dates
from sevenfold.core.text.facts import NEGATION, Fact, are_facts_stated, is_reversed, split_facts
from sevenfold.core.text.stems import find_content_stems, make_slug, split_sentences, truncate_words
from sevenfold.layers.memory.trust.quotation import quote_user
from sevenfold.layers.memory.trust.taint import Attribution, ConversationSources, Passage
from sevenfold.layers.memory.trust.taint_changes import attribute_change, find_new_sentences

# What is not saved, even on request: what code, git and the transcript already say, and what will be out of
# date when it is read.

UnsavedRule: TypeAlias = Literal["task state", "activity", "debugging", "git", "code"]


@dataclass(frozen=True, slots=True)
class UnsavedPattern:
    """One kind of it."""

    rule: UnsavedRule
    pattern: re.Pattern[str]
    reason: str

    def matches(self, sentence: str) -> bool:
        return bool(self.pattern.search(sentence))


def without_code(text: str) -> str:
    """The prose of a text."""
    return _FENCE.sub("", text)


UNSAVED_PATTERNS = (
    UnsavedPattern(
        "task state",
        re.compile(
            r"\b(?:to-dos?|(?-i:TODOS?)|todo(?=:| lists?\b| items?\b)|next steps?|in progress|"
            r"remaining (?:work|tasks?|steps?)|left to do|wip|"
            r"work in progress|"
            r"(?:is|are|am|'m|'re|we're) (?:currently|now|still) (?:\w+ing)|(?:currently|now) (?:working|"
            r"implementing|blocked)|"
            r"(?:still|yet) to (?:do|be done)|up next|pick(?:ing)? (?:this|it) up (?:tomorrow|later)|"
            r"half-?way)\b",
            re.IGNORECASE,
        ),
        "it is the state of the task at hand, which is over when it is read again",
    ),
    UnsavedPattern(
        "activity",
        re.compile(
            r"\b(?:(?:in|during) this (?:session|conversation|turn)|(?:we|i|the (?:agent|assistant|"
            r"user)) (?:just |then |also )?"
            r"(?:implemented|added|refactored|fixed|updated|renamed|moved|ran|created|wrote|edited|"
            r"deleted|merged|committed|"
            r"pushed|reviewed|investigated|looked at|discussed|asked (?:me |for|to)))\b|"
            r"\ball tests (?:pass|passed|green)\b|"
            r"\b\d+ (?:tests? )?passed\b",
            re.IGNORECASE,
        ),
        "it tells what was done, which git and the transcript tell already",
    ),
    UnsavedPattern(
        "debugging",
        re.compile(
            r"\b(?:root cause|stack ?trace|traceback|the (?:fix|bug|error|crash) (?:was|is|came)|"
            r"fixed by|to fix (?:this|the)|"
            r"(?:was|were) caused by|workaround (?:is|was)|solved by|resolved by|caused the (?:error|"
            r"crash|bug|failure))\b",
            re.IGNORECASE,
        ),
        "it is a debugging recipe: the fix is in the code, and its reason in the commit",
    ),
    UnsavedPattern(
        "git",
        re.compile(
            r"\b(?:commit|sha|revision) `?[0-9a-f]{7,40}\b|\b(?:pr|pull request|"
            r"merge request) #?\d+ (?:was|is|has been)\b|"
            r"\b(?:latest|last|previous|recent) commits?\b|\bgit (?:log|blame|history) shows\b",
            re.IGNORECASE,
        ),
        "git's history says it already",
    ),
    UnsavedPattern(
        "code",
        re.compile(
            r"\b(?:function|class|method|module|file|script|endpoint|component|constant|test|"
            r"config(?:uration)?)s?\b[^.\n]{0,60}"
            r"\b(?:is|are|lives?|sits?|gets?) (?:defined|located|implemented|declared|in|under|at|"
            r"inside)\b[^.\n]{0,20}"
            r"(?:[\w.-]+/[\w./-]+|\b[\w-]+\.(?:py|ts|js|tsx|go|rs|java|rb|c|h|cpp|md|toml|json|ya?ml)\b)|"
            r"\b[\w/-]+\.(?:py|ts|js|tsx|go|rs|java|rb|c|h|cpp)`? (?:defines?|contains?|implements?|"
            r"exports?|holds?|has)\b|"
            r"\b(?:takes|returns|accepts) (?:an? )?(?:argument|parameter|list|dict|string|int)s?\b",
            re.IGNORECASE,
        ),
        "the code says it already",
    ),
)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


RefusalRule: TypeAlias = (
    UnsavedRule
    | Literal["empty", "shape", "secret", "duplicate", "unchanged", "contradicts", "recalled", "other topic"]
)
"""Why a draft is refused."""

_MAX_BODY_BYTES = 8_000
"""What recall shows of a file: more would never be read."""
MAX_DRAFT_DESCRIPTION_CHARS = 150
SAME_SUBJECT_SHARE = 0.6
"""Of the words of the longer of two facts, for them to be about the same thing: of the shorter, and any two
that mention a test suite would contradict each other."""
MIN_SHARED_WORDS = 3
"""Words that two facts must share at least before one can contradict the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDraft:
    """A memory that somebody wants to write."""

    key: str
    name: str
    description: str
    kind: str
    body: str
    applies_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownMemory:
    """An existing memory."""

    memory: Memory
    sha256: str
    origin: Origin


FindNearest: TypeAlias = Callable[[str], Sequence[KnownMemory]]
"""The memories that are most like a text."""


@dataclass(frozen=True, slots=True)
class GateContext:
    """What a draft is compared with."""

    sources: ConversationSources
    known: Sequence[KnownMemory]
    near: FindNearest
    today: date

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(item.memory.key for item in self.known)


@dataclass(frozen=True, slots=True)
class RefusedDraft:
    key: str
    rule: RefusalRule
    reason: str
    other: str = ""
    """The memory that says the same, or otherwise."""


@dataclass(frozen=True, slots=True)
class AdmittedDraft:
    key: str
    text: str
    base: str | None
    """The version that it replaces; None: it is new."""
    judgement: Attribution


def check_draft(
    draft: MemoryDraft, context: GateContext, *, may_drop: bool = False, is_quoted: bool = False
) -> AdmittedDraft | RefusedDraft:
    """Whether a draft becomes a memory, as it would be written. `may_drop`: no model wrote it, so what it no
    longer says is gone by the user's word. `is_quoted`: a draft that may be saved, in the user's words."""
    dated = replace(
        draft,
        description=" ".join(resolve_relative_dates(draft.description, context.today).split()),
        body=resolve_relative_dates(draft.body, context.today).strip(),
    )
    before = next((known for known in context.known if known.memory.key == dated.key), None)
    objection = (
        _malformed(dated)
        or (None if is_quoted else find_unsaved_rule(dated))
        or _secret(dated)
        or _known(dated, before, context)
        or _recalled(dated, before, context.sources)
    )
    if objection is not None:
        return objection
    found = _judged(dated, before, context, may_drop=may_drop)
    quoted = quote_draft(dated, found, context.sources) if found.taint and not may_drop else None
    if quoted is not None:
        again = check_draft(quoted, context, is_quoted=True)
        if isinstance(again, RefusedDraft) or not again.judgement.taint:
            return again
    is_told = before is not None and dated.description == before.memory.description
    is_own = may_drop and not context.sources.taints
    named = dated if found.taint or is_told or is_own else restrict_head(dated, context.sources, context.keys)
    return AdmittedDraft(named.key, _written(named, before), before.sha256 if before else None, found)


def _written(draft: MemoryDraft, before: KnownMemory | None) -> str:
    if before is not None:
        applies_to = draft.applies_to or None
        return rewrite_memory(before.memory, draft.description, draft.kind, draft.body, applies_to=applies_to)
    return write_memory(
        draft.name,
        draft.description,
        draft.kind,
        draft.body,
        applies_to=draft.applies_to,
    )


def _malformed(draft: MemoryDraft) -> RefusedDraft | None:
    if not draft.body or not find_content_stems(draft.body):
        return RefusedDraft(draft.key, "empty", "it says nothing; write the memory itself as content")
    if draft.kind not in MEMORY_KINDS:
        return RefusedDraft(
            draft.key, "shape", f"its type is {draft.kind!r}; use one of {', '.join(MEMORY_KINDS)}"
        )
    if not draft.description or len(draft.description) > MAX_DRAFT_DESCRIPTION_CHARS:
        reason = f"its description has {len(draft.description)} characters"
        return RefusedDraft(
            draft.key, "shape", f"{reason}; say in 1 to {MAX_DRAFT_DESCRIPTION_CHARS} when it matters"
        )
    size = len(draft.body.encode("utf-8", "replace"))
    if size > _MAX_BODY_BYTES:
        return RefusedDraft(
            draft.key, "shape", f"it has {size:,} bytes, and {_MAX_BODY_BYTES:,} are shown; split it"
        )
    return None


def find_unsaved_rule(draft: MemoryDraft) -> RefusedDraft | None:
    """Refuse a draft when most of it is of a kind that is not saved, even on request."""
    prose = without_code(draft.body)
    if len(prose.strip()) < len(draft.body) / 2:
        return RefusedDraft(
            draft.key, "code", "most of it is code, which the project has; keep the decision alone"
        )
    sentences = split_sentences(prose)
    for kind in UNSAVED_PATTERNS:
        hits = sum(kind.matches(sentence) for sentence in sentences)
        if 2 * hits >= len(sentences) or (hits and kind.matches(draft.description)):
            return RefusedDraft(draft.key, kind.rule, f"not saved: {kind.reason}")
    return None


def _secret(draft: MemoryDraft) -> RefusedDraft | None:
    try:
        refuse_secrets("\n".join((draft.name, draft.description, *draft.applies_to, draft.body)))
    except InputError as error:
        return RefusedDraft(draft.key, "secret", str(error))
    return None


def _known(draft: MemoryDraft, before: KnownMemory | None, context: GateContext) -> RefusedDraft | None:
    facts = split_facts(draft.body)
    if before is not None:
        old = split_facts(before.memory.body)
        if facts and are_facts_stated(facts, old) and are_facts_stated(old, facts):
            return RefusedDraft(draft.key, "unchanged", f"{draft.key} says so already", draft.key)
        if not _is_related(draft, before.memory):
            reason = f"{draft.key} is about something else; choose another name, or update what is there"
            return RefusedDraft(draft.key, "other topic", reason, draft.key)
    for other in context.near(f"{draft.description}\n{draft.body}"):
        key = other.memory.key
        if key == draft.key:
            continue
        old = split_facts(other.memory.body)
        if facts and are_facts_stated(facts, old):
            return RefusedDraft(draft.key, "duplicate", f"{key} says so already", key)
        clash = find_contradicted(facts, old)
        if clash:
            reason = f"{key} says otherwise: {clash.text[:200]!r}; write the new version to {key}"
            return RefusedDraft(draft.key, "contradicts", reason, key)
    return None


def merge_uncontradicted(draft: MemoryDraft, memory: Memory) -> MemoryDraft:
    """A draft in the place of a memory that says otherwise, with all that it does not contradict."""
    facts = split_facts(draft.body)
    old = [fact for fact in split_facts(memory.body) if not are_facts_stated([fact], facts)]
    kept = [fact.text for fact in old if not find_contradicted(facts, [fact])]
    if all(text.startswith("**") for text in kept):
        kept = []  # why and how of what is no longer so
    name = memory.key.rpartition("/")[2].removesuffix(".md")
    return replace(draft, key=memory.key, name=name, body="\n\n".join([*kept, draft.body]))


def find_contradicted(facts: Sequence[Fact], old: Sequence[Fact]) -> Fact | None:
    """The fact among the old ones that one of the new ones contradicts: the same subject, and another number,
    name or sign, or the same the other way round."""
    for fact in facts:
        for said in old:
            is_other = _is_same_subject(fact, said) and _differ(fact.hard, said.hard)
            if is_other or _is_reversed(fact, said):
                return said
    return None


def _is_same_subject(fact: Fact, said: Fact) -> bool:
    mine, theirs = frozenset(fact.words), frozenset(said.words)
    if not (mine <= theirs or theirs <= mine):
        # "Backups of the quota service" and "backups of the ledger service".
        return False
    shared = len(mine & theirs)
    return shared >= MIN_SHARED_WORDS and shared >= SAME_SUBJECT_SHARE * max(len(mine), len(theirs))


def _is_reversed(fact: Fact, said: Fact) -> bool:
    return fact.bag == said.bag and fact.hard == said.hard and is_reversed(said, fact)


def _differ(new: frozenset[str], old: frozenset[str]) -> bool:
    """Whether each has something that the other lacks, or only one is negated."""
    is_turned = (NEGATION in new) != (NEGATION in old)
    return is_turned or bool(new - old and old - new)


def _is_related(draft: MemoryDraft, memory: Memory) -> bool:
    """Whether a draft is about what the memory of its name is about."""
    mine = find_content_stems(f"{draft.name} {draft.description} {draft.body}")
    theirs = find_content_stems(f"{memory.name} {memory.description} {memory.body}")
    return len(mine & theirs) >= min(2, len(theirs))


def _recalled(
    draft: MemoryDraft, before: KnownMemory | None, sources: ConversationSources
) -> RefusedDraft | None:
    """What the program itself said in this conversation is known, and not learnt again."""
    fresh = find_new_sentences(draft.body, before.memory if before else None)
    if fresh and all(sources.is_program_text(text) and not sources.supports(text) for text in fresh):
        reason = "it was recalled from memory, or read from an instruction file, in this conversation"
        return RefusedDraft(draft.key, "recalled", reason)
    return None


def _judged(
    draft: MemoryDraft, before: KnownMemory | None, context: GateContext, *, may_drop: bool
) -> Attribution:
    """Whose words the new parts are, and who asked for the change; old parts keep their own taint."""
    after = read_memory(draft.key, _written(draft, before))
    found = attribute_change(before.memory if before else None, after, context.sources, may_drop=may_drop)
    return replace(found, taint=found.taint | (join_taint(before.origin) if before else frozenset()))


def restrict_head(draft: MemoryDraft, sources: ConversationSources, known: Collection[str]) -> MemoryDraft:
    """A name and a description that say no more than the body and the user: the index shows nothing else of a
    memory, and a stranger's rule would do its work there as well. One that is known keeps its name."""
    own = sources.with_passage(Passage("user", draft.body, -1))
    if not own.supports(draft.description):
        first = next(iter(split_sentences(draft.body)), draft.key)
        draft = replace(draft, description=truncate_words(first, MAX_DRAFT_DESCRIPTION_CHARS))
    folder, slash, file = draft.key.rpartition("/")
    is_named = _is_said(own, file.removesuffix(".md")) and _is_said(own, draft.name)
    if is_named or draft.key in known:
        return draft
    slug = choose_free_slug(f"{folder}{slash}{make_slug(draft.description)}", known)
    return replace(draft, key=f"{slug}.md", name=slug.rpartition("/")[2])


def quote_draft(draft: MemoryDraft, found: Attribution, sources: ConversationSources) -> MemoryDraft | None:
    """The same memory in the user's own sentences, where it says theirs in other words; to be judged again.
    None where they said nothing of the kind."""
    body = quote_user(draft.body, found, sources)
    return replace(draft, body=body) if body and body != draft.body else None


def choose_free_slug(slug: str, known: Collection[str]) -> str:
    """The name, or the first that goes on with a number and that no memory has."""
    names = (slug, *(f"{slug}-{number}" for number in range(2, len(known) + 3)))
    return next(name for name in names if f"{name}.md" not in known)


def _is_said(sources: ConversationSources, name: str) -> bool:
    return sources.mentions(re.sub(r"[-_/]", " ", name))
