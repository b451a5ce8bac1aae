"""The parts of a sentence that show who said it: stems of its words, exact names and numbers, and negation.

Search has its own words (`layers/memory/search/lexical.py`). Here a wrong match would pass somebody else's
sentence off as the user's, so nothing is expanded or guessed. `LineIndex` finds lines of a conversation by
their stems.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sevenfold.core.memories import Taint

UNSPACED_CHARS = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]"
"""A character of Japanese, Chinese, Korean or Thai, as a regular expression."""
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_ALNUM = re.compile(r"[^\W_]")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_MONTH = (
    r"jan(?:uar\w*)?|feb(?:r\w+)?|m[aä]r(?:[zst]|ca|ts|zo)?|apr(?:il\w?)?|ma(?:ja?|i)|jun[ih]?|jul[ih]?|aug(?:ust\w?)?"
    r"|sep(?:t(?:ember\w?)?)?|okt(?:ober\w?)?|nov(?:ember\w?)?|de[zsc](?:ember\w?)?"
)
"""Behind a number with a dot, in languages that write a day so. "Describe" and "Mark" begin a sentence."""
SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bz\.B\.)[\"')\]]*\s+"
    rf"(?!(?<=\d\.\s)(?:\d|(?:{_MONTH})\b))"
    rf"|\n+|(?<=;)\s+|(?<=[。！？])|(?<={UNSPACED_CHARS}[!?])(?={UNSPACED_CHARS})",
    re.IGNORECASE,
)
"""Not inside "am 3. März", "24. 12. 2026" and "e.g. this"."""
_CLAUSE = re.compile(r"\s*(?:[,;:()]\s|\s[—–-]+\s|\b(?:and|but|then|because|so that)\b)\s*", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•+]|\d+[.)])\s+|^\s*#+\s+|^\s*>+\s?")
_LABEL = re.compile(
    r"^\s*\**(?:why|how to apply(?: it| this)?|context|decision|agreed(?: wording)?|restated|warum|grund|"
    r"anwendung|pourquoi|por qu[eé]|porqu[eê]|motivo|perch[eé]|waarom|dlaczego|varför|neden|"
    r"почему|原因|理由|이유)"
    r"\s?:\**\s*",
    re.IGNORECASE,
)
"""What a note puts before a sentence. Nothing else may stand in it: it is not looked at."""
_EXACT = re.compile(
    r"[a-z][a-z0-9+.-]*://[^\s)>\]\"'`]+"  # an address
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # a mailbox
    r"|(?<![\w/])(?:~|\.{1,2})?/?[\w.@-]+(?:/[\w.@*-]+)+/?"  # a path
    r"|(?<!\w)--?[a-zA-Z][\w-]+"  # an option
    r"|[#@][\w-]{2,}"  # a channel, a handle
    r"|\w+(?:\.\w+)+"  # a host, a file, a version
    r"|\w*[a-z0-9]_\w+|\b[a-z]+[A-Z]\w*"  # a name in a program
    r"|\d+(?:[.,:]\d+)*"  # a number
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")

# fmt: off
_NO = frozenset((
    "no", "not", "never", "none", "nor", "neither", "without", "cannot", "dont", "doesnt", "didnt",
    "isnt", "arent", "wasnt", "wont", "cant", "shouldnt", "mustnt", "avoid", "stop", "forbid",
    "forbidden", "forbids", "prohibit", "prohibited", "refuse", "instead", "rather", "unless", "except",
))
# fmt: on
"""Words that turn a sentence round. A sentence with one and a sentence without do not say the same."""

# fmt: off
_IDLE = frozenset((
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "because", "been", "before", "being", "both", "but", "by", "can", "could", "did", "do", "does",
    "done", "during", "each", "either", "else", "etc", "every", "few", "for", "from", "further", "get",
    "gets", "getting", "go", "goes", "going", "got", "had", "has", "have", "having", "he", "her", "here",
    "hers", "him", "his", "how", "however", "i", "if", "in", "into", "is", "it", "its", "itself", "just",
    "let", "lets", "like", "may", "me", "might", "mine", "more", "most", "much", "must", "my", "now",
    "of", "off", "ok", "okay", "on", "once", "one", "ones", "or", "other", "our", "ours", "out", "over",
    "own", "per", "please", "put", "quite", "really", "same", "see", "she", "should", "since", "so",
    "some", "still", "such", "sure", "than", "that", "the", "their", "theirs", "them", "then", "there",
    "these", "they", "thing", "things", "this", "those", "though", "through", "thus", "to", "too",
    "under", "until", "up", "upon", "us", "very", "via", "want", "wants", "was", "way", "we", "well",
    "were", "what", "when", "where", "whether", "which", "while", "who", "whom", "whose", "why", "will",
    "with", "within", "would", "yes", "yet", "you", "your", "yours", "user", "users", "always",
    "whenever", "used", "using", "use", "uses", "make", "makes", "need", "needs", "keep", "keeps",
))
# fmt: on
"""Words that say nothing of what a sentence is about. `always` is one: a rule is its content."""

_ENDINGS = ("ingly", "edly", "ings", "ing", "ied", "ies", "edness", "ed", "es", "ly", "s", "e")
MIN_STEM_CHARS = 3


def normalize_text(text: str) -> str:
    """The text as it reads: look-alike forms made one, and what does not show taken out."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", text).replace("’", "'")
    return "".join(mark for mark in folded if unicodedata.category(mark) != "Cf")


def split_sentences(text: str) -> tuple[str, ...]:
    """Sentences and lines, without bullets and labels."""
    pieces = SENTENCE_END.split(normalize_text(text))
    parts = (_LABEL.sub("", _BULLET.sub("", piece)).strip(" *_") for piece in pieces)
    return tuple(part for part in parts if _ALNUM.search(part))


def split_clauses(sentence: str) -> tuple[str, ...]:
    return tuple(part for part in _CLAUSE.split(sentence) if part and part.strip())


@lru_cache(maxsize=16_384)
def find_content_stems(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning. Kept: the same few sentences are asked about many times."""
    return find_stems_uncached(text)


def find_stems_uncached(text: str) -> frozenset[str]:
    """The same for a text that is looked at once."""
    return frozenset(_stems(normalize_text(text)))


def find_exact_words(text: str) -> frozenset[str]:
    """What cannot be put in other words: addresses, paths, options, names in programs, numbers. Days are
    left out: a writer makes them absolute."""
    found = (match.group().rstrip(".,:") for match in _EXACT.finditer(_DATE.sub(" ", normalize_text(text))))
    return frozenset(word.casefold() for word in found if word)


def is_negated(text: str) -> bool:
    """Whether the sentence says no to something."""
    words = (match.group().casefold() for match in _WORD.finditer(normalize_text(text)))
    return any(word.endswith("n't") or word.replace("'", "") in _NO for word in words)


def truncate_words(text: str, limit: int) -> str:
    """The text in one line, cut between words."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;:—–-") + "…"


def make_slug(text: str, words: int = 6) -> str:
    """A file's name from the first words that mean something."""
    found: list[str] = []
    for match in _WORD.finditer(unicodedata.normalize("NFKD", normalize_text(text)).replace("_", "-")):
        lower = "".join(mark for mark in match.group().casefold() if mark.isascii() and mark.isalnum())
        if lower and lower not in _IDLE and lower not in found:
            found.append(lower[:20])
    # Never one word alone: some of those are names that files cannot have.
    return "-".join([*found[:words], "noted"] if len(found) < 2 else found[:words])[:70].strip("-")


def _stems(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text.replace("_", " ")):
        yield from _stems_of_word(match.group())


@lru_cache(maxsize=65_536)
def _stems_of_word(found: str) -> tuple[str, ...]:
    word = found.removesuffix("'s")
    parts = _PART.findall(word) if word.isascii() and word.isalnum() else [word]
    lower = (part.casefold() for part in parts)
    return tuple(stem(part) for part in lower if not _is_idle(part))


def _is_idle(word: str) -> bool:
    return word in _IDLE or word.replace("'", "") in _NO or word.endswith("n't")


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """The word without its ending. Rough: "running" and "run" meet, and so may two words that are no "
    "kin."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM_CHARS:
            base = word[: -len(ending)]
            if ending in ("ied", "ies"):
                return base + "y"
            is_doubled = len(base) > MIN_STEM_CHARS and base[-1] == base[-2] and base[-1] not in "lsz"
            return base[:-1] if is_doubled else base
    return word


# An index, because looking up who said a sentence must not scan all that was ever read.

_MAX_LINES = 4_000
"""Lines of one text that are compared. Beyond that it is a source all the same."""


@dataclass(frozen=True, slots=True)
class LineSource:
    """Who said a line."""

    taint: Taint
    is_program: bool = False
    """By the program itself."""


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A line and how much of a sentence is in it."""

    source: LineSource
    is_negated: bool
    share: float


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    source: LineSource


@dataclass(frozen=True, slots=True)
class _Kind:
    """What lines of one source have in common. The lines themselves are kept as numbers: a long conversation
    has very many."""

    source: LineSource
    is_negated: bool


class LineIndex:
    """Lines of one text after another. Each is read once, when somebody first asks."""

    def __init__(self) -> None:
        self._unread: list[_Text] = []
        self._kinds: list[_Kind] = []
        self._lines: dict[str, list[int]] = {}

    def add(self, text: str, source: LineSource) -> None:
        self._unread.append(_Text(text, source))

    def find(self, stems: frozenset[str]) -> Iterator[LineMatch]:
        """Every line that has one of these stems or more."""
        self._read()
        found = Counter[int]()
        for stem in stems:
            found.update(self._lines.get(stem, ()))
        for line, count in found.items():
            kind = self._kinds[line]
            yield LineMatch(kind.source, kind.is_negated, count / len(stems))

    def _read(self) -> None:
        while self._unread:
            unread = self._unread.pop()
            kinds = {no: _Kind(unread.source, no) for no in (False, True)}
            for line in split_sentences(unread.text)[:_MAX_LINES]:
                number = len(self._kinds)
                for stem in find_stems_uncached(line):
                    self._lines.setdefault(stem, []).append(number)
                self._kinds.append(kinds[is_negated(line)])
