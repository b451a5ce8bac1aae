"""A body put together from bytes that were written before, in one copy: a long history is megabytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sevenfold.core.json import write_json


def join_object(fields: Mapping[str, bytes | Sequence[bytes]]) -> bytes:
    """A JSON object from the bytes of its values; a list of them is an array."""
    chunks: list[bytes] = []
    for key, value in fields.items():
        chunks += (b"," if chunks else b"{", write_json(key), b":")
        if isinstance(value, bytes):
            chunks.append(value)
            continue
        chunks.append(b"[")
        for at, item in enumerate(value):
            if at:
                chunks.append(b",")
            chunks.append(item)
        chunks.append(b"]")
    return b"".join((*chunks, b"}")) if chunks else b"{}"
