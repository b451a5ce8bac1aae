"""Runs layer 2 on the provider's side: what each request tells it to clear."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import RequestParams
from sevenfold.core.view import ViewMessage
from sevenfold.layers.microcompact.server_edits import (
    CONTEXT_MANAGEMENT_BETA,
    CONTEXT_MANAGEMENT_PARAM,
    ServerEditFacts,
    ServerEditSettings,
    choose_clearing_depth,
    choose_trigger_tokens,
    render_context_management,
)


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

    def go_to(self, depth: int) -> float:
        """A depth that was chosen before the session was taken up again; the weight that is gone with it."""
        before, self.depth = self.depth, depth
        return sum(self._weights[before:depth])

    def apply(self, frame: RequestParams) -> RequestParams:
        """The frame that says so. What the caller set stays."""
        edits = render_context_management(self.depth, len(self._uses), tuple(self._spared), self.settings)
        if edits is None or CONTEXT_MANAGEMENT_PARAM in frame.params:
            return frame
        params = JsonObject({**frame.params, CONTEXT_MANAGEMENT_PARAM: edits})
        return replace(
            frame, params=params, betas=tuple(dict.fromkeys((*frame.betas, CONTEXT_MANAGEMENT_BETA)))
        )
