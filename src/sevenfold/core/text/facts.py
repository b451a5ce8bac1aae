"""A memory as the facts it states, and whether one text says what another said.

Words in common are not enough: a number, a path, a name in code or a "not" that differs is another fact. So
those are compared one by one, and only the words around them may differ a little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

SLACK_PERCENT = 15
"""Of a fact's words that another text may lack and still say the same: one in seven. Below seven words each
of them matters ("to staging", "to production")."""

SAME_ORDER_PERCENT = 50
"""Of its pairs of neighbours: "the client calls the server" is not what it is backwards."""

NEGATION_WINDOW_WORDS = 4
"""After a "not" that it may be about: "do not, on any account, deploy"."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
_ALONE = re.compile(r"\s*(?:#{1,6}\s.*|[-*_=\s|:]+|<!--.*-->)")
"""Headings, rules and the like: they order facts and state none."""
_TABLE = re.compile(r"\s*\|")
_SENTENCE = re.compile(r"[^.!?;]+(?:[.!?;](?!\s|$)[^.!?;]*)*[.!?;]*|[.!?;]+")
_TOKEN = re.compile(r"\w(?:[\w./:@#%+=&~-]*[\w/%+])?(?:['’]\w+)?")
_HARD = re.compile(r"[\d_/@=]|\w[.:]\w|[a-z][A-Z]|[A-Z]{2}")
_CODE = re.compile(r"`([^`\n]+)`")
_NOT = re.compile(r"\b(?:not|no|never|none|without|avoid|stop|cannot|nor|neither)\b|n['’]t\b", re.IGNORECASE)

_FLOATING = re.compile(r"\d{4}-\d\d-\d\d|only")
_SIDES = re.compile(r"\b(?:from|over|than|into|replaces?|supersedes?)\b", re.IGNORECASE)

NEGATION = "\N{NOT SIGN}"
"""In what must be the same where a fact is negated; twice where it is so again ("never … without")."""

_TURNING = frozenset(
    (
        "before",
        "after",
        "until",
        "unless",
        "except",
        "only",
        "instead",
        "disable",
        "enable",
        "off",
        "min",
        "max",
    )
)
"""Words that turn a fact into another one."""

# fmt: off
_STOP = frozenset((
    "a", "about", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being", "but", "by",
    "can", "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i",
    "if", "in", "into", "is", "it", "its", "me", "my", "of", "on", "or", "our", "please", "she", "should",
    "so", "some", "such", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to",
    "us", "was", "we", "were", "what", "when", "which", "who", "will", "with", "would", "you", "your",
))
# fmt: on


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement."""

    text: str
    """As it stands, without the mark of a list."""
    words: tuple[str, ...]
    """What it says, in order, without the small words and most endings."""
    hard: frozenset[str]
    """What must be the same to the letter: numbers, paths, names in code, and whether it is negated."""
    line: tuple[str, ...] = ()
    """All of that in its order, as often as it stands there; but dates and "only" may stand anywhere."""
    bag: frozenset[str] = field(init=False, repr=False, compare=False)
    """The words without their order."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bag", frozenset(self.words))

    @property
    def is_empty(self) -> bool:
        return not self.words and not self.hard - {NEGATION, NEGATION * 2}

    @property
    def negations(self) -> int:
        return (NEGATION in self.hard) + (NEGATION * 2 in self.hard)


def split_facts(body: str) -> tuple[Fact, ...]:
    """What a text states: each sentence of a paragraph or list item, each line of code or of a table."""
    found = (parse_fact(sentence) for part in _parts(body) for sentence in part)
    return tuple(fact for fact in found if not fact.is_empty)


@lru_cache(maxsize=65_536)
def parse_fact(text: str) -> Fact:
    prose = _CODE.sub(" ", text)
    hard = {span.strip().casefold() for span in _CODE.findall(text)}
    read = [_read_token(token) for token in _TOKEN.findall(prose)]
    hard.update(token.text for token in read if token.is_hard)
    words = tuple(token.text for token in read if token.text and not token.is_hard)
    hard.update((NEGATION, NEGATION * 2)[: len(_NOT.findall(prose))])
    return Fact(text.strip(), words, frozenset(hard), tuple(_in_line(text)))


def _in_line(text: str) -> Iterator[str]:
    for at, part in enumerate(_CODE.split(text)):
        if at % 2:
            yield part.strip().casefold()
            continue
        for token in _TOKEN.findall(part):
            found = NEGATION if _NOT.search(token) else _read_token(token).text
            if found and not _FLOATING.fullmatch(found):
                yield found


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    """As it counts; empty where it says nothing."""
    is_hard: bool = False


@lru_cache(maxsize=65_536)
def _read_token(token: str) -> _Token:
    low = token.casefold()
    if _HARD.search(token) or low in _TURNING:
        return _Token(low, is_hard=True)
    is_small = low in _STOP or _NOT.fullmatch(low) or low.endswith(("n't", "n’t"))
    return _Token("" if is_small else _plain(low))


def covers_fact(said: Fact, fact: Fact, *, is_strict: bool = False) -> bool:
    """Whether `said` states `fact` too, in nearly the same words; strictly: with all of them."""
    if not _agree(said, fact):
        return False
    if said.text == fact.text:
        return True
    if len(fact.words) + len(fact.hard) < 2:
        return said.words == fact.words  # a word alone says nothing that a sentence with it would
    slack = 0 if is_strict else len(fact.words) * SLACK_PERCENT // 100
    return len(fact.bag - said.bag) <= slack and _is_in_order(said, fact) and not is_reversed(said, fact)


def are_facts_stated(facts: Iterable[Fact], by: Sequence[Fact]) -> bool:
    """Whether others say all of these."""
    return all(any(covers_fact(said, fact) for said in by) for fact in facts)


def is_reversed(said: Fact, fact: Fact) -> bool:
    """Whether a fact whose order matters has what the two share the other way round: "tabs, not spaces" and
    "spaces, not tabs". What was at the end may come first: "on Fridays do not deploy"."""
    if not _has_sides(fact):
        return False
    if not _denies_alike(said, fact):
        return True
    shared = [token for token in fact.line if token in said.line]
    starts = range(max(1, len(said.line)))
    return not any(_is_within(shared, (*said.line[at:], *said.line[:at])) for at in starts)


def _has_sides(fact: Fact) -> bool:
    """Whether what stands before something in it may not stand behind it: names, numbers, and words such as
    "not", "over" or "from" tell two things apart."""
    is_told = len(fact.hard) > 1 or bool(fact.negations) or bool(fact.hard & _TURNING)
    return is_told or len(set(fact.line)) < len(fact.line) or _SIDES.search(fact.text) is not None


def _denies_alike(said: Fact, fact: Fact) -> bool:
    """Whether "not" goes with the same: "deploy without review" does not say "never deploy"."""
    denied = {after for before, after in pairwise(fact.line) if before == NEGATION}
    marks = [at for at, token in enumerate(said.line) if token == NEGATION]
    near = {token for at in marks for token in said.line[at + 1 : at + 1 + NEGATION_WINDOW_WORDS]}
    return denied.intersection(said.line) <= near


def _is_within(tokens: Iterable[str], line: Iterable[str]) -> bool:
    """Whether these stand there in this order, with or without others between them."""
    rest = iter(line)
    return all(token in rest for token in tokens)


def _agree(said: Fact, fact: Fact) -> bool:
    return fact.hard <= said.hard and said.negations == fact.negations


def _is_in_order(said: Fact, fact: Fact) -> bool:
    pairs = set(pairwise(fact.words))
    kept = len(pairs & set(_near_pairs(said.words)))
    return 100 * kept >= SAME_ORDER_PERCENT * len(pairs)


def _near_pairs(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Neighbours, and next but one: a word that was put in between turns nothing around."""
    yield from pairwise(words)
    yield from zip(words, words[2:], strict=False)


def _plain(word: str) -> str:
    """Without the endings that come and go when a sentence is put another way."""
    for ending, least in (("ing", 5), ("ed", 5), ("es", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e") if len(word) > 3 else word


def _parts(body: str) -> Iterator[list[str]]:
    """The sentences of each paragraph and list item; a line of code or of a table is one of its own."""
    prose: list[str] = []
    fence = ""
    for line in body.splitlines():
        mark = _FENCE.match(line)
        item = _ITEM.match(line)
        if fence or mark or item or not line.strip() or _ALONE.fullmatch(line) or _TABLE.match(line):
            yield _sentences(prose)
            prose = []
        if fence:
            closes = mark is not None and mark[1].startswith(fence)
            fence = "" if closes else fence
            yield [] if closes else [line]
        elif mark:
            fence = mark[1]
        elif _TABLE.match(line):
            yield [line.strip(" |\t")]
        elif not _ALONE.fullmatch(line):
            prose.append(line[item.end() :] if item else line.strip())
    yield _sentences(prose)


def _sentences(lines: list[str]) -> list[str]:
    return _SENTENCE.findall(" ".join(lines)) if lines else []


@dataclass(slots=True)
class FactIndex:
    """Facts by what they hold, so that who looks for one does not read all."""

    _held: dict[str, list[Fact]] = field(default_factory=dict[str, list[Fact]])
    _where: dict[Fact, list[str]] = field(default_factory=dict[Fact, list[str]])

    def add(self, key: str, facts: Iterable[Fact]) -> None:
        for fact in facts:
            if fact not in self._where:
                self._where[fact] = []
                for token in fact.bag | fact.hard:
                    self._held.setdefault(token, []).append(fact)
            self._where[fact].append(key)

    def find(self, fact: Fact, *, is_strict: bool = False) -> tuple[str, ...]:
        """The keys of those that state it."""
        found: dict[str, None] = {}
        for said in self._candidates(fact):
            if covers_fact(said, fact, is_strict=is_strict):
                found.update(dict.fromkeys(self._where[said]))
        return tuple(found)

    def _candidates(self, fact: Fact) -> Iterable[Fact]:
        """All that could be it, and few others: by the rarest thing that it must hold."""
        # One more than may be missing: whoever holds none of these misses too many.
        few = 1 + len(fact.words) * SLACK_PERCENT // 100
        rare = sorted((self._held.get(word, []) for word in fact.bag), key=len)[:few]
        if fact.hard:
            exact = min((self._held.get(token, []) for token in fact.hard), key=len)
            if len(fact.bag) < few or len(exact) <= sum(map(len, rare)):
                return exact
        return dict.fromkeys(said for group in rare for said in group)
