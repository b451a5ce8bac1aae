"""Reads and checks what a request asks of `context_management`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.simulator.wire import betas
from sevenfold.simulator.wire.error_response import make_invalid_request
from sevenfold.simulator.wire.json_fields import (
    as_count,
    as_objects,
    as_one_of,
    as_switch,
    as_text,
    as_texts,
    optional_object,
    require_field,
)
from sevenfold.simulator.wire.messages_request import MessagesRequest

CLEAR_TOOLS_EDIT = "clear_tool_uses_20250919"
CLEAR_THINKING_EDIT = "clear_thinking_20251015"
COMPACT_EDIT = "compact_20260112"
EDIT_BETAS: Mapping[str, str] = {
    CLEAR_TOOLS_EDIT: betas.CONTEXT_EDITS,
    CLEAR_THINKING_EDIT: betas.CONTEXT_EDITS,
    COMPACT_EDIT: betas.COMPACT_THRESHOLD,
}

MIN_COMPACT_TOKENS = 50_000


@dataclass(frozen=True, slots=True)
class EditAmount:
    """`{"type": …, "value": …}`."""

    kind: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolClearing:
    trigger: EditAmount = EditAmount("input_tokens", 100_000)
    keep: int = 3
    at_least_tokens: int = 0
    spared: frozenset[str] = frozenset()
    """Tools whose uses are left alone."""
    inputs: frozenset[str] | bool = False
    """Whether what a tool was asked goes too: for all of them, or for these."""

    def clears_input(self, tool: str) -> bool:
        return self.inputs if isinstance(self.inputs, bool) else tool in self.inputs


@dataclass(frozen=True, slots=True)
class ThinkingClearing:
    keep_turns: int | None = None
    """None: all of them."""


@dataclass(frozen=True, slots=True)
class CompactEdit:
    trigger_tokens: int = 150_000
    pauses: bool = False
    instructions: str | None = None
    """In place of the default prompt for the summary."""


@dataclass(frozen=True, slots=True)
class ContextEdits:
    """What a request asks for."""

    tools: ToolClearing | None = None
    thinking: ThinkingClearing | None = None
    compacting: CompactEdit | None = None


def parse_context_edits(call: MessagesRequest) -> ContextEdits:
    """The edits of a request; refuses what the API would."""
    management = optional_object("", call.body, "context_management") or EMPTY_OBJECT
    rows = management.get("edits")
    edits = () if rows is None else as_objects("context_management.edits", rows)
    found = ContextEdits()
    seen: list[str] = []
    for index, edit in enumerate(edits):
        path = f"context_management.edits.{index}"
        kind = as_one_of(f"{path}.type", require_field(path, edit, "type"), tuple(EDIT_BETAS))
        _check_place(call, path, kind, seen)
        seen.append(kind)
        found = ContextEdits(
            _read_tools(f"{path}.{kind}", edit) if kind == CLEAR_TOOLS_EDIT else found.tools,
            _read_thinking(call, f"{path}.{kind}", edit) if kind == CLEAR_THINKING_EDIT else found.thinking,
            _read_compacting(call, f"{path}.{kind}", edit) if kind == COMPACT_EDIT else found.compacting,
        )
    return found


def _check_place(call: MessagesRequest, path: str, kind: str, seen: list[str]) -> None:
    if not call.has(EDIT_BETAS[kind]):
        raise make_invalid_request(f"{path}: `{kind}` needs the `anthropic-beta: {EDIT_BETAS[kind]}` header")
    if kind in seen:
        raise make_invalid_request(f"{path}: `{kind}` is listed twice")
    if kind == CLEAR_THINKING_EDIT and seen:
        raise make_invalid_request(f"{path}: `{CLEAR_THINKING_EDIT}` must be listed first")


def _read_tools(path: str, edit: JsonObject) -> ToolClearing:
    usual = ToolClearing()
    trigger = _read_amount(path, edit, "trigger", ("input_tokens", "tool_uses"))
    keep = _read_amount(path, edit, "keep", ("tool_uses",))
    at_least = _read_amount(path, edit, "clear_at_least", ("input_tokens",))
    spared = edit.get("exclude_tools")
    return ToolClearing(
        trigger=trigger or usual.trigger,
        keep=keep.value if keep else usual.keep,
        at_least_tokens=at_least.value if at_least else usual.at_least_tokens,
        spared=usual.spared if spared is None else frozenset(as_texts(f"{path}.exclude_tools", spared)),
        inputs=_read_inputs(f"{path}.clear_tool_inputs", edit.get("clear_tool_inputs")),
    )


def _read_inputs(path: str, value: Json) -> frozenset[str] | bool:
    if value is None:
        return False
    return frozenset(as_texts(path, value)) if isinstance(value, tuple) else as_switch(path, value)


def _read_amount(path: str, edit: JsonObject, key: str, kinds: tuple[str, ...]) -> EditAmount | None:
    amount = optional_object(path, edit, key)
    if amount is None:
        return None
    kind = as_one_of(f"{path}.{key}.type", require_field(f"{path}.{key}", amount, "type"), kinds)
    return EditAmount(kind, as_count(f"{path}.{key}.value", require_field(f"{path}.{key}", amount, "value")))


def _read_thinking(call: MessagesRequest, path: str, edit: JsonObject) -> ThinkingClearing:
    keep = edit.get("keep")
    if keep is None:
        return ThinkingClearing(1 if call.model.drops_thinking else None)
    if not isinstance(keep, JsonObject):
        as_one_of(f"{path}.keep", keep, ("all",))
        return ThinkingClearing()
    kind = as_one_of(
        f"{path}.keep.type", require_field(f"{path}.keep", keep, "type"), ("thinking_turns", "all")
    )
    if kind == "all":
        return ThinkingClearing()
    value = require_field(f"{path}.keep", keep, "value")
    return ThinkingClearing(as_count(f"{path}.keep.value", value, at_least=1))


def _read_compacting(call: MessagesRequest, path: str, edit: JsonObject) -> CompactEdit:
    if not call.gates.compacts:
        raise make_invalid_request(f"{path}: compaction is not supported on {call.model_name}")
    usual = CompactEdit()
    trigger = _read_amount(path, edit, "trigger", ("input_tokens",))
    if trigger is not None:
        as_count(f"{path}.trigger.value", trigger.value, MIN_COMPACT_TOKENS)
    pauses, told = edit.get("pause_after_compaction"), edit.get("instructions")
    return CompactEdit(
        trigger.value if trigger else usual.trigger_tokens,
        pauses=pauses is not None and as_switch(f"{path}.pause_after_compaction", pauses),
        instructions=None if told is None else as_text(f"{path}.instructions", told),
    )
