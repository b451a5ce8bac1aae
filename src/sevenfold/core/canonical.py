"""The one place that makes bytes for hashing. A golden file pins them: changing a byte here breaks every
stored hash, so it is a decision, not a clean-up.

Canonical JSON: keys sorted by code point, no white space, UTF-8; a lone surrogate is written as its escape,
so that any text a provider can send has bytes.
"""

from __future__ import annotations

import hashlib
from typing import NewType

from sevenfold.core.json import Json, JsonObject, freeze, write_json

Digest = NewType("Digest", str)
"""Hex SHA-256."""

EMPTY_DIGEST = Digest("0" * 64)
"""What a prefix of nothing hashes to."""

CACHE_CONTROL = "cache_control"
"""The position of a cache breakpoint is no part of what is cached."""


def canonical_bytes(value: object) -> bytes:
    """The bytes of a JSON value: equal values give equal bytes, in any process, for ever."""
    return write_json(freeze(value), sort_keys=True)


def digest(data: bytes) -> Digest:
    return Digest(hashlib.sha256(data).hexdigest())


def chain_digest(previous: Digest, data: bytes) -> Digest:
    """The hash of a prefix, from the hash of all but its last part and that part's bytes."""
    return Digest(hashlib.sha256(previous.encode() + b"\n" + data).hexdigest())


def strip_cache_control(value: Json) -> Json:
    """A block, tool or system part, or a list of them, without breakpoints on itself or on the blocks in it.

    What a tool is called with and what its schema says are never looked into: a key of that name is theirs.
    """
    if isinstance(value, tuple):
        return tuple([strip_cache_control(item) for item in value])
    return strip_block(value) if isinstance(value, JsonObject) else value


def strip_block(block: JsonObject) -> JsonObject:
    """The same for one object."""
    return JsonObject(
        {key: _unmarked_field(key, item) for key, item in block.items() if key != CACHE_CONTROL}
    )


def find_cache_control(value: Json) -> JsonObject | None:
    """The last breakpoint in a block, its own before those of the blocks in it; None where it has none."""
    if not isinstance(value, JsonObject):
        return None
    own = value.get(CACHE_CONTROL)
    if isinstance(own, JsonObject):
        return own
    source = value.get("source")
    for holder in (value, source):
        inside = holder.get("content") if isinstance(holder, JsonObject) else None
        for block in reversed(inside) if isinstance(inside, tuple) else ():
            found = find_cache_control(block)
            if found is not None:
                return found
    return None


def block_bytes(role: str, block: object) -> bytes:
    """What one block adds to a prefix: its role and its own unmarked wire form."""
    return canonical_bytes({"role": role, "block": strip_cache_control(freeze(block))})


def _unmarked_field(key: str, value: Json) -> Json:
    if key == "content" and isinstance(value, tuple):
        return strip_cache_control(value)
    if key == "source" and isinstance(value, JsonObject) and isinstance(value.get("content"), tuple):
        return JsonObject({name: _unmarked_field(name, item) for name, item in value.items()})
    return value
