"""The names that memories may have: those of any file of ours, ending in .md, and never the index."""

from __future__ import annotations

from sevenfold.core.errors import KeyRefused
from sevenfold.core.memories import INDEX_FILE, MemoryKey
from sevenfold.store.files.keys import check_key

MAX_MEMORY_DEPTH = 4
"""As deep as `logs/YYYY/MM/YYYY-MM-DD.md`."""


def check_memory_key(text: str) -> MemoryKey:
    """The key, or `KeyRefused` with the reason."""
    parts = check_key(text)
    if not text.endswith(".md") or text == ".md":
        raise KeyRefused(f"{text[:80]!r} cannot be a memory: its name has to end in .md")
    if any(part.casefold().endswith(".md") for part in parts[:-1]):
        raise KeyRefused(f"{text[:80]!r} cannot be a memory: a folder on its way is named like a file")
    if parts[-1].casefold() == INDEX_FILE.casefold():
        raise KeyRefused(f"{text[:80]!r} is the index, which the engine keeps; name the memory by its topic")
    if len(parts) > MAX_MEMORY_DEPTH:
        raise KeyRefused(
            f"{text[:80]!r} lies {len(parts)} deep; at most {MAX_MEMORY_DEPTH} parts are allowed"
        )
    return MemoryKey(text)
