"""Compaction blocks: what may be sent back, and how one is made."""

from __future__ import annotations

from collections.abc import Sequence

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES, PromptBlock
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.simulator.checks.validate_params import is_tool_forced
from sevenfold.simulator.wire.binding_chain import BindingChain
from sevenfold.simulator.wire.error_response import make_invalid_request
from sevenfold.simulator.wire.json_fields import as_one_of, as_text, optional_object, require_field
from sevenfold.simulator.wire.messages_request import MessagesRequest
from sevenfold.simulator.wire.request_blocks import as_word
from sevenfold.simulator.wire.signatures import CompactionSeal, hash_json, parse_compaction_seal

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
        told = block.wire.get("tool_changes") if block.kind == "compaction" else (block.wire,)
        for change in told if isinstance(told, tuple) else ():
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
    if not call.gates.compacts:
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
