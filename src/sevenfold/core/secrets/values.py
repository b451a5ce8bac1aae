"""Whether a value is a secret: not a placeholder, not code, not a word; and whether it looks drawn at random.

A value of no known format counts when it looks random and its place says that it is a key: a name that it is
assigned to, words before it, quotes. `find_random_tokens` reads a text once and judges each value by both.
"""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import pairwise
from operator import add
from typing import Literal, TypeAlias

from sevenfold.core.secrets.rules import SecretKind

# Whether a value that stands where a secret would stand is one: not a placeholder, not code, not a word.

_ALPHANUMERIC = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_PLACEHOLDERS = (
    *("example", "sample", "placeholder", "changeme", "change-me", "change_me", "dummy", "redacted"),
    *("your_", "your-", "yourapi", "yourkey", "yourtoken", "yoursecret", "yourpass", "insert", "replace"),
    *("notreal", "not-a-real", "****", "....", "<", "${", "{{", "%(", "$(", "…", "•"),
    "eyjzdwiioiixmjm0nty3odkwiiwibmftzsi6ikpvag4gr",  # the John Doe of every JWT tutorial
)
"""What people write where a secret would be. No word of letters alone has fewer than five of them: a random
key has one of four by chance once in ten thousand."""
_CROSSES = ("xxxxx", "XXXXX")

_ORDINARY = re.compile(
    r"(?:my|the|test|user|admin|root|db|some|new|old|a|super)?[-_]?"
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|key|admin|root|user|test|postgres|mysql|guest|foo|bar|qwerty|hunter)"
    r"[-_]?[0-9]{0,6}[!]?",
    re.IGNORECASE,
)
"""What documentation and tests use for a password. Bounded: at most three short choices and six digits."""

_SCHEMES = frozenset(
    {
        *(
            "sha1",
            "sha256",
            "sha512",
            "sha-256",
            "sha-512",
            "md5",
            "bcrypt",
            "argon2",
            "argon2id",
            "pbkdf2",
            "scrypt",
        ),
        *(
            "base64",
            "base32",
            "utf8",
            "utf-8",
            "oauth2",
            "oauth2.0",
            "rfc6749",
            "hmac-sha256",
            "totp",
            "x509",
        ),
    }
)
"""Words with digits that follow `password` or `token` in plain talk."""

_KNOWN_EXAMPLES = frozenset(
    {
        "2cafc0970149a84f",  # Stripe's first API key
        "f2d6ca16515033e5",  # Stripe's second
        "0011cc25eb432071",  # the Azure storage emulator
        "aa6547439583c3a2",  # the Cosmos DB emulator
        "0b5dd075ccdd03c4",  # Telegram's bot tutorial
        "511c2249afed266e",  # the same, without the number of the bot
        "8be5d113c0871ce1",  # the one-time passwords of most manuals
    }
)
"""Keys that vendors print in their own manuals, as the first 16 hex digits of their SHA-256: written out they
would set off everybody else's scanners."""

_PART_NAMES = re.compile(r"(?i)pass|secret|token|key|auth|user|seed|reply")
_MOST_JUDGED = 512
"""Characters. The rest of a longer value is like its beginning."""
_WORD = re.compile(r"[A-Z]?(?=[a-z]*[aeiouy])[a-z]{3,}|(?<![A-Za-z])[A-Z]{4,}(?![A-Za-z])")
"""Letters of one case with a vowel among them. Looks ahead within a run, and a value is short."""
_CODE = re.compile(
    r"[(){}\[\]\\]|^\$\w|://|::|->|=>|&&|^[./~@#-]|^\w+(?:\.[A-Za-z_]\w*)+$|^[\w-]+(?:/[\w.-]+)+$"
)
"""Calls, references, paths, addresses, dotted names."""
_VARIABLE = re.compile(r"\$(?:[A-Z_][A-Z0-9_]*|[a-z_]+)")
"""Names of variables have one case; a password may begin with the sign, too."""
_SYMBOLS = frozenset("!@#$%^&*?~+=")
_TURNS = re.compile(r"[a-z][A-Z]")
"""Names of things have one, `PostgreSQL` say; with two, and more than letters in it, hardly anything has."""


def is_likely_secret(value: str, kind: SecretKind) -> bool:
    """Whether what is no placeholder is a secret, as far as it shows in the value and in where it stood."""
    value = value[:_MOST_JUDGED]
    if kind == "format":
        return len(value) < 16 or entropy_bits(value) >= 2.7
    if kind == "key":
        return _is_key(value.rstrip(".:"))
    if kind == "random":
        return _is_mixed(value.rstrip(".:?)"))
    if kind == "url":
        return (
            len(value) > 3
            and not _VARIABLE.fullmatch(value)
            and not _ORDINARY.fullmatch(value)
            and not _is_named_part(value)
        )
    return _is_password(value.rstrip(".:?)"), is_stated=kind == "stated")


def _is_mixed(value: str) -> bool:
    """Letters of both cases and digits, or letters, digits and symbols: no name of a thing has them all."""
    has_cases = any(map(str.isupper, value)) and any(map(str.islower, value))
    has_symbols = not _SYMBOLS.isdisjoint(value)
    is_ordinary = _ORDINARY.fullmatch(value) or _CODE.search(value) or is_placeholder(value)
    return (
        len(value) >= 7
        and _has_both(value)
        and (has_cases or has_symbols)
        and _word_share(value) < 0.5
        and not is_ordinary
    )


def _is_named_part(value: str) -> bool:
    """`ApiSecret`, `mySendingPassword`, `x-oauth-basic`: what manuals write in the place of a password."""
    has_letters_only = value.replace("-", "").replace("_", "").isalpha()
    return has_letters_only and bool(_PART_NAMES.search(value)) and _word_share(value) >= 0.5


def is_placeholder(value: str) -> bool:
    """Whether it says itself that it is none, or is one that a vendor prints as an example."""
    value = value[:_MOST_JUDGED]
    lowered = value.lower()
    if any(word in lowered for word in _PLACEHOLDERS) or any(cross in value for cross in _CROSSES):
        return True
    if _is_sequence(value):
        return True
    return sha256(value.encode()).hexdigest()[:16] in _KNOWN_EXAMPLES


def entropy_bits(value: str) -> float:
    """Bits a character, by how often each occurs in the value itself."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())


def _is_sequence(value: str) -> bool:
    """`abcdefgh12345678` and its like: more than half of the steps go to the next character."""
    steps = sum(ord(after) - ord(before) == 1 for before, after in pairwise(value))
    return len(value) >= 8 and steps * 2 > len(value)


def _is_key(value: str) -> bool:
    has_both = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return (
        len(value) >= 16
        and has_both
        and entropy_bits(value) >= 3.0
        and _word_share(value) < 0.5
        and not _CODE.search(value)
    )


def _is_password(value: str, *, is_stated: bool) -> bool:
    if len(value) < 6 or value.lower() in _SCHEMES or _ORDINARY.fullmatch(value) or _CODE.search(value):
        return False
    words, symbols = _word_share(value), not _SYMBOLS.isdisjoint(value)
    digits, letters = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    if is_stated:
        is_mixed = (digits or symbols) and len(_TURNS.findall(value)) > 1
        return letters and ((digits and (symbols or words < 0.5)) or is_mixed or _looks_random(value))
    return letters and ((digits and symbols) or ((digits or symbols) and words < 0.8) or _looks_random(value))


def _looks_random(value: str) -> bool:
    """Letters of both cases in an order that no word and no name has."""
    letters = "".join(filter(str.isalpha, value))
    if len(letters) < 8 or letters[1:].islower() or letters.isupper():
        return False
    # By chance every other run of letters has a vowel. A name of two words or more is nearly all words.
    return _word_share(value) < (0.6 if len(_TURNS.findall(value)) > 1 else 0.4)


def _word_share(value: str) -> float:
    """How much of it is made of runs of letters that could be words."""
    return sum(map(len, _WORD.findall(value))) / len(value)


# Values of no known format

TokenShape: TypeAlias = Literal["words", "uuid", "hex", "one case", "mixed case"]
"""What a value looks like, from no secret at all to one that nothing else looks like."""

_PAIRS = frozenset(
    row[0] + second
    for row in [
        "abcdfgiklmnprstuvwy",
        "baeilorsu",
        "cacehiklorstuy",
        "dadegilorsu",
        "eabcdefgilmnopqrstvwxy",
        "faefiloruy",
        "gaeghilnorsu",
        "haeiortu",
        "iabcdefglmnoprstvxz",
        "jeo",
        "keis",
        "ladeilostuvy",
        "mabeilmopsu",
        "nacdefgiklnopstuvy",
        "oabcdfgiklmnoprstuvw",
        "paehiloprstuy",
        "qu",
        "racdefgiklmnoprstuvy",
        "sacefhiklmnopstuy",
        "tacdehiloprstuy",
        "uabcdefgilmnprst",
        "vaeio",
        "waehinors",
        "xceiptx",
        "yeinpsty",
        "ze",
    ]
    for second in row[1:]
)
"""A letter, and the letters that follow it in words: 97 of 100 pairs of English and of code, 41 by chance."""
_RUN = re.compile(r"(?<![A-Za-z0-9_+/~.-])[A-Za-z0-9_+/~.-]{16,}+={0,2}")
"""A run of what keys are made of, as far as it goes: it is read once."""
_DIGIT, _LETTER = re.compile("[0-9]"), re.compile("[A-Za-z]")
_PARTS = re.compile(r"[^A-Za-z0-9]+")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_SHORT_HEX = re.compile(r"[A-Za-z]{1,4}[0-9a-f]{16,}")
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9]{0,11}[_-](?:[A-Za-z]{1,8}[_-])?(?=[A-Za-z0-9])")
_LIVE = re.compile(
    r"[A-Za-z][A-Za-z0-9]{0,11}_(?:(?:live|test|prod|sandbox|pat|key|token|secret|api)_)?(?=[A-Za-z0-9])"
)
_NOT_KEYS = re.compile(
    r"(?:AAAA[BCE]3NzaC1|MII[A-Za-z0-9]|sha\d|md5|blake|iVBOR|R0lGOD|PHN2Zy|d09G|UEsDB|H4sI|0x)"
    r"|(?:req|msg|toolu|srvtoolu|call|chatcmpl|thread|run|asst|resp|file|evt|cus|pi|ch|sub|acct|org|user|usr"
    r"|proj|batch|conv|trace|span|job|task|build|img|session|sess|event|doc|page|item|order|inv|txn|node|pod"
    r"|vol|snap|ami|nonce|prod|price|seti|pm|rs|fc|ws)[_-]",
    re.IGNORECASE,
)
"""How public keys, digests, pictures and the ids of requests, messages and customers begin."""
_MOST_TOKEN_CHARS = 300
"""What is longer is a file. Longer keys have formats of their own."""
_WINDOW_CHARS = 80
"""Before a value. What stands further away is about something else."""


@cache
def _odd_pairs() -> frozenset[str]:
    """Two letters that no word has in this order, or a letter and a digit. Made for the first value that is
    judged: a plain text has none."""
    return frozenset(
        first + second
        for first in _ALPHANUMERIC
        for second in _ALPHANUMERIC
        if first.isdigit() != second.isdigit() or (first.isalpha() and (first + second).lower() not in _PAIRS)
    )


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_API = re.compile(r"(?<![A-Za-z])apis?(?![a-z])", re.IGNORECASE)
"""Says little by itself: hashes and ids stand beside it, too."""
_NAME_WORDS = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]{2,}")
"""The words of a sentence, and of names like `apiKey`, `API_KEY` and `api-key`."""
_NAME_CHARS = _ALPHANUMERIC + "_.$-"
_SECRET_WORDS = _listed(
    """auth oauth authorization authentication bearer licence license login signing webhook pass pw pwd"""
)
_SECRET_ENDS = (
    *("key", "keys", "token", "tokens", "secret", "secrets", "password", "passwd", "passphrase", "passcode"),
    *("credential", "credentials"),
)
_NOT_SECRET = frozenset({"monkey", "turkey", "donkey", "hotkey"})
_KEY_OWNERS = _listed(
    """cache primary foreign partition sort public idempotency index object dict row translation locale map
    group lookup storage event query shard routing column field pub host restore publishable site gpg pgp recv
    composite natural unique"""
)
"""Whose key is none: the key of a cache, of a row, a public one."""
_DIGEST_WORDS = _listed(
    """sha md hash hashes digest digests checksum checksums commit commits committed fingerprint fingerprints
    thumbprint integrity etag bitcoin litecoin coin ethereum wallet keyserver gpg pgp sri csp serial"""
)
"""In the same line they say what a value is, wherever they stand."""
_PLAIN_WORDS = _listed(
    """id ids uid uuid guid revision rev ref head trace span request correlation cache container image layer
    blob tree branch git version cursor nonce tenant object message session parent public begin build index
    resolved signature salt iv color seed address contract tx txid block bucket job run node pod cluster pin
    pinned merge base encoded data svg icon font url donate donations certificate example tag pubkey
    publickey sitekey"""
)
"""They say that a value is something else, unless a word nearer to it says that it is a key."""
_HINTS = (
    "key",
    "token",
    "secret",
    "pass",
    "pw",
    "auth",
    "cred",
    "bearer",
    "licen",
    "login",
    "sign",
    "hook",
    "api",
)
"""A part of each word that says that a value is a key."""
_GIVES = ("=", ":", ">", "|", ",", "(")
_KNOWN_WORDS = _SECRET_WORDS | _DIGEST_WORDS | _PLAIN_WORDS
_URL_CHARS = 400
"""How far back a URL may have begun."""
_IN_URL = re.compile(r"(?:://|%3A%2F%2F)[^\s\"'`<>()]*$")


@dataclass(frozen=True, slots=True)
class RandomToken:
    """A value that looks random in a place for a key."""

    start: int
    end: int
    value: str = field(repr=False)


def find_random_tokens(text: str) -> Iterator[RandomToken]:
    """Values of no known format that look random, where their place says that they are keys."""
    for match in _RUN.finditer(text):
        value = match.group().rstrip(".-_/~+")
        shape = token_shape(value)
        if shape == "words":
            continue
        start, end = match.start(), match.start() + len(value)
        rest = text[end : match.end() + 3]
        is_cut_off = "..." in rest or "…" in rest
        if is_cut_off or not _is_key_here(text, start, end, shape):
            continue
        if not is_placeholder(value) and (shape in {"uuid", "hex"} or not _says_something(value)):
            yield RandomToken(start, end, value)


def token_shape(value: str) -> TokenShape:
    if not 16 <= len(value) <= _MOST_TOKEN_CHARS or value[0] in "./-" or not _has_both(value):
        return "words"
    if _UUID.fullmatch(value):
        return "uuid"
    prefix = _PREFIX.match(value)
    body = value[prefix.end() :] if prefix else value
    if _HEX.fullmatch(body) or _SHORT_HEX.fullmatch(body):
        return "hex" if len(body) >= 16 and _has_both(body) and len(set(body)) > 7 else "words"
    if not _is_random(value):
        return "words"
    return "mixed case" if body.upper() != body != body.lower() else "one case"


def _has_both(value: str) -> bool:
    return _DIGIT.search(value) is not None and _LETTER.search(value) is not None


def _is_random(value: str) -> bool:
    """Whether its characters follow each other as they do in no word, name or path."""
    parts = [part for part in _PARTS.split(value) if part]
    letters = sum(map(len, parts))
    if letters < 9 * len(parts) or (("/" in value or "." in value) and any(map(_is_word, parts))):
        return False
    odd = sum(sum(map(_odd_pairs().__contains__, map(add, part, part[1:]))) for part in parts)
    return odd >= 0.45 * (letters - len(parts)) and len(set(value)) > 8


def _is_word(part: str) -> bool:
    pairs = (first + second for first, second in pairwise(part.lower()))
    return len(part) > 1 and part.isalpha() and all(pair in _PAIRS for pair in pairs)


def _says_something(value: str) -> bool:
    """Whether it is base64 of a text: what the text says is looked at in a reading of its own."""
    plain = value.rstrip("=").replace("-", "+").replace("_", "/")
    if len(plain) % 4 == 1:
        return False
    try:
        raw = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:
        return False
    return all(9 <= one < 127 for one in raw)


@dataclass(frozen=True, slots=True)
class _Words:
    """What the words of a line or a name say that a value is."""

    is_key: bool
    is_plain: bool
    """Something else than a key."""


_NO_WORDS = _Words(is_key=False, is_plain=False)


def _words(text: str) -> _Words:
    words = [*map(str.lower, _NAME_WORDS.findall(text))]
    if _KNOWN_WORDS.isdisjoint(words) and not any(word.endswith(_SECRET_ENDS) for word in words):
        return _NO_WORDS
    key = plain = -1
    has_digest = False
    for at, word in enumerate(words):
        if word in _DIGEST_WORDS:
            has_digest = True
        elif word in _PLAIN_WORDS:
            plain = at
        elif _is_secret_word(word):
            if word.startswith("key") and at and words[at - 1] in _KEY_OWNERS:
                plain = at
            else:
                key = at
    return _Words(key > plain and not has_digest, has_digest or plain > key)


def _is_secret_word(word: str) -> bool:
    return word in _SECRET_WORDS or (word.endswith(_SECRET_ENDS) and word not in _NOT_SECRET)


def _is_key_here(text: str, start: int, end: int, shape: TokenShape) -> bool:
    """Whether what stands around the value says that it is a key."""
    before = text[max(0, start - _WINDOW_CHARS) : start]
    if before.endswith(" h1:"):  # a digest in `go.sum`
        return False
    line = before[before.rfind("\n") + 1 :]
    if not line.strip(" \t>*-|`\"'#/"):
        # The first of its line: the line before says what it is.
        before = text[max(0, start - len(line) - _WINDOW_CHARS) : start - len(line)].rstrip()
        line = before[before.rfind("\n") + 1 :]
    given = line.rstrip("\"'`@ \t")
    is_assigned = given.endswith(("=", ":", "=>", "->"))
    quote = text[start - 1 : start]
    is_quoted = quote in {'"', "'", "`"} and text.startswith(quote, end)
    has_form = end - start >= 32 and _LIVE.match(text, start, end) is not None
    if not is_assigned and not is_quoted and not has_form and not _has_hint(line):
        return False  # as most do
    said, named = _words(line), _words(_last_name(given)) if given.endswith(_GIVES) else _NO_WORDS
    if is_assigned and named.is_key and said.is_key:
        return True
    if said.is_plain or named.is_plain or (shape == "hex" and quote in {"@", "#"}):  # `@`: a pinned version
        return False
    if not said.is_key and not _is_given_key(before, shape, end - start, is_assigned, is_quoted):
        is_likely = has_form or _API.search(line) is not None
        if not is_likely or shape in {"uuid", "hex"}:
            return False
    return not _NOT_KEYS.match(text, start) and not _is_in_url(text, start)


def _is_given_key(before: str, shape: TokenShape, size: int, is_assigned: bool, is_quoted: bool) -> bool:
    """Whether a value is one that nothing calls a key, and that nothing else is written like."""
    if shape == "uuid":
        return False
    if shape == "hex":
        return is_assigned and is_quoted and size >= 20 and not _words(before).is_plain
    return (is_assigned or is_quoted) and (shape == "mixed case" or size >= 20)


def _has_hint(line: str) -> bool:
    lowered = line.lower()
    return any(hint in lowered for hint in _HINTS)


def _last_name(given: str) -> str:
    """What stands before the sign that assigns."""
    head = given.rstrip("=:>-|,(?.+!").rstrip("\"'`]) \t")
    return head[len(head.rstrip(_NAME_CHARS)) :]


def _is_in_url(text: str, start: int) -> bool:
    return _IN_URL.search(text, max(0, start - _URL_CHARS), start) is not None
