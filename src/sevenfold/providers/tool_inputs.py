"""What a tool is called with, from the text a model wrote: a weak model, or a cut one, writes no JSON."""

from __future__ import annotations

from sevenfold.core.errors import WireError
from sevenfold.core.json import EMPTY, JsonObject, read_json
from sevenfold.core.messages import ToolUse

INVALID = "__invalid_json__"
"""The one key of an input that could not be read; its value is the text as it came."""


def read_input(text: str) -> JsonObject:
    """The input of a tool request. Text that is no JSON object is kept under `INVALID`, so that the request
    can be answered, stored and sent again like any other."""
    if not text.strip():
        return EMPTY
    try:
        value = read_json(text)
    except WireError:
        return JsonObject({INVALID: text})
    return value if isinstance(value, JsonObject) else JsonObject({INVALID: text})


def invalid_text(call: ToolUse) -> str | None:
    """What the model wrote in place of an input that can be read; None when all is well.

    A loop answers such a request with an error and does not run the tool.
    """
    text = call.input.get(INVALID) if len(call.input) == 1 else None
    return text if isinstance(text, str) else None
