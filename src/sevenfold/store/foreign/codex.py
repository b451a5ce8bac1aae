"""Codex rollouts: what went to and came from the model as items, and a token count after each call.

An item is logged when it is finished, the count when the call's tools have run; so all that the model
produced since the last count belongs to the next one. Rollouts of 2025's first versions hold bare items and
no counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

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
    MAIN_CONVERSATION,
    NO_LINE_KEY,
    CallId,
    ForeignCompaction,
    ForeignEntry,
    ForeignInput,
    ForeignOutput,
    ForeignSession,
    ForeignSource,
    JsonFields,
    UnknownLine,
    as_fields,
    get_list,
    get_name,
    get_object,
    get_text,
    get_time,
)

_CALLS = frozenset(
    [
        *("custom_tool_call", "function_call", "image_generation_call", "local_shell_call"),
        *("mcp_call", "tool_search_call", "web_search_call"),
    ]
)
OUTPUTS = frozenset({"custom_tool_call_output", "function_call_output", "tool_search_output"})
_ITEMS = _CALLS | OUTPUTS | {"compaction", "compaction_summary", "ghost_snapshot", "message", "reasoning"}

_SCREEN = (
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
        self._total: JsonFields | None = None

    def read(self, line: JsonFields) -> Iterator[ForeignEntry]:
        """What one line says."""
        kind, about = get_name(line, "type"), get_object(line, "payload")
        match kind:
            case "response_item":
                yield from self._item(about, line)
            case "event_msg":
                yield from self._event(about, line)
            case "turn_context":
                self._model = get_name(about, "model") or self._model
            case "session_meta":
                yield from _introduced(about)
                yield from _instructed(about, line)
            case "compacted":
                yield ForeignCompaction(conversation=MAIN_CONVERSATION, at=get_time(line, "timestamp"))
                yield from self._replaced(about, line)
            case _ if kind in _ITEMS:
                yield from self._item(line, line)
            case "" if "instructions" in line or "record_type" in line:
                yield from _introduced(line)
            case _:
                yield UnknownLine(kind or "(no type)")

    @property
    def _call(self) -> CallId:
        return CallId(f"call {self._count}")

    def _item(self, item: JsonFields, line: JsonFields) -> Iterator[ForeignEntry]:
        kind, at = get_name(item, "type"), get_time(line, "timestamp")
        if kind == "message" and get_name(item, "role") != "assistant":
            yield from _input(item, at, _spoken(item))
        elif kind in OUTPUTS:
            yield ForeignInput(
                conversation=MAIN_CONVERSATION, key=NO_LINE_KEY, at=at, role="user", blocks=(_output(item),)
            )
        elif kind in _ITEMS:
            made = _made(kind, item)
            if made:
                yield ForeignOutput(
                    conversation=MAIN_CONVERSATION,
                    key=NO_LINE_KEY,
                    at=at,
                    call=self._call,
                    model=self._model,
                    blocks=made,
                    dialect="openai",
                )
        else:
            yield UnknownLine(f"response_item/{kind or '(no type)'}")

    def _event(self, event: JsonFields, line: JsonFields) -> Iterator[ForeignEntry]:
        kind = get_name(event, "type")
        if kind != "token_count":
            if not kind.startswith(_SCREEN):
                yield UnknownLine(f"event_msg/{kind or '(no type)'}")
            return
        usage = self._read_usage(get_object(event, "info"))
        if usage is not None:
            yield ForeignOutput(
                conversation=MAIN_CONVERSATION,
                key=NO_LINE_KEY,
                at=get_time(line, "timestamp"),
                call=self._call,
                model=self._model,
                blocks=(),
                usage=usage,
                is_complete=True,
                dialect="openai",
            )
            self._count += 1

    def _read_usage(self, about: JsonFields) -> Usage | None:
        """The last call's usage; None where the count was only said again, as it is with new rate limits."""
        total = about.get("total_token_usage")
        if total is None or total == self._total:
            return None
        self._total = as_fields(total)
        try:
            return read_openai_usage(about.get("last_token_usage"))
        except WireError:
            return None

    def _replaced(self, about: JsonFields, line: JsonFields) -> Iterator[ForeignEntry]:
        """What stands in for the history after compaction."""
        at = get_time(line, "timestamp")
        summary = get_text(about, "message")
        if summary:
            yield ForeignInput(
                conversation=MAIN_CONVERSATION,
                key=NO_LINE_KEY,
                at=at,
                role="user",
                blocks=(Text(summary),),
                source="summary",
            )
        for item in map(as_fields, get_list(about, "replacement_history")):
            said = (
                _spoken(item) if get_name(item, "type") == "message" else _made(get_name(item, "type"), item)
            )
            yield from _input(item, at, said)


def _input(item: JsonFields, at: datetime | None, blocks: tuple[Block, ...]) -> Iterator[ForeignInput]:
    """The message of an item, unless it is empty."""
    if blocks:
        yield ForeignInput(
            conversation=MAIN_CONVERSATION,
            key=NO_LINE_KEY,
            at=at,
            role=_role(item),
            blocks=blocks,
            source=_source(item, blocks),
        )


def _introduced(about: JsonFields) -> Iterator[ForeignSession]:
    yield ForeignSession(
        get_name(about, "id", "session_id"), get_name(about, "cwd"), get_name(about, "cli_version")
    )


def _instructed(about: JsonFields, line: JsonFields) -> Iterator[ForeignInput]:
    text = get_text(get_object(about, "base_instructions"), "text") or get_text(about, "instructions")
    if text:
        yield ForeignInput(
            conversation=MAIN_CONVERSATION,
            key=NO_LINE_KEY,
            at=get_time(line, "timestamp"),
            role="system",
            blocks=(Text(text),),
            source="system_prompt",
        )


def _role(item: JsonFields) -> Role:
    roles: Mapping[str, Role] = {"assistant": "assistant", "developer": "system", "system": "system"}
    return roles.get(get_name(item, "role"), "user")


def _source(item: JsonFields, said: tuple[Block, ...]) -> ForeignSource:
    first = said[0]
    is_injected = isinstance(first, Text) and first.text.startswith(INJECTED)
    return "attachment" if is_injected or _role(item) == "system" else "human"


def _spoken(item: JsonFields) -> tuple[Block, ...]:
    parts = map(as_fields, get_list(item, "content"))
    return tuple(Text(said) for part in parts if (said := get_text(part, "text")))


def _made(kind: str, item: JsonFields) -> tuple[Block, ...]:
    """What the model produced, as blocks."""
    match kind:
        case "message":
            return _spoken(item)
        case "reasoning":
            return _reasoned(item)
        case "compaction" | "compaction_summary":
            return (Compaction(get_text(item, "encrypted_content") or None),)
        case _ if kind in _CALLS:
            return (ToolUse(ToolUseId(get_name(item, "call_id", "id")), _tool(kind, item), _arguments(item)),)
        case _:
            return ()


def _reasoned(item: JsonFields) -> tuple[Block, ...]:
    shown = [get_text(as_fields(part), "text") for part in get_list(item, "summary")]
    sealed = get_text(item, "encrypted_content")
    if sealed:
        return (RedactedThinking(sealed),)
    return (Thinking("\n".join(shown)),) if any(shown) else ()


def _tool(kind: str, item: JsonFields) -> str:
    return get_name(item, "name") or kind.removesuffix("_call")


def _arguments(item: JsonFields) -> JsonObject:
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


def _frozen(value: JsonFields) -> JsonObject:
    try:
        frozen = freeze(value)
    except WireError:
        return JsonObject()
    return frozen if isinstance(frozen, JsonObject) else JsonObject()


def _output(item: JsonFields) -> ToolResult:
    parts = (get_text(as_fields(part), "text") for part in get_list(item, "output"))
    said = get_text(item, "output") or get_text(get_object(item, "output"), "content") or "\n".join(parts)
    return ToolResult(ToolUseId(get_name(item, "call_id")), said)
