"""All checks of a request, in the order in which the API would meet what is wrong with it."""

from __future__ import annotations

from sevenfold.core.cache.prompt_cache import find_breakpoint_problems
from sevenfold.core.json import JsonObject
from sevenfold.simulator.cache_edits import check_cache_edits
from sevenfold.simulator.checks.compaction_blocks import check_compaction
from sevenfold.simulator.checks.context_edits import parse_context_edits
from sevenfold.simulator.checks.validate_messages import check_conversation, check_message_shapes
from sevenfold.simulator.checks.validate_params import check_params
from sevenfold.simulator.checks.validate_tools import check_tools
from sevenfold.simulator.wire.choices import Choices
from sevenfold.simulator.wire.error_response import make_invalid_request
from sevenfold.simulator.wire.json_fields import as_one_of, optional_object, require_field
from sevenfold.simulator.wire.messages_request import MessagesRequest


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
