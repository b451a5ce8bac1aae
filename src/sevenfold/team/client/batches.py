"""Texts in requests of a bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from sevenfold.team.protocol import MAX_REQUEST_BYTES

_FRAME_BYTES = len('{"bodies":[]}')


def split_batches(texts: Sequence[str], max_bytes: int = MAX_REQUEST_BYTES) -> Iterator[tuple[str, ...]]:
    """As many a request as fit; one that is too large for any travels alone."""
    batch: list[str] = []
    size = _FRAME_BYTES
    for text in texts:
        added = wire_bytes(text) + 1
        if batch and size + added > max_bytes:
            yield tuple(batch)
            batch, size = [], _FRAME_BYTES
        batch.append(text)
        size += added
    if batch:
        yield tuple(batch)


def wire_bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode())
