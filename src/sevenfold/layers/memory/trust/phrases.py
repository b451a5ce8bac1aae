"""A sentence as phrases: its words in order, with the prepositions and conjunctions that lead them.

What a note may leave out is taken away: articles, auxiliaries, polite words, phrases such as "remember that".
Everything else has to be found again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sevenfold.core.text.stems import normalize_text
from sevenfold.layers.memory.trust.languages import choose_grammar
from sevenfold.layers.memory.trust.tokens import BREAK, PREFERENCE, Grammar, Word, read_word_set, split_tokens

NOT, ONLY, WISH, EVERY = "¬", "«only»", "«wish»", "every"
_USE = "use"
_COORDINATORS = frozenset(("and", "und", "et", "y", "e", "en", "i", "и", "sowie"))
_CONTRAST = frozenset(("instead", "statt", "anstatt", "zamiast", "вместо"))
"""Lead what is not to be used, which a note may leave out."""
MAX_CONTRAST_WORDS = 2
_SPEAKER_SUBJECTS = frozenset(("i", "ich", "je", "j", "ik", "yo", "io", "eu", "ja", "я"))
SECOND_PERSON = frozenset(("you", "du", "ihr", "tu", "vous", "usted", "voi", "voce", "jij", "ty", "ты", "вы"))


_OBLIGATION = read_word_set(
    "should must need needs have ought shall will soll sollst sollt musst muss musst dois doit devez faut "
    "debes debe "
    "tienes devi deve dovete deves moet musisz powinienes должен должна"
)
_PLACES = frozenset(("at", "on", "in", "inside", "within"))
_PLACE_MARK = "«in»"
_LIKING = frozenset(
    ("like", "likes", "love", "loves", "mag", "aime", "gusta", "gustan", "piace", "gosto", "lubie")
)
"""Go without saying before an address, a number or a date."""


@dataclass(frozen=True, slots=True)
class Phrase:
    words: tuple[Word, ...]
    is_led: bool = False
    """Begins with a preposition or a conjunction, or is limited by "only": it may stand elsewhere."""
    begins_clause: bool = False
    is_optional: bool = False
    """May be left out: a reason, or what something is used instead of."""

    @property
    def is_limiting(self) -> bool:
        """Says when, where or for whom something holds; its first word is what leads it."""
        return not self.is_optional and (self.is_led or self.words[0].text in (ONLY, NOT))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSentence:
    phrases: tuple[Phrase, ...]
    is_passive: bool
    speakers: frozenset[str]
    has_own_subject: bool
    """The speaker does it: "I approve releases"."""
    first: str = ""
    """Its first word."""
    is_obliging: bool = False
    """It says that something must or must not be, in so many words."""

    @property
    def core(self) -> tuple[Phrase, ...]:
        return tuple(phrase for phrase in self.phrases if not phrase.is_led and not phrase.is_optional)

    @property
    def count(self) -> int:
        return sum(len(phrase.words) for phrase in self.phrases)

    @property
    def addresses_agent(self) -> bool:
        return bool(self.speakers & SECOND_PERSON)

    @property
    def has_preference(self) -> bool:
        return any(word.text in (PREFERENCE, WISH) for phrase in self.phrases for word in phrase.words)


def find_grammar(text: str) -> Grammar:
    return choose_grammar(tuple(token.text for token in split_tokens(text)))


@lru_cache(maxsize=8_192)
def parse_sentence(text: str, grammar: Grammar) -> ParsedSentence:
    whole = split_tokens(normalize_text(text))
    tokens = _strip_ends(whole, grammar)
    words = {token.text for token in tokens}
    return ParsedSentence(
        phrases=tuple(_phrases(_merged(_reordered(tokens, grammar), grammar), grammar)),
        is_passive=bool(words & grammar.passive),
        speakers=frozenset(words & grammar.speakers),
        has_own_subject=bool(tokens) and tokens[0].text in _SPEAKER_SUBJECTS & grammar.speakers,
        first=whole[0].text if whole else "",
        is_obliging=bool(words & (_OBLIGATION | grammar.negations | grammar.weak)),
    )


def _strip_ends(tokens: list[Word], grammar: Grammar) -> list[Word]:
    """Without the phrases that begin and end a rule."""
    while True:
        tokens = _trim_breaks(tokens)
        texts = [token.text for token in tokens]
        lead = max((_count_lead(texts, phrase, grammar) for phrase in grammar.leads), default=0)
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
    if word in grammar.idle or word in _COORDINATORS or texts[1:2] == [BREAK]:
        return True
    return word not in grammar.negations | grammar.markers | _LABELS


_LABELS = read_word_set(
    "rule convention policy decision preference decided agreed important reminder no yes ok okay right hi "
    "hello hey "
    "note nota regel regla regola regra regle hinweis vereinbarung wichtig belangrijk importante zasada "
    "wazne правило "
    "важно non nein nee nie нет thanks i a e y а и"
)
"""Leads that are words of their own elsewhere."""


def _reordered(tokens: list[Word], grammar: Grammar) -> list[Word]:
    """ "Bugs of the pipeline" as "the pipeline bugs"."""
    if grammar.name != "en":
        return tokens
    made = list(tokens)
    at = 1
    while at < len(made) - 1:
        if made[at].text == "of" and not _ends_noun(made[at - 1], grammar):
            end = at + 1
            while end < len(made) and made[end].text in grammar.idle:
                end += 1
            while end < len(made) and not _ends_noun(made[end], grammar):
                end += 1
            made[at - 1 : end] = [*made[at + 1 : end], made[at - 1]]
        at += 1
    return made


def _ends_noun(token: Word, grammar: Grammar) -> bool:
    is_function = token.text in grammar.idle | grammar.markers | grammar.negations | grammar.weak
    return token.is_break or is_function or token.text in _COORDINATORS or token.text == "of"


def _merged(tokens: Sequence[Word], grammar: Grammar) -> list[Word]:
    """With phrases that mean the same written alike, and each negation as one sign."""
    found: list[Word] = []
    at = 0
    while at < len(tokens):
        texts = tuple(token.text for token in tokens[at : at + 4])
        same = next((item for item in grammar.same if texts[: len(item[0])] == item[0]), None)
        if same is None:
            found.append(_marked(tokens, at, grammar))
            at += 1
            continue
        count, written = len(same[0]), same[1]
        is_denied = bool(found) and found[-1].text == NOT
        if written.startswith(NOT):
            found += [Word(NOT, NOT), *([Word(written[1:], written[1:])] if written[1:] else [])]
        elif written == "have to" and is_denied:
            # "You do not have to ask" does not forbid it.
            found.append(Word("«have to»", written))
        elif written == PREFERENCE and _is_wish(texts, count):
            found.append(Word(WISH, written))
        elif written != "have to":
            found.append(Word(written, tokens[at].surface))
        at += count
    return found


def _is_wish(texts: Sequence[str], count: int) -> bool:
    """ "I want short answers" asks for something; "I like skipping it" and "I want to skip it" do not."""
    after = texts[count] if count < len(texts) else ""
    return texts[0] not in _LIKING and after != "to" and not after.endswith("ing")


def _marked(tokens: Sequence[Word], at: int, grammar: Grammar) -> Word:
    token = tokens[at]
    if token.text in grammar.negations:
        return Word(NOT, NOT)
    before = tokens[at - 1].text if at else ""
    is_going_on = token.text.endswith("ing") and before in grammar.passive and grammar.name == "en"
    return replace(token, is_going_on=True) if is_going_on else token


def _phrases(tokens: Sequence[Word], grammar: Grammar) -> Iterator[Phrase]:
    builder = _Builder(grammar, has_use=any(token.text == _USE for token in tokens))
    reason = _find_reason(tokens, grammar)
    for at, token in enumerate(tokens):
        if at == reason.at:
            builder.close()
            builder.begins, builder.is_optional = True, reason.is_optional
        if reason.at <= at < reason.at + reason.count:
            continue
        builder.take(token, tokens[at + 1 : at + 4])
    builder.close(is_last=True)
    yield from builder.found


@dataclass(frozen=True, slots=True)
class _Reason:
    at: int = -1
    count: int = 0
    is_optional: bool = False


def _find_reason(tokens: Sequence[Word], grammar: Grammar) -> _Reason:
    """Where a reason begins that goes to the end. It may be left out unless it holds a condition."""
    texts = tuple(token.text for token in tokens)
    risky = _RISKY | grammar.limits
    for at in range(1, len(texts)):
        cause = next((p for p in grammar.causes if texts[at : at + len(p)] == p), None)
        if cause:
            return _Reason(at, len(cause), risky.isdisjoint(texts[at + len(cause) :]))
    return _Reason()


_RISKY = read_word_set(
    "if unless except but when only or wenn falls außer ausser aber oder si sauf mais ou quand si salvo "
    "pero cuando se "
    "tranne ma quando exceto mas als tenzij maar jeśli jesli chyba ale если кроме но"
)


class _Builder:
    """Collects the words of one phrase after another."""

    def __init__(self, grammar: Grammar, *, has_use: bool) -> None:
        self.grammar, self.has_use = grammar, has_use
        self.found: list[Phrase] = []
        self.words: list[Word] = []
        self.is_led, self.begins, self.is_optional = False, True, False
        self.limit: Word | None = None

    def take(self, token: Word, following: Sequence[Word]) -> None:
        grammar, text = self.grammar, token.text
        if token.is_break or text in _COORDINATORS:
            self.close()
            self.begins = True
        elif text in grammar.limits:
            self._take_limit(token, following)
        elif text == _USE and self.grammar.name == "en":
            self._take_use(following)
        elif self._leads(token, following):
            self.close()
            self.is_led = True
            is_place = text in _PLACES or (text == "for" and self.has_use)
            self.words.append(Word(_PLACE_MARK, text) if is_place else token)
        elif not self._is_idle(token, following) and not self._is_repeated(token):
            self.words.append(token)

    def _take_use(self, following: Sequence[Word]) -> None:
        """ "Docs use British spelling" as "for docs, use British spelling"."""
        is_plain = all(word.text not in (NOT, ONLY) for word in self.words)
        if self.words and following and is_plain and not self.is_led:
            self.words.insert(0, Word(_PLACE_MARK, _USE))
            self.is_led = True
            self.close()

    def _leads(self, token: Word, following: Sequence[Word]) -> bool:
        if token.is_exact or token.text not in self.grammar.markers | _CONTRAST:
            return False
        return not (token.text in _PLACES and following and following[0].is_exact)

    def _take_limit(self, token: Word, following: Sequence[Word]) -> None:
        """ "Only" limits what it stands next to: the phrase that it begins or ends."""
        after = next((word for word in following if word.text not in self.grammar.idle), None)
        is_last = after is None or after.is_break or after.text in _COORDINATORS
        if after is not None and after.text in self.grammar.markers:
            self.close()
            self.limit = token
        elif is_last or not self.words:
            self.limit = token
        else:
            self.words.append(token)

    def _is_idle(self, token: Word, following: Sequence[Word]) -> bool:
        grammar, text = self.grammar, token.text
        if token.is_exact:
            return False
        if text in grammar.weak:
            return any(after.text == NOT for after in following)
        if grammar.name == "en" and text.startswith("keep"):
            # "We keep skipping it" is no rule.
            return not (following and following[0].text.endswith("ing"))
        if grammar.name == "en" and text in {"of", *_PLACES}:
            return True
        return text in grammar.idle or text in grammar.speakers

    def _is_repeated(self, token: Word) -> bool:
        """ "Ne … jamais" says no once; "not forbidden" does not."""
        return (
            self.grammar.name not in ("en", "de", "nl")
            and token.text == NOT
            and bool(self.words)
            and self.words[-1].text == NOT
        )

    def close(self, *, is_last: bool = False) -> None:
        if self.words or (is_last and self.limit):
            limit = [Word(ONLY, self.limit.surface)] if self.limit else []
            is_empty = [word.text for word in self.words] in (["about"], ["about", "that"])
            is_contrast = bool(self.words) and self.words[0].text in _CONTRAST
            self.found.append(
                Phrase(
                    (*limit, *self.words),
                    self.is_led,
                    self.begins and not self.is_led,
                    self.is_optional
                    or is_empty
                    or (is_contrast and len(self.words) <= 1 + MAX_CONTRAST_WORDS),
                )
            )
            self.begins, self.limit = False, None
        self.words, self.is_led = [], False
