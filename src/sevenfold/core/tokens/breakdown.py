"""Where a context's tokens are: who or what put them there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sevenfold.core.tokens.calibration import TokenMix
from sevenfold.core.tokens.portions import PortionKind, TokenPortion


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBreakdown:
    """Estimated tokens by kind, calibrated as of now. The parts are rounded one by one."""

    human: int = 0
    assistant: int = 0
    thinking: int = 0
    tool_requests: Mapping[str, int] = field(default_factory=dict[str, int])
    """By tool name."""
    tool_results: Mapping[str, int] = field(default_factory=dict[str, int])
    """By tool name; a result whose request was never seen stands under the empty name."""
    attachments: int = 0
    """Images, documents, and text that the agent's program put in by itself."""
    memory: int = 0
    system_prompt: int = 0
    tool_schemas: int = 0
    repeated_reads: int = 0
    """Of the tool results: files read again, with the very content that was already there."""

    @property
    def total(self) -> int:
        said = self.human + self.assistant + self.thinking + self.attachments + self.memory
        tools = sum(self.tool_requests.values()) + sum(self.tool_results.values())
        return said + tools + self.system_prompt + self.tool_schemas


class BreakdownTotals:
    """The running sums behind a `Breakdown`: a portion costs the same to add however long the history is."""

    __slots__ = ("_repeated", "_sums")

    def __init__(self) -> None:
        self._sums: defaultdict[PortionKind, defaultdict[str, float]] = defaultdict(
            lambda: defaultdict(float)
        )
        self._repeated = 0.0

    def add(self, portion: TokenPortion) -> None:
        self._sums[portion.kind][portion.tool] += portion.tokens
        if portion.repeated:
            self._repeated += portion.tokens

    def breakdown(
        self, frame: Iterable[TokenPortion], estimate: Callable[[TokenMix], float]
    ) -> TokenBreakdown:
        """The sums so far and the frame around them as a value, priced by this estimate."""

        def priced(kind: PortionKind, tokens: float) -> int:
            return round(estimate(TokenPortion(kind, tokens).mix))

        def by_tool(kind: PortionKind) -> Mapping[str, int]:
            sums = self._sums[kind].items()
            return MappingProxyType({tool: priced(kind, tokens) for tool, tokens in sums})

        def whole(kind: PortionKind) -> int:
            return by_tool(kind).get("", 0)

        framed = {portion.kind: priced(portion.kind, portion.tokens) for portion in frame}
        return TokenBreakdown(
            human=whole("human"),
            assistant=whole("assistant"),
            thinking=whole("thinking"),
            tool_requests=by_tool("tool_request"),
            tool_results=by_tool("tool_result"),
            attachments=whole("attachment"),
            memory=whole("memory"),
            system_prompt=framed.get("system_prompt", 0),
            tool_schemas=framed.get("tool_schema", 0),
            repeated_reads=priced("tool_result", self._repeated),
        )
