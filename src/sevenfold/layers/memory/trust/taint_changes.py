"""Who wanted a change of a memory: what it adds, what it removes, and when the memory applies.

A page can harm a memory without adding a sentence: it may have a rule dropped along with a valid correction,
or have it shown before another action than the one that the user named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sevenfold.core.memories import GATE_KEY, Memory, RuleCondition, parse_conditions
from sevenfold.core.text.facts import Fact, are_facts_stated, parse_fact, split_facts
from sevenfold.core.text.stems import find_content_stems, split_sentences
from sevenfold.layers.memory.trust.taint import Attribution, ConversationSources
from sevenfold.layers.memory.trust.tokens import has_hidden_text

MIN_DROP_SHARE = 0.5
"""Of the words of what is taken away, in what the user put in its place or wants forgotten."""

_FORGETTING = re.compile(
    r"(?<!not )(?<!n't )(?<!n’t )(?<!never )\b(?:forget|delete|remove|drop|erase|scrap|ignore)\b"
    r"|\bno longer\b|\bany ?more\b",
    re.IGNORECASE,
)
_SPOKEN = {
    "planning": ("plan", "planning"),
    "before-edit": ("edit", "change", "write", "modify", "touch", "rename"),
    "before-commit": ("commit", "merge"),
    "before-push": ("push", "release", "publish"),
    "before-install": ("install", "add", "dependency", "package", "upgrade"),
    "before-delete": ("delete", "remove", "clean", "drop"),
}
"""How people name the moments that rules know."""


def attribute_change(
    before: Memory | None, after: Memory, sources: ConversationSources, *, may_drop: bool = False
) -> Attribution:
    """Who asked for a change of a memory. Text that was there before is not judged again.

    With `may_drop` no model chose what is taken away.
    """
    fresh = find_new_sentences(after.body, before)
    found = sources.attribute("\n".join(fresh))
    if may_drop and not sources.taints:
        return found
    if not may_drop:
        found = _without_trust(found, after.text)
    own = [parse_fact(sentence) for sentence in fresh if sentence not in found.unsupported]
    lost = () if may_drop else _lost(before, after, own, sources)
    unasked = (*lost, *_moved(before, after, sources))
    if not unasked:
        return found
    return replace(
        found,
        said_by="tool output",
        taint=found.taint | (sources.taints or {"transcript"}),
        unsupported=(*found.unsupported, *unasked),
    )


def _without_trust(found: Attribution, text: str) -> Attribution:
    """What a model wrote and no sentence of the user says waits, also where nobody else spoke; and so does
    text that cannot be seen."""
    unsupported = (*found.unsupported, "hidden characters") if has_hidden_text(text) else found.unsupported
    if not unsupported or (found.taint and unsupported == found.unsupported):
        return found
    return replace(found, taint=found.taint or frozenset(["transcript"]), unsupported=unsupported)


def find_new_sentences(body: str, before: Memory | None) -> list[str]:
    """The sentences of a body that the memory before it does not state."""
    old = split_facts(before.body) if before else ()
    return [text for text in split_sentences(body) if not are_facts_stated([parse_fact(text)], old)]


def _lost(
    before: Memory | None, after: Memory, own: Sequence[Fact], sources: ConversationSources
) -> Iterator[str]:
    """What is taken away without the user having put something in its place or wanted it gone."""
    left = split_facts(after.body)
    for fact in split_facts(before.body) if before else ():
        if are_facts_stated([fact], left) or any(_is_on_same(fact, said) for said in own):
            continue
        stems = find_content_stems(fact.text)
        forgotten = (
            find_content_stems(said.text)
            for said in sources.sentences
            if said.is_asserted and _FORGETTING.search(said.text)
        )
        if not stems or not any(len(stems & said) >= MIN_DROP_SHARE * len(stems) for said in forgotten):
            yield f"taken away: {fact.text}"


def _is_on_same(fact: Fact, said: Fact) -> bool:
    one, other = find_content_stems(fact.text), find_content_stems(said.text)
    return bool(one and other) and len(one & other) >= MIN_DROP_SHARE * min(len(one), len(other))


def _moved(before: Memory | None, after: Memory, sources: ConversationSources) -> Iterator[str]:
    """What is changed of when it applies, without the user having named that."""
    old = parse_conditions(before.applies_to).found if before else ()
    new = parse_conditions(after.applies_to).found
    changed = (*(one for one in new if one not in old), *(one for one in old if one not in new))
    asserted = (said.text for said in sources.sentences if said.is_asserted)
    named = [find_content_stems(text) for text in asserted] if changed else []
    for condition in changed:
        if not any(_is_named(condition, stems) for stems in named):
            yield f"applies to {condition}"
    gate = after.field(GATE_KEY)
    if gate != (before.field(GATE_KEY) if before else ""):
        yield f"{GATE_KEY}: {gate}"


def _is_named(condition: RuleCondition, said: frozenset[str]) -> bool:
    """Whether these words name a condition: all of its own words, but a command's program goes without
    saying."""
    if condition.kind == "phase":
        return any(find_content_stems(word) <= said for word in _SPOKEN[condition.pattern])
    words = re.sub(r"[*?{}\[\]./_-]+", " ", condition.pattern).split()
    named = words[1:] if condition.kind == "command" and len(words) > 1 else words
    stems = find_content_stems(" ".join(named))
    return bool(stems) and stems <= said
