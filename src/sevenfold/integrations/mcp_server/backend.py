"""What tools, prompts and resources do: operations of the resident process, on one project, as text."""

from __future__ import annotations

import sys

from sevenfold.integrations.mcp_server.protocol import as_wire, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol

    from sevenfold.integrations.mcp_server.protocol import Wire

    class PerformOperation(Protocol):
        """Does an operation, by its name."""

        def __call__(
            self, operation: str, arguments: Mapping[str, object], /, *, deadline_seconds: float
        ) -> dict[str, object]: ...


_DEADLINE_SECONDS = 20.0
"""For one operation, the start of the resident process included. After that it is done in this process."""
_MICROS = 1_000_000
"""Of a dollar."""

_ARGUMENTS = {"recall": {"query": "prompt"}, "remember": {"text": "content"}}
"""Arguments of a tool that the operation knows under another name."""


class ToolAnswer:
    """What a tool says."""

    def __init__(self, text: str, *, is_error: bool = False) -> None:
        self.text, self.is_error = text, is_error


class MemoryEntry:
    """A memory in the list of resources."""

    def __init__(self, key: str, description: str) -> None:
        self.key, self.description = key, description


def perform_operation(
    operation: str, arguments: Mapping[str, object], /, *, deadline_seconds: float
) -> dict[str, object]:
    """Through the resident process, or in this one where it cannot be had."""
    from sevenfold.resident import perform

    return perform(operation, arguments, deadline_seconds=deadline_seconds)


class McpBackend:
    """The operations on one project. Nothing is opened before the first one is wanted."""

    def __init__(self, project: str, perform: PerformOperation = perform_operation) -> None:
        self._project, self._perform = project, perform

    def run(self, tool: str, arguments: Wire) -> ToolAnswer:
        """Do what a tool is called for; what goes wrong is an answer that says so."""
        from sevenfold.core.errors import SevenfoldError

        names = _ARGUMENTS.get(tool, {})
        given: Wire = {names.get(name, name): value for name, value in arguments.items()}
        if tool == "read_result" and "/" in str(given.get("id")):
            given["path"] = given.pop("id")
        try:
            answer = self._do(tool, given)
        except SevenfoldError as error:
            return ToolAnswer(str(error), is_error=True)
        return ToolAnswer(_RENDERERS[tool](answer), is_error=answer.get("status") == "refused")

    def list_memories(self) -> Sequence[MemoryEntry]:
        answer = self._do("memory_index", {})
        hooks = _read_hooks(str(answer.get("text", "")))
        return [MemoryEntry(str(key), hooks.get(str(key), "")) for key in _as_list(answer.get("keys"))]

    def read_index(self) -> str:
        return str(self._do("memory_index", {}).get("text", ""))

    def read_memory(self, key: str) -> str | None:
        """None where there is no such memory."""
        from sevenfold.core.errors import SevenfoldError

        try:
            return str(self._do("memory_read", {"key": key}).get("text", ""))
        except SevenfoldError:
            return None

    def report(self, problem: str, /) -> None:
        """Tell whoever reads the log of the agent."""
        from sevenfold.core.text.safe_text import escape_controls

        sys.stderr.write(f"sevenfold mcp: {escape_controls(problem)}\n")

    def _do(self, operation: str, arguments: Wire) -> dict[str, object]:
        given = {"cwd": self._project, **arguments}
        return self._perform(operation, given, deadline_seconds=_DEADLINE_SECONDS)


def _as_list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _read_hooks(index: str) -> dict[str, str]:
    """What the index says of each memory."""
    hooks: dict[str, str] = {}
    for line in index.splitlines():
        link, _, hook = line.partition(") — ")
        key = link.rpartition("](")[2]
        if line.startswith("- [") and key and hook:
            hooks[key] = hook.strip()
    return hooks


def _render_recalled(answer: Wire) -> str:
    return str(answer.get("text", "")) or "Nothing that is remembered bears on this."


def _render_remembered(answer: Wire) -> str:
    return str(answer.get("message", ""))


def _render_hits(answer: Wire) -> str:
    parts = [_render_hit(as_wire(hit)) for hit in _as_list(answer.get("hits"))]
    if answer.get("is_busy"):
        parts.append("Another process is updating the index: the newest turns may be missing.")
    return "\n\n".join(parts) or "No past session mentions this."


def _render_hit(hit: Wire) -> str:
    where = f"{hit.get('agent')} in {hit.get('project')}, {hit.get('at') or 'no date'}"
    lines = [f"## {hit.get('title')}", where, str(hit.get("snippet", ""))]
    if hit.get("resume"):
        lines.append(f"Open it with: {hit['resume']}")
    return "\n".join(lines)


def _render_result(answer: Wire) -> str:
    text, following = str(answer.get("text", "")), answer.get("next_offset")
    if following is None:
        return text or "The result is empty."
    return f"{text}\n[{answer.get('total_bytes')} bytes in all; read on with offset {following}]"


def _render_spend(answer: Wire) -> str:
    lines = ["What background work of Sevenfold spent:"]
    for span in ("hour", "day"):
        used = as_wire(answer.get(span))
        lines.append(
            f"- the last {span}: {_usd(used.get('micro_usd'))} of {_usd(used.get('cap_micro_usd'))}, "
            f"{_number(used.get('tokens')):,} of {_number(used.get('cap_tokens')):,} tokens"
        )
    for kind, value in as_wire(answer.get("kinds")).items():
        calls = as_wire(value)
        lines.append(
            f"- {kind}: {_number(calls.get('calls')):,} calls, {_usd(calls.get('micro_usd'))}, "
            f"{_number(calls.get('tokens')):,} tokens"
        )
    if not answer.get("background"):
        lines.append(f"It is off: {answer.get('stopped') or 'spend.background is false'}")
    return "\n".join(lines)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _usd(micros: object) -> str:
    return f"${_number(micros) / _MICROS:,.4f}"


_RENDERERS: dict[str, Callable[[Wire], str]] = {
    "recall": _render_recalled,
    "remember": _render_remembered,
    "search_sessions": _render_hits,
    "read_result": _render_result,
    "spend": _render_spend,
}
"""How the answer of an operation is told."""
