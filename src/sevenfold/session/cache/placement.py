"""Where to place breakpoints, so that the next request reads what the last one wrote, however much a round
adds.

A breakpoint reads a cache entry at its own position or up to 19 positions before it; an entry further back is
missed. So the last position is marked again whenever the new end is too far from it. Positions are counted as
single blocks, although the provider's own API counts a run of tool requests as one: single blocks are safe on
every platform.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar, NamedTuple

from sevenfold.core.cache.prompt_blocks import (
    FIVE_MINUTES,
    ONE_HOUR,
    PROMPT_LEVELS,
    TTLS,
    BodyBreakpoint,
    find_breakpoints,
)
from sevenfold.core.cache.prompt_cache import LOOKBACK_BLOCKS
from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import (
    Compaction,
    Message,
    RedactedThinking,
    Thinking,
    has_user_text,
    is_breakpoint_allowed,
)
from sevenfold.core.models import Model
from sevenfold.core.requests import Breakpoint, Capabilities, RequestParams
from sevenfold.core.settings import amount, choice, switch

_KEPT = 64
"""Written places remembered, so that after a cut one before it can be found. A round adds one; by the time
that so many were added, a cut rarely begins before the first of them and still pays."""

MIN_TOKENS_SHARE = 2 / 3
"""Of the model's minimum: an estimate may be a third short, and a breakpoint below it costs nothing."""


@dataclass(frozen=True, slots=True)
class CacheSettings:
    SECTION: ClassVar[str] = "cache"

    enabled: bool = switch(True)
    """Without markers a long session costs about ten times as much on a provider that asks for them."""

    ttl: str = choice("5m", *TTLS)
    """Five minutes: written at 1.25 times the price of input. An hour costs 2 times, and pays where pauses
    between rounds are often longer than five minutes."""

    free_markers: int = amount(1, at_most=4)
    """One of the provider's four is left to a caller who sets none, for what only the caller knows."""

    @property
    def lifetime(self) -> timedelta:
        return TTLS[self.ttl]


class BlockPosition(NamedTuple):
    """A block of the view, and how many blocks there are up to it.

    A tuple, since those that were written are sorted and looked up in every round.
    """

    blocks: int
    message: int
    block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakpointFacts:
    """What a place depends on beside the messages."""

    breakpoints: int
    """How many breakpoints the provider takes, the automatic one included; 0: none."""
    frame: Breakpoint | None = None
    """The end of what stands before the messages: see `find_params_end`."""
    frame_tokens: int = 0
    """How long that is, or an estimate of it."""
    cache_min_tokens: int = 0
    """A shorter prefix is not cached by this model."""
    drops_thinking: bool = False
    """The model leaves out earlier thinking once a user speaks, which changes the prefix."""
    caller: tuple[Breakpoint, ...] = ()
    """Breakpoints that the caller set. They stay, and count."""
    automatic: timedelta | None = None
    """The TTL of the caller's top-level `cache_control`, which marks the last block."""
    standing: BlockPosition | None = None
    """Where the next clearing will begin: what stands before it is read then, if it is marked until then."""
    goes_on: bool = True
    """Another request will go on from this one. False for the only round of a fork: what it adds is then
    not worth writing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakpointState:
    """What was seen of a view so far: the next request costs time in its new messages alone."""

    messages: int = 0
    blocks: int = 0
    end: BlockPosition | None = None
    """The last block that can be marked."""
    opening: BlockPosition | None = None
    """The same of the message in which a user spoke last: where a turn begins."""
    thinking: int | None = None
    """The first message since then that holds thinking."""
    has_thought: bool = False
    written: tuple[BlockPosition, ...] = ()
    """Marked places of requests that were answered, in the order of the view."""
    standing: BlockPosition | None = None
    """The place before the next clearing, as it was written."""

    def cut(self, first: int) -> BreakpointState:
        """The view was changed on purpose from this message on: what was written there cannot be read.

        The view is then looked through once from its beginning.
        """
        known = {*self.written, self.standing} if self.standing else {*self.written}
        return BreakpointState(written=tuple(sorted(spot for spot in known if spot.message < first)))


INITIAL_BREAKPOINT_STATE = BreakpointState()


@dataclass(frozen=True, slots=True)
class BreakpointPlan:
    breakpoints: tuple[Breakpoint, ...]
    """Ours alone, in the order of the prompt; the caller's stand where they stood."""
    state: BreakpointState
    """To plan the next attempt with, should this one fail."""
    spots: tuple[BlockPosition, ...] = field(default=(), repr=False)
    standing: BlockPosition | None = field(default=None, repr=False)

    def answered(self) -> BreakpointState:
        """To plan the next request with, once this one was answered: only then has the provider written."""
        # All but the new ones are in order, and stay so in a dict: sorting them again takes one pass.
        known = sorted(dict.fromkeys((*self.state.written, *self.spots)))
        return replace(self.state, written=tuple(known[-_KEPT:]), standing=self.standing)


def plan_breakpoints(
    view: Sequence[Message],
    facts: BreakpointFacts,
    settings: CacheSettings,
    state: BreakpointState = INITIAL_BREAKPOINT_STATE,
) -> BreakpointPlan:
    """Where to mark this view. `state` is that of the last request of the same conversation, or of the parent
    where a fork goes on from it."""
    seen = _look_on(view, facts, state if _fits(view, state) else state.cut(len(view)))
    free = _count_free(facts, settings)
    if not settings.enabled or facts.breakpoints == 0 or seen.end is None:
        return BreakpointPlan((), seen)
    kept = [*facts.caller, *_automatic(facts, seen.end)]
    marked = {_order(mark) for mark in kept}
    spots: list[BlockPosition] = []
    chosen: dict[tuple[int, int, int], Breakpoint] = {}
    for wanted in _wanted(facts, seen):
        if isinstance(wanted, BlockPosition) and not _stands(view, wanted):
            continue
        place = wanted if isinstance(wanted, Breakpoint) else _at(wanted)
        order = _order(place)
        if order not in marked and len(chosen) == free:
            break
        if isinstance(wanted, BlockPosition):
            spots.append(wanted)
        if order not in marked and order not in chosen:
            chosen[order] = replace(place, ttl=_legal_ttl(place, settings.lifetime, kept))
    standing = facts.standing if facts.standing in spots else None
    return BreakpointPlan(tuple(chosen[order] for order in sorted(chosen)), seen, tuple(spots), standing)


def collect_breakpoint_facts(
    frame: RequestParams,
    model: Model,
    capabilities: Capabilities,
    frame_tokens: int,
    *,
    caller: tuple[Breakpoint, ...] = (),
    goes_on: bool = True,
) -> BreakpointFacts:
    """The facts of a request with these parameters. `caller` are the breakpoints in the caller's messages;
    those on the system prompt and tools are found here."""
    found = find_breakpoints(JsonObject({"tools": frame.tools, "system": frame.system}))
    on_frame = tuple(_read_marker(marker) for marker in found)
    any_message = JsonObject({"role": "user", "content": "."})
    automatic = find_breakpoints(
        JsonObject({"messages": (any_message,), CACHE_CONTROL: frame.params.get(CACHE_CONTROL)})
    )
    return BreakpointFacts(
        breakpoints=capabilities.breakpoints,
        frame=find_params_end(frame),
        frame_tokens=frame_tokens,
        cache_min_tokens=model.cache_min_tokens,
        drops_thinking=model.drops_thinking,
        caller=(*on_frame, *caller),
        automatic=automatic[0].ttl if automatic else None,
        goes_on=goes_on,
    )


def find_params_end(frame: RequestParams) -> Breakpoint | None:
    """The last part of the system prompt, or else the last tool, that can be marked."""
    if isinstance(frame.system, str):
        if frame.system:
            return Breakpoint("system", 0)
    else:
        for index in range(len(frame.system) - 1, -1, -1):
            if frame.system[index].get("text"):
                return Breakpoint("system", index)
    for index in range(len(frame.tools) - 1, -1, -1):
        if frame.tools[index].get("defer_loading") is not True:
            return Breakpoint("tools", index)
    return None


def _read_marker(marker: BodyBreakpoint) -> Breakpoint:
    level, _, index = marker.path.partition(".")
    return Breakpoint("tools" if level == "tools" else "system", int(index), ttl=marker.ttl)


def _count_free(facts: BreakpointFacts, settings: CacheSettings) -> int:
    """How many breakpoints are ours to set."""
    theirs = len(facts.caller) + (facts.automatic is not None)
    return max(0, facts.breakpoints - max(theirs, settings.free_markers))


def _wanted(facts: BreakpointFacts, seen: BreakpointState) -> Iterator[BlockPosition | Breakpoint]:
    """The places worth marking, the most important first."""
    end, last = seen.end, seen.written[-1] if seen.written else None
    if end is not None and facts.goes_on:
        yield end
    if (
        end is not None
        and last is not None
        and (not facts.goes_on or end.blocks - last.blocks >= LOOKBACK_BLOCKS)
    ):
        yield last
    if facts.standing is not None and facts.goes_on:
        yield facts.standing
    if facts.drops_thinking and seen.has_thought and seen.opening is not None:
        # All that follows it changes when the user speaks again, so this is where reading goes on then.
        yield seen.opening
    if facts.frame is not None and facts.frame_tokens >= MIN_TOKENS_SHARE * facts.cache_min_tokens:
        yield facts.frame


@dataclass(frozen=True, slots=True)
class _Look:
    """What one message adds."""

    spot: BlockPosition | None
    """Its last block that can be marked."""
    count: int
    """How many places it takes."""


def _look_on(view: Sequence[Message], facts: BreakpointFacts, state: BreakpointState) -> BreakpointState:
    """The state with the messages that are new in the view."""
    messages, blocks, end, opening = state.messages, state.blocks, state.end, state.opening
    thinking, has_thought, written = state.thinking, state.has_thought, state.written
    for index in range(messages, len(view)):
        message = view[index]
        look = _look(message, index, blocks)
        blocks += look.count
        end = look.spot or end
        if _is_compacted(message):
            # The provider reads nothing before it.
            written = tuple(item for item in written if item.message >= index)
        if any(isinstance(block, (Thinking, RedactedThinking)) for block in message.blocks):
            thinking, has_thought = index if thinking is None else thinking, True
        if has_user_text(message):
            if facts.drops_thinking and thinking is not None:
                lost = thinking
                written = tuple(item for item in written if item.message < lost)
            opening, thinking = look.spot or opening, None
    return BreakpointState(
        messages=len(view),
        blocks=blocks,
        end=end,
        opening=opening,
        thinking=thinking,
        has_thought=has_thought,
        written=written,
        standing=state.standing,
    )


def _look(message: Message, index: int, before: int) -> _Look:
    blocks = message.blocks
    # A change of effort is a place of its own, ahead of its message's blocks.
    ahead = before + ("output_config" in message.extra)
    count = ahead - before + len(blocks)
    if message.extra.get("clear_at") is not None:
        return _Look(None, count)
    for at in range(len(blocks) - 1, -1, -1):
        if is_breakpoint_allowed(blocks[at]):
            return _Look(BlockPosition(ahead + at + 1, index, at), count)
    return _Look(None, count)


def _fits(view: Sequence[Message], state: BreakpointState) -> bool:
    """Whether the state can be of an earlier, shorter form of this view."""
    return state.messages <= len(view) and (state.end is None or _stands(view, state.end))


def _stands(view: Sequence[Message], spot: BlockPosition) -> bool:
    """Whether there is still something to mark."""
    if spot.message >= len(view):
        return False
    blocks = view[spot.message].blocks
    return spot.block < len(blocks) and is_breakpoint_allowed(blocks[spot.block])


def _is_compacted(message: Message) -> bool:
    return any(isinstance(block, Compaction) and block.content is not None for block in message.blocks)


def _automatic(facts: BreakpointFacts, end: BlockPosition) -> Iterator[Breakpoint]:
    if facts.automatic is not None:
        yield replace(_at(end), ttl=facts.automatic)


def _at(spot: BlockPosition) -> Breakpoint:
    return Breakpoint("messages", spot.message, spot.block)


def _order(mark: Breakpoint) -> tuple[int, int, int]:
    return (PROMPT_LEVELS.index(mark.level), mark.index, mark.block)


def _legal_ttl(place: Breakpoint, wanted: timedelta, kept: Iterable[Breakpoint]) -> timedelta:
    """An hour may not come after five minutes, so the caller's breakpoints can limit the TTL of ours."""
    for mark in kept:
        if mark.ttl == FIVE_MINUTES and _order(mark) < _order(place):
            return FIVE_MINUTES
        if mark.ttl == ONE_HOUR and _order(mark) > _order(place):
            return ONE_HOUR
    return wanted
