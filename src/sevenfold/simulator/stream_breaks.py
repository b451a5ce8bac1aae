"""Streams that break: how far they get, and what that much of an answer is billed as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.usage import Iteration, Usage
from sevenfold.simulator.state.faults import DropFault, SimulatedFault, StreamFault
from sevenfold.simulator.wire.request_blocks import as_word
from sevenfold.simulator.wire.stream import iter_stream_events


def find_break_event(message: JsonObject, fault: SimulatedFault | None, *, pings: bool) -> int | None:
    """How many events go out before the fault; None when there is none.

    A fault planned for later than the stream ends takes its last event: one that is planned is always met.
    """
    if not isinstance(fault, (StreamFault, DropFault)):
        return None
    last = sum(1 for _ in iter_stream_events(message, pings=pings)) - 1
    return min(fault.after_events, last)


def compute_sent_usage(
    message: JsonObject, usage: Usage, events: int, count: Callable[[JsonObject], int], *, pings: bool
) -> Usage:
    """The usage of an answer of which so many events were sent: a block by the share of its deltas."""
    sent = tuple(islice(iter_stream_events(message, pings=pings), events))
    if not sent:
        return _limited(usage, 0, 0)
    content = message.get("content")
    blocks = (
        [block for block in content if isinstance(block, JsonObject)] if isinstance(content, tuple) else []
    )
    wholes, parts = _deltas(tuple(iter_stream_events(message, pings=pings))), _deltas(sent)
    shares = [_share(count(block), parts[at], wholes[at]) for at, block in enumerate(blocks)]
    thought = sum(
        share
        for share, block in zip(shares, blocks, strict=True)
        if as_word(block.get("type")) in THINKING_TYPES
    )
    # `message_start` has told of a first token already.
    return _limited(usage, max(1, sum(shares)), thought)


def _deltas(events: Sequence[JsonObject]) -> Counter[Json]:
    """How many pieces of each block are among these events; its end is one too."""
    kinds = ("content_block_delta", "content_block_stop")
    return Counter(event.get("index") for event in events if event.get("type") in kinds)


def _share(tokens: int, part: int, whole: int) -> int:
    return -(-tokens * part // whole) if whole else 0


def _limited(usage: Usage, output: int, thinking: int) -> Usage:
    output = min(usage.output, output)
    thinking = min(usage.thinking, thinking, output)
    runs: tuple[Iteration, ...] = usage.iterations
    if runs and runs[-1].kind == "message":
        runs = (*runs[:-1], replace(runs[-1], output=output, thinking=thinking))
    return replace(usage, output=output, thinking=thinking, iterations=runs)
