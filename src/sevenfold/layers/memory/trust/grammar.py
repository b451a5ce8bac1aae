"""Function words of some languages: what a sentence may lose without saying something else.

Only closed classes of words are listed: articles, auxiliaries, negations, prepositions, and the phrases with
which people begin a rule. A word that is not listed is content, and has to be kept. A language that is not
here is read as English: its sentences are still recognized word by word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sevenfold.layers.memory.trust.tokens import fold_word


def read_phrases(text: str) -> tuple[tuple[str, ...], ...]:
    """One phrase a line or between bars, the longest first."""
    found = {
        tuple(fold_word(word) for word in part.replace("-", " ").split()) for part in re.split(r"[|\n]", text)
    }
    return tuple(sorted((phrase for phrase in found if phrase), key=lambda phrase: (-len(phrase), phrase)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """The closed classes of one language."""

    name: str
    idle: frozenset[str]
    """Articles, auxiliaries, obligation, "please", "always": they come and go."""
    speakers: frozenset[str]
    """First and second person, which a note may leave out."""
    passive: frozenset[str]
    """Auxiliaries that make a passive."""
    negations: frozenset[str]
    markers: frozenset[str]
    """Prepositions and conjunctions: what follows one belongs to it."""
    weak: frozenset[str] = frozenset()
    """Permission. It has to be kept, but "may not" is "must not"."""
    limits: frozenset[str] = frozenset()
    """"Only"."""
    causes: tuple[tuple[str, ...], ...] = ()
    """Begin a reason, which may be left out."""
    leads: tuple[tuple[str, ...], ...] = ()
    """Begin a rule and say nothing of it."""
    tails: tuple[tuple[str, ...], ...] = ()
    """End one."""
    same: tuple[tuple[tuple[str, ...], str], ...] = ()
    """Phrases that mean the same, and how they are written here; the longest first."""
    asking: frozenset[str] = frozenset()
    """A sentence that begins with one is a question."""
    inverting: frozenset[str] = frozenset()
    """Auxiliaries that begin a question before a subject."""
    subjects: frozenset[str] = frozenset()
    hints: frozenset[str] = field(init=False)
    """Words by which the language is recognized."""

    def __post_init__(self) -> None:
        known = self.idle | self.speakers | self.negations | self.markers | self.limits | self.asking
        named = {phrase[0] for phrase in (*self.leads, *(phrase for phrase, _ in self.same))}
        object.__setattr__(self, "hints", known | named)


def read_same_phrases(text: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Lines of `written: phrase | phrase`."""
    found: list[tuple[tuple[str, ...], str]] = []
    for line in text.strip().splitlines():
        written, _, rest = line.partition(":")
        found += [(phrase, written.strip()) for phrase in read_phrases(rest)]
    return tuple(sorted(found, key=lambda item: -len(item[0])))


PREFERENCE, FORMERLY = "«prefer»", "«formerly»"
"""What some phrases are written as: they have to be kept."""
