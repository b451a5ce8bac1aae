"""What changed in the index of memories since it was said: its lines alone, not all of it again."""

from __future__ import annotations

_INDEX_OPENING = "Only what changed; the rest of the index holds as it was said."


def render_index_change(before: str, after: str) -> str:
    """The lines that are new and those that are gone; empty where they only changed their order."""
    old, new = before.splitlines(), after.splitlines()
    added = [line for line in new if line.strip() and line not in set(old)]
    gone = [line for line in old if line.strip() and line not in set(new)]
    if not added and not gone:
        return ""
    parts = [_INDEX_OPENING]
    if added:
        parts += ["New:", *added]
    if gone:
        parts += ["Gone:", *gone]
    return "\n".join(parts)
