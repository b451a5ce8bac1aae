"""Layer 2 on the provider's side: the provider clears old results, and the local messages stay as they are.

This is for models whose thinking is signed over everything before it, so that nothing may be rewritten
locally.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import Capabilities, RequestParams, ViewMessage
from sevenfold.core.settings import amount, choice, switch

CONTEXT_MANAGEMENT_BETA = "context-management-2025-06-27"
CONTEXT_MANAGEMENT_PARAM = "context_management"
CLEAR_TOOL_USES = "clear_tool_uses_20250919"

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


def render_context_management(
    depth: int, uses: int, spared: Sequence[str], settings: ServerEditSettings
) -> JsonObject | None:
    """The `context_management` that clears just the oldest `depth` of so many answered uses; None: nothing.

    The provider counts what to keep from the end, so the number grows with every use and the cleared ones
    stay the same: whether the provider remembers what it cleared or looks at each request afresh, nothing
    moves.
    """
    edits: list[JsonObject] = []
    if settings.thinking_turns:
        keep = JsonObject({"type": "thinking_turns", "value": settings.thinking_turns})
        edits.append(JsonObject({"type": "clear_thinking_20251015", "keep": keep}))
    if depth:
        edits.append(
            JsonObject(
                {
                    "type": CLEAR_TOOL_USES,
                    "trigger": JsonObject({"type": "tool_uses", "value": 1}),
                    "keep": JsonObject({"type": "tool_uses", "value": uses - depth}),
                    **({"exclude_tools": tuple(spared)} if spared else {}),
                }
            )
        )
    return JsonObject({"edits": tuple(edits)}) if edits else None


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
    results: int
    weight: float
    tokens: int


@dataclass(slots=True, kw_only=True)
class ServerClearing:
    """One conversation's answered tool uses, and which of them the provider is told to clear."""

    settings: ServerEditSettings
    is_clearable: Callable[[str], bool]
    """By a tool's name."""
    depth: int = 0
    """How many of the oldest uses are cleared."""
    _uses: list[ToolUseId] = field(default_factory=list[ToolUseId])
    _weights: list[float] = field(default_factory=list[float])
    _tools: dict[ToolUseId, str] = field(default_factory=dict[ToolUseId, str])
    _spared: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, message: Message, weight: float) -> None:
        """A message of the view. The results in it share its weight by length."""
        for block in message.blocks:
            if isinstance(block, ToolUse):
                self._tools[block.id] = block.name
                if not self.is_clearable(block.name):
                    self._spared[block.name] = None
        results = [block for block in message.blocks if isinstance(block, ToolResult)]
        for result in results:
            self._uses.append(result.tool_use_id)
            is_cleared = self.is_clearable(self._tools.get(result.tool_use_id, ""))
            self._weights.append(weight / len(results) if is_cleared else 0.0)

    def start_over(self, items: Iterable[ViewMessage], *, keeps: bool) -> None:
        """Another view: one that begins as before keeps what is cleared in it."""
        if not keeps:
            self.depth = 0
        self._uses, self._weights = [], []
        for item in items:
            self.add(item.message, item.weight)
        self.depth = min(self.depth, len(self._uses))

    def choose(
        self, context_tokens: int, auto_compact_tokens: int, estimate: Callable[[float], int]
    ) -> ClearingStep | None:
        """Go deeper if it is time to; None where nothing changes."""
        if context_tokens < choose_trigger_tokens(auto_compact_tokens, self.settings):
            return None
        sizes = [estimate(weight) for weight in self._weights]
        before = self.depth
        facts = ServerEditFacts(context_tokens, auto_compact_tokens, before, sizes)
        self.depth = choose_clearing_depth(facts, self.settings)
        if self.depth == before:
            return None
        gone = slice(before, self.depth)
        return ClearingStep(
            self._uses[before], self.depth - before, sum(self._weights[gone]), sum(sizes[gone])
        )

    @property
    def oldest(self) -> ToolUseId | None:
        """Once something is cleared: the oldest use that is not."""
        return self._uses[self.depth] if 0 < self.depth < len(self._uses) else None

    def restore_depth(self, depth: int) -> float:
        """Restore the depth of a resumed session; returns the weight that is cleared with it."""
        before, self.depth = self.depth, depth
        return sum(self._weights[before:depth])

    def apply(self, frame: RequestParams) -> RequestParams:
        """The parameters with the clearing instruction. What the caller set stays."""
        edits = render_context_management(self.depth, len(self._uses), tuple(self._spared), self.settings)
        if edits is None or CONTEXT_MANAGEMENT_PARAM in frame.params:
            return frame
        params = JsonObject({**frame.params, CONTEXT_MANAGEMENT_PARAM: edits})
        return replace(
            frame, params=params, betas=tuple(dict.fromkeys((*frame.betas, CONTEXT_MANAGEMENT_BETA)))
        )
