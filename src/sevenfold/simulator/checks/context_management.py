"""Parses and checks `context_management` in a request, and compaction blocks: which are accepted, and how one
is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES, PromptBlock
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.simulator.checks.validate_params import is_tool_forced
from sevenfold.simulator.wire.error_response import (
    as_count,
    as_objects,
    as_one_of,
    as_switch,
    as_text,
    as_texts,
    make_invalid_request,
    optional_object,
    require_field,
)
from sevenfold.simulator.wire.messages_request import MessagesRequest, as_word
from sevenfold.simulator.wire.models import COMPACT_THRESHOLD_BETA, CONTEXT_EDITS_BETA
from sevenfold.simulator.wire.signatures import BindingChain, CompactionSeal, hash_json, parse_compaction_seal

CLEAR_TOOLS_EDIT = "clear_tool_uses_20250919"
CLEAR_THINKING_EDIT = "clear_thinking_20251015"
COMPACT_EDIT = "compact_20260112"
EDIT_BETAS: Mapping[str, str] = {
    CLEAR_TOOLS_EDIT: CONTEXT_EDITS_BETA,
    CLEAR_THINKING_EDIT: CONTEXT_EDITS_BETA,
    COMPACT_EDIT: COMPACT_THRESHOLD_BETA,
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
    excluded: frozenset[str] = frozenset()
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
    compact: CompactEdit | None = None


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
            _read_compacting(call, f"{path}.{kind}", edit) if kind == COMPACT_EDIT else found.compact,
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
    excluded = edit.get("exclude_tools")
    return ToolClearing(
        trigger=trigger or usual.trigger,
        keep=keep.value if keep else usual.keep,
        at_least_tokens=at_least.value if at_least else usual.at_least_tokens,
        excluded=usual.excluded
        if excluded is None
        else frozenset(as_texts(f"{path}.exclude_tools", excluded)),
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
    if not call.features.compacts:
        raise make_invalid_request(f"{path}: compaction is not supported on {call.model_name}")
    usual = CompactEdit()
    trigger = _read_amount(path, edit, "trigger", ("input_tokens",))
    if trigger is not None:
        as_count(f"{path}.trigger.value", trigger.value, MIN_COMPACT_TOKENS)
    pauses, instructions = edit.get("pause_after_compaction"), edit.get("instructions")
    return CompactEdit(
        trigger.value if trigger else usual.trigger_tokens,
        pauses=pauses is not None and as_switch(f"{path}.pause_after_compaction", pauses),
        instructions=None if instructions is None else as_text(f"{path}.instructions", instructions),
    )


# Compaction blocks.

TOOL_CHANGE_TYPES = frozenset({"tool_addition", "tool_removal"})


def check_compaction(call: MessagesRequest) -> None:
    """Refuse blocks that are not as they were returned, and compaction requests that the API cannot take."""
    blocks = call.listing.spoken
    _check_signed(blocks)
    # Counting ignores the field, so what it cannot be combined with does not matter there.
    if call.body.get("compaction") is not None and call.endpoint == "messages":
        _check_request(call, blocks)


def select_current_blocks(blocks: tuple[PromptBlock, ...]) -> tuple[PromptBlock, ...]:
    """From the last summary on; blocks of compactions that failed mean nothing and are left out.

    Where there was no compaction they are the very same.
    """
    if not any(block.kind == "compaction" for block in blocks):
        return blocks
    summaries = [at for at, block in enumerate(blocks) if _is_summary(block)]
    first = summaries[-1] if summaries else 0
    return tuple(block for block in blocks[first:] if block.kind != "compaction" or _is_summary(block))


def _is_summary(block: PromptBlock) -> bool:
    return block.kind == "compaction" and block.wire.get("content") is not None


def make_threshold_block(summary: str | None) -> JsonObject:
    return JsonObject({"type": "compaction", "content": summary})


def make_signed_block(call: MessagesRequest, binding: BindingChain, summary: str) -> JsonObject:
    """The one block that answers a compaction request."""
    end = binding.end
    changes = find_tool_changes(call.listing.spoken)
    seal = CompactionSeal(
        content=hash_json(summary),
        tool_changes=hash_json(changes),
        frame=end.frame,
        prefix=end.prefix,
        last_role=end.last_role,
        carries=call.model.has_preserved_thinking,
    )
    block: dict[str, Json] = {"type": "compaction", "content": summary, "signature": seal.write()}
    if changes:
        block["tool_changes"] = changes
    return JsonObject(block)


def find_tool_changes(blocks: Sequence[PromptBlock]) -> tuple[JsonObject, ...]:
    """What takes the request's tools to those in effect at its end: the last change of each tool.

    A summary stands for the changes too, so one that came with an earlier block is carried on.
    """
    latest: dict[str, JsonObject] = {}
    for block in blocks:
        changes = block.wire.get("tool_changes") if block.kind == "compaction" else (block.wire,)
        for change in changes if isinstance(changes, tuple) else ():
            if isinstance(change, JsonObject) and change.get("type") in TOOL_CHANGE_TYPES:
                tool = change.get("tool")
                name = _tool_name(tool) if isinstance(tool, JsonObject) else ""
                latest.pop(name, None)
                latest[name] = change.without("cache_control")
    return tuple(latest.values())


def _tool_name(tool: JsonObject) -> str:
    definition = tool.get("definition")
    return as_word((definition if isinstance(definition, JsonObject) else tool).get("name"))


def _check_signed(blocks: Sequence[PromptBlock]) -> None:
    signed = [
        block
        for block in blocks
        if block.kind == "compaction"
        and block.wire.get("signature") is not None
        and block.wire.get("content")
    ]
    if len(signed) > 1:
        raise make_invalid_request(
            f"{signed[1].path}: `messages` holds more than one `compaction` block; send the last one alone",
            "compaction_block_ambiguous",
        )
    for block in signed:
        if block is not blocks[0] and block.path != blocks[0].path:
            raise make_invalid_request(
                f"{block.path}: the `compaction` block must be the first block of the conversation",
                "compaction_block_misplaced",
            )
        _check_seal(block)


def _check_seal(block: PromptBlock) -> None:
    seal = parse_compaction_seal(as_word(block.wire.get("signature")))
    if seal is None:
        raise make_invalid_request(
            f"{block.path}.signature: does not verify; send the block as it was returned",
            "compaction_signature_invalid",
        )
    if seal.content != hash_json(block.wire.get("content")):
        raise make_invalid_request(
            f"{block.path}.content: differs from the text that its signature recorded",
            "compaction_content_mismatch",
        )
    if seal.tool_changes != hash_json(block.wire.get("tool_changes") or ()):
        raise make_invalid_request(
            f"{block.path}.tool_changes: differs from what was returned with the block",
            "compaction_tool_changes_mismatch",
        )


def _check_request(call: MessagesRequest, blocks: Sequence[PromptBlock]) -> None:
    if not call.features.compacts:
        raise make_invalid_request(f"compaction: not supported on {call.model_name}")
    compaction = optional_object("", call.body, "compaction") or EMPTY_OBJECT
    as_one_of("compaction.type", require_field("compaction", compaction, "type"), ("summarize",))
    if compaction.get("instructions") is not None:
        as_text("compaction.instructions", compaction["instructions"])
    output = call.part("output_config")
    budget = output.get("task_budget")
    conflicts = {
        "context_management": call.body.get("context_management") is not None,
        "stop_sequences": bool(call.body.get("stop_sequences")),
        "output_config.format": output.get("format") is not None,
        "output_config.task_budget.remaining": isinstance(budget, JsonObject)
        and budget.get("remaining") is not None,
        "tool_choice": is_tool_forced(call),
        "thread": call.body.get("thread") is not None,
    }
    for name, present in conflicts.items():
        if present:
            raise make_invalid_request(f"compaction: cannot be combined with {name}")
    _check_range(blocks)


def _check_range(blocks: Sequence[PromptBlock]) -> None:
    spoken = [block for block in blocks if block.role in {"user", "assistant"} and block.kind != "compaction"]
    if not spoken:
        raise make_invalid_request(
            "compaction: `messages` holds no `user` or `assistant` content to summarize",
            "compaction_nothing_to_summarize",
        )
    last = spoken[-1]
    if last.role == "assistant" and last.kind in {"tool_use", "server_tool_use", *THINKING_TYPES}:
        raise make_invalid_request(
            f"{last.path}: the compaction request ends on an `assistant` turn that is not finished",
            "compaction_incomplete_turn",
        )
