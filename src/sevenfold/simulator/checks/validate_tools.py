"""Tools and how one is chosen."""

from __future__ import annotations

import re

from sevenfold.core.json import JsonObject
from sevenfold.simulator.checks.validate_params import is_tool_forced
from sevenfold.simulator.wire.error_response import make_invalid_request
from sevenfold.simulator.wire.json_fields import (
    as_object,
    as_objects,
    as_one_of,
    as_text,
    optional_object,
    require_field,
)
from sevenfold.simulator.wire.messages_request import MessagesRequest

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def check_tools(call: MessagesRequest) -> None:
    value = call.body.get("tools")
    tools = () if value is None else as_objects("tools", value)
    names: set[str] = set()
    for index, tool in enumerate(tools):
        name = _check_tool(f"tools.{index}", tool)
        if name in names:
            raise make_invalid_request("tools: Tool names must be unique.")
        names.add(name)
    _check_choice(call, names, has_tools=bool(tools))


def list_tool_names(body: JsonObject) -> tuple[str, ...]:
    """The tools a request declares, in order; a toolset counts by its type."""
    tools = body.get("tools")
    found = [tool for tool in tools if isinstance(tool, JsonObject)] if isinstance(tools, tuple) else []
    return tuple(str(tool.get("name") or tool.get("type") or "") for tool in found)


def _check_tool(path: str, tool: JsonObject) -> str:
    kind = tool.get("type")
    if kind is not None and kind != "custom":
        # The provider's own tools have shapes of their own; what matters here is that they are in the prompt.
        name = tool.get("name") or kind
        return as_text(f"{path}.name", name)
    name = as_text(f"{path}.custom.name", require_field(f"{path}.custom", tool, "name"))
    if not _NAME.fullmatch(name):
        raise make_invalid_request(f"{path}.custom.name: String should match pattern '^{_NAME.pattern}$'")
    schema = as_object(f"{path}.custom.input_schema", require_field(f"{path}.custom", tool, "input_schema"))
    as_one_of(
        f"{path}.custom.input_schema.type",
        require_field(f"{path}.custom.input_schema", schema, "type"),
        ("object",),
    )
    return name


def _check_choice(call: MessagesRequest, names: set[str], *, has_tools: bool) -> None:
    choice = optional_object("", call.body, "tool_choice")
    if choice is None:
        return
    kind = as_one_of(
        "tool_choice.type", require_field("tool_choice", choice, "type"), ("auto", "any", "tool", "none")
    )
    if is_tool_forced(call) and not call.gates.takes_forced_choice:
        raise make_invalid_request(
            f"tool_choice.type: '{kind}' is not supported on {call.model_name}; use 'auto' or 'none'"
        )
    if not has_tools and kind != "none":
        raise make_invalid_request("tool_choice: may only be specified while providing tools")
    if kind == "tool":
        name = as_text("tool_choice.name", require_field("tool_choice", choice, "name"))
        if name not in names:
            raise make_invalid_request(f"Tool '{name}' not found in provided tools")
