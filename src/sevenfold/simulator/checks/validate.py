"""Runs all checks of a request, in the order in which the API reports problems.

Checks the conversation itself: roles and their order, a result for each tool use, the first and last message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from sevenfold.core.cache.prompt_blocks import PromptBlock
from sevenfold.core.cache.prompt_cache import find_breakpoint_problems
from sevenfold.core.json import JsonObject
from sevenfold.simulator.checks.blocks import ROLE_BLOCK_TYPES, SERVER_RESULT_TYPES, check_block
from sevenfold.simulator.checks.context_management import check_compaction, parse_context_edits
from sevenfold.simulator.checks.validate_params import check_params, check_tools
from sevenfold.simulator.wire.choices import Choices
from sevenfold.simulator.wire.error_response import (
    as_object,
    as_objects,
    as_one_of,
    make_extra_refusal,
    make_invalid_request,
    optional_object,
    refuse_extra,
    require_field,
)
from sevenfold.simulator.wire.message_cache import CachedMessage, MessageTools
from sevenfold.simulator.wire.messages_request import MessagesRequest, check_cache_edits, get_tool_use_id
from sevenfold.simulator.wire.models import (
    CLEAR_AT_BETA,
    EFFORT_LEVELS,
    PER_TURN_CONTROL_BETA,
    SYSTEM_EFFORT_BETA,
)

NO_PREFILL_TEXT = (
    "This model does not support assistant message prefill. The conversation must end with a user message."
)


@dataclass(frozen=True, slots=True)
class RoleTurn:
    """Messages of one role that follow each other: the API reads them as one."""

    role: str
    blocks: tuple[PromptBlock, ...]


def check_message_shapes(call: MessagesRequest, choices: Choices) -> None:
    """Every message and block for itself."""
    messages = as_objects("messages", require_field("", call.body, "messages"))
    if not messages:
        raise make_invalid_request("messages: at least one message is required")
    if len(messages) > choices.messages_limit:
        raise make_invalid_request(
            f"messages: {len(messages)} messages; at most {choices.messages_limit} are allowed"
        )
    # Everything besides the message that its check depends on; a system message depends on more.
    circumstances = (call.envelope.version, call.envelope.betas, choices.strict, choices.empty_text)
    knowledge = call.listing.knowledge
    for index, message in enumerate(messages):
        if knowledge.is_in_order(index, message, circumstances):
            continue
        _check_message(call, choices, index, message)
        if message["role"] != "system":
            knowledge.about(index, message).in_order.add(circumstances)


def check_conversation(call: MessagesRequest, choices: Choices) -> None:
    """How messages follow each other; their shapes have been checked."""
    messages = as_objects("messages", call.body["messages"])
    if any(block.role == "system" for block in call.listing.blocks):
        _check_system_places(messages)
    placed = call.listing.spoken
    _check_opening(choices, messages[0], placed)
    if not _are_paired(call.listing.messages):
        _check_pairs(placed)
    if call.body.get("compaction") is None:
        _check_ending(call, choices, messages[-1])


def group_turns(placed: Sequence[PromptBlock]) -> tuple[RoleTurn, ...]:
    """The conversation without its system messages, neighbours of one role merged."""
    spoken = (item for item in placed if item.role != "system")
    return tuple(
        RoleTurn(role, tuple(blocks)) for role, blocks in groupby(spoken, key=lambda item: item.role)
    )


def _check_message(call: MessagesRequest, choices: Choices, index: int, message: JsonObject) -> None:
    path = f"messages.{index}"
    role = as_one_of(f"{path}.role", require_field(path, message, "role"), tuple(ROLE_BLOCK_TYPES))
    content = require_field(path, message, "content")
    if choices.strict:
        own = {"clear_at", "output_config"} if role == "system" else set[str]()
        refuse_extra(path, message, {"role", "content", *own})
    if role == "system":
        _check_system(call, path, message)
    if isinstance(content, str):
        blocks = (JsonObject({"type": "text", "text": content}),) if content else ()
    else:
        blocks = as_objects(f"{path}.content", content)
    if not blocks and not _may_be_empty(role, message):
        raise make_invalid_request(f"{path}: messages must have non-empty content")
    for at, block in enumerate(blocks):
        check_block(call, role, f"{path}.content.{at}", block)
        if not choices.empty_text and block.get("text") == "" and block["type"] == "text":
            raise make_invalid_request("messages: text content blocks must be non-empty")


def _may_be_empty(role: str, message: JsonObject) -> bool:
    return role == "system" and bool(message.get("output_config"))


def _check_system(call: MessagesRequest, path: str, message: JsonObject) -> None:
    if not call.model.takes_system_role:
        raise make_invalid_request(f"{path}: role 'system' is not supported on this model")
    lasts = message.get("clear_at")
    if lasts is not None:
        if not call.has(CLEAR_AT_BETA):
            raise make_extra_refusal(f"{path}.clear_at")
        as_one_of(f"{path}.clear_at", lasts, ("next_user_message", "never"))
        if lasts == "next_user_message" and _has_marker(message):
            raise make_invalid_request(f"{path}: cache_control is not allowed on a message with clear_at")
    output = optional_object(path, message, "output_config")
    if output is not None:
        if not (call.has(SYSTEM_EFFORT_BETA) or call.has(PER_TURN_CONTROL_BETA)):
            raise make_extra_refusal(f"{path}.output_config")
        if output.get("effort") is not None:
            as_one_of(f"{path}.output_config.effort", output["effort"], EFFORT_LEVELS)


def _has_marker(message: JsonObject) -> bool:
    content = message.get("content")
    blocks = content if isinstance(content, tuple) else ()
    return any(isinstance(block, JsonObject) and block.get("cache_control") for block in blocks)


def _check_system_places(messages: Sequence[JsonObject]) -> None:
    spoken = [None, *(index for index, message in enumerate(messages) if message["role"] != "system"), None]
    for before, after in pairwise(spoken):
        first = 0 if before is None else before + 1
        if first == (len(messages) if after is None else after):
            continue
        path = f"messages.{first}"
        if before is None:
            raise make_invalid_request(
                f"{path}: the first message cannot be a system message; use the `system` field"
            )
        if messages[before]["role"] == "assistant" and not _ends_in(messages[before], SERVER_RESULT_TYPES):
            raise make_invalid_request(
                f"{path}: a system message must follow a user turn or a server tool's result"
            )
        if after is not None and messages[after]["role"] != "assistant":
            raise make_invalid_request(
                f"{path}: a system message must be last or be followed by an assistant turn"
            )


def _ends_in(message: JsonObject, kinds: frozenset[str]) -> bool:
    content = message["content"]
    last = content[-1] if isinstance(content, tuple) and content else None
    return isinstance(last, JsonObject) and last.get("type") in kinds


def _check_opening(choices: Choices, first: JsonObject, placed: Sequence[PromptBlock]) -> None:
    if not choices.opens_with_user or first["role"] == "user":
        return
    if not placed or placed[0].kind != "compaction":
        raise make_invalid_request('messages: first message must use the "user" role')


def _are_paired(messages: Sequence[CachedMessage]) -> bool:
    """Whether each message's requests are answered by the next one, and all is plainly in order.

    The usual case, told in a fraction of the time. False says nothing: then it is looked at block by block.
    """
    asked, role = (), "assistant"
    count, ids = 0, set[str]()
    for known in messages:
        tools = known.tools or _tools(known)
        if not known.spoken or known.spoken[0].role == role or tools.is_late:
            return False
        role = known.spoken[0].role
        if role == "system" or tools.answered != asked:
            return False
        asked = tools.asked
        if asked:
            count += len(asked)
            ids.update(asked)
    return not asked and len(ids) == count


def _tools(known: CachedMessage) -> MessageTools:
    asked = tuple(get_tool_use_id(item) for item in known.spoken if item.kind == "tool_use")
    kinds = [item.kind == "tool_result" for item in known.spoken]
    answered = tuple(get_tool_use_id(item) for item in known.spoken if item.kind == "tool_result")
    known.tools = MessageTools(asked, answered, is_late=kinds != sorted(kinds, reverse=True))
    return known.tools


def _check_pairs(placed: Sequence[PromptBlock]) -> None:
    turns = group_turns(placed)
    seen: set[str] = set()
    asked: dict[str, PromptBlock] = {}
    for turn in turns:
        if turn.role == "user":
            _check_results(turn, asked)
            asked = {}
            continue
        _refuse_unanswered(asked)
        asked = {}
        for use in (item for item in turn.blocks if item.kind == "tool_use"):
            if get_tool_use_id(use) in seen:
                raise make_invalid_request(
                    f"{use.path}: tool_use ids must be unique; {get_tool_use_id(use)} was used before"
                )
            seen.add(get_tool_use_id(use))
            asked[get_tool_use_id(use)] = use
    _refuse_unanswered(asked)


def _check_results(turn: RoleTurn, asked: dict[str, PromptBlock]) -> None:
    open_ids, is_over = dict(asked), False
    for item in turn.blocks:
        if item.kind != "tool_result":
            is_over = True
            continue
        if get_tool_use_id(item) not in asked:
            raise make_invalid_request(
                f"{item.path}: unexpected tool_use_id found in tool_result blocks: "
                f"{get_tool_use_id(item)}. Each "
                "tool_result block must have a corresponding tool_use block in the previous message."
            )
        if get_tool_use_id(item) not in open_ids:
            raise make_invalid_request(
                f"{item.path}: each tool_use must have a single result. Found multiple tool_result blocks "
                f"with id: {get_tool_use_id(item)}"
            )
        if is_over:
            raise make_invalid_request(f"{item.path}: tool_result blocks must come first in the user message")
        del open_ids[get_tool_use_id(item)]
    _refuse_unanswered(open_ids)


def _refuse_unanswered(asked: dict[str, PromptBlock]) -> None:
    if asked:
        first = next(iter(asked.values()))
        raise make_invalid_request(
            f"messages.{first.turn}: tool_use ids were found without tool_result blocks immediately after: "
            f"{', '.join(asked)}. Each tool_use block must have a corresponding tool_result block in the "
            "next message."
        )


def _check_ending(call: MessagesRequest, choices: Choices, last: JsonObject) -> None:
    if last["role"] != "assistant":
        return
    if call.features.takes_prefill:
        _check_prefill_text(last)
    elif not (choices.prefill_after_blocks and _ends_in(last, SERVER_RESULT_TYPES | {"compaction"})):
        raise make_invalid_request(NO_PREFILL_TEXT)


def _check_prefill_text(last: JsonObject) -> None:
    content = last["content"]
    final = content[-1] if isinstance(content, tuple) and content else content
    text = as_object("messages", final).get("text") if isinstance(final, JsonObject) else final
    if isinstance(text, str) and text != text.rstrip():
        raise make_invalid_request("messages: final assistant content cannot end with trailing whitespace")


def validate_request(call: MessagesRequest, choices: Choices) -> None:
    """Raise the refusal that the API would answer with, if any."""
    check_params(call, choices)
    check_tools(call)
    check_message_shapes(call, choices)
    for problem in find_breakpoint_problems(call.body, choices.cache, listed=call.listing.blocks):
        raise make_invalid_request(problem.message)
    parse_context_edits(call)
    check_cache_edits(call.body)
    check_compaction(call)
    _refuse_thread(call)
    check_conversation(call, choices)


def _refuse_thread(call: MessagesRequest) -> None:
    """Threads are not simulated; this answer makes a client send the whole conversation instead."""
    thread = optional_object("", call.body, "thread")
    if thread is None:
        return
    as_one_of("thread.type", require_field("thread", thread, "type"), ("create", "continue"))
    raise make_invalid_request(
        "thread: message threads are not supported here; send the full conversation without `thread`",
        "thread_unsupported_request",
        JsonObject({"unsupported": ("thread",)}),
    )
