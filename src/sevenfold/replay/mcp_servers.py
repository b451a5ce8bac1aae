"""MCP servers in a recorded session: what their tools weigh in every prompt, and how often one was called.

Only logs that hold the requests themselves list the tools; elsewhere nothing is known of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sevenfold.core.messages import Block, ToolUse
from sevenfold.replay.context_fill import ContextFill
from sevenfold.store.foreign.entries import as_fields, get_name, get_object

_PREFIX = "mcp__"


@dataclass(frozen=True, slots=True)
class ServerUse:
    server: str
    tools: int
    """How many of its tools were sent, at most."""
    carried_tokens: int
    """Of their schemas, counted with every call. Estimated."""
    calls: int
    """How often one of them was called."""


class ServerUses:
    """Follows one conversation."""

    __slots__ = ("_calls", "_shares", "_tools")

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}
        """Of all schemas, those of each server, by length."""
        self._tools: dict[str, int] = {}
        self._calls: Counter[str] = Counter()

    def set_tools(self, tools: str) -> None:
        """The tools of the next requests, one a line, as JSON."""
        sizes, counts = Counter[str](), Counter[str]()
        for tool in _read_lines(tools):
            server = _server(_name(tool))
            sizes[server] += len(json.dumps(tool))
            counts[server] += 1
        whole = sizes.total()
        for server in sizes:
            if server:
                self._shares[server] = max(self._shares.get(server, 0.0), sizes[server] / whole)
                self._tools[server] = max(self._tools.get(server, 0), counts[server])

    def note_calls(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            if isinstance(block, ToolUse) and block.name.startswith(_PREFIX):
                self._calls[_server(block.name)] += 1

    def finish(self, fill: ContextFill) -> tuple[ServerUse, ...]:
        """One a server, the heaviest first."""
        carried = sum(share.carried_tokens for share in fill.shares if share.kind == "tool_schema")
        uses = [
            ServerUse(server, self._tools[server], round(carried * share), self._calls[server])
            for server, share in self._shares.items()
        ]
        return tuple(sorted(uses, key=lambda use: (-use.carried_tokens, use.server)))


def _read_lines(tools: str) -> Iterator[object]:
    for line in tools.splitlines():
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def _name(tool: object) -> str:
    """Anthropic's form, or OpenAI's."""
    fields = as_fields(tool)
    return get_name(fields, "name") or get_name(get_object(fields, "function"), "name")


def _server(tool: str) -> str:
    """The server that offers a tool; "" for the agent's own."""
    return tool.removeprefix(_PREFIX).partition("__")[0] if tool.startswith(_PREFIX) else ""
