"""All checks of a request, in the order in which the API would meet what is wrong with it."""

from __future__ import annotations

from sevenfold.core.cache_model import marker_problems
from sevenfold.core.json import JsonObject
from sevenfold.simulator.cache_edits import check_cache_edits
from sevenfold.simulator.call import Call
from sevenfold.simulator.choices import Choices
from sevenfold.simulator.compaction import check_compaction
from sevenfold.simulator.edit_requests import read_edits
from sevenfold.simulator.refusals import invalid
from sevenfold.simulator.shape import as_one_of, optional_object, require
from sevenfold.simulator.validate_messages import check_conversation, check_shapes
from sevenfold.simulator.validate_params import check_params
from sevenfold.simulator.validate_tools import check_tools


def validate(call: Call, choices: Choices) -> None:
    """Raise the refusal that the API would answer with, if any."""
    check_params(call, choices)
    check_tools(call)
    check_shapes(call, choices)
    for problem in marker_problems(call.body, choices.cache, listed=call.listing.blocks):
        raise invalid(problem.message)
    read_edits(call)
    check_cache_edits(call.body)
    check_compaction(call)
    _refuse_thread(call)
    check_conversation(call, choices)


def _refuse_thread(call: Call) -> None:
    """Threads are not simulated; this answer makes a client send the whole conversation instead."""
    thread = optional_object("", call.body, "thread")
    if thread is None:
        return
    as_one_of("thread.type", require("thread", thread, "type"), ("create", "continue"))
    raise invalid(
        "thread: message threads are not supported here; send the full conversation without `thread`",
        "thread_unsupported_request",
        JsonObject({"unsupported": ("thread",)}),
    )
