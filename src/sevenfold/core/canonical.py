"""The one place that makes bytes for hashing. A golden file pins them: changing a byte here breaks every
stored hash, so it is a decision, not a clean-up.

Canonical JSON: keys sorted by code point, no white space, UTF-8; a lone surrogate is written as its escape,
so that any text a provider can send has bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NewType

from sevenfold.core.json import Json, JsonObject, freeze, thaw
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
    return _dump(freeze(value))


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


def _dump(value: Json) -> bytes:
    try:
        text = json.dumps(
            thaw(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
        )
    except TypeError:
        text = _spell(value)
    return text.encode("utf-8", "backslashreplace")


def _spell(value: Json) -> str:
    """The slow way, for the rare number that only a `Decimal` can hold and `json` cannot write."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, JsonObject):
        return "{" + ",".join(f"{_spell(key)}:{_spell(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, tuple):
        return "[" + ",".join(_spell(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
