"""Clears memories that were recalled earlier from a nearly full view, together with old tool results."""

from __future__ import annotations

from dataclasses import replace

from sevenfold.core.messages import Text
from sevenfold.layers.memory.recall.render import find_surfaced, render_cleared_memories
from sevenfold.session.pipeline import ViewBuilder


def find_old_memories(path: ViewBuilder, before: int) -> tuple[int, ...]:
    """Where recalled memories stand in the view before this message."""
    items = path.shown.items[:before]
    return tuple(
        place for place, item in enumerate(items) if item.origin == "memory" and find_surfaced([item.message])
    )


def clear_oldest_memories(path: ViewBuilder, count: int) -> tuple[int, ...]:
    """So many of the oldest give way to a marker; where they stood. They can be recalled again."""
    places = find_old_memories(path, len(path.shown))[:count]
    for place in places:
        message = path.shown.items[place].message
        told = Text(render_cleared_memories(find_surfaced([message])))
        path.reword(place, replace(message, content=(told,)))
    return places
