"""Whether a value that stands where a secret would stand is one: not a placeholder, not code, not a word."""

from __future__ import annotations

import math
import re
from collections import Counter
from hashlib import sha256
from itertools import pairwise

from sevenfold.core.secrets.rules import SecretKind

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
    }
)
"""Keys that vendors print in their own manuals, as the first 16 hex digits of their SHA-256: written out they
would set off everybody else's scanners."""

_MOST_JUDGED = 512
"""Characters. The rest of a longer value is like its beginning."""
_WORD = re.compile(r"[A-Z]?(?=[a-z]*[aeiouy])[a-z]{3,}|(?<![A-Za-z])[A-Z]{4,}(?![A-Za-z])")
"""Letters of one case with a vowel among them. Looks ahead within a run, and a value is short."""
_CODE = re.compile(
    r"[(){}\[\]\\]|^\$\w|://|::|->|=>|&&|^[./~@#-]|^\w+(?:\.[A-Za-z_]\w*)+$|^[\w-]+(?:/[\w.-]+)+$"
)
"""Calls, references, paths, addresses, dotted names."""
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
    if kind == "url":
        return not _ORDINARY.fullmatch(value)
    return _is_password(value.rstrip(".:?)"), is_told=kind == "told")


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


def _is_password(value: str, *, is_told: bool) -> bool:
    if len(value) < 6 or value.lower() in _SCHEMES or _ORDINARY.fullmatch(value) or _CODE.search(value):
        return False
    words, symbols = _word_share(value), not _SYMBOLS.isdisjoint(value)
    digits, letters = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    if is_told:
        is_mixed = (digits or symbols) and len(_TURNS.findall(value)) > 1
        return letters and ((digits and (symbols or words < 0.5)) or is_mixed or _is_jumbled(value))
    return letters and ((digits and symbols) or ((digits or symbols) and words < 0.8) or _is_jumbled(value))


def _is_jumbled(value: str) -> bool:
    """Letters of both cases in an order that no word and no name has."""
    letters = "".join(filter(str.isalpha, value))
    return (
        len(letters) >= 8 and not letters[1:].islower() and not letters.isupper() and _word_share(value) < 0.4
    )


def _word_share(value: str) -> float:
    """How much of it is made of runs of letters that could be words."""
    return sum(map(len, _WORD.findall(value))) / len(value)
