"""Messages split into portions (how many tokens, of what kind, for which tool), and their sums by kind.

The `Weigher` remembers what each tool result weighed, so that a history that is read again (a resumed
session, a view after a cut) costs nothing for results that are the same. A `TokenBreakdown` says who or what
put the tokens of a context there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from sevenfold.core.messages import (
    Block,
    Document,
    Image,
    Message,
    RedactedThinking,
    Role,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.tokens.estimation import TokenEstimator, TokenMix
from sevenfold.core.tool_kinds import read_path

TextOrigin: TypeAlias = Literal["human", "attachment", "memory"]
"""Who wrote a user message's text; the message itself does not say."""

PortionKind: TypeAlias = (
    TextOrigin
    | Literal["assistant", "thinking", "tool_request", "tool_result", "system_prompt", "tool_schema"]
)

_CLASS_OF: Mapping[PortionKind, str] = {
    "assistant": "said",
    "thinking": "said",
    "tool_request": "asked",
    "tool_result": "got",
}
"""The class whose factor corrects a kind, where it is not `told`."""

GRAIN = 256
"""Portions are whole 256ths of a token: such sums are exact, whatever their order."""


@dataclass(frozen=True, slots=True)
class TokenPortion:
    kind: PortionKind
    tokens: float
    """Before calibration."""
    tool: str = ""
    repeated: bool = False
    """A file read again, with the very content that is already in the context."""

    @property
    def mix(self) -> TokenMix:
        return TokenMix(**{_CLASS_OF.get(self.kind, "told"): self.tokens})


@dataclass(frozen=True, slots=True)
class _Request:
    tool: str
    path: str | None


@dataclass(frozen=True, slots=True)
class _Weighed:
    content_hash: int
    """Not the content: after a cut nobody else may hold it, and then it should go."""
    tokens: float


@dataclass(frozen=True, slots=True)
class _Read:
    path: str
    content_hash: int


class Weigher:
    """Weighs messages in order. One per session: it knows which request a result answers."""

    __slots__ = ("_estimator", "_reads", "_requests", "_results")

    def __init__(self, estimator: TokenEstimator) -> None:
        self._estimator = estimator
        self._requests: dict[ToolUseId, _Request] = {}
        self._results: dict[ToolUseId, _Weighed] = {}
        self._reads: set[_Read] = set()

    def portions(self, message: Message, origin: TextOrigin = "human") -> Iterator[TokenPortion]:
        """One portion a block. Costs time in this message alone."""
        for block in message.blocks:
            match block:
                case ToolUse():
                    self._requests[block.id] = _Request(block.name, read_path(block))
                    yield TokenPortion("tool_request", self.weigh(block), block.name)
                case ToolResult():
                    yield self._result_portion(block)
                case _:
                    yield TokenPortion(_kind(block, message.role, origin), self.weigh(block))

    def weigh(self, block: Block) -> float:
        """A block's tokens, to the grain."""
        return round(self._estimator.weigh(block) * GRAIN) / GRAIN

    def start_over(self) -> None:
        """Another context begins. What was read is no longer there; what a result weighs stays known."""
        self._requests.clear()
        self._reads.clear()

    def _result_portion(self, result: ToolResult) -> TokenPortion:
        known = self._results.get(result.tool_use_id)
        # The same id may carry other content after a cut. A str keeps its hash, so asking again is free.
        if known is None or known.content_hash != hash(result.content):
            known = _Weighed(hash(result.content), self.weigh(result))
            self._results[result.tool_use_id] = known
        request = self._requests.get(result.tool_use_id, _Request("", None))
        return TokenPortion(
            "tool_result", known.tokens, request.tool, self._is_repeated(request.path, result)
        )

    def _is_repeated(self, path: str | None, result: ToolResult) -> bool:
        if path is None or result.is_error:
            return False
        read = _Read(path, hash(result.content))
        repeated = read in self._reads
        self._reads.add(read)
        return repeated


def _kind(block: Block, role: Role, origin: TextOrigin) -> PortionKind:
    match block:
        case Thinking() | RedactedThinking():
            return "thinking"
        case Image() | Document():
            return "attachment"
        case _ if role == "assistant":
            return "assistant"
        case _ if role == "system" and origin == "human":
            return "attachment"
        case _:
            return origin


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
    """The running sums behind a `TokenBreakdown`: adding a portion takes the same time in any history."""

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
