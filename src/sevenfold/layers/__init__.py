"""The seven layers. Each decides, from facts, under settings; the rooms around them act."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layer:
    number: int
    name: str
    cost: str
    trigger: str
    room: str


LAYERS = (
    Layer(1, "tool-result storage", "a file write", "a result over its limit", "request"),
    Layer(
        2, "microcompaction", "nothing when the cache is cold", "old results that no longer pay", "request"
    ),
    Layer(3, "session notes", "microseconds, or one fork", "5,000 new tokens", "background"),
    Layer(4, "compaction", "nothing with notes, else one summary", "the window's threshold", "request"),
    Layer(
        5,
        "memory: extraction and recall",
        "one fork a turn; a lookup a prompt",
        "the end of a turn",
        "background",
    ),
    Layer(6, "dreams", "one fork a night", "a day and five sessions", "background"),
    Layer(7, "forks and messages", "the new tokens only", "the layers above, or the agent", "run"),
)
