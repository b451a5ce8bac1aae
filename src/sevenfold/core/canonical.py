"""The one place that makes bytes for hashing. A golden file pins them: changing a byte here breaks every
stored hash, so it is a decision, not a clean-up.

Canonical JSON: keys sorted by code point, no white space, UTF-8; a lone surrogate is written as its escape,
so that any text a provider can send has bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NewType

from sevenfold.core.json import Json, JsonObject, freeze, write_json
from sevenfold.core.messages import Message
from sevenfold.core.wire import write_block

Digest = NewType("Digest", str)
"""Hex SHA-256."""

START = Digest("0" * 64)
"""What a prefix of nothing hashes to."""

MARKER = "cache_control"
"""Where a cache breakpoint stands is no part of what is cached (API.md §1.6)."""


def canonical(value: object) -> bytes:
    """The bytes of a JSON value: equal values give equal bytes, in any process, for ever."""
    return write_json(freeze(value), sort_keys=True)


def digest(data: bytes) -> Digest:
    return Digest(hashlib.sha256(data).hexdigest())


def chain(previous: Digest, data: bytes) -> Digest:
    """The hash of a prefix, from the hash of all but its last part and that part's bytes."""
    return Digest(hashlib.sha256(previous.encode() + b"\n" + data).hexdigest())


def unmarked(value: Json) -> Json:
    """A block, tool or system part without its cache markers, on itself and on what it directly holds."""
    if isinstance(value, tuple):
        return tuple(unmarked(item) for item in value)
    if not isinstance(value, JsonObject):
        return value
    plain = value.without(MARKER)
    content = plain.get("content")
    if not isinstance(content, tuple):
        return plain
    return JsonObject({**plain, "content": tuple(_unmarked_item(item) for item in content)})


def block_bytes(role: str, block: object) -> bytes:
    """What one block adds to a prefix: its role and its own unmarked wire form."""
    return canonical({"role": role, "block": unmarked(freeze(block))})


def prefix_digests(messages: Iterable[Message], start: Digest = START) -> Iterator[Digest]:
    """The chained hash after each block, in order. Feed only the new messages and the last hash to go on."""
    current = start
    for message in messages:
        for block in message.blocks:
            current = chain(current, block_bytes(message.role, write_block(block)))
            yield current


def _unmarked_item(item: Json) -> Json:
    return item.without(MARKER) if isinstance(item, JsonObject) else item
