"""The user's own sentence in place of one that a model put in words of its own.

Nothing is trusted here: what comes out is judged again, and holds only sentences that the user asserted and
that a model could have written down as they stand. So this chooses which sentence a model meant, and cannot
let anything in. Where no sentence of the user is about the same matter, the memory stays as it was written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from sevenfold.core.text.stems import normalize_text, split_sentences
from sevenfold.layers.memory.trust.evidence import (
    MAX_EVIDENCE_CHARS,
    UserSentence,
    changes_speaker,
    find_evidence,
    squeeze_unspaced,
)
from sevenfold.layers.memory.trust.frames import BY_WORDS, are_synonyms, exchanges_cases, is_text_word
from sevenfold.layers.memory.trust.phrases import (
    EVERY,
    NOT,
    ONLY,
    PLACE_MARK,
    Phrase,
    parse_sentence,
)
from sevenfold.layers.memory.trust.tokens import (
    FORMERLY,
    Grammar,
    Word,
    has_hidden_text,
    is_same_word,
    is_unspaced,
    read_word_set,
    split_tokens,
)
from sevenfold.layers.memory.trust.word_order import CONJUNCTIONS, THEN

MIN_OWN_SHARE = 0.6
"""Of the words of a model's sentence, in the user's: with less it speaks of something else as well."""
MAX_WORDS_FOR_ONE = 5
"""Of the user's sentence, for each that a model may leave out, but never the first. With more it may have
meant something else."""
MIN_PAIRS_SHARE = 0.8
"""The same for characters of a script without spaces."""
MAX_CLAUSE_WORDS = 2
"""After a conjunction, that tell its clause from others: a verb and its object change places."""
MAX_TRIED = 16
"""Of the user's sentences near to one of a model: whether one still holds depends on all the others."""
MIN_START = 4
"""Letters that two words begin with, to count as kin: "lint" and "linter"."""
MIN_WORDS = 2
"""Of a sentence that says something without those around it."""

_DOUBTING = read_word_set(
    "maybe perhaps probably possibly might could think guess suppose suspect assume believe wonder doubt "
    "fear afraid worry worried unsure uncertain hope wish convinced kidding joking supposedly allegedly "
    "apparently vielleicht wahrscheinlich vermutlich angeblich glaube denke vermute fürchte hoffe könnte "
    "könnten peut-être probablement crois pense crains espère pourrait pourrions quizás quizá tal-vez "
    "probablemente supuestamente creo pienso temo espero podría podríamos forse probabilmente credo penso "
    "temo spero potrebbe talvez provavelmente acho penso receio misschien waarschijnlijk vermoedelijk denk "
    "geloof vrees hoop zou może chyba prawdopodobnie myślę sądzę obawiam возможно наверное вероятно думаю "
    "кажется боюсь надеюсь якобы according selon apres laut segun secondo segundo volgens według "
    "словам"
)
"""Words by which somebody takes back some of what they say. A model that leaves one out has changed it."""

_LIMITS = read_word_set(
    "without except unless until till ohne außer bis sans sauf sin salvo excepto hasta senza tranne fino "
    "sem exceto até zonder behalve tot bez oprócz aż без кроме пока before after vor nach avant après "
    "antes después prima dopo depois voor przed po до после everybody some most least few many half einige "
    "manche certains quelques plupart algunos mayoría alcuni alguns maioria sommige niektóre некоторые"
)
"""Words that have to stand in both: they say to what something is limited."""
_LIGHT = read_word_set(
    "use put make keep do run write have go take get live call called done need machen tun nehmen "
    "schreiben nimm nimmt faire mettre hacer poner uso fare mettere fazer doen maken robić делать "
    "voortaan künftig désormais uses used usar usa usas usare suis sou soy sono bin ben this that "
    "these those my their its reason grund raison motivo reden powód причина"
)
"""Words that say little of what is done."""


@dataclass(frozen=True, slots=True)
class Quotation:
    body: str
    """With the user's sentences in place of the model's."""
    quoted: tuple[str, ...]


def quote_user(
    body: str, unsupported: Sequence[str], evidence: Sequence[str], said: Sequence[UserSentence]
) -> Quotation | None:
    """A body that says what the user said where a model said it in other words; None where they said nothing
    of the kind.

    `unsupported`: sentences of the body that rest on nothing. `evidence`: what the others rest on. `said`:
    all that the user said.
    """
    if not unsupported or has_hidden_text(body):
        return None
    index = _WordIndex([one for one in reversed(said) if _is_quotable(one)])
    chosen = {text: _choose(text, index, said) for text in unsupported}
    instead: dict[str, str] = {}
    quoted: list[str] = []
    for one in chosen.values():
        if one is None:
            return None
        together = [text for text, other in chosen.items() if other is one]
        if one.text in evidence:
            # A heading over it, or a part of it said again.
            instead |= dict.fromkeys(together, "")
            continue
        if not _is_rewording(_whole(one, said), ". ".join(_without_titles(together)), one):
            return None
        longest = max(together, key=len)
        instead |= {text: _whole(one, said) if text is longest else "" for text in together}
        quoted += [one.text] if one.text not in quoted else []
    written = _replace_sentences(body, instead)
    return Quotation(written, tuple(quoted)) if written else None


def _without_titles(sentences: Sequence[str]) -> list[str]:
    """Sentences without those whose words all stand in another."""
    words = [{word.text for word in split_tokens(text)} for text in sentences]
    return [text for at, text in enumerate(sentences) if not any(words[at] < other for other in words)]


def _choose(sentence: str, index: _WordIndex, said: Sequence[UserSentence]) -> UserSentence | None:
    """The sentence of the user that says most of it; the newest of several."""
    if has_hidden_text(sentence):
        return None
    near = [(share, one) for share, one in index.find_shares(sentence) if share >= MIN_OWN_SHARE]
    near = sorted(near, key=lambda pair: -pair[0])[:MAX_TRIED]
    return next((one for _, one in near if _still_holds(one, said)), None)


def _is_quotable(one: UserSentence) -> bool:
    """Whether it says something by itself, in words that are all the user's own."""
    is_whole = len(one.text) < MAX_EVIDENCE_CHARS and "…" not in one.text
    is_long = is_unspaced(one.text) or one.parsed.count >= MIN_WORDS
    return one.is_asserted and is_whole and is_long


def _still_holds(one: UserSentence, said: Sequence[UserSentence]) -> bool:
    return not find_evidence(split_sentences(_whole(one, said)), said).unsupported


def _whole(one: UserSentence, said: Sequence[UserSentence]) -> str:
    """A sentence with those that limit it."""
    limits = (other.text for other in said if other.at == one.at and other.place in one.needs)
    return " ".join(dict.fromkeys((one.text, *limits)))


def _is_rewording(said_text: str, kept_text: str, one: UserSentence) -> bool:
    """Whether a text seems to say what a sentence says, in other words. Where it says something else with
    these words, a person had better look at it."""
    if is_unspaced(said_text) or is_unspaced(kept_text):
        return _pairs_share(_pairs(said_text), _pairs(kept_text)) >= MIN_PAIRS_SHARE
    said, kept = _Outline(said_text, one.grammar), _Outline(kept_text, one.grammar)
    is_all = said.is_said_by(kept) and not said.drops_stance(kept)
    if not (said.parsed.is_passive or kept.parsed.is_passive) and exchanges_cases(
        said_text, kept_text, one.grammar.name
    ):
        return False
    return is_all and not said.exchanges(kept) and not changes_speaker(kept.parsed, one.parsed)


class _Outline:
    """Words of a text in their order, and what each preposition or conjunction leads."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        self.grammar, self.parsed = grammar, parse_sentence(text, grammar)
        tokens = split_tokens(text)
        # "Read-only" limits nothing.
        self.raw = [one for before, one in pairwise([Word("", ""), *tokens]) if not before.has_hyphen]
        self.words = [word for phrase in self.parsed.phrases for word in self._content(phrase)]
        self.leads: dict[str, list[Word]] = {}
        for phrase in self.parsed.phrases:
            for at, word in enumerate(phrase.words):
                if self._is_lead(word):
                    led = [one for one in phrase.words[at + 1 :] if _says_something(one)]
                    count = MAX_CLAUSE_WORDS if word.text in CONJUNCTIONS else 1
                    lead = ONLY if word.text in grammar.limits else word.text
                    self.leads.setdefault(lead, []).extend(led[:count])

    def is_said_by(self, kept: _Outline) -> bool:
        """Whether nearly all of it stands there, and every condition, limit, number and name."""
        phrases = [phrase for phrase in self.parsed.phrases if not phrase.is_optional]
        needed = [word for phrase in phrases for word in self._content(phrase)]
        exact = (word for word in (*needed, *kept.words) if word.is_exact or word.is_name)
        return (
            self._is_denied() == kept._is_denied()
            and all(map(kept.has, needed if self._is_denied() else needed[:1]))
            and sum(map(kept.has, needed)) >= len(needed) - len(needed) // MAX_WORDS_FOR_ONE
            and all(self.has(word) and kept.has(word) for word in exact)
            and all(kept._keeps(phrase) for phrase in phrases if phrase.is_led)
            and self._limits() <= kept._limits()
        )

    def drops_stance(self, kept: _Outline) -> bool:
        """Whether a word is missing that shows doubt, or that somebody else says it."""
        marked = (word for word in self.raw if word.text in _DOUBTING or is_text_word(word.text))
        texts = [word.text for phrase in self.parsed.phrases for word in phrase.words]
        if FORMERLY in texts:
            return True
        return any(not _stands_in(word, kept.raw, self.grammar.name) for word in marked)

    def exchanges(self, kept: _Outline) -> bool:
        """Whether things have changed places: who does what to whom, and what comes first."""
        for lead, words in kept.leads.items():
            own = self.leads.get(lead, ())
            known = [word for word in words if self.has(word)]
            if self.grammar.name != "de" and any(word.is_name for word in known):
                known = [word for word in known if word.is_name]
            is_same = any(_stands_in(word, own, self.grammar.name) for word in known)
            if own and known and not is_same and not (lead == ONLY and self._turns_passive(kept)):
                return True
        if self._turns_passive(kept):
            # "Ada reviews it" is not "Ada is reviewed".
            return _stands_in(self.words[0], kept.words[:1], self.grammar.name)
        return self._has_forms_of(kept) and any(one > two for one, two in pairwise(self._places_of(kept)))

    def _turns_passive(self, kept: _Outline) -> bool:
        if BY_WORDS.isdisjoint(self.leads) != BY_WORDS.isdisjoint(kept.leads):
            return True
        return self.parsed.is_passive != kept.parsed.is_passive and not self._has_forms_of(kept)

    def _has_forms_of(self, kept: _Outline) -> bool:
        """Whether no word of another stands here in another form."""
        surfaces = {word.surface for word in self.words}
        return all(word.surface in surfaces for word in kept.words if self.has(word))

    def _places_of(self, kept: _Outline) -> Iterator[int]:
        """Where the words of another stand here, without what a preposition or a conjunction leads."""
        mine, free = self._core(), set(range(len(self._core())))
        for word in kept._core():
            place = next(
                (at for at in sorted(free) if _stands_in(word, mine[at : at + 1], self.grammar.name)), -1
            )
            if place >= 0:
                free.discard(place)
                yield place

    def _core(self) -> list[Word]:
        only = self.leads.get(ONLY, [])
        return [word for phrase in self.parsed.core for word in self._content(phrase) if word not in only]

    def has(self, word: Word) -> bool:
        return _stands_in(word, self.words, self.grammar.name)

    def _keeps(self, led: Phrase) -> bool:
        words = list(self._content(led))
        return sum(map(self.has, words)) * 2 >= len(words)

    def _is_denied(self) -> bool:
        return any(word.text == NOT for phrase in self.parsed.phrases for word in phrase.words)

    def _limits(self) -> set[str]:
        limits = self.grammar.limits
        return {
            ONLY if word.text in limits else word.text
            for word in self.raw
            if word.text in limits | self.grammar.weak | _LIMITS
        }

    def _is_lead(self, word: Word) -> bool:
        known = self.grammar.markers | self.grammar.limits | CONJUNCTIONS | THEN
        return word.text in known or word.text in (ONLY, PLACE_MARK, "first")

    def _content(self, phrase: Phrase) -> Iterator[Word]:
        """The words that say something."""
        for word in phrase.words:
            idle = self.grammar.passive | _LIGHT
            if not self._is_lead(word) and _says_something(word) and word.text not in idle:
                yield word


class _WordIndex:
    """Sentences by their words, so that each word is compared once, however many sentences have it."""

    def __init__(self, sentences: Sequence[UserSentence]) -> None:
        self._sentences = sentences
        self._grammars = {one.grammar.name: one.grammar for one in sentences}
        self._places: dict[str, dict[Word, list[int]]] = {name: {} for name in self._grammars}
        self._pairs: dict[int, frozenset[str]] = {}
        for at, one in enumerate(sentences):
            if is_unspaced(one.text):
                self._pairs[at] = _pairs(one.text)
                continue
            for word in dict.fromkeys(_Outline(one.text, one.grammar).words):
                self._places[one.grammar.name].setdefault(word, []).append(at)

    def find_shares(self, sentence: str) -> list[tuple[float, UserSentence]]:
        """How much of the words of a sentence stand in each, in the order of the sentences."""
        shares = dict.fromkeys(range(len(self._sentences)), 0.0)
        if is_unspaced(sentence) or self._pairs:
            own = _pairs(sentence)
            for at in shares if is_unspaced(sentence) else self._pairs:
                others = self._pairs.get(at) or _pairs(self._sentences[at].text)
                shares[at] = _pairs_share(own, others)
        if not is_unspaced(sentence):
            for grammar in self._grammars.values():
                words = _Outline(sentence, grammar).words
                found = Counter(at for word in words for at in self._find(word, grammar.name))
                shares |= {at: count / len(words) for at, count in found.items()}
        return [(shares[at], one) for at, one in enumerate(self._sentences)]

    def _find(self, word: Word, language: str) -> set[int]:
        places = self._places[language].items()
        return {at for other, found in places if _means_same(word, other, language) for at in found}


def _pairs(text: str) -> frozenset[str]:
    bare = squeeze_unspaced(text)
    return frozenset(bare[at : at + 2] for at in range(len(bare) - 1))


def _pairs_share(pairs: frozenset[str], others: frozenset[str]) -> float:
    return len(pairs & others) / max(1, len(pairs))


def _stands_in(word: Word, others: Iterable[Word], language: str) -> bool:
    return any(_means_same(word, other, language) for other in others)


@lru_cache(maxsize=65_536)
def _means_same(word: Word, other: Word, language: str) -> bool:
    return (
        is_same_word(word, other, language)
        or are_synonyms(word, other, language)
        or (not word.is_exact and not other.is_exact and _are_kin(word.text, other.text))
    )


def _says_something(word: Word) -> bool:
    return word.is_exact or (word.text[:1].isalnum() and word.text != EVERY)


def _are_kin(one: str, other: str) -> bool:
    short = min(len(one), len(other))
    return short >= MIN_START and one[:short] == other[:short]


def _replace_sentences(body: str, instead: Mapping[str, str]) -> str:
    """The body with some of its sentences exchanged or left out."""
    left = dict(instead)
    lines: list[str] = []
    for line in normalize_text(body).split("\n"):
        changed = line
        for old in split_sentences(line):
            if old in left:
                changed = changed.replace(old, left[old], 1)
                left[old] = ""
        if changed == line or split_sentences(changed):
            lines.append(changed.rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
