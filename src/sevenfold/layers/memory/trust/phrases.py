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
from sevenfold.layers.memory.trust.numbers import read_numbers
from sevenfold.layers.memory.trust.tokens import (
    BREAK,
    PREFERENCE,
    Grammar,
    Word,
    read_word_set,
    split_tokens,
)
from sevenfold.layers.memory.trust.word_order import (
    CONJUNCTIONS,
    SUBJECTS_AFTER_VERB,
    THEN,
    ends_noun,
    is_and,
    join_words,
    reorder_words,
)

NOT, ONLY, WISH, EVERY = "¬", "«only»", "«wish»", "every"
_USE = "use"
_PERFECT = {
    "de": read_word_set("habe hast hat haben habt hatte hatten"),
    "fr": read_word_set("ai as a avons avez ont"),
    "es": read_word_set("he has ha hemos han"),
    "it": read_word_set("ho hai ha abbiamo hanno"),
    "pt": read_word_set("tenho tem temos têm"),
    "nl": read_word_set("heb hebt heeft hebben had hadden"),
}
"""Auxiliaries of the past."""
_USING = read_word_set(
    "use uses nutzen nutzt nutze benutzen benutze benutzt verwenden verwende verwendet nehmen utiliser "
    "utilise utilisons usar usa usamos usan utilizar utiliza utilizamos usare usiamo usano utilizzare "
    "utilizziamo gebruik gebruiken gebruikt używać używaj używamy użyj использовать используй используем"
)
_CONTRAST = frozenset(("instead", "statt", "anstatt", "zamiast", "вместо"))
"""Lead what is not to be used, which a note may leave out."""
MAX_CONTRAST_WORDS = 2
_SPEAKER_SUBJECTS = frozenset(("i", "ich", "je", "j", "ik", "yo", "io", "eu", "ja", "я"))
SECOND_PERSON = frozenset(("you", "du", "ihr", "tu", "vous", "usted", "voi", "voce", "jij", "ty", "ты", "вы"))
_OBLIGATION = read_word_set(
    "should must need needs have ought shall will soll sollst sollt musst muss dois doit devez faut debes "
    "debe tienes devi deve dovete deves moet musisz powinienes должен должна"
)
_PLACES = frozenset(("at", "on", "in", "inside", "within"))
"""Go without saying before an address, a number or a date."""
_INTO = frozenset(("into", "onto"))
_BETWEEN = read_word_set("between zwischen entre tra fra tussen między między между")
PLACE_MARK = "«in»"
_LIKING = read_word_set(
    "like likes love loves mag aime gusta gustan piace piacciono gosto gosta lubię lubi люблю любит houd "
    "houdt"
)
_FINITE = read_word_set(
    "is are will must should wird werden ist sind muss müssen soll sollen nutzen benutzen verwenden nehmen "
    "gilt est sont faut doit devons utilise utilisons es son está están hay debe debemos usamos usa "
    "utilizamos è deve dobbiamo usiamo usa utilizziamo é são deve devemos usamos usa wordt worden moet "
    "moeten gebruiken jest są należy trzeba używamy нужно надо используем"
) - {"e"}
"""Verbs that are left out. What a preposition leads ends before one."""
_VERB_SECOND = frozenset(("de", "nl"))
_ARTICLE_TOO = frozenset(("zum", "zur"))
_FREQUENCIES = read_word_set(
    "hourly daily nightly weekly monthly yearly stündlich täglich wöchentlich monatlich jährlich"
)
"""Stand anywhere in a sentence."""
_NO_MANNER = frozenset(
    ("only", "apply", "supply", "reply", "family", "assembly", "early", "fly", "rely", "july")
)
_DAY_NAMES = read_word_set(
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays "
    "saturdays sundays lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves "
    "viernes sábado domingo lunedì martedì mercoledì giovedì venerdì sabato domenica"
)
_CONDITIONAL = read_word_set(
    "could might könnte könnten dürfte pourrait pourrions pourrais podría podríamos podrías potrebbe "
    "potremmo potresti poderia poderíamos zou zouden mógłby мог"
)
_WHEN_DOING = {"es": "al", "pt": "ao"}
"""Before an infinitive: "al cambiar" is "cuando cambies"."""
_OVER, _LONGER, _DROPPED, _OBLIGED = "over", "longer", "·", "have to"
_BOUNDS = frozenset(("max", "min"))


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
    language: str = "en"
    is_perfect: bool = False
    """It may tell what somebody has done: "wir haben es gelöscht", "on a sauté la relecture"."""
    has_use: bool = False
    """It says what is used for something."""

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
    tokens = split_tokens(text)
    return choose_grammar(tuple(token.text for token in tokens), tuple(token.surface for token in tokens))


@lru_cache(maxsize=8_192)
def parse_sentence(text: str, grammar: Grammar) -> ParsedSentence:
    whole = read_numbers(split_tokens(normalize_text(text)), grammar.name)
    tokens = join_words(_strip_ends(whole, grammar), grammar)
    words = {token.text for token in tokens}
    return ParsedSentence(
        phrases=tuple(_phrases(_merged(reorder_words(tokens, grammar), grammar), grammar)),
        is_passive=bool(words & grammar.passive),
        speakers=frozenset(words & grammar.speakers),
        has_own_subject=bool(tokens)
        and tokens[0].text in _SPEAKER_SUBJECTS & grammar.speakers
        and not _asks_agent(tokens, grammar),
        first=whole[0].text if whole else "",
        is_obliging=bool(words & (_OBLIGATION | grammar.negations | grammar.weak)),
        language=grammar.name,
        is_perfect=not words.isdisjoint(_PERFECT.get(grammar.name, ())),
        has_use=not words.isdisjoint(_USING),
    )


def _asks_agent(tokens: Sequence[Word], grammar: Grammar) -> bool:
    """ "I do not want you to rename files"."""
    texts = [token.text for token in tokens]
    asking = [phrase for phrase, written in grammar.same if written == _DROPPED]
    return any(tuple(texts[at : at + len(phrase)]) == phrase for at in range(len(texts)) for phrase in asking)


_PROJECTS = frozenset(
    (one, two) for one in ("this", "the", "our") for two in ("project", "repo", "repository")
)


def _strip_ends(tokens: list[Word], grammar: Grammar) -> list[Word]:
    """Without the phrases that begin and end a rule."""
    texts = [token.text for token in tokens[:3]]
    if tuple(texts[:2]) in _PROJECTS and texts[2:] == ["uses"]:
        tokens = tokens[2:]
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
    if word in grammar.idle or is_and(Word(word, word), grammar) or texts[1:2] == [BREAK]:
        return True
    return word not in grammar.negations | grammar.markers | _LABELS


_LABELS = read_word_set(
    "rule convention policy decision preference decided agreed important reminder no yes ok okay right hi "
    "hello hey note nota regel regla regola regra regle hinweis vereinbarung wichtig belangrijk importante "
    "zasada wazne правило важно non nein nee nie нет thanks i a e y а и"
)
"""Leads that are words of their own elsewhere."""


def _merged(tokens: Sequence[Word], grammar: Grammar) -> list[Word]:
    """With phrases that mean the same written alike, and each negation as one sign."""
    found: list[Word] = []
    at = 0
    while at < len(tokens):
        texts = tuple(token.text for token in tokens[at : at + 4])
        same = next((item for item in grammar.same if texts[: len(item[0])] == item[0]), None)
        if same is None:
            is_until = tokens[at].text == "until" and any(word.text == NOT for word in found)
            # "Not until" is "not before".
            found.append(Word("before", "until") if is_until else _marked(tokens, at, grammar))
            at += 1
            continue
        count, written = len(same[0]), same[1]
        if written == PREFERENCE and _is_wish(texts, count):
            found.append(Word(WISH, written))
        elif written == _OBLIGED:
            is_plan = texts[0] == "going" and tokens[0].text in grammar.speakers
            # "You do not have to ask" does not forbid it, and "we are going to skip it" tells of a plan.
            found += [Word("«have to»", written)] if is_plan or _ends_in(found, NOT) else []
        else:
            _write_same(found, Word(written, tokens[at].surface))
        at += count
    return found


def _ends_in(found: Sequence[Word], text: str) -> bool:
    return bool(found) and found[-1].text == text


def _write_same(found: list[Word], word: Word) -> None:
    """Add what a phrase is written as, at its place."""
    written = word.text
    is_denied = any(before.text == NOT for before in found)
    if written == _DROPPED:
        return
    if written.startswith(NOT):
        found += [Word(NOT, NOT), *([Word(written[1:], written[1:])] if written[1:] else [])]
    elif written == "instead" and any(before.text in (PREFERENCE, WISH) for before in found):
        found.append(Word(_OVER, written))
    elif written in _BOUNDS and [before.is_exact for before in found[-2:]] == [True, False]:
        # "500 items at most"
        found.insert(len(found) - 2, Word(written, written))
    elif written == _LONGER and is_denied:
        # "We do not support it any more" is "we no longer support it".
        found.insert([before.text for before in found].index(NOT) + 1, Word(_LONGER, _LONGER))
    else:
        found.append(word)


def _is_wish(texts: Sequence[str], count: int) -> bool:
    """ "I want short answers" asks for something; "I like skipping it" and "I want to skip it" do not."""
    after = texts[count] if count < len(texts) else ""
    return _LIKING.isdisjoint(texts[:count]) and after != "to" and not after.endswith("ing")


def _marked(tokens: Sequence[Word], at: int, grammar: Grammar) -> Word:
    token = tokens[at]
    if token.text in grammar.negations:
        return Word(NOT, NOT)
    if token.text in grammar.weak and token.text not in _CONDITIONAL and not token.is_exact:
        return Word("may", token.surface)
    before = tokens[at - 1].text if at else ""
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if token.text == _WHEN_DOING.get(grammar.name) and after.endswith(("ar", "er", "ir")):
        return Word("si" if grammar.name == "es" else "se", token.surface)
    has_object = at + 2 < len(tokens) and not tokens[at + 2].is_break
    if grammar.name == "en" and token.text == "for" and after.endswith("ing") and has_object:
        return Word("if", token.surface)
    if token.text == "using" and grammar.name == "en":
        before_use = {"stop", "quit", "avoid", "start", "keep", "from"}
        is_means = at > 0 and not ends_noun(tokens[at - 1], grammar) and before not in before_use
        return Word("with" if is_means else _USE, token.surface)
    is_prefer = any(word.text.startswith("prefer") for word in tokens[: at - 1])
    if grammar.name == "en" and token.text == "to" and is_prefer:
        return Word(_OVER, token.surface)
    is_going_on = token.text.endswith("ing") and before in grammar.passive and grammar.name == "en"
    return replace(token, is_going_on=True) if is_going_on else token


def _phrases(tokens: Sequence[Word], grammar: Grammar) -> Iterator[Phrase]:
    binding = CONJUNCTIONS | grammar.limits | {NOT, ONLY, _OVER, BREAK}
    bound = any(token.text in binding or is_and(token, grammar) for token in tokens)
    may_float = not bound and sum(_is_floating(token, grammar) for token in tokens) == 1
    builder = _Builder(grammar, has_use=any(token.text == _USE for token in tokens), may_float=may_float)
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
    "if unless except but when only or wenn falls außer ausser aber oder si sauf mais ou quand salvo pero "
    "cuando se tranne ma quando exceto mas als tenzij maar jeśli jesli chyba ale если кроме но"
)


def _is_frequency(token: Word) -> bool:
    return any(token.text.startswith(word) for word in _FREQUENCIES)


def _is_floating(token: Word, grammar: Grammar) -> bool:
    """ "Daily", "locally", "el viernes": they stand anywhere in a clause."""
    is_manner = grammar.name == "en" and token.text.endswith("ly") and token.text not in _NO_MANNER
    return _is_frequency(token) or ((token.text in _DAY_NAMES or is_manner) and not token.is_exact)


class _Builder:
    """Collects the words of one phrase after another."""

    def __init__(self, grammar: Grammar, *, has_use: bool, may_float: bool) -> None:
        self.grammar, self.has_use, self.may_float = grammar, has_use, may_float
        self.found: list[Phrase] = []
        self.words: list[Word] = []
        self.is_led, self.begins, self.is_optional = False, True, False
        self.limit: Word | None = None

    def take(self, token: Word, following: Sequence[Word]) -> None:
        grammar, text = self.grammar, token.text
        if self._ends_lead(token, following):
            self.close()
        is_range = self.is_led and self.words[:1] and self.words[0].text in _BETWEEN
        if token.is_break or (is_and(token, grammar) and not is_range):
            self.close()
            self.begins = True
        elif text in THEN and self._is_then():
            pass
        elif self._floats(token):
            self.found.append(Phrase((token,), is_led=True))
        elif text in grammar.limits:
            self._take_limit(token, following)
        elif text == _USE and self.grammar.name == "en":
            self._take_use(following)
        elif self._leads(token, following):
            self.close()
            self.is_led = True
            is_place = text in _PLACES or text in _INTO or (text == "for" and self.has_use)
            self.words.append(Word(PLACE_MARK, text) if is_place else token)
        elif not self._is_idle(token, following) and not self._is_repeated(token):
            self.words.append(token)

    def _is_then(self) -> bool:
        """Whether "then" says no more than the order of what stands before and behind."""
        has_condition = any(phrase.words[0].text in CONJUNCTIONS for phrase in self.found)
        return bool(self.found) and (not self.words or (has_condition and not self.is_led))

    def _floats(self, token: Word) -> bool:
        is_alone = not (self.is_led and len(self.words) == 1) or _is_frequency(token)
        return self.may_float and is_alone and _is_floating(token, self.grammar)

    def _ends_lead(self, token: Word, following: Sequence[Word]) -> bool:
        """ "For hotfixes | we branch off main", "am Freitag | deployen wir nicht"."""
        if not self.is_led or len(self.words) < 2 or self.words[0].text in CONJUNCTIONS:
            return False
        is_second = (
            self.grammar.name in _VERB_SECOND and following[:1] and following[0].text in SUBJECTS_AFTER_VERB
        )
        return bool(is_second) or token.text in _FINITE or token.text in self.grammar.speakers

    def _take_use(self, following: Sequence[Word]) -> None:
        """ "Docs use British spelling" as "for docs, use British spelling"."""
        is_plain = all(word.text not in (NOT, ONLY) for word in self.words)
        if self.words and following and is_plain and not self.is_led:
            self.words.insert(0, Word(PLACE_MARK, _USE))
            self.is_led = True
            self.close()

    def _leads(self, token: Word, following: Sequence[Word]) -> bool:
        if token.is_exact or token.text not in self.grammar.markers | _CONTRAST:
            return False
        if self.grammar.name in ("fr", "pt") and token.surface in ("a", "as"):
            # Without an accent it is an article or a verb.
            return False
        if self.is_led and len(self.words) == 1 and token.text in _ARTICLE_TOO:
            return False
        return not (token.text in _PLACES and following and following[0].is_exact)

    def _take_limit(self, token: Word, following: Sequence[Word]) -> None:
        """ "Only" limits what it stands next to: the phrase that it begins or ends."""
        after = next((word for word in following if word.text not in self.grammar.idle), None)
        is_last = after is None or after.is_break or is_and(after, self.grammar)
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
        if text == "may" or text in grammar.weak:
            return any(after.text == NOT for after in following) or [w.text for w in self.words[-1:]] == [NOT]
        if text in ("get", "gets", "set"):
            is_passive = bool(following) and following[0].surface.endswith(("ed", "en"))
            return is_passive if text != "set" else any(after.is_exact for after in following)
        if grammar.name == "en" and text.startswith("keep"):
            # "We keep skipping it" is no rule.
            return not (following and following[0].text.endswith("ing"))
        if grammar.name == "en" and text in {"of", *_PLACES}:
            return True
        if text in _ARTICLE_TOO or (text == "any" and any(word.text == NOT for word in self.words)):
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
        if self.is_led and [word.text for word in self.words] == ["a"]:
            # "Ask me" is "demander à l'utilisateur".
            self.words = []
        if self.words or (is_last and self.limit):
            limit = [Word(ONLY, self.limit.surface)] if self.limit else []
            is_empty = [word.text for word in self.words] in (["about"], ["about", "that"])
            is_contrast = bool(self.words) and {self.words[0].text, self.words[0].surface} & _CONTRAST
            self.found.append(
                Phrase(
                    (*limit, *self.words),
                    self.is_led,
                    self.begins and not self.is_led,
                    self.is_optional
                    or is_empty
                    or (bool(is_contrast) and len(self.words) <= 1 + MAX_CONTRAST_WORDS),
                )
            )
            self.begins, self.limit = False, None
        self.words, self.is_led = [], False
