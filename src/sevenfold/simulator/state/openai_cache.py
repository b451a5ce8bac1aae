"""OpenAI's prompt cache: automatic, by exact prefix, from 1,024 tokens on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sevenfold.core.canonical import EMPTY_DIGEST, Digest, canonical_bytes, chain_digest
from sevenfold.core.json import JsonObject

MIN_CACHED_TOKENS = 1_024
CACHE_STEP_TOKENS = 128
"""Hits are counted in steps of so many tokens."""
OPENAI_CACHE_TTL = timedelta(minutes=30)
"""From the last use. It is what newer models say; older ones forget after five to ten idle minutes."""


@dataclass(frozen=True, slots=True)
class CachePart:
    """One piece of a prompt: a tool, the system prompt, or a block of a message."""

    wire: JsonObject
    tokens: int


@dataclass(frozen=True, slots=True)
class PrefixHit:
    cached_tokens: int
    digests: tuple[Digest, ...]
    """Of each prefix of the prompt, for `keep`."""


class PrefixCache:
    """Prefixes, by owner and model. A difference inside a part counts from the start of the part."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: dict[tuple[str, str, Digest], datetime] = {}

    def look_up(self, workspace: str, model: str, parts: Sequence[CachePart], now: datetime) -> PrefixHit:
        digest, tokens, cached = EMPTY_DIGEST, 0, 0
        digests: list[Digest] = []
        for part in parts:
            digest = chain_digest(digest, canonical_bytes(part.wire))
            digests.append(digest)
            tokens += part.tokens
            used = self._used.get((workspace, model, digest))
            if used is not None and now - used <= OPENAI_CACHE_TTL:
                cached = tokens
        cached -= cached % CACHE_STEP_TOKENS
        return PrefixHit(cached if cached >= MIN_CACHED_TOKENS else 0, tuple(digests))

    def keep(self, workspace: str, model: str, hit: PrefixHit, now: datetime) -> None:
        """The answer begins: what was asked can be read from here on."""
        for digest in hit.digests:
            self._used[workspace, model, digest] = now
