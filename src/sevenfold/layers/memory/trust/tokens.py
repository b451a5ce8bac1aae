"""Words of a sentence as they are compared, characters that a person does not see, and function words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sevenfold.core.text.stems import UNSPACED_CHARS, normalize_text

BREAK = ","
"""What any mark between clauses is read as."""

_HIDDEN = re.compile(
    "[\u200b\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
"""Tag characters, direction overrides, invisible operators. Joiners are not among them: scripts need them."""
_CJK = re.compile(UNSPACED_CHARS)
_TOKEN = re.compile(
    r"(?P<exact>[a-z][a-z0-9+.-]*://[^\s)>\]\"'`]+"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|(?<!\w)--?[a-zA-Z][\w-]*"
    r"|[#@][\w-]{2,}"
    r"|[\w~.-]*/[\w./@*~-]*[\w*]"
    r"|[\w-]*\d[\w-]*(?:[.,:]\d[\w-]*)*(?:\.[a-zA-Z][\w-]*)*(?:[ \u00a0]?%)?"
    r"|\w+(?:\.\w+)+"
    r"|\w+_\w+)"
    r"|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*)"
    r"|(?P<mark>[,;:()…]|\s[-–—]+\s|—)"
)
_ENGLISH_ENDS = {"m": "am", "re": "are", "ve": "have", "ll": "will", "d": "would", "s": ""}

_SUBJECTS = frozenset(("it", "that", "there", "what", "here", "he", "she", "who"))


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    """As it is compared."""
    surface: str
    """As it stands there, in lower case."""
    is_exact: bool = False
    """A number, an address, a name in code: nothing else means the same."""

    is_going_on: bool = False
    """"We are skipping": what happens now, and no rule."""
    is_name: bool = field(default=False, kw_only=True)
    """Written with a capital, not as the first word of a sentence."""
    has_hyphen: bool = field(default=False, kw_only=True)
    """A hyphen joins it to the next word."""

    @property
    def is_break(self) -> bool:
        return self.text == BREAK


def has_hidden_text(text: str) -> bool:
    """Whether a text holds characters that show nothing and can carry words."""
    return _HIDDEN.search(text) is not None


def is_unspaced(text: str) -> bool:
    """Whether it is written mostly in a script without spaces between words."""
    letters = sum(mark.isalpha() for mark in text)
    return letters > 0 and len(_CJK.findall(text)) * 3 >= letters


@lru_cache(maxsize=65_536)
def fold_word(word: str) -> str:
    """In lower case, without accents."""
    low = word.casefold()
    if low.isascii():
        return low
    return "".join(mark for mark in unicodedata.normalize("NFKD", low) if not unicodedata.combining(mark))


def read_word_set(words: str) -> frozenset[str]:
    """Words of a list, as they are compared."""
    return frozenset(map(fold_word, words.split()))


def split_tokens(text: str) -> list[Word]:
    """Words, exact names and breaks, in order."""
    found: list[Word] = []
    is_first = True
    for match in _TOKEN.finditer(normalize_text(text)):
        is_name = bool(match["word"]) and match[0][0].isupper() and not is_first
        has_hyphen = match.string[match.end() :][:1] == "-"
        made = _read(match)
        found += (
            (replace(one, is_name=is_name, has_hyphen=has_hyphen) for one in made)
            if (is_name or has_hyphen)
            else made
        )
        is_first = match[0] == ":"
    return found


def _read(match: re.Match[str]) -> Iterator[Word]:
    exact, word = match["exact"], match["word"]
    if exact:
        low = re.sub(r"\s", "", exact.rstrip(".,:").casefold())
        yield Word(low, low, is_exact=True)
    elif word:
        yield from _read_word(word.casefold().replace("’", "'"))
    else:
        yield Word(BREAK, BREAK)


def _read_word(word: str) -> Iterator[Word]:
    if "'" not in word:
        yield Word(fold_word(word), word)
        return
    head, _, end = word.rpartition("'")
    if word == "let's":
        yield Word(word, word)
    elif end == "t" and head.endswith("n"):
        stem = {"ca": "can", "wo": "will", "sha": "shall"}.get(head[:-1], head[:-1])
        yield Word(stem, stem)
        yield Word("not", "not")
    elif end == "s" and head in _SUBJECTS:
        yield from (Word(head, head), Word("is", "is"))
    elif end in _ENGLISH_ENDS:
        yield from _read_word(head)
        if _ENGLISH_ENDS[end]:
            yield Word(_ENGLISH_ENDS[end], _ENGLISH_ENDS[end])
    else:
        # An elision: "l'utente", "n'oublie".
        for part in word.split("'"):
            yield Word(fold_word(part), part)


# fmt: off
_ROMANCE_ENDINGS = "s es e a o as os i"
_ENDINGS = {
    name: frozenset(("", *endings.split()))
    for name, endings in {
        "en": "s es ed ing e d ment ments ly y ies ied ation tion",
        "de": "s es e d en n t st et er em te ten est nd end ung ungen ern eren ing ed",
        "nl": "s e d en n t te ten de den er ern eren ing ed",
        "fr": _ROMANCE_ENDINGS + " ez ons ent er ee ees re ir ant d ds nt t ira iront era eront te ten ment "
              "ments ation tion",
        "es": _ROMANCE_ENDINGS + " ar er ir an en n amos emos imos ad ado ada ando ados adas ara aran ira "
              "iran era eran ido ida idos idas me te",
        "pt": _ROMANCE_ENDINGS + " ar er ir am em amos emos imos ado ada ando ados adas ara ira era ido ida "
              "idos idas ao oes al ais",
        "it": _ROMANCE_ENDINGS + " are ere ire re iamo ono ano ato ata isce isco ete ate era ira eranno "
              "iranno ati ito ita iti uto uta ite te",
        "pl": "ac ec aj aja amy emy am em ie ow ach ami c iac ywac iwac uj uje ujemy uja owac ia iaj iamy "
              "nie nia niu ych ym ego emu ej a e i o y n t",
        "ru": "ть и а у ю е ем им ет ит ете ите аи аите ать ить аем ы ов ам ах ами ое ая ыи ые ого ому ои "
              "ую м т ывать ивать ывай ываи иваи овать уи уите ует уем ят ишь ешь ием ие ия ых ым ии ью ь "
              "ются ется ться ся ять яи яют яет",
    }.items()
}
# fmt: on
"""Of inflected forms of one word, by language, without accents."""
_NOUN_ENDINGS = frozenset(("", "s", "es", "e", "n", "en", "ung", "ungen"))
"""Of German words that are written with a capital."""
_ENDINGS_IN_PAIRS = (frozenset(("al", "ais")), frozenset(("ao", "oes")))
_ROMANCE_LANGUAGES = frozenset(("fr", "es", "pt", "it"))
_DERIVED = {
    "en": frozenset(("e", "y", "ment", "ments")),
    **dict.fromkeys(_ROMANCE_LANGUAGES, frozenset(("a", "e", "i", "o"))),
}
"""Added to a whole word, they make another: "part" and "party", "base" and "basement"."""
_CHANGES_VOWEL = frozenset(("de", "nl", "pl", "ru"))
MAX_BARE_ENDING = 2
"""Letters that a Romance form may have more than another: "sam" and "samara" are two words."""
MIN_SHARED_START = 3
MAX_BACK = 2
"""Letters that inflected forms share by chance."""


def is_same_word(said: Word, kept: Word, language: str, *, may_change_vowel: bool = True) -> bool:
    """Whether two words are forms of one, by their beginning. A name has no other forms."""
    if said.text == kept.text:
        return True
    if said.is_exact or kept.is_exact:
        return False
    if language == "en" and frozenset((said.text, kept.text)) in _TWO_WORDS:
        return False
    is_name = said.is_name or kept.is_name
    if is_name and language != "de":
        return frozenset((said.text, kept.text)) in _WEEKDAY_FORMS
    endings = _NOUN_ENDINGS if is_name else _ENDINGS[language]
    may_change_vowel = may_change_vowel and language in _CHANGES_VOWEL and not is_name
    forms = _Forms(language, endings, may_change_vowel)
    stems = _find_stem(said.text, language), _find_stem(kept.text, language)
    return stems[0] == stems[1] or forms.are_forms(said.text, kept.text) or forms.are_forms(*stems)


_TWO_WORDS = frozenset(
    frozenset(pair.split())
    for pair in ("new news", "good goods", "custom customs", "arm arms", "glass glasses", "saving savings")
)
"""Of English words that seem to be a singular and its plural."""

_WEEKDAY_FORMS: frozenset[frozenset[str]] = frozenset(
    frozenset((f"{day}day", f"{day}days"))
    for day in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")
)


@dataclass(frozen=True, slots=True)
class _Forms:
    """How forms of one word differ in a language."""

    language: str
    endings: frozenset[str]
    may_change_vowel: bool

    def are_forms(self, said: str, kept: str) -> bool:
        """By their beginning; a vowel in the stem may change."""
        shared = _count_shared(said, kept)
        least = max(MIN_SHARED_START, (max(len(said), len(kept)) + 1) // 2)
        if (
            self.may_change_vowel
            and shared >= MIN_SHARED_START
            and {said[shared : shared + 1], kept[shared : shared + 1]} <= _VOWELS
        ):
            # "uruchom", "uruchamiać"; "заведи", "заводить"
            after = shared + 1 + _count_shared(said[shared + 1 :], kept[shared + 1 :])
            if shared + 1 < after >= least and self._are_endings(said[after:], kept[after:], said[after - 1]):
                return True
        # Some letters back: "respond-e", "respond-er".
        return any(
            self._are_endings(said[at:], kept[at:], said[at - 1])
            for at in range(shared, max(least, shared - MAX_BACK) - 1, -1)
        )

    def _are_endings(self, one: str, other: str, last: str) -> bool:
        # "plan", "planning"; "commit", "committing"
        one = one[1:] if one[:1] == last and one not in self.endings else one
        other = other[1:] if other[:1] == last and other not in self.endings else other
        both = frozenset((one, other))
        if not both <= self.endings or any(both & pair and both != pair for pair in _ENDINGS_IN_PAIRS):
            return False
        if one and other:
            return True
        ending = one or other
        if self.language in _ROMANCE_LANGUAGES and len(ending) > MAX_BARE_ENDING:
            return False
        is_derived = ending in _DERIVED.get(self.language, ()) or (
            self.language == "en" and ending == "d" and last != "e"
        )
        return ending != "er" and not is_derived


def _count_shared(one: str, other: str) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


_VOWELS = frozenset("aeiouyаеиоуыэюя")
_PARTICIPLE = re.compile(
    r"^(ab|an|auf|aus|bei|ein|fest|nach|um|vor|weg|zu|zuruck|aan|af|op|uit|in|mee|toe)?ge(?=\w{4})"
)
_PAST_VOWEL = re.compile(r"ie(?=[^aeiou])")
_ROMANCE = re.compile(r"(?<=\w)([qg])u(?=[ei])")


def _find_stem(word: str, language: str) -> str:
    """With what some languages write differently in other forms of a word: "geschrieben" and "schreiben",
    "toques" and "tocar"."""
    if language == "en":
        return _IRREGULAR_PASTS.get(word, word)
    bare = word
    if language in ("de", "nl"):
        bare = _PARTICIPLE.sub(lambda found: found[1] or "", bare)
        bare = _PAST_VOWEL.sub("ei", bare) if bare.endswith("n") else bare
    elif language in _ROMANCE_LANGUAGES:
        bare = _ROMANCE.sub(lambda found: "c" if found[1] == "q" else "g", bare)
    return _IRREGULAR_FORMS.get(bare, bare)


# fmt: off
_PASTS = {
    "build": "built", "run": "ran", "take": "took taken", "write": "wrote written", "do": "did done",
    "send": "sent", "find": "found", "hold": "held", "leave": "left", "make": "made",
    "begin": "began begun", "choose": "chose chosen", "break": "broke broken", "speak": "spoke spoken",
    "give": "gave given", "know": "knew known", "see": "saw seen", "go": "went gone", "tell": "told",
    "say": "said", "buy": "bought", "bring": "brought", "teach": "taught", "meet": "met", "lead": "led",
    "pay": "paid", "grow": "grew grown", "show": "shown", "draw": "drew drawn", "forget": "forgot forgotten",
    "throw": "threw thrown", "drive": "drove driven",
}
_FORMS = {
    "ecri": "ecrire ecrit ecrits ecrite ecrites ecris ecrivez ecrivons ecrivent",
    "mett": "mettre mis mise mets met mettez mettons", "prend": "prendre pris prise prends prenez prenons",
    "scriv": "scrivere scritto scritta scritti scritte scrivi scrive scriviamo scrivono",
    "escri": "escribir escribe escriben escribimos escrito escrita escritos escritas escrever escreve "
             "escreva",
    "pon": "poner pon pones puesto puesta", "hac": "hacer hecho hecha", "faz": "fazer feito feita",
    "ir": "va van vas vamos",
    "chiud": "chiudere chiuso chiusa", "apr": "aprire aperto aperta", "pis": "pisać piszemy pisz pisze piszą",
    "пис": "писать пишем пиши пишите пишут пишет", "schrijv": "schrijven schrijf schrijft schreven",
    "nehm": "nehmen nimm nimmt nommen", "geb": "geben gib gibt", "les": "lesen lies liest",
    "sprech": "sprechen sprich spricht sprochen", "werf": "werfen wirf wirft worfen",
    "lez": "lezen lees leest",
}
_IRREGULAR_PASTS, _IRREGULAR_FORMS = (
    {fold_word(form): base for base, forms in table.items() for form in forms.split()}
    for table in (_PASTS, _FORMS)
)
_PAST_FORMS = frozenset(_IRREGULAR_PASTS)
# fmt: on


def is_past_form(word: Word) -> bool:
    """In English: it tells what was, unless it is part of a passive."""
    return word.surface.endswith("ed") or word.surface in _PAST_FORMS


# Function words of some languages: what a sentence may lose without saying something else.
#
# Only closed classes of words are listed: articles, auxiliaries, negations, prepositions, and the phrases
# with which people begin a rule. A word that is not listed is content, and has to be kept. A language that
# is not here is read as English: its sentences are still recognized word by word.


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
        named = {phrase[0] for phrase in self.leads}
        # Not of English, which lists words of any text there.
        named |= {phrase[0] for phrase, _ in self.same if self.name != "en" and len(phrase) == 1} or {
            "use",
            "uses",
        }
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
