"""Sentences of the user that share words with a sentence in other words, in any form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from sevenfold.layers.memory.trust.phrases import (
    CONJUNCTIONS,
    NOT,
    ONLY,
    THEN,
    ParsedSentence,
    parse_sentence,
)
from sevenfold.layers.memory.trust.tokens import Grammar, Word, is_unspaced, read_word_set
from sevenfold.layers.memory.trust.user_sentences import (
    MAX_EVIDENCE_CHARS,
    UserSentence,
    iterate_clauses,
    squeeze_unspaced,
)

MIN_OWN_SHARE = 0.4
"""Of the words of a model's sentence, in the user's: with less it speaks of something else."""
MIN_PAIRS_SHARE = 0.3
"""The same for characters of a script without spaces."""
MIN_BOTH_SHARES = 0.8
"""That, and how much of the user's words stand in the model's, added up: with less the model tells what it
found while it did what the user asked for."""
MIN_BOTH_PAIRS_SHARES = 0.7
"""The same for characters of a script without spaces."""
MIN_PIECE, MIN_PIECE_SHARE = 4, 0.6
"""Letters in a row that two words have in common, to count as related; how much of the shorter they are."""
MAX_RECENT = 60
"""Sentences that the user said last, of which a model may have put several into one."""
MIN_CLAUSE_WORDS = 3
"""Of a part of a sentence that may stand for all of it."""
MIN_WORDS = 3
"""Of a sentence that says something without those around it."""

_LIGHT = read_word_set(
    "use put make keep do run write have go take get live call called done need machen tun nehmen "
    "schreiben nimm nimmt faire mettre hacer poner uso fare mettere fazer doen maken robić делать "
    "voortaan künftig désormais uses used usar usa usas usare suis sou soy sono bin ben this that "
    "these those my their its reason grund raison motivo reden powód причина"
)
"""Words that say little of what is done."""
_MARKS = frozenset((NOT, ONLY, "every", "first"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMatch:
    """A sentence of the user, and what it shares with one of a model."""

    said: UserSentence
    common: frozenset[str]
    share: float
    """Of the model's words."""
    said_share: float
    """Of the user's, in the clause of which most is there."""

    @property
    def is_near(self) -> bool:
        if is_unspaced(self.said.text):
            return self.share >= MIN_PAIRS_SHARE and self.share + self.said_share >= MIN_BOTH_PAIRS_SHARES
        return self.share >= MIN_OWN_SHARE and self.share + self.said_share >= MIN_BOTH_SHARES


def share_words(sentence: str, said: UserSentence) -> bool:
    """Whether a sentence has anything of one of the user."""
    if is_unspaced(sentence) or is_unspaced(said.text):
        return not _read_pairs(sentence).isdisjoint(_read_pairs(said.text))
    own = read_content_words(said.text, said.grammar)
    return any(
        may_be_related(one, other) for other in read_content_words(sentence, said.grammar) for one in own
    )


@dataclass(frozen=True, slots=True)
class Found:
    """A match, the language in which words were compared (none for characters), and the place of the first
    word that both have."""

    match: NearMatch
    language: str = ""
    first: int = 0


class NearWords:
    """Sentences that a memory may be made of, by their words; in a script without spaces by pairs of
    characters. Each has a number."""

    def __init__(self) -> None:
        self.grammars: dict[str, Grammar] = {}
        """The language that was written last is the last."""
        self._said: dict[int, UserSentence] = {}
        self._words: dict[str, dict[Word, set[int]]] = {}
        """By each piece of a word, where related ones are found."""
        self._clauses: dict[int, tuple[tuple[Word, ...], ...]] = {}
        """Words of a sentence: of all of it, and of each clause that says something by itself."""
        self._pairs: dict[str, set[int]] = {}
        self._unspaced: set[int] = set()
        self._unread: list[int] = []
        """Sentences with spaces, whose pairs are read when somebody asks for them."""

    def add(self, one: UserSentence, number: int) -> None:
        if not is_quotable(one):
            return
        self._said[number] = one
        self.grammars.pop(one.grammar.name, None)
        self.grammars[one.grammar.name] = one.grammar
        if is_unspaced(one.text):
            self._unspaced.add(number)
            self._add_pairs(number)
            return
        self._unread.append(number)
        words = _list_content(one.parsed, one.grammar)
        clauses = (_list_content(clause, one.grammar) for clause in iterate_clauses(one.parsed))
        self._clauses[number] = (words, *(clause for clause in clauses if len(clause) >= MIN_CLAUSE_WORDS))
        for word in words:
            for piece in _find_pieces(word.text):
                self._words.setdefault(piece, {}).setdefault(word, set()).add(number)

    def find(self, sentence: str, count: int) -> Iterator[Found]:
        """Sentences of the first `count` that share words, the newest first: all that are near, and of the
        last ones each."""
        if is_unspaced(sentence):
            while self._unread:
                self._add_pairs(self._unread.pop())
            yield from self._find_pairs(sentence, set(range(count)))
            return
        if self._unspaced:
            yield from self._find_pairs(sentence, {number for number in self._unspaced if number < count})
        for name, grammar in self.grammars.items():
            yield from self._find_words(read_content_words(sentence, grammar), name, count)

    def _find_words(self, words: Sequence[Word], language: str, count: int) -> Iterator[Found]:
        places = [self._find_related(word) for word in words]
        shared = Counter[int]()
        for found in places:
            shared.update(number for number in found if number < count)
        for number in sorted(shared, reverse=True):
            if shared[number] < MIN_OWN_SHARE * len(words) and number < count - MAX_RECENT:
                continue
            said = self._said[number]
            held = [at for at, found in enumerate(places) if number in found]
            common = frozenset(words[at].text for at in held)
            match = NearMatch(
                said=said,
                common=common,
                share=len(common) / len(words),
                said_share=max(_find_share(clause, words) for clause in self._clauses[number]),
            )
            yield Found(match, language, held[0])

    def _find_related(self, word: Word) -> set[int]:
        pieces = (self._words.get(piece, {}) for piece in _find_pieces(word.text))
        related = {
            other: at for known in pieces for other, at in known.items() if may_be_related(word, other)
        }
        return set[int]().union(*related.values())

    def _find_pairs(self, sentence: str, among: set[int]) -> Iterator[Found]:
        own = _read_pairs(sentence)
        near = set[int]().union(*(self._pairs.get(pair, ()) for pair in own)) & among
        for number in sorted(near, reverse=True):
            said = self._said[number]
            pairs = _read_pairs(said.text)
            yield Found(_match(said, own & pairs, len(own), len(pairs)))

    def _add_pairs(self, number: int) -> None:
        for pair in _read_pairs(self._said[number].text):
            self._pairs.setdefault(pair, set()).add(number)


def _find_share(said: Sequence[Word], kept: Sequence[Word]) -> float:
    shared = sum(any(may_be_related(one, other) for other in kept) for one in said)
    return shared / max(1, len(said))


def _match(said: UserSentence, common: frozenset[str], count: int, said_count: int) -> NearMatch:
    shares = len(common) / max(1, count), len(common) / max(1, said_count)
    return NearMatch(said=said, common=common, share=shares[0], said_share=shares[1])


def is_quotable(one: UserSentence) -> bool:
    """Whether it says something by itself, in words that are all the user's own."""
    is_whole = len(one.text) < MAX_EVIDENCE_CHARS and "…" not in one.text
    is_long = is_unspaced(one.text) or (
        one.parsed.count > 0
        # "Take logger.debug."
        and (len(one.key.split()) >= MIN_WORDS or any(word.is_exact for word in one.parsed.words))
    )
    return one.is_asserted and is_whole and is_long


def read_content_words(text: str, grammar: Grammar) -> tuple[Word, ...]:
    """The words that say something, each once."""
    return _list_content(parse_sentence(text, grammar), grammar)


def _list_content(parsed: ParsedSentence, grammar: Grammar) -> tuple[Word, ...]:
    idle = grammar.passive | grammar.markers | grammar.limits | CONJUNCTIONS | THEN | _LIGHT | _MARKS
    said = (
        word for word in parsed.words if word.text not in idle and (word.is_exact or word.text[:1].isalnum())
    )
    return tuple(dict.fromkeys(said))


def _read_pairs(text: str) -> frozenset[str]:
    bare = squeeze_unspaced(text)
    return frozenset(bare[at : at + 2] for at in range(len(bare) - 1))


def may_be_related(word: Word, other: Word) -> bool:
    """Whether two words are the same or much alike."""
    is_free = not word.is_exact and not other.is_exact
    return word.text == other.text or (is_free and _are_alike(word.text, other.text))


@lru_cache(maxsize=65_536)
def _are_alike(one: str, other: str) -> bool:
    """Whether most of the shorter stands in the longer: "lint" and "linter", "fragen" and "gefragt"."""
    shorter, longer = sorted((one, other), key=len)
    size = max(MIN_PIECE, ceil(MIN_PIECE_SHARE * len(shorter)))
    return any(shorter[at : at + size] in longer for at in range(len(shorter) - size + 1))


@lru_cache(maxsize=16_384)
def _find_pieces(word: str) -> frozenset[str]:
    return frozenset(word[at : at + MIN_PIECE] for at in range(max(1, len(word) - MIN_PIECE + 1)))
