"""Layer 2 on the provider's side: the provider clears old results, and the local messages stay as they are.

This is for models whose thinking is signed over everything before it, so that nothing may be rewritten
locally. Each request says how many of its newest tool uses to keep, so that just the ones that we chose are
cleared. The price policies choose how many; a fixed trigger does where no price is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import ClassVar

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import (
    Message,
    Opaque,
    RedactedThinking,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.normalize_blocks import SERVER_TOOL_RESULTS
from sevenfold.core.requests import Capabilities, ModelRequest, RequestParams, ViewMessage
from sevenfold.core.settings import amount, choice, switch

CONTEXT_MANAGEMENT_BETA = "context-management-2025-06-27"
CONTEXT_MANAGEMENT_PARAM = "context_management"
CLEAR_TOOL_USES = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"

EXACT_TRIGGER = JsonObject({"type": "tool_uses", "value": 1})
"""Of our own edits: with it `keep` alone says what is cleared."""

LARGE_TRIGGER_TOKENS = 180_000
LARGE_CLEARED_TOKENS = 140_000
"""Of a window that has room for the large trigger: what stays is about what a compaction would leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEditSettings:
    SECTION: ClassVar[str] = "server_edits"

    clear_results: str = choice("signed", "never", "signed", "always")
    """`signed`: on models where old turns cannot be rewritten here. Elsewhere our own clearing knows the
    price, what was superseded and what is being edited; the provider's knows only what is old."""

    trigger_tokens: int = amount(LARGE_TRIGGER_TOKENS, at_least=1_000)
    """Below most compactions in a 200,000-token window, and far below the quality limit of a larger one."""

    margin_tokens: int = amount(20_000)
    """The trigger stays this far below automatic compaction, so that clearing is tried before a summary."""

    keep_results: int = amount(3, at_least=0)
    """The provider's own default: the last few are what the model is working with."""

    thinking_turns: int = amount(0)
    """Turns of thinking to keep; 0: all, which leaves the cache whole."""

    cache_edits: bool = switch(False)
    """Off: no public provider can delete results inside a cached prefix, so it is refused with a reason."""

    cached_results: int = amount(40, at_least=1)
    """Of `cache_edits`, and without effect like it."""

    recent_results: int = amount(10, at_least=1)
    """Of `cache_edits`, and without effect like it."""


@dataclass(frozen=True, slots=True)
class ServerEditFacts:
    """What clearing on the provider's side depends on."""

    context_tokens: int
    """As billed, with what is cleared already."""
    auto_compact_tokens: int
    depth: int
    """Answered tool uses, from the oldest, that are cleared now."""
    sizes: Sequence[int]
    """Tokens of the result of each answered use in view, oldest first; 0 for a tool that is never cleared."""


def uses_server_edits(capabilities: Capabilities, settings: ServerEditSettings) -> bool:
    """Whether results are cleared on the provider's side at all."""
    if not capabilities.has_server_edits or settings.clear_results == "never":
        return False
    return settings.clear_results == "always" or not capabilities.rewrites_history


def clears_exactly(params: JsonObject) -> bool:
    """Whether the parameters clear an exact set of results, as ours do: it changes with a cut alone."""
    return any(edit.get("trigger") == EXACT_TRIGGER for edit in _read_edits(params))


def find_cleared_uses(request: ModelRequest) -> frozenset[ToolUseId]:
    """The tool uses whose results the provider clears, by an exact edit of ours in the request."""
    exact = [edit for edit in _read_edits(request.frame.params) if edit.get("trigger") == EXACT_TRIGGER]
    keep = exact[0].get("keep") if exact else None
    count = keep.get("value") if isinstance(keep, JsonObject) else None
    if not isinstance(count, int):
        return frozenset()
    named = exact[0].get("exclude_tools")
    excluded = named if isinstance(named, tuple) else ()
    names = {use: name for message in request.messages for use, name in list_tool_uses(message)}
    uses = [use for message in request.messages for use in list_answered_uses(message)]
    return frozenset(use for use in uses[: len(uses) - count] if names.get(use, "") not in excluded)


SERVER_TOOL_USES = frozenset({"server_tool_use", "mcp_tool_use"})
"""Calls of tools that the provider itself runs."""


def list_tool_uses(message: Message) -> Iterator[tuple[ToolUseId, str]]:
    """The tool uses of a message and the names of their tools, those that the provider runs too."""
    for block in message.blocks:
        if isinstance(block, ToolUse):
            yield block.id, block.name
        elif isinstance(block, Opaque) and block.type in SERVER_TOOL_USES:
            yield ToolUseId(str(block.wire.get("id"))), str(block.wire.get("name"))


def list_answered_uses(message: Message) -> Iterator[ToolUseId]:
    """The tool uses whose results a message has: what `keep` counts. Results of tools that the provider runs
    stand in the answer itself."""
    for block in message.blocks:
        if isinstance(block, ToolResult):
            yield block.tool_use_id
        elif isinstance(block, Opaque) and block.type in SERVER_TOOL_RESULTS:
            yield ToolUseId(str(block.wire.get("tool_use_id")))


def is_signed(message: Message) -> bool:
    """Whether it holds thinking that a rewritten history would make invalid."""
    return any(
        isinstance(block, RedactedThinking) or (isinstance(block, Thinking) and bool(block.signature))
        for block in message.blocks
    )


def takes_our_edit(params: JsonObject) -> bool:
    """Whether the caller leaves the clearing of results to us. Whoever keeps thinking may send that edit."""
    return all(edit.get("type") == CLEAR_THINKING for edit in _read_edits(params))


def _read_edits(params: JsonObject) -> tuple[JsonObject, ...]:
    management = params.get(CONTEXT_MANAGEMENT_PARAM)
    edits = management.get("edits") if isinstance(management, JsonObject) else None
    return tuple(edit for edit in edits if isinstance(edit, JsonObject)) if isinstance(edits, tuple) else ()


def choose_trigger_tokens(auto_compact_tokens: int, settings: ServerEditSettings) -> int:
    """The context size from which clearing is considered."""
    return max(1, min(settings.trigger_tokens, auto_compact_tokens - settings.margin_tokens))


def choose_clearing_depth(facts: ServerEditFacts, settings: ServerEditSettings) -> int:
    """How many of the oldest uses to clear from now on: as many as now, or all but the newest few.

    The depth then stays until the trigger is passed again: every step of it rewrites the cache, so there are
    few and large ones.
    """
    trigger = choose_trigger_tokens(facts.auto_compact_tokens, settings)
    if facts.context_tokens < trigger:
        return facts.depth
    at_least = LARGE_CLEARED_TOKENS if trigger >= LARGE_TRIGGER_TOKENS else trigger // 2
    deepest = max(facts.depth, len(facts.sizes) - settings.keep_results)
    freed = sum(facts.sizes[facts.depth : deepest])
    return deepest if freed >= at_least else facts.depth


def add_clearing(
    params: JsonObject, depth: int, uses: int, excluded: Sequence[str], settings: ServerEditSettings
) -> JsonObject:
    """The parameters with edits that clear just the oldest `depth` of so many answered uses.

    The provider counts what to keep from the end, so the number grows with every use and the cleared ones
    stay the same: whether the provider remembers what it cleared or looks at each request afresh, nothing
    moves. An edit of thinking that the caller sends stays, and ours comes after it.
    """
    edits = list(_read_edits(params))
    if settings.thinking_turns and not edits:
        keep = JsonObject({"type": "thinking_turns", "value": settings.thinking_turns})
        edits.append(JsonObject({"type": CLEAR_THINKING, "keep": keep}))
    if depth:
        edits.append(
            JsonObject(
                {
                    "type": CLEAR_TOOL_USES,
                    "trigger": EXACT_TRIGGER,
                    "keep": JsonObject({"type": "tool_uses", "value": uses - depth}),
                    **({"exclude_tools": tuple(excluded)} if excluded else {}),
                }
            )
        )
    if not edits:
        return params
    before = params.get(CONTEXT_MANAGEMENT_PARAM)
    given = before if isinstance(before, JsonObject) else JsonObject()
    return JsonObject({**params, CONTEXT_MANAGEMENT_PARAM: JsonObject({**given, "edits": tuple(edits)})})


def with_more_kept(params: JsonObject, uses: int) -> JsonObject:
    """The same for a request with so many more answered uses at its end: a fork's, which clears no more."""
    management = params.get(CONTEXT_MANAGEMENT_PARAM)
    edits = management.get("edits") if isinstance(management, JsonObject) else None
    if not uses or not isinstance(edits, tuple) or not isinstance(management, JsonObject):
        return params
    kept = tuple(_keeping(edit, uses) if isinstance(edit, JsonObject) else edit for edit in edits)
    return JsonObject({**params, CONTEXT_MANAGEMENT_PARAM: JsonObject({**management, "edits": kept})})


def _keeping(edit: JsonObject, uses: int) -> JsonObject:
    keep = edit.get("keep")
    value = keep.get("value") if isinstance(keep, JsonObject) else None
    if edit.get("type") != CLEAR_TOOL_USES or not isinstance(keep, JsonObject) or not isinstance(value, int):
        return edit
    return JsonObject({**edit, "keep": JsonObject({**keep, "value": value + uses})})


@dataclass(frozen=True, slots=True)
class ClearingStep:
    """A step deeper."""

    first: ToolUseId
    """The oldest use that is cleared anew."""
    ids: tuple[ToolUseId, ...]
    weight: float


@dataclass(slots=True, kw_only=True)
class ServerClearing:
    """One conversation's answered tool uses, and which of them the provider is told to clear."""

    settings: ServerEditSettings
    is_clearable: Callable[[str], bool]
    """By a tool's name."""
    depth: int = 0
    """How many of the oldest uses are cleared."""
    _uses: list[ToolUseId] = field(default_factory=list[ToolUseId])
    _places: dict[ToolUseId, int] = field(default_factory=dict[ToolUseId, int])
    _weights: list[float] = field(default_factory=list[float])
    _names: dict[ToolUseId, str] = field(default_factory=dict[ToolUseId, str])
    _tools: dict[str, bool] = field(default_factory=dict[str, bool])
    """The tools seen so far, and whether their results are cleared. It stays as it is while one is."""
    _next: int = 0
    """No use between the depth and this one is ever cleared."""

    def add(self, message: Message, weight: float) -> None:
        """A message of the view. The results in it share its weight by length."""
        known = {block.id for block in message.blocks if isinstance(block, ToolUse)}
        for use, name in list_tool_uses(message):
            self._names[use] = name
            if name not in self._tools:
                # What the provider's own tools found is left alone.
                self._tools[name] = use in known and self.is_clearable(name)
        weights = {result.tool_use_id: share for result, share in share_weight(message, weight)}
        for use in list_answered_uses(message):
            self._places[use] = len(self._uses)
            self._uses.append(use)
            self._weights.append(weights.get(use, 0.0))

    def start_over(self, items: Iterable[ViewMessage], *, keeps: bool) -> ClearingStep | None:
        """Another view: of one that begins as before, what was cleared stays so, and is returned."""
        before = set(self._uses[: self.depth]) if keeps else set[ToolUseId]()
        known, self._tools = self._tools, {}
        self._uses, self._weights = [], []
        self._places.clear()
        for item in items:
            self.add(item.message, item.weight)
        self.depth = self._next = 0
        kept = sum(1 for _ in takewhile(before.__contains__, self._uses))
        if kept:
            self._tools = known | self._tools | known
        return self.deepen(kept)

    def choose_by_trigger(
        self, context_tokens: int, auto_compact_tokens: int, estimate: Callable[[float], int]
    ) -> int:
        """The depth from now on, by the fixed trigger."""
        if context_tokens < choose_trigger_tokens(auto_compact_tokens, self.settings):
            return self.depth
        sizes = [
            estimate(weight) if self._is_cleared(place) else 0 for place, weight in enumerate(self._weights)
        ]
        facts = ServerEditFacts(context_tokens, auto_compact_tokens, self.depth, sizes)
        return choose_clearing_depth(facts, self.settings)

    def depth_at(self, use: ToolUseId) -> int:
        """The depth at which this use is the last to be cleared."""
        return self._places[use] + 1

    def deepen(self, depth: int) -> ClearingStep | None:
        """Clear so many from now on; None: that clears nothing more, and nothing changes."""
        step = self._step(self.depth, depth)
        if step is not None:
            self.depth = self._next = self._places[step.ids[-1]] + 1
        return step

    def release(self) -> ClearingStep | None:
        """Clear nothing any more; what was cleared until now."""
        step = self._step(0)
        self.depth = self._next = 0
        return step

    def restore(self, depth: int, excluded: Iterable[str] | None) -> ClearingStep | None:
        """Restore the depth of a resumed session, and which tools it left alone: settings may differ now."""
        if excluded is not None:
            kept = dict.fromkeys(excluded, False)
            self._tools = {**kept, **{name: True for name in self._tools if name not in kept}}
        return self.deepen(depth)

    @property
    def cleared(self) -> tuple[ToolUseId, ...]:
        """The uses whose results the provider is told to clear."""
        step = self._step(0)
        return step.ids if step else ()

    @property
    def is_reached(self) -> bool:
        """Whether the provider clears at all: the trigger asks for more than one use."""
        return len(self._uses) > 1

    def _step(self, before: int, depth: int | None = None) -> ClearingStep | None:
        last = self.depth if depth is None else min(depth, len(self._uses))
        places = [place for place in range(before, last) if self._is_cleared(place)]
        if not places:
            return None
        ids = tuple(self._uses[place] for place in places)
        return ClearingStep(ids[0], ids, sum(self._weights[place] for place in places))

    def _is_cleared(self, place: int) -> bool:
        """Whether the use at this place goes once the depth is beyond it."""
        return self._tools.get(self._names.get(self._uses[place], ""), False)

    @property
    def oldest(self) -> ToolUseId | None:
        """Once something is cleared: the oldest use that will be next."""
        while self._next < len(self._uses) and not self._is_cleared(self._next):
            self._next += 1
        return self._uses[self._next] if self.depth and self._next < len(self._uses) else None

    @property
    def excluded(self) -> tuple[str, ...]:
        """The tools seen so far whose uses are left alone."""
        return tuple(name for name, is_cleared in self._tools.items() if not is_cleared)

    def apply(self, frame: RequestParams) -> RequestParams:
        """The parameters with the clearing instruction, unless the caller clears results itself."""
        has_edits = self.depth or self.settings.thinking_turns or CONTEXT_MANAGEMENT_PARAM in frame.params
        if not has_edits or not takes_our_edit(frame.params):
            return frame
        params = add_clearing(frame.params, self.depth, len(self._uses), self.excluded, self.settings)
        if params is frame.params:
            return frame
        return replace(
            frame, params=params, betas=tuple(dict.fromkeys((*frame.betas, CONTEXT_MANAGEMENT_BETA)))
        )


IMAGE_CHARS = 4_000
"""An image weighs about what so many characters do."""


def share_weight(message: Message, weight: float) -> Iterator[tuple[ToolResult, float]]:
    """The results of a message, and what each has of its weight, by their length."""
    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    total = sum(map(_length, results)) or 1
    for result in results:
        yield result, weight * _length(result) / total


def _length(result: ToolResult) -> int:
    content = result.content
    if isinstance(content, tuple):
        return sum(len(getattr(block, "text", "x" * IMAGE_CHARS)) for block in content)
    return len(content or "") + 1
