"""Secrets in a text: which rule found one and in which line, never the value.

- `rules`: what a secret looks like, by issuer and by the words around it.
- `values`: whether a value is a secret or a placeholder, code or a word; values that look random.
- `decoded_views`: the text decoded and joined, as somebody looking for secrets would read it.

Here: the regular expression engine; `find_secrets`; and `refuse_secrets` for texts that become memories. All
of it is pure and bounded by counts, not by a clock: the same text gives the same result on every machine. A
text that could not be searched to the end is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from typing import Literal, NewType, Protocol, TypeAlias, cast

from sevenfold.core.errors import InputError, describe_missing
from sevenfold.core.json import replace_lone_surrogates
from sevenfold.core.secrets.decoded_views import BudgetExceeded, DecodedView, decode_views
from sevenfold.core.secrets.rules import RANDOM_RULE, SECRET_RULES, SecretRule, SecretRuleId
from sevenfold.core.secrets.values import find_random_tokens, is_likely_secret, is_placeholder


# RE2 only: its time is linear in the text, and a file made for the purpose can stop a backtracking engine for
# minutes. So there is no second engine to fall back on: without RE2 no text counts as clean.
class RegexMatch(Protocol):
    def start(self, group: int = 0, /) -> int: ...
    def end(self, group: int = 0, /) -> int: ...
    def group(self, group: int = 0, /) -> str: ...


class RegexPattern(Protocol):
    def finditer(self, text: str, /) -> Iterator[RegexMatch]: ...


class _Set(Protocol):
    def Add(self, pattern: str, /) -> int: ...  # noqa: N802 - the library's own names
    def Compile(self) -> None: ...  # noqa: N802
    def Match(self, text: str, /) -> list[int] | None: ...  # noqa: N802


def has_re2() -> bool:
    """Whether the package `google-re2` is installed."""
    return find_spec("re2") is not None


@cache
def compile_pattern(pattern: str) -> RegexPattern:
    import re2  # pyright: ignore[reportMissingTypeStubs]

    return cast("RegexPattern", re2.compile(pattern))  # pyright: ignore[reportUnknownMemberType]


class HintMatcher:
    """Which of these words a text has in it, in one pass, upper and lower case alike.

    What begins with `[` is a pattern, for values in which no letters are always the same.
    """

    def __init__(self, words: Sequence[str]) -> None:
        import re2  # pyright: ignore[reportMissingTypeStubs]

        self._set = cast("_Set", re2.Set.SearchSet())  # pyright: ignore[reportUnknownMemberType]
        self._words = tuple(words)
        for word in words:
            quoted = cast("str", re2.escape(word))  # pyright: ignore[reportUnknownMemberType]
            self._set.Add(f"(?i){word if word.startswith('[') else quoted}")
        self._set.Compile()

    def words_in(self, text: str) -> frozenset[str]:
        return frozenset(self._words[index] for index in self._set.Match(text) or ())


Fingerprint = NewType("Fingerprint", str)
ScanRefusal: TypeAlias = Literal["no engine", "too long", "too much work"]

MAX_SCAN_CHARS = 300_000
"""The largest file that may be shared is 250,000 bytes."""
_MAX_VIEW_CHARS = 2 * MAX_SCAN_CHARS
"""Full-width and ligature characters grow when they are read plainly, the worst of them eighteenfold."""
MAX_CANDIDATES = 4_000
"""Values to judge in one reading. A file of nothing but keys has a tenth of it."""
MAX_FINDINGS = 50
"""Enough to show; one is enough to block."""


def describe_refusal(refusal: ScanRefusal) -> str:
    """What to tell the user."""
    match refusal:
        case "no engine":
            return describe_missing("looking for secrets", ["re2"], "team")
        case "too long":
            return f"it is longer than {MAX_SCAN_CHARS:,} characters, which is more than is scanned"
        case "too much work":
            return "it takes more work than any ordinary text; split it, or take out what is encoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFinding:
    """One secret, told without telling it."""

    rule: SecretRuleId
    name: str
    line: int
    column: int
    """Both from 1, in the text as handed in."""
    view: str
    """How it was read: `as written`, `decoded`, `joined`, `reversed`."""
    fingerprint: Fingerprint
    """The same value under the same rule has the same one, anywhere. Without the key it says nothing about
    the value."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """A person's word that one finding is no secret, or may be shared."""

    fingerprint: Fingerprint
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise InputError(
                f"the finding {self.fingerprint} is allowed without a reason; say why it may be shared"
            )


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found in one text."""

    findings: tuple[SecretFinding, ...] = ()
    """What blocks it, in the order of the text; with more than `MAX_FINDINGS` it is refused, too."""
    allowed: tuple[SecretFinding, ...] = ()
    """What somebody allowed."""
    refusal: ScanRefusal | None = None
    """Why the text was not looked through to the end; it is blocked then, too."""

    @property
    def is_clean(self) -> bool:
        return not self.findings and self.refusal is None


def find_secrets(text: str, *, key: bytes, allowances: Collection[Allowance] = ()) -> Inspection:
    """Look for secrets in the text, in what it decodes to, and across its seams.

    `key` makes fingerprints: 16 bytes or more that are kept, and are not shared with whom the findings are.
    """
    if len(key) < 16:
        raise InputError(f"a key of {len(key)} bytes makes fingerprints that can be guessed; use 16 or more")
    if not has_re2():
        return Inspection(refusal="no engine")
    if len(text) > MAX_SCAN_CHARS:
        return Inspection(refusal="too long")
    text = replace_lone_surrogates(text)
    found: list[_Hit] = []
    passed: set[_Place] = set()
    refusal: ScanRefusal | None = None
    try:
        for view in decode_views(text):
            _add(found, _hits(view, passed))
        # Decoded, much is noise, and noise looks random.
        _add(found, _random_hits(text, found))
    except BudgetExceeded:
        refusal = "too much work"
    return _sorted_out(text, found, key, {one.fingerprint for one in allowances}, refusal)


_TORN = frozenset({"joined", "reversed"})
"""Views in which nothing stands as it was written: sentences and assignments mean nothing there."""


@dataclass(frozen=True, slots=True)
class _Place:
    rule: SecretRuleId
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    rule: SecretRule
    start: int
    end: int
    view: str
    value: str = field(repr=False)

    def is_covered_by(self, other: _Hit) -> bool:
        """Whether it is the same secret. The place alone says nothing: what was decoded may hold two."""
        overlap = self.start < other.end and other.start < self.end
        return overlap and (self.value in other.value or other.value in self.value)


def _hits(view: DecodedView, passed: set[_Place]) -> Iterator[_Hit]:
    if len(view.text) > _MAX_VIEW_CHARS:
        raise BudgetExceeded
    present = _hints().words_in(view.text)
    candidates = 0
    for rule in SECRET_RULES:
        if present.isdisjoint(rule.hints) or (view.kind in _TORN and rule.kind not in {"format", "url"}):
            continue
        for match in compile_pattern(rule.pattern).finditer(view.text):
            candidates += 1
            if candidates > MAX_CANDIDATES:
                raise BudgetExceeded
            hit = _judged(rule, match, view, passed)
            if hit is not None:
                yield hit


def _random_hits(text: str, found: Sequence[_Hit]) -> Iterator[_Hit]:
    """Values of no known format, except where another rule found something."""
    for token in find_random_tokens(text):
        if any(token.start < hit.end and hit.start < token.end for hit in found):
            continue
        yield _Hit(rule=RANDOM_RULE, start=token.start, end=token.end, view="as written", value=token.value)


def _judged(rule: SecretRule, match: RegexMatch, view: DecodedView, passed: set[_Place]) -> _Hit | None:
    start, end, value = match.start(1), match.end(1), match.group(1)
    place = _Place(rule.id, view.source_of(start))
    if is_placeholder(value):
        passed.add(place)
    # The example of a manual is none any more with the next line's first word behind it.
    if place in passed or not is_likely_secret(value, rule.kind):
        return None
    if rule.kind == "format" and not _stands_alone(view, start, end):
        return None
    return _Hit(rule=rule, start=place.start, end=view.source_of(end - 1) + 1, view=view.kind, value=value)


def _stands_alone(view: DecodedView, start: int, end: int) -> bool:
    """Whether it is no part of a longer word, unless that word was joined here."""
    text = view.text
    before = start == 0 or not text[start - 1].isalnum() or view.is_seam(start)
    after = end >= len(text) or not text[end].isalnum() or view.is_seam(end)
    return before and after


def _add(found: list[_Hit], hits: Iterable[_Hit]) -> None:
    """Keep what no earlier hit has told of already: the first rule that finds a value names it."""
    for hit in hits:
        if any(hit.is_covered_by(other) for other in found):
            continue
        # Those beyond are not looked at, so an allowance for all that are shown must not let the text pass.
        if len(found) >= MAX_FINDINGS:
            raise BudgetExceeded
        found.append(hit)


def _sorted_out(
    text: str, found: list[_Hit], key: bytes, allowed: set[Fingerprint], refusal: ScanRefusal | None
) -> Inspection:
    findings = [_finding(text, hit, key) for hit in sorted(found, key=lambda hit: hit.start)]
    return Inspection(
        tuple(one for one in findings if one.fingerprint not in allowed),
        tuple(one for one in findings if one.fingerprint in allowed),
        refusal,
    )


def _finding(text: str, hit: _Hit, key: bytes) -> SecretFinding:
    line = text.count("\n", 0, hit.start) + 1
    column = hit.start - (text.rfind("\n", 0, hit.start) + 1) + 1
    made = blake2b(f"{hit.rule.id}\0{hit.value}".encode(), key=key[:64], digest_size=10, person=b"secret")
    fingerprint = Fingerprint(made.hexdigest())
    return SecretFinding(
        rule=hit.rule.id, name=hit.rule.name, line=line, column=column, view=hit.view, fingerprint=fingerprint
    )


@lru_cache(maxsize=1)
def _hints() -> HintMatcher:
    return HintMatcher(sorted({hint for rule in SECRET_RULES for hint in rule.hints}))


# A memory must not hold a secret, because it would enter prompt after prompt.
_KEY = bytes(16)
"""Fingerprints are neither kept nor shown here."""


def refuse_secrets(text: str) -> None:
    """`InputError` with the rule and the line, and never the value, where a text holds a secret."""
    found = find_secrets(text, key=_KEY)
    if found.findings:
        first = found.findings[0]
        where = f"line {first.line}" if "\n" in text.strip() else "the text"
        raise InputError(
            f"{where} looks like a secret ({first.name}); memories go into every prompt, so write "
            "where it is kept instead"
        )
    if found.refusal is not None:
        raise InputError(f"it cannot be remembered: {describe_refusal(found.refusal)}")
