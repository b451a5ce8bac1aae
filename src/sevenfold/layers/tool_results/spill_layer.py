"""Runs layer 1: writes large results to disk before anything can point at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sevenfold.core.events import Emit, SpillFailed
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.spills import SpillDecision
from sevenfold.layers.tool_results.policy import (
    FreshResult,
    ToolResultSettings,
    apply_spill_decision,
    choose_inline,
    choose_spilled,
    count_result_chars,
)
from sevenfold.layers.tool_results.spill import SpillStore, spill_digest
from sevenfold.store.files.offload import run_blocking

NO_DISK_REASON = "the session has no folder on disk; open it with a project to have large results stored"


@dataclass(slots=True, kw_only=True)
class SpillLayer:
    """The decisions of a session, each made once."""

    settings: ToolResultSettings
    spills: SpillStore | None
    emit: Emit
    decisions: dict[ToolUseId, SpillDecision]
    _untold: list[SpillDecision] = field(default_factory=list[SpillDecision])
    """Decisions whose caller was cancelled before it received them."""

    async def decide(
        self, messages: Iterable[Message], tools: Mapping[ToolUseId, ToolUse]
    ) -> tuple[SpillDecision, ...]:
        """Decide for every result in these messages that has no decision yet; the new ones, in order."""
        for message in messages:
            fresh = [
                FreshResult(result, tools[result.tool_use_id].name if result.tool_use_id in tools else "")
                for result in iter_tool_results(message)
                if not self._is_decided(result)
            ]
            await self._decide_round(fresh)
        made, self._untold = tuple(self._untold), []
        return made

    def rendered(self, message: Message) -> Message:
        """The message as its results' decisions have it."""
        if isinstance(message.content, str) or not any(
            isinstance(block, ToolResult) for block in message.content
        ):
            return message
        blocks = tuple(
            self._applied(block) if isinstance(block, ToolResult) else block for block in message.content
        )
        if all(one is other for one, other in zip(blocks, message.content, strict=True)):
            return message
        return Message(message.role, blocks, message.extra)

    async def _decide_round(self, fresh: Sequence[FreshResult]) -> None:
        spilled = choose_spilled(fresh, self.settings)
        if spilled:
            await run_blocking(lambda: self._keep(fresh, spilled))
        else:
            self._keep(fresh, spilled)

    def _keep(self, fresh: Sequence[FreshResult], spilled: frozenset[ToolUseId]) -> None:
        """Each as soon as it is made: whoever asked may be gone when all are."""
        for item in fresh:
            decision = self._decision(item.result, spilled)
            self.decisions[decision.tool_use_id] = decision
            self._untold.append(decision)

    def _decision(self, result: ToolResult, spilled: frozenset[ToolUseId]) -> SpillDecision:
        if result.tool_use_id not in spilled:
            return choose_inline(result)
        if self.spills is None:
            self.emit(SpillFailed(result.tool_use_id, count_result_chars(result), NO_DISK_REASON))
            return choose_inline(result)
        return self.spills.store(result)

    def _is_decided(self, result: ToolResult) -> bool:
        """A caller may hand in other content under an old id: that is another result."""
        decision = self.decisions.get(result.tool_use_id)
        if decision is None or decision.spill is None or result.content == decision.preview:
            return decision is not None
        return spill_digest(result) == decision.digest

    def _applied(self, result: ToolResult) -> ToolResult:
        decision = self.decisions.get(result.tool_use_id)
        return result if decision is None else apply_spill_decision(result, decision)


def iter_tool_results(message: Message) -> Iterator[ToolResult]:
    if isinstance(message.content, str):
        return
    for block in message.content:
        if isinstance(block, ToolResult):
            yield block
