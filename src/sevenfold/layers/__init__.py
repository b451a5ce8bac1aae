"""The seven layers. Each decides, from facts, under settings; the rooms around them act."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    number: int
    name: str
    cost: str
    trigger: str
    room: str


LAYERS = (
    Layer(
        number=1,
        name="tool-result storage",
        cost="a file write",
        trigger="a result over its limit",
        room="request",
    ),
    Layer(
        number=2,
        name="microcompaction",
        cost="nothing when the cache is cold",
        trigger="old results that no longer pay",
        room="request",
    ),
    Layer(
        number=3,
        name="session notes",
        cost="microseconds, or one fork",
        trigger="5,000 new tokens",
        room="background",
    ),
    Layer(
        number=4,
        name="compaction",
        cost="nothing with notes, else one summary",
        trigger="the window's threshold",
        room="request",
    ),
    Layer(
        number=5,
        name="memory: extraction and recall",
        cost="one fork a turn; a lookup a prompt",
        trigger="the end of a turn",
        room="background",
    ),
    Layer(
        number=6, name="dreams", cost="one fork a night", trigger="a day and five sessions", room="background"
    ),
    Layer(
        number=7,
        name="forks and messages",
        cost="the new tokens only",
        trigger="the layers above, or the agent",
        room="run",
    ),
)
