"""Calls that stand in more than one file.

A resumed or forked session begins with a copy of the one it came from, and a parent's file mirrors its
sub-agents'. Each call was billed once. A quick look at the bytes, without parsing, finds each file's ids.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from sevenfold.store.foreign.entries import CallId
from sevenfold.store.foreign.lines import scan_raw_lines

_ID = re.compile(rb'"id": ?"((?!toolu_)[^"\\]{6,100})"')
_MIRROR = b'"agent_progress"'


@dataclass(frozen=True, slots=True)
class FileCalls:
    """The calls that a file may hold, as digests; some are no calls, which does no harm."""

    own: array[int]
    mirrored: array[int]
    """Of sub-agents, whose own files go first."""


def hash_call_id(call: CallId | bytes) -> int:
    """A call's id in eight bytes, the same in every process."""
    raw = call if isinstance(call, bytes) else call.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "big")


def scan_calls(path: Path, on_bytes: Callable[[int], None] | None = None) -> FileCalls:
    """The ids beside a usage, in one pass over the bytes."""
    own: set[int] = set()
    mirrored: set[int] = set()
    for raw in scan_raw_lines(path):
        if on_bytes:
            on_bytes(len(raw))
        if b'"usage"' in raw:
            found = mirrored if _MIRROR in raw else own
            found.update(hash_call_id(item) for item in _ID.findall(raw))
    return FileCalls(array("Q", sorted(own)), array("Q", sorted(mirrored - own)))


def choose_owners(files: Sequence[FileCalls]) -> Mapping[int, frozenset[int]]:
    """For each file, by its place in the list, the calls that belong to another one.

    The first file that holds a call owns it; a mirror owns only what no file holds itself.
    """
    owner: dict[int, int] = {}
    for calls in ([item.own for item in files], [item.mirrored for item in files]):
        for place, ids in enumerate(calls):
            for call in ids:
                owner.setdefault(call, place)
    foreign = {
        place: frozenset(call for ids in (item.own, item.mirrored) for call in ids if owner[call] != place)
        for place, item in enumerate(files)
    }
    return {place: calls for place, calls in foreign.items() if calls}
