"""Compaction blocks: what may be sent back, and how one is made."""

from __future__ import annotations

from collections.abc import Sequence

from sevenfold.core.json import EMPTY, Json, JsonObject
from sevenfold.core.prompt_blocks import THINKING, Placed
from sevenfold.simulator.binding import Binding
from sevenfold.simulator.call import Call
from sevenfold.simulator.refusals import invalid
from sevenfold.simulator.seals import CompactionSeal, fingerprint, read_compaction_seal
from sevenfold.simulator.shape import as_one_of, as_text, optional_object, require
from sevenfold.simulator.validate_params import is_forced
from sevenfold.simulator.view import word

CHANGES = frozenset({"tool_addition", "tool_removal"})


def check_compaction(call: Call) -> None:
    """Refuse blocks that are not as they were returned, and compaction requests that the API cannot take."""
    blocks = call.listing.spoken
    _check_signed(blocks)
    # Counting ignores the field, so what it cannot be combined with does not matter there.
    if call.body.get("compaction") is not None and call.endpoint == "messages":
        _check_request(call, blocks)


def current_blocks(blocks: tuple[Placed, ...]) -> tuple[Placed, ...]:
    """From the last summary on; blocks of compactions that failed mean nothing and are left out.

    Where there was no compaction they are the very same.
    """
    if not any(block.kind == "compaction" for block in blocks):
        return blocks
    summaries = [at for at, block in enumerate(blocks) if _is_summary(block)]
    first = summaries[-1] if summaries else 0
    return tuple(block for block in blocks[first:] if block.kind != "compaction" or _is_summary(block))


def _is_summary(block: Placed) -> bool:
    return block.kind == "compaction" and block.wire.get("content") is not None


def threshold_block(summary: str | None) -> JsonObject:
    return JsonObject({"type": "compaction", "content": summary})


def signed_block(call: Call, binding: Binding, summary: str) -> JsonObject:
    """The one block that answers a compaction request."""
    end = binding.end
    changes = tool_changes(call.listing.spoken)
    seal = CompactionSeal(
        fingerprint(summary),
        fingerprint(changes),
        end.frame,
        end.prefix,
        end.last_role,
        call.model.has_preserved_thinking,
    )
    block: dict[str, Json] = {"type": "compaction", "content": summary, "signature": seal.write()}
    if changes:
        block["tool_changes"] = changes
    return JsonObject(block)


def tool_changes(blocks: Sequence[Placed]) -> tuple[JsonObject, ...]:
    """What takes the request's tools to those in effect at its end: the last change of each tool.

    A summary stands for the changes too, so one that came with an earlier block is carried on.
    """
    latest: dict[str, JsonObject] = {}
    for block in blocks:
        told = block.wire.get("tool_changes") if block.kind == "compaction" else (block.wire,)
        for change in told if isinstance(told, tuple) else ():
            if isinstance(change, JsonObject) and change.get("type") in CHANGES:
                tool = change.get("tool")
                name = _tool_name(tool) if isinstance(tool, JsonObject) else ""
                latest.pop(name, None)
                latest[name] = change.without("cache_control")
    return tuple(latest.values())


def _tool_name(tool: JsonObject) -> str:
    definition = tool.get("definition")
    return word((definition if isinstance(definition, JsonObject) else tool).get("name"))


def _check_signed(blocks: Sequence[Placed]) -> None:
    signed = [
        block
        for block in blocks
        if block.kind == "compaction"
        and block.wire.get("signature") is not None
        and block.wire.get("content")
    ]
    if len(signed) > 1:
        raise invalid(
            f"{signed[1].path}: `messages` holds more than one `compaction` block; send the last one alone",
            "compaction_block_ambiguous",
        )
    for block in signed:
        if block is not blocks[0] and block.path != blocks[0].path:
            raise invalid(
                f"{block.path}: the `compaction` block must be the first block of the conversation",
                "compaction_block_misplaced",
            )
        _check_seal(block)


def _check_seal(block: Placed) -> None:
    seal = read_compaction_seal(word(block.wire.get("signature")))
    if seal is None:
        raise invalid(
            f"{block.path}.signature: does not verify; send the block as it was returned",
            "compaction_signature_invalid",
        )
    if seal.content != fingerprint(block.wire.get("content")):
        raise invalid(
            f"{block.path}.content: differs from the text that its signature recorded",
            "compaction_content_mismatch",
        )
    if seal.tool_changes != fingerprint(block.wire.get("tool_changes") or ()):
        raise invalid(
            f"{block.path}.tool_changes: differs from what was returned with the block",
            "compaction_tool_changes_mismatch",
        )


def _check_request(call: Call, blocks: Sequence[Placed]) -> None:
    if not call.gates.compacts:
        raise invalid(f"compaction: not supported on {call.model_name}")
    compaction = optional_object("", call.body, "compaction") or EMPTY
    as_one_of("compaction.type", require("compaction", compaction, "type"), ("summarize",))
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
        "tool_choice": is_forced(call),
        "thread": call.body.get("thread") is not None,
    }
    for name, present in conflicts.items():
        if present:
            raise invalid(f"compaction: cannot be combined with {name}")
    _check_range(blocks)


def _check_range(blocks: Sequence[Placed]) -> None:
    spoken = [block for block in blocks if block.role in {"user", "assistant"} and block.kind != "compaction"]
    if not spoken:
        raise invalid(
            "compaction: `messages` holds no `user` or `assistant` content to summarize",
            "compaction_nothing_to_summarize",
        )
    last = spoken[-1]
    if last.role == "assistant" and last.kind in {"tool_use", "server_tool_use", *THINKING}:
        raise invalid(
            f"{last.path}: the compaction request ends on an `assistant` turn that is not finished",
            "compaction_incomplete_turn",
        )
