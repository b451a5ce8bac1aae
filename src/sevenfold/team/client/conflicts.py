"""The names of texts that were kept beside another: told from the name alone, on every device."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import count

from sevenfold.core.team_keys import MAX_KEY_PART_CHARS
from sevenfold.team.client.ports import LocalText
from sevenfold.team.protocol import Checksum, TeamKey

_COPY = re.compile(r"(.+)-conflict-[0-9a-f]{8}\.md", re.ASCII)


def is_conflict_copy(key: str) -> bool:
    return _COPY.fullmatch(key) is not None


def original_key(key: str) -> TeamKey:
    """The key beside which a copy was kept; as far as a very long name allows."""
    match = _COPY.fullmatch(key)
    return TeamKey(f"{match[1]}.md" if match else key)


def choose_copy_key(key: TeamKey, checksum: Checksum, here: Mapping[TeamKey, LocalText]) -> TeamKey:
    """Where the text is kept: under a name that follows from it, unless that holds another text by now."""
    for name in _names(original_key(key), checksum):
        there = here.get(name)
        if name != key and (there is None or there.checksum == checksum):
            return name
    raise AssertionError("the names never end")


def _names(key: TeamKey, checksum: Checksum) -> Iterator[TeamKey]:
    above, slash, name = key.removesuffix(".md").rpartition("/")
    digits = checksum.removeprefix("sha256:")
    for turn in count():
        mark = f"-conflict-{digits[:8]}"
        yield TeamKey(f"{above}{slash}{name[: MAX_KEY_PART_CHARS - len(mark)]}{mark}.md")
        digits = sha256(f"{digits} {turn}".encode()).hexdigest()
