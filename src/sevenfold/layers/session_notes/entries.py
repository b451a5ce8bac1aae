"""Choosing lines for a section that has room for some of them: by weight, never by where the room ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sevenfold.layers.session_notes.sections import EstimateTokens

FOLD_TOKENS = 24.0
"""Kept free for the line that says how many were left out."""

MAX_CONSIDERED = 300
"""The heaviest entries: no section has room for more, and weighing them all would cost time for nothing."""


@dataclass(frozen=True, slots=True)
class NotesEntry:
    """A line, or a few, that stand or fall together."""

    text: str
    brief: str = ""
    """What stands in when the whole does not fit; empty: then it is left out."""
    weight: float = 0.0


def fit_entries(
    entries: Sequence[NotesEntry],
    limit_tokens: float,
    count: EstimateTokens,
    *,
    folded: str = "",
    brief_share: float = 1.0,
) -> list[str]:
    """The entries that fit, in the order given: the heaviest whole, the rest in brief while there is room.

    `folded` names what was left out, such as `older commands`; with it a last line says how many.
    """
    ranked = sorted(range(len(entries)), key=lambda place: (-entries[place].weight, place))[:MAX_CONSIDERED]
    sizes = {place: count(entries[place].text) + 1 for place in ranked}
    if len(ranked) == len(entries) and sum(sizes.values()) <= limit_tokens:
        return [entry.text for entry in entries]
    left = limit_tokens - FOLD_TOKENS
    chosen: dict[int, str] = {}
    briefs = {place: count(entries[place].brief) + 1 for place in ranked if entries[place].brief}
    reserved: dict[int, float] = {}
    for_briefs = left * brief_share
    for place in ranked:
        size = briefs.get(place, 0.0)
        if size and size <= for_briefs:
            reserved[place] = size
            for_briefs -= size
    left -= sum(reserved.values())
    for place in ranked:
        extra = sizes[place] - reserved.get(place, 0.0)
        if extra <= left:
            chosen[place] = entries[place].text
            left -= extra
        elif place in reserved:
            chosen[place] = entries[place].brief
    lines = [chosen[place] for place in sorted(chosen)]
    missing = len(entries) - len(lines)
    if missing and folded:
        lines.append(f"- (and {missing:,} {folded})")
    return lines
