"""The same text as somebody who wants its secrets would read it: decoded, joined, without disguise.

A view knows for each of its characters where it came from, so that what is found in it can be shown in the
text that the user has. Views of views keep that.

The patterns here are few and plain, and the standard engine runs them: every repetition is over characters
that what follows it cannot begin with, and starts where the one before ended, so none goes back over a text.
"""

from __future__ import annotations

import base64
import re
import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote

MAX_EDITS = 30_000
"""From the text to a view of it: one for every eight bytes of the largest file, which no honest text has."""
MAX_RUN_CHARS = 300_000
"""Of letters beyond ASCII, once they are read plainly: some grow eighteenfold."""
_MAX_DEPTH = 3
"""A key that was encoded four times over was not written down by accident."""


class BudgetExceeded(Exception):
    """More work than any honest text needs. Internal: callers see a refusal."""


@dataclass(frozen=True, slots=True)
class ViewEdit:
    """Characters of a view that read as something else."""

    start: int
    end: int
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedView:
    kind: str
    """How it was come by, for people: `as written`, `decoded`, `joined`, `reversed`."""
    text: str = field(repr=False)
    starts: tuple[int, ...] = field(default=(0,), repr=False)
    """Where each piece begins in this view …"""
    sources: tuple[int, ...] = field(default=(0,), repr=False)
    """… and in the text that was handed in."""
    edits: int = 0
    """How many it took to get here."""

    def source_of(self, at: int) -> int:
        """Where the character came from. Inside of what was decoded: where that began, or soon after."""
        piece = bisect_right(self.starts, at) - 1
        found = self.sources[piece] + at - self.starts[piece]
        last = self.sources[piece + 1] - 1 if piece + 1 < len(self.sources) else found
        return max(self.sources[piece], min(found, last))

    def is_seam(self, at: int) -> bool:
        """Whether two pieces meet here that were apart, or are of different kinds."""
        piece = bisect_right(self.starts, at) - 1
        return self.starts[piece] == at


def decode_views(text: str) -> Iterator[DecodedView]:
    """The text itself, then each reading of it that differs. Raises `BudgetExceeded`."""
    view = plain = DecodedView(kind="as written", text=text)
    yield view
    for depth in range(_MAX_DEPTH):
        # What was escaped twice, the line ends of a key in a URL say, takes two.
        unmasked = yield from _changed(view, (_unmasked, _unmasked))
        plain = plain if depth else unmasked
        view = yield from _changed(unmasked, (_unpacked, _unwrapped))
        if view is unmasked:
            break
    joined = apply_view_edits(plain, "joined", _found(_APART, plain.text, _closed))
    if joined is not plain:
        yield joined
        decoded = _unwrapped(_unpacked(joined))
        if decoded is not joined:
            yield decoded
    yield apply_view_edits(plain, "reversed", _found(_LONG, plain.text, _turned))


def _changed(
    view: DecodedView, steps: Iterable[Callable[[DecodedView], DecodedView]]
) -> Generator[DecodedView, None, DecodedView]:
    """One step after the other; those that change something are readings of their own."""
    for step in steps:
        after = step(view)
        if after is not view:
            yield after
        view = after
    return view


def apply_view_edits(view: DecodedView, kind: str, edits: Iterable[ViewEdit]) -> DecodedView:
    """The view with these read as their text; itself where there are none. They come in order, and apart."""
    made = _Pieces(view)
    for edit in edits:
        made.add(edit)
    return made.finish(kind) if made.edits > view.edits else view


class _Pieces:
    """What a view of a view is put together from."""

    def __init__(self, view: DecodedView) -> None:
        self.edits = view.edits
        self._view, self._done, self._size = view, 0, 0
        self._parts: list[str] = []
        self._starts: list[int] = []
        self._sources: list[int] = []

    def add(self, edit: ViewEdit) -> None:
        self.edits += 1
        if self.edits > MAX_EDITS:
            raise BudgetExceeded
        self._keep_to(edit.start)
        self._put(edit.text, self._view.source_of(edit.start))
        self._done = edit.end

    def finish(self, kind: str) -> DecodedView:
        self._keep_to(len(self._view.text))
        return DecodedView(
            kind=kind,
            text="".join(self._parts),
            starts=tuple(self._starts),
            sources=tuple(self._sources),
            edits=self.edits,
        )

    def _keep_to(self, end: int) -> None:
        """What is read as before, in the pieces that it was in."""
        starts, at = self._view.starts, self._done
        piece = bisect_right(starts, at)
        while at < end:
            until = min(end, starts[piece]) if piece < len(starts) else end
            self._put(self._view.text[at:until], self._view.source_of(at))
            at, piece = until, piece + 1

    def _put(self, text: str, source: int) -> None:
        if text:
            self._parts.append(text)
            self._starts.append(self._size)
            self._sources.append(source)
            self._size += len(text)


def _found(pattern: re.Pattern[str], text: str, read: Callable[[str], str | None]) -> Iterator[ViewEdit]:
    for match in pattern.finditer(text):
        other = read(match.group())
        if other is not None:
            yield ViewEdit(match.start(), match.end(), other)


# What hides characters

_OTHER = re.compile(r"[^\x00-\x7F]+")
_LOOKALIKES = dict(
    zip(
        "АВЕЅІЈКМНОРСТХҮаеорсухіјѕԁһԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧο‐‑‒–−",
        "ABESIJKMHOPCTXYaeopcyxijsdhqwABEZHIKMNOPTYXo-----",
        strict=True,
    )
)
"""Letters of other alphabets that look like ours, which no normal form maps."""

_ESCAPES = re.compile(
    r"(?:\\u[0-9A-Fa-f]{4}|\\u\{[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8}|\\x[0-9A-Fa-f]{2}|\\[nrt\"'/]"
    r"|%[0-9A-Fa-f]{2}|&#[0-9]{1,7};|&#[xX][0-9A-Fa-f]{1,6};|&[a-z]{2,6};)+"
)
_CODE_POINT = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2}))"
)
_SHORT = re.compile(r"\\([nrt\"'/])")
_SHORTS = {"n": "\n", "r": "\r", "t": "\t"}


def _unmasked(view: DecodedView) -> DecodedView:
    """Without invisible characters, full-width letters, lookalikes and escapes."""
    if not view.text.isascii():
        view = apply_view_edits(view, "decoded", _found(_OTHER, view.text, _plain))
    return apply_view_edits(view, "decoded", _found(_ESCAPES, view.text, _unescaped))


def _plain(text: str) -> str | None:
    normal = unicodedata.normalize("NFKC", text)
    if len(normal) > MAX_RUN_CHARS:
        raise BudgetExceeded
    other = normal.translate(_lookalikes())
    return None if other == text else other


@lru_cache(maxsize=1)
def _lookalikes() -> dict[int, str | None]:
    """Characters that show nothing, and those that show as one of ours."""
    unseen = (one for one in range(0x80, sys.maxunicode) if unicodedata.category(chr(one)) in {"Cf", "Mn"})
    return {**dict.fromkeys(unseen), **{ord(one): ours for one, ours in _LOOKALIKES.items()}}


def _unescaped(text: str) -> str:
    if "\\" in text:
        text = _SHORT.sub(lambda match: _SHORTS.get(match[1], match[1]), _CODE_POINT.sub(_character, text))
    if "&" not in text:
        return unquote(text)
    from html import unescape  # not at the top: its table of names is large, and few texts have one

    return unescape(unquote(text))


def _character(match: re.Match[str]) -> str:
    number = int(match[match.lastindex or 0], 16)
    return chr(number) if number < 0xD800 or 0xE000 <= number <= sys.maxunicode else "\ufffd"


# What encodes text

_PRINTABLE = re.compile(rb"[\t\r\n -~]{8,}")
"""Shorter is no key, and too many words decode to something by chance."""


def _unpacked(view: DecodedView) -> DecodedView:
    """With letters that were written as numbers read as letters."""
    for encoding in _NUMBERS:
        view = apply_view_edits(view, "decoded", _found(encoding.pattern, view.text, encoding.read))
    return view


def _unwrapped(view: DecodedView) -> DecodedView:
    """With base64 read as what it says. Many a key is base64 itself and no key any more then: so this comes
    after the others, and is a reading of its own."""
    return apply_view_edits(view, "decoded", _found(_BASE64.pattern, view.text, _BASE64.read))


@dataclass(frozen=True, slots=True)
class _Encoding:
    pattern: re.Pattern[str]
    decode: Callable[[str], bytes]

    def read(self, text: str) -> str | None:
        """What it says; None where it says nothing in letters."""
        try:
            raw = self.decode(text)
        except ValueError:
            return None
        if raw[1::2].count(0) * 2 >= len(raw) - 1:  # two bytes a letter, as some shells want it
            raw = raw[::2]
        # A word after it that looks like more of it decodes to noise; what stood before is still text.
        said = _PRINTABLE.match(raw)
        return said[0].decode("ascii") if said else None


_BETWEEN_BYTES = str.maketrans("", "", ",: ")


def _from_hex(text: str) -> bytes:
    return bytes.fromhex(text.replace("0x", "").translate(_BETWEEN_BYTES))


def _from_codes(text: str) -> bytes:
    return bytes(int(code) for code in text.replace(",", " ").split())


def _from_base32(text: str) -> bytes:
    text = text.rstrip("=")
    return base64.b32decode(text + "=" * (-len(text) % 8))


def _from_base64(text: str) -> bytes:
    text = "".join(text.split()).rstrip("=").replace("-", "+").replace("_", "/")
    text = text[:-1] if len(text) % 4 == 1 else text
    return base64.b64decode(text + "=" * (-len(text) % 4))


_NUMBERS = (
    _Encoding(re.compile(r"(?:0x[0-9A-Fa-f]{2},? ?){8,}"), _from_hex),
    _Encoding(re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :]?){9,}[0-9A-Fa-f]{2}"), _from_hex),
    _Encoding(re.compile(r"(?<![0-9])(?:[0-9]{2,3}, ?){9,}[0-9]{2,3}"), _from_codes),
    _Encoding(re.compile(r"(?<![A-Z2-7])[A-Z2-7]{24,}={0,6}"), _from_base32),
)
_BASE64 = _Encoding(
    re.compile(
        r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{12,}+(?:\r?\n[ \t]*+[A-Za-z0-9+/_-]{12,}+)*"
        r"(?:={1,2}|\r?\n[ \t]*+[A-Za-z0-9+/]{1,11}+={1,2})?"
    ),
    _from_base64,
)


# What takes text apart

_SPACED = r"(?<![A-Za-z0-9])(?:[!-~] ){12,}[!-~](?![A-Za-z0-9])"
_SEAMS = (
    r"[\"'`][ \t]*+(?:\+|\.{1,2}|&|,|\|\||\\)?[ \t]*+(?:\r?\n[ \t]*+)*+(?:[+.&][ \t]*+)?[\"'`]"
    r"|(?<![ \t])(?:[ \t]*+\\?\r?\n[ \t]*+)++(?:[>#*|/-]{1,3}[ \t]++)?"
    r"|\*\*|~~|</?[a-z]{1,6} ?/?>"
)
_APART = re.compile(f"{_SPACED}|{_SEAMS}")
_LONG = re.compile(r"[!-~]{16,}")


def _closed(text: str) -> str:
    """Letters with spaces between them without those; line ends, string joints and marks: nothing."""
    return text.replace(" ", "") if text[1:2] == " " and len(text) > 24 and "\n" not in text else ""


def _turned(text: str) -> str:
    return text[::-1]
