"""Words of a sentence as they are compared, characters that a person does not see, and function words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
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
    return list(_split(text))


@lru_cache(maxsize=4_096)
def _split(text: str) -> tuple[Word, ...]:
    """Kept: who reads a sentence looks at its words several times."""
    return tuple(word for match in _TOKEN.finditer(normalize_text(text)) for word in _read(match))


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grammar:
    """The closed classes of one language. There is one of each: it is compared and kept by what it is."""

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
    leads: tuple[tuple[str, ...], ...] = ()
    """Begin a rule and say nothing of it."""
    tails: tuple[tuple[str, ...], ...] = ()
    """End one."""
    asking: frozenset[str] = frozenset()
    """A sentence that begins with one is a question."""
    inverting: frozenset[str] = frozenset()
    """Auxiliaries that begin a question before a subject."""
    subjects: frozenset[str] = frozenset()
    hints: frozenset[str] = field(init=False)
    """Words by which the language is recognized."""
    leads_by_word: dict[str, list[tuple[str, ...]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = self.idle | self.speakers | self.negations | self.markers | self.limits | self.asking
        named = {phrase[0] for phrase in self.leads}
        object.__setattr__(self, "hints", known | named)
        leads: dict[str, list[tuple[str, ...]]] = {}
        for phrase in self.leads:
            leads.setdefault(phrase[0], []).append(phrase)
        object.__setattr__(self, "leads_by_word", leads)
