"""What a tool is called with, from the text a model wrote: a weak model, or a cut one, writes no JSON."""

from __future__ import annotations

from sevenfold.core.errors import WireError
from sevenfold.core.json import EMPTY_OBJECT, JsonObject, read_json
from sevenfold.core.messages import ToolUse

INVALID_INPUT_KEY = "__invalid_json__"
"""The one key of an input that could not be read; its value is the text as it came."""


def read_tool_input(text: str) -> JsonObject:
    """The input of a tool request. Text that is no JSON object is kept under `INVALID`, so that the request
    can be answered, stored and sent again like any other."""
    if not text.strip():
        return EMPTY_OBJECT
    try:
        value = read_json(text)
    except WireError:
        return JsonObject({INVALID_INPUT_KEY: text})
    return value if isinstance(value, JsonObject) else JsonObject({INVALID_INPUT_KEY: text})


def find_invalid_text(call: ToolUse) -> str | None:
    """What the model wrote in place of an input that can be read; None when all is well.

    A loop answers such a request with an error and does not run the tool.
    """
    text = call.input.get(INVALID_INPUT_KEY) if len(call.input) == 1 else None
    return text if isinstance(text, str) else None
