"""The last step of a request: the view becomes a request with breakpoints.

`RequestBuilder` is the step. `BreakpointPlanner` has the breakpoints of a conversation from request to
request: where they go now, given where the last answered ones stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.clock import Clock
from sevenfold.core.messages import Message, ToolUseId, is_breakpoint_allowed
from sevenfold.core.models import Model
from sevenfold.core.requests import (
    Breakpoint,
    Capabilities,
    ModelRequest,
    PreparedRequest,
    RequestParams,
    ViewMessages,
    is_same_opening,
)
from sevenfold.layers.compaction.layer import WindowPlan
from sevenfold.layers.conversation import Conversation
from sevenfold.layers.conversation_state import ConversationListener
from sevenfold.layers.microcompact.layer import MicrocompactLayer
from sevenfold.session.cache.placement import (
    INITIAL_BREAKPOINT_STATE,
    BlockPosition,
    BreakpointFacts,
    BreakpointPlan,
    BreakpointState,
    CacheSettings,
    collect_breakpoint_facts,
    plan_breakpoints,
)
from sevenfold.session.history import CallerBreakpoint


class RequestBuilder(ConversationListener):
    """Turns the view into the request to send. The work grows with what is new in the view."""

    def __init__(
        self,
        conversation: Conversation,
        window: WindowPlan,
        clearing: MicrocompactLayer,
        settings: CacheSettings,
        clock: Clock,
    ) -> None:
        self._conversation, self._window, self._clearing = conversation, window, clearing
        self._clock = clock
        self._planner = BreakpointPlanner(settings=settings)
        self._marks: tuple[CallerBreakpoint, ...] = ()
        self._params = conversation.frame
        self._built: PreparedRequest | None = None
        self._revision = -1
        """Of the conversation when it was built."""
        self._handed_out: PreparedRequest | None = None
        """The one that was sent last; one that was only looked at is none."""
        self._same = 0
        """So many messages at the start of the view are as the last request had them."""
        self._started: datetime | None = None
        self.resent_at: datetime | None = None
        """When the last request was sent again; None: it was sent once."""
        self.use_params()
        conversation.listeners.append(self)

    def use_params(self) -> None:
        """The conversation has other request parameters: all breakpoints are placed anew."""
        conversation = self._conversation
        filled = conversation.tally.breakdown()
        tokens = filled.system_prompt + filled.tool_schemas
        self._planner.use(conversation.frame, conversation.model, conversation.capabilities, tokens)

    def set_marks(self, marks: tuple[CallerBreakpoint, ...]) -> None:
        """Set the caller's breakpoints, which the caller may move."""
        if marks != self._marks:
            self._marks, self._built = marks, None

    def view_cut(self, first: int) -> None:
        self._planner.cut(first)
        self._same = min(self._same, max(0, first))

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing changed since the last request was handed out: the same one is sent again."""
        is_current = self._built is not None and self._revision == self._conversation.revision
        return is_current and self._built is self._handed_out

    def build(self) -> PreparedRequest:
        """What would be sent now."""
        conversation = self._conversation
        if self._built is None or self._revision != conversation.revision:
            params, oldest = self._find_params(), self._clearing.oldest
            tokens, shown = conversation.tokens, conversation.shown
            theirs = find_caller_breakpoints(self._marks, shown, conversation.capabilities.breakpoints)
            standing = find_clearing_breakpoint(shown, oldest)
            messages = shown.messages()
            marks = self._planner.plan(messages, theirs, self._clock.now(), standing)
            thresholds = self._window.thresholds
            self._revision = conversation.revision
            self._built = PreparedRequest(
                request=ModelRequest(params, messages, marks),
                tokens=tokens,
                level=thresholds.level(tokens),
                percent_left=thresholds.percent_left(tokens),
                cuts=tuple(conversation.cuts),
            )
        return self._built

    def hand_out(self) -> PreparedRequest:
        """The request to send. Its cuts are announced with it, and not again with the next one."""
        view = self._handed_out = self.build()
        self._conversation.cuts.clear()
        self._same = len(view.request.messages)
        self._started, self.resent_at = self._clock.now(), None
        return view

    def resend(self) -> PreparedRequest:
        """The last request, to be sent once more: what it leaves in the cache lives from now."""
        self._started = self.resent_at = self._clock.now()
        return self.build()

    def build_parent(self) -> ModelRequest:
        """The request that a fork continues: the current view, and what the provider is told to clear of it,
        with those breakpoints of the last request that stand in it."""
        marks = self._handed_out.request.breakpoints if self._handed_out else ()
        standing = tuple(mark for mark in marks if mark.level != "messages" or mark.index < self._same)
        return ModelRequest(self._find_params(), self._conversation.shown.messages(), standing)

    def _find_params(self) -> RequestParams:
        """Equal parameters stay the same object, which is compared faster."""
        params = self._clearing.apply(self._conversation.request_params())
        if params is not self._params and params != self._params:
            self._params = params
        return self._params

    def answered(self) -> datetime:
        """The last request was answered; when it was sent."""
        started = self._started or self._clock.now()
        self._planner.answered(started)
        return started


@dataclass(slots=True, kw_only=True)
class BreakpointPlanner:
    """The breakpoints of one conversation."""

    settings: CacheSettings
    _facts: BreakpointFacts = field(default_factory=lambda: BreakpointFacts(breakpoints=0))
    _frame: RequestParams | None = None
    _state: BreakpointState = INITIAL_BREAKPOINT_STATE
    _placement: BreakpointPlan | None = None
    _standing: BlockPosition | None = None
    _touched: dict[BlockPosition, datetime] = field(default_factory=dict[BlockPosition, datetime])
    """When a request last wrote or found what stands at each written place."""
    _oldest: datetime | None = None
    """None of these is older: as long as it is alive, all are."""

    def use(self, frame: RequestParams, model: Model, capabilities: Capabilities, frame_tokens: int) -> None:
        """Use other request parameters: nothing that was written behind the old ones can be read, unless
        only breakpoints or the output limit changed."""
        self._facts = collect_breakpoint_facts(frame, model, capabilities, frame_tokens)
        before, self._frame, self._placement = self._frame, frame, None
        if before is None or not _is_same_prefix(before, frame):
            self._state = INITIAL_BREAKPOINT_STATE
            self._touched.clear()

    def plan(
        self,
        view: Sequence[Message],
        caller: tuple[Breakpoint, ...],
        now: datetime,
        standing: Breakpoint | None = None,
    ) -> tuple[Breakpoint, ...]:
        """Ours for this view; the caller's own stay where they are, and are marked again beside them."""
        self._forget_dead(now)
        spot = self._stand(view, standing) if standing else None
        facts = self._facts
        if caller or spot is not None:
            facts = replace(facts, caller=(*facts.caller, *caller), standing=spot)
        self._placement = plan_breakpoints(view, facts, self.settings, self._state)
        self._state = self._placement.state
        return (*caller, *self._placement.breakpoints)

    def _stand(self, view: Sequence[Message], place: Breakpoint) -> BlockPosition:
        """The breakpoint as a position. Blocks before it are counted only when it moves, after a cut."""
        known = self._standing
        if known is None or (known.message, known.block) != (place.index, place.block):
            before = sum(len(message.blocks) for message in view[: place.index])
            known = self._standing = BlockPosition(before + place.block + 1, place.index, place.block)
        return known

    def answered(self, started: datetime) -> None:
        """The last request, which started then, was answered: what it marked is written."""
        if self._placement is None:
            return
        # The end looks back and finds the place that was written last, be it marked again or not.
        for spot in (*self._state.written[-1:], *self._placement.spots):
            self._touched[spot] = started
        # A clock may be set back.
        self._oldest = min(self._oldest or started, started)
        self._state, self._placement = self._placement.answered(), None
        if len(self._touched) > 2 * len(self._state.written):
            kept = {*self._state.written, self._state.standing}
            self._touched = {spot: when for spot, when in self._touched.items() if spot in kept}

    def _forget_dead(self, now: datetime) -> None:
        """Drop expired positions: a breakpoint there would read nothing, where an older one might."""
        lifetime = self.settings.lifetime
        if self._oldest is None or now - self._oldest <= lifetime:
            return
        alive = tuple(spot for spot in self._state.written if now - self._touched[spot] <= lifetime)
        if len(alive) < len(self._state.written):
            self._state = replace(self._state, written=alive)
        self._oldest = min((self._touched[spot] for spot in alive), default=None)

    def cut(self, first: int) -> None:
        """The view was rewritten from this message on."""
        self._state, self._placement, self._standing = self._state.cut(first), None, None


def _is_same_prefix(one: RequestParams, other: RequestParams) -> bool:
    is_same_rest = one.params.without(CACHE_CONTROL) == other.params.without(CACHE_CONTROL)
    return is_same_rest and one.betas == other.betas and is_same_opening(one, other)


def find_caller_breakpoints(
    marks: Sequence[CallerBreakpoint], shown: ViewMessages, most: int
) -> tuple[Breakpoint, ...]:
    """The caller's breakpoints whose blocks are in the view, up to the provider's limit."""
    in_order = sorted(marks, key=lambda mark: (mark.message, mark.block))
    found = [
        Breakpoint("messages", place, mark.block, mark.ttl)
        for mark in (in_order[-most:] if most else ())
        for place in shown.places_of(mark.message)
        if _is_markable_at(shown.items[place].message, mark.block)
    ]
    # The view may show messages in another order than the history has them.
    return tuple(sorted(found, key=lambda one: (one.index, one.block)))


def _is_markable_at(message: Message, block: int) -> bool:
    blocks = message.blocks
    return block < len(blocks) and is_breakpoint_allowed(blocks[block])


def find_clearing_breakpoint(shown: ViewMessages, oldest: ToolUseId | None) -> Breakpoint | None:
    """Once something was cleared: right before the oldest result that still may be, where the next cut most
    likely begins. Without it all that the last cut rewrote would be written again."""
    place = shown.place(oldest) if oldest else None
    if not place:
        return None
    blocks = shown.items[place - 1].message.blocks
    at = next(
        (index for index in range(len(blocks) - 1, -1, -1) if is_breakpoint_allowed(blocks[index])), None
    )
    return None if at is None else Breakpoint("messages", place - 1, at)
