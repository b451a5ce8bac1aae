"""Patterns of paths: `*` and `?` within a name, `**` over any number of folders, `{a,b}` for either."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

MAX_ALTERNATIVES = 64
"""Braces multiply: without a bound forty bytes of them make a million patterns."""

_BRACES = re.compile(r"\{([^{}]*)\}")


def expand_braces(pattern: str) -> tuple[str, ...]:
    """The patterns without braces that this one stands for; itself, where they are too many."""
    found = [pattern]
    while any(_BRACES.search(item) for item in found):
        found = [one for item in found for one in _first_braces(item)]
        if len(found) > MAX_ALTERNATIVES:
            return (pattern,)
    return tuple(dict.fromkeys(found))


def matches_name(pattern: str, name: str) -> bool:
    """Whether a pattern names this, be it one name or a line of words. Case counts."""
    return fnmatchcase(name, pattern)


def matches_path(pattern: str, path: str) -> bool:
    """Whether a pattern without braces names this path. Case counts; both are separated by `/`."""
    return matches_parts(pattern.split("/"), path.split("/"))


def matches_parts(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """The same for what stands between the slashes. Only the last `**` is ever gone back to: that is enough,
    and takes no more than one step for each pair of names."""
    at = here = 0
    star, resume = -1, 0
    while here < len(parts):
        if at < len(pattern) and pattern[at] == "**":
            star, resume = at, here
            at += 1
        elif at < len(pattern) and fnmatchcase(parts[here], pattern[at]):
            at += 1
            here += 1
        elif star >= 0:
            resume += 1
            at, here = star + 1, resume
        else:
            return False
    return all(part == "**" for part in pattern[at:])


def _first_braces(pattern: str) -> list[str]:
    found = _BRACES.search(pattern)
    if found is None:
        return [pattern]
    head, tail = pattern[: found.start()], pattern[found.end() :]
    return [f"{head}{choice}{tail}" for choice in found[1].split(",")]
