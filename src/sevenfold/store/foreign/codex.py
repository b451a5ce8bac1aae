"""Codex rollouts: what went to and came from the model as items, and a token count after each call.

An item is logged when it is finished, the count when the call's tools have run; so all that the model
produced since the last count belongs to the next one. Rollouts of 2025's first versions hold bare items and
no counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sevenfold.core.errors import WireError
from sevenfold.core.json import JsonObject, freeze, read_object
from sevenfold.core.messages import (
    Block,
    Compaction,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.usage import Usage, read_openai_usage
from sevenfold.store.foreign.entries import (
    MAIN,
    NO_KEY,
    Answered,
    CallId,
    Compacted,
    Entry,
    ForeignSession,
    Said,
    Source,
    Unknown,
)
from sevenfold.store.foreign.fields import Fields, as_fields, inner, listed, moment, name, text

CALLS = frozenset(
    [
        *("custom_tool_call", "function_call", "image_generation_call", "local_shell_call"),
        *("mcp_call", "tool_search_call", "web_search_call"),
    ]
)
OUTPUTS = frozenset({"custom_tool_call_output", "function_call_output", "tool_search_output"})
ITEMS = CALLS | OUTPUTS | {"compaction", "compaction_summary", "ghost_snapshot", "message", "reasoning"}

SCREEN = (
    *("agent_", "context_compacted", "deprecation_notice", "entered_", "error", "exec_command_", "exited_"),
    *("item_", "mcp_", "patch_apply_", "plan_", "stream_error", "task_", "thread_", "turn_", "undo_"),
    *("user_message", "view_image_", "warning", "web_search_"),
)
"""How the types of events begin that only repeat, for the screen, what the items say."""

INJECTED = ("<", "# AGENTS.md instructions")
"""How text begins that Codex puts in on the user's behalf."""


class CodexReader:
    """Lines in, entries out. It remembers the model in force and the running total."""

    __slots__ = ("_count", "_model", "_total")

    def __init__(self) -> None:
        self._model = ""
        self._count = 0
        self._total: Fields | None = None

    def read(self, line: Fields) -> Iterator[Entry]:
        """What one line says."""
        kind, about = name(line, "type"), inner(line, "payload")
        match kind:
            case "response_item":
                yield from self._item(about, line)
            case "event_msg":
                yield from self._event(about, line)
            case "turn_context":
                self._model = name(about, "model") or self._model
            case "session_meta":
                yield from _introduced(about)
                yield from _instructed(about, line)
            case "compacted":
                yield Compacted(MAIN, moment(line, "timestamp"))
                yield from self._replaced(about, line)
            case _ if kind in ITEMS:
                yield from self._item(line, line)
            case "" if "instructions" in line or "record_type" in line:
                yield from _introduced(line)
            case _:
                yield Unknown(kind or "(no type)")

    @property
    def _call(self) -> CallId:
        return CallId(f"call {self._count}")

    def _item(self, item: Fields, line: Fields) -> Iterator[Entry]:
        kind, at = name(item, "type"), moment(line, "timestamp")
        if kind == "message" and name(item, "role") != "assistant":
            said = _spoken(item)
            if said:
                yield Said(MAIN, NO_KEY, at, _role(item), said, _source(item, said))
        elif kind in OUTPUTS:
            yield Said(MAIN, NO_KEY, at, "user", (_output(item),))
        elif kind in ITEMS:
            made = _made(kind, item)
            if made:
                yield Answered(MAIN, NO_KEY, at, self._call, self._model, made, dialect="openai")
        else:
            yield Unknown(f"response_item/{kind or '(no type)'}")

    def _event(self, event: Fields, line: Fields) -> Iterator[Entry]:
        kind = name(event, "type")
        if kind != "token_count":
            if not kind.startswith(SCREEN):
                yield Unknown(f"event_msg/{kind or '(no type)'}")
            return
        usage = self._read_usage(inner(event, "info"))
        if usage is not None:
            yield Answered(
                MAIN,
                NO_KEY,
                moment(line, "timestamp"),
                self._call,
                self._model,
                (),
                usage,
                is_complete=True,
                dialect="openai",
            )
            self._count += 1

    def _read_usage(self, about: Fields) -> Usage | None:
        """The last call's usage; None where the count was only said again, as it is with new rate limits."""
        total = about.get("total_token_usage")
        if total is None or total == self._total:
            return None
        self._total = as_fields(total)
        try:
            return read_openai_usage(about.get("last_token_usage"))
        except WireError:
            return None

    def _replaced(self, about: Fields, line: Fields) -> Iterator[Entry]:
        """What stands in for the history after compaction."""
        at = moment(line, "timestamp")
        summary = text(about, "message")
        if summary:
            yield Said(MAIN, NO_KEY, at, "user", (Text(summary),), "summary")
        for item in map(as_fields, listed(about, "replacement_history")):
            said = _spoken(item) if name(item, "type") == "message" else _made(name(item, "type"), item)
            if said:
                yield Said(MAIN, NO_KEY, at, _role(item), said, _source(item, said))


def _introduced(about: Fields) -> Iterator[ForeignSession]:
    yield ForeignSession(name(about, "id", "session_id"), name(about, "cwd"), name(about, "cli_version"))


def _instructed(about: Fields, line: Fields) -> Iterator[Said]:
    told = text(inner(about, "base_instructions"), "text") or text(about, "instructions")
    if told:
        yield Said(MAIN, NO_KEY, moment(line, "timestamp"), "system", (Text(told),), "system_prompt")


def _role(item: Fields) -> Role:
    roles: Mapping[str, Role] = {"assistant": "assistant", "developer": "system", "system": "system"}
    return roles.get(name(item, "role"), "user")


def _source(item: Fields, said: tuple[Block, ...]) -> Source:
    first = said[0]
    is_injected = isinstance(first, Text) and first.text.startswith(INJECTED)
    return "attachment" if is_injected or _role(item) == "system" else "human"


def _spoken(item: Fields) -> tuple[Block, ...]:
    parts = map(as_fields, listed(item, "content"))
    return tuple(Text(said) for part in parts if (said := text(part, "text")))


def _made(kind: str, item: Fields) -> tuple[Block, ...]:
    """What the model produced, as blocks."""
    match kind:
        case "message":
            return _spoken(item)
        case "reasoning":
            return _reasoned(item)
        case "compaction" | "compaction_summary":
            return (Compaction(text(item, "encrypted_content") or None),)
        case _ if kind in CALLS:
            return (ToolUse(ToolUseId(name(item, "call_id", "id")), _tool(kind, item), _arguments(item)),)
        case _:
            return ()


def _reasoned(item: Fields) -> tuple[Block, ...]:
    shown = [text(as_fields(part), "text") for part in listed(item, "summary")]
    sealed = text(item, "encrypted_content")
    if sealed:
        return (RedactedThinking(sealed),)
    return (Thinking("\n".join(shown)),) if any(shown) else ()


def _tool(kind: str, item: Fields) -> str:
    return name(item, "name") or kind.removesuffix("_call")


def _arguments(item: Fields) -> JsonObject:
    for key in ("arguments", "input", "action"):
        value = item.get(key)
        if isinstance(value, str):
            return _parsed(value) or JsonObject({key: freeze(value)})
        if as_fields(value):
            return _frozen(as_fields(value))
    return JsonObject()


def _parsed(arguments: str) -> JsonObject | None:
    """Arguments come as JSON in a text, or, for a custom tool, as text alone."""
    try:
        return read_object(arguments)
    except WireError:
        return None


def _frozen(value: Fields) -> JsonObject:
    try:
        frozen = freeze(value)
    except WireError:
        return JsonObject()
    return frozen if isinstance(frozen, JsonObject) else JsonObject()


def _output(item: Fields) -> ToolResult:
    parts = (text(as_fields(part), "text") for part in listed(item, "output"))
    said = text(item, "output") or text(inner(item, "output"), "content") or "\n".join(parts)
    return ToolResult(ToolUseId(name(item, "call_id")), said)
