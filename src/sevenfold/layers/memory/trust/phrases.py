"""A sentence as phrases: its words in order, with the prepositions and conjunctions that lead them.

Articles, auxiliaries, polite words and phrases such as "remember that" are left out: they tell nothing about
what stands around a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sevenfold.core.text.stems import normalize_text
from sevenfold.layers.memory.trust.languages import choose_grammar
from sevenfold.layers.memory.trust.tokens import (
    BREAK,
    Grammar,
    Word,
    is_unspaced,
    read_word_set,
    split_tokens,
)

NOT, ONLY = "¬", "«only»"
_AND = {
    "de": "und sowie",
    "fr": "et",
    "es": "y e",
    "it": "e ed",
    "pt": "e",
    "nl": "en",
    "pl": "i oraz",
    "ru": "и",
}


def is_and(token: Word, grammar: Grammar) -> bool:
    """Whether it joins two clauses or things; with an accent "é" and "è" are verbs."""
    return token.text in _AND.get(grammar.name, "and").split() and token.surface not in ("é", "è")


CONJUNCTIONS = read_word_set(
    "if when whenever while where unless until till before after once because since although though whether "
    "which who whose what why how than then but or nor wenn falls sofern solange sobald nachdem bevor ehe "
    "aber sondern oder weil denn obwohl ob damit als dann quand lorsque mais ou car parce puis comme dont "
    "où qui tant si cuando mientras pero sino o porque pues aunque luego como donde quien se quando mentre "
    "finché ma oppure perché poiché come dove chi enquanto mas pois embora onde quem caso wanneer indien "
    "zolang zodra nadat voordat tenzij maar of want omdat hoewel jeśli jeżeli gdy kiedy dopóki aż chyba ale "
    "lecz lub albo bo ponieważ choć jak gdzie kto co если когда пока но или либо потому хотя как где кто"
)
"""Lead a clause with a verb of its own, unlike a preposition."""
SUBJECTS_AFTER_VERB = frozenset(("wir", "ich", "du", "ihr", "man", "we", "wij", "ik", "je", "jij", "jullie"))
THEN = read_word_set(
    "then afterwards dann danach anschließend dan daarna alors puis ensuite entonces allora poi então "
    "wtedy potem następnie потом затем"
)


@dataclass(frozen=True, slots=True)
class Phrase:
    words: tuple[Word, ...]
    is_led: bool = False
    """Begins with a preposition or a conjunction."""
    begins_clause: bool = False

    @property
    def is_limiting(self) -> bool:
        """Says when, where or for whom something holds; its first word is what leads it."""
        return self.is_led or self.words[0].text in (ONLY, NOT)


@dataclass(frozen=True, slots=True)
class ParsedSentence:
    phrases: tuple[Phrase, ...]

    @property
    def core(self) -> tuple[Phrase, ...]:
        return tuple(phrase for phrase in self.phrases if not phrase.is_led)

    @property
    def words(self) -> tuple[Word, ...]:
        return tuple(word for phrase in self.phrases for word in phrase.words)

    @property
    def count(self) -> int:
        return sum(len(phrase.words) for phrase in self.phrases)


def find_grammar(text: str, around: str = "") -> Grammar:
    """The language of a sentence. `around`: the name of that of the message it stands in."""
    tokens = split_tokens(text)
    surfaces = tuple(token.surface for token in tokens)
    return choose_grammar(tuple(token.text for token in tokens), surfaces, around)


@lru_cache(maxsize=8_192)
def parse_sentence(text: str, grammar: Grammar) -> ParsedSentence:
    tokens = _strip_ends(split_tokens(normalize_text(text)), grammar)
    return ParsedSentence(tuple(_read_phrases(tokens, grammar)))


_SIGN = re.compile(r"[<>=≤≥≠+%^|&$€£]+|(?<!\w)-(?=\d)")
_UNSPACED_MARK = re.compile(r"[\s\W]+")


@lru_cache(maxsize=8_192)
def find_key(text: str) -> str:
    """A sentence by its words: in lower case, without marks, and without "please" and "remember that" around
    it."""
    if is_unspaced(text):
        return f"{_UNSPACED_MARK.sub('', normalize_text(text)).casefold()} {' '.join(_SIGN.findall(text))}"
    tokens = _strip_ends(split_tokens(text), find_grammar(text))
    return " ".join([*(token.text for token in tokens if not token.is_break), *_SIGN.findall(text)])


def _strip_ends(tokens: list[Word], grammar: Grammar) -> list[Word]:
    """Without the phrases that begin and end a rule."""
    while True:
        tokens = _trim_breaks(tokens)
        texts = [token.text for token in tokens]
        leads = grammar.leads_by_word.get(texts[0], ()) if texts else ()
        lead = max((_count_lead(texts, phrase, grammar) for phrase in leads), default=0)
        tail = next((p for p in grammar.tails if len(p) < len(texts) and tuple(texts[-len(p) :]) == p), None)
        if lead:
            tokens = tokens[lead:]
        elif tail:
            tokens = tokens[: -len(tail)]
        else:
            return tokens


def _trim_breaks(tokens: list[Word]) -> list[Word]:
    start, end = 0, len(tokens)
    while start < end and tokens[start].is_break:
        start += 1
    while end > start and tokens[end - 1].is_break:
        end -= 1
    return tokens[start:end]


def _count_lead(texts: Sequence[str], phrase: tuple[str, ...], grammar: Grammar) -> int:
    """How many tokens a phrase takes that these begin with, breaks in it included; 0 where they do not."""
    at = 0
    for word in phrase:
        at += at > 0 and texts[at : at + 1] == [BREAK]
        if texts[at : at + 1] != [word]:
            return 0
        at += 1
    return at if len(phrase) != 1 or _may_lead(texts, phrase[0], grammar) else 0


def _may_lead(texts: Sequence[str], word: str, grammar: Grammar) -> bool:
    """A single word that means something else elsewhere ("no", "rule") leads only before a mark."""
    if word in grammar.idle or is_and(Word(word, word), grammar) or texts[1:2] == [BREAK]:
        return True
    return word not in grammar.negations | grammar.markers | _LABELS


_LABELS = read_word_set(
    "rule convention policy decision preference decided agreed important reminder no yes ok okay right hi "
    "hello hey note nota regel regla regola regra regle hinweis vereinbarung wichtig belangrijk importante "
    "zasada wazne правило важно non nein nee nie нет thanks i a e y а и"
)
"""Leads that are words of their own elsewhere."""


def _read_phrases(tokens: Sequence[Word], grammar: Grammar) -> Iterator[Phrase]:
    words: list[Word] = []
    is_led, begins = False, True
    for at, token in enumerate(tokens):
        is_end = token.is_break or is_and(token, grammar)
        leads = not token.is_exact and token.text in grammar.markers and not _is_article(token, grammar)
        is_limit = leads and [word.text for word in words] == [ONLY]
        if (
            is_end or (leads and not is_limit) or _begins_core(tokens, at, words if is_led else [], grammar)
        ) and words:
            yield Phrase(tuple(words), is_led, begins and not is_led)
            words, is_led, begins = [], False, False
        if is_end:
            begins = True
        elif leads:
            is_led, words = True, [*words, token]
        elif token.text in grammar.negations:
            words.append(Word(NOT, NOT))
        elif token.text in grammar.limits:
            words.append(Word(ONLY, token.surface))
        elif token.is_exact or token.text not in grammar.idle | grammar.speakers:
            words.append(token)
    if words:
        yield Phrase(tuple(words), is_led, begins and not is_led)


def _is_article(token: Word, grammar: Grammar) -> bool:
    """Without an accent it is an article or a verb."""
    return grammar.name in ("fr", "pt") and token.surface in ("a", "as")


def _begins_core(tokens: Sequence[Word], at: int, led: Sequence[Word], grammar: Grammar) -> bool:
    """ "For hotfixes | we branch off main", "am Freitag | deployen wir nicht"."""
    if len(led) < 2 or led[0].text in CONJUNCTIONS:
        return False
    is_second = grammar.name in _VERB_SECOND and [one.text for one in tokens[at + 1 : at + 2]]
    return bool(is_second and is_second[0] in SUBJECTS_AFTER_VERB) or tokens[at].text in grammar.speakers


_VERB_SECOND = frozenset(("de", "nl"))
