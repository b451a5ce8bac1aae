"""The fields of a request except messages, and tools: known, of the right type, supported by the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.simulator.wire.choices import Choices
from sevenfold.simulator.wire.error_response import (
    as_count,
    as_object,
    as_objects,
    as_one_of,
    as_switch,
    as_text,
    as_texts,
    make_extra_refusal,
    make_invalid_request,
    optional_object,
    require_field,
)
from sevenfold.simulator.wire.messages_request import (
    CACHE_EDITS_BETA,
    CACHE_EDITS_FIELD,
    NEWER,
    MessagesRequest,
)
from sevenfold.simulator.wire.models import (
    COMPACT_ON_DEMAND_BETA,
    COMPACT_THRESHOLD_BETA,
    CONTEXT_EDITS_BETA,
    EFFORT_LEVELS,
    TASK_BUDGETS_BETA,
    THINKING_BINDING_BETA,
    THINKING_UPDATES_BETA,
    THREADS_BETA,
)

PLAIN_PARAMS = frozenset(
    {
        *(
            "model",
            "messages",
            "system",
            "tools",
            "tool_choice",
            "thinking",
            "output_config",
            "cache_control",
        ),
        *("diagnostics", "stop_sequences", "metadata", "service_tier", "speed", "inference_geo", "container"),
        *("user_profile_id", "temperature", "top_p", "top_k"),
    }
)
"""Fields that need no beta."""

CREATE_ONLY_PARAMS = frozenset({"max_tokens", "stream"})
"""Fields that counting does not take."""

BETA_PARAMS: Mapping[str, tuple[str, ...]] = {
    CACHE_EDITS_FIELD: (CACHE_EDITS_BETA,),
    "compaction": (COMPACT_ON_DEMAND_BETA,),
    "context_management": (CONTEXT_EDITS_BETA, COMPACT_THRESHOLD_BETA),
    "thread": (THREADS_BETA,),
}
"""Fields that exist only with one of these betas."""

UNSIMULATED_PARAMS = frozenset({"container", "fallbacks", "fallback_credit_token", "mcp_servers"})

SAMPLING_PARAMS = ("temperature", "top_p", "top_k")
THINKING_MODES = ("adaptive", "enabled", "disabled", "between_tools")
MIN_THINKING_TOKENS = 1_024
MIN_TASK_TOKENS = 20_000


def check_params(call: MessagesRequest, choices: Choices) -> None:
    """Refuse what the contract does, the first problem found."""
    _check_names(call, choices)
    _check_sampling(call)
    if call.endpoint == "messages":
        _check_max_tokens(call)
    for key, check in _CHECKS.items():
        value = call.body.get(key)
        if value is not None:
            check(key, value)
    _check_thinking(call)
    _check_output(call)
    is_unpriced = call.body.get("speed") == "fast" and call.model.fast_factor is None
    if is_unpriced and not choices.fast_unpriced:
        raise make_invalid_request(f"speed: 'fast' is not supported on {call.model_name}")


def is_cache_warmup(call: MessagesRequest) -> bool:
    """`max_tokens: 0`, which fills the cache and generates nothing."""
    return call.body.get("max_tokens") == 0


def is_tool_forced(call: MessagesRequest) -> bool:
    """The request makes the model call a tool."""
    return call.part("tool_choice").get("type") in {"any", "tool"}


def _check_names(call: MessagesRequest, choices: Choices) -> None:
    for key, value in call.body.items():
        if key in UNSIMULATED_PARAMS and value is not None and choices.unsimulated == "refuse":
            raise make_invalid_request(f"{key}: this field is not simulated; leave it out")
        if key in UNSIMULATED_PARAMS or key in PLAIN_PARAMS:
            continue
        if key in CREATE_ONLY_PARAMS and call.endpoint == "messages":
            continue
        if key in BETA_PARAMS and any(call.has(beta) for beta in BETA_PARAMS[key]):
            continue
        # A field that works with a beta must not pass without one just because strictness is off.
        if choices.strict or key in BETA_PARAMS:
            raise make_extra_refusal(key)


def _check_sampling(call: MessagesRequest) -> None:
    for key in SAMPLING_PARAMS:
        value = call.body.get(key)
        if value is None:
            continue
        if call.envelope.version == NEWER:
            raise make_invalid_request(
                f"{key}: sampling parameters are not supported in version {NEWER}; remove it"
            )
        if not call.features.takes_sampling:
            raise make_invalid_request(f"{key}: not supported on {call.model_name}; remove it")
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or value < 0:
            raise make_invalid_request(f"{key}: Input should be a valid number of at least 0")
        if key != "top_k" and value > 1:
            raise make_invalid_request(f"{key}: Input should be less than or equal to 1")


def _check_max_tokens(call: MessagesRequest) -> None:
    asked = as_count("max_tokens", require_field("", call.body, "max_tokens"))
    most = call.model.max_output_tokens
    if asked > most:
        raise make_invalid_request(
            f"max_tokens: {asked} > {most}, which is the maximum allowed number of output tokens for this "
            "model"
        )
    if asked:
        return
    conflicts = {
        "stream": call.is_streaming,
        "thinking.enabled": call.part("thinking").get("type") == "enabled",
        "output_config.format": call.part("output_config").get("format") is not None,
        "tool_choice": is_tool_forced(call),
        "compaction": call.body.get("compaction") is not None,
    }
    for name, present in conflicts.items():
        if present:
            raise make_invalid_request(f"max_tokens: 0 cannot be combined with {name}")


def _check_thinking(call: MessagesRequest) -> None:
    thinking = optional_object("", call.body, "thinking")
    if thinking is None:
        return
    kind = as_one_of("thinking.type", require_field("thinking", thinking, "type"), THINKING_MODES)
    if kind not in call.features.thinking:
        allowed = " or ".join(f"'{item}'" for item in THINKING_MODES if item in call.features.thinking)
        raise make_invalid_request(
            f"thinking.type: '{kind}' is not supported on {call.model_name}; use {allowed}"
        )
    if kind == "enabled":
        _check_budget(call, thinking)
    shown = thinking.get("display")
    if shown is not None:
        updates = ("updates",) if call.has(THINKING_UPDATES_BETA) else ()
        as_one_of("thinking.display", shown, ("summarized", "omitted", *updates))
    _check_binding(call, thinking)


def _check_budget(call: MessagesRequest, thinking: JsonObject) -> None:
    budget = as_count(
        "thinking.enabled.budget_tokens",
        require_field("thinking.enabled", thinking, "budget_tokens"),
        MIN_THINKING_TOKENS,
    )
    most = call.body.get("max_tokens")
    if isinstance(most, int) and budget >= most:
        raise make_invalid_request("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _check_binding(call: MessagesRequest, thinking: JsonObject) -> None:
    if "block_binding" not in thinking:
        return
    if not call.has(THINKING_BINDING_BETA):
        raise make_extra_refusal("thinking.block_binding")
    binding = optional_object("thinking", thinking, "block_binding") or EMPTY_OBJECT
    behaviour = binding.get("prefix_mismatch_behavior")
    if behaviour is not None:
        as_one_of("thinking.block_binding.prefix_mismatch_behavior", behaviour, ("error", "drop_block"))


def _check_output(call: MessagesRequest) -> None:
    output = optional_object("", call.body, "output_config") or EMPTY_OBJECT
    if output.get("effort") is not None:
        as_one_of("output_config.effort", output["effort"], EFFORT_LEVELS)
    shape = optional_object("output_config", output, "format")
    if shape is not None:
        as_one_of(
            "output_config.format.type",
            require_field("output_config.format", shape, "type"),
            ("json_schema",),
        )
        as_object("output_config.format.schema", require_field("output_config.format", shape, "schema"))
    if "task_budget" in output and not call.has(TASK_BUDGETS_BETA):
        raise make_extra_refusal("output_config.task_budget")
    budget = optional_object("output_config", output, "task_budget")
    if budget is not None:
        total = require_field("output_config.task_budget", budget, "total")
        as_count("output_config.task_budget.total", total, MIN_TASK_TOKENS)


def _check_system(path: str, value: Json) -> None:
    if isinstance(value, str):
        return
    for index, block in enumerate(as_objects(path, value)):
        as_one_of(f"{path}.{index}.type", require_field(f"{path}.{index}", block, "type"), ("text",))
        as_text(f"{path}.{index}.text", require_field(f"{path}.{index}", block, "text"))


def _check_stops(path: str, value: Json) -> None:
    for text in as_texts(path, value):
        if not text.strip():
            raise make_invalid_request(f"{path}: each stop sequence must contain non-whitespace")


def _check_diagnostics(path: str, value: Json) -> None:
    previous = as_object(path, value).get("previous_message_id")
    if previous is not None:
        as_text(f"{path}.previous_message_id", previous)


def _check_metadata(path: str, value: Json) -> None:
    user = as_object(path, value).get("user_id")
    if user is not None:
        as_text(f"{path}.user_id", user)


_CHECKS: Mapping[str, Callable[[str, Json], object]] = {
    "stream": as_switch,
    "system": _check_system,
    "stop_sequences": _check_stops,
    "diagnostics": _check_diagnostics,
    "metadata": _check_metadata,
    "service_tier": lambda path, value: as_one_of(path, value, ("auto", "standard_only")),
    "speed": lambda path, value: as_one_of(path, value, ("standard", "fast")),
    "inference_geo": as_text,
    "cache_control": as_object,
}


# Tools and tool choice.

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


def read_tool_schemas(body: JsonObject) -> dict[str, JsonObject]:
    """The tools of a request, in order, each with the schema of its input; a toolset counts by its type."""
    tools = body.get("tools")
    found = [tool for tool in tools if isinstance(tool, JsonObject)] if isinstance(tools, tuple) else []
    return {
        str(tool.get("name") or tool.get("type") or ""): schema
        if isinstance(schema := tool.get("input_schema"), JsonObject)
        else EMPTY_OBJECT
        for tool in found
    }


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
    if is_tool_forced(call) and not call.features.takes_forced_choice:
        raise make_invalid_request(
            f"tool_choice.type: '{kind}' is not supported on {call.model_name}; use 'auto' or 'none'"
        )
    if not has_tools and kind != "none":
        raise make_invalid_request("tool_choice: may only be specified while providing tools")
    if kind == "tool":
        name = as_text("tool_choice.name", require_field("tool_choice", choice, "name"))
        if name not in names:
            raise make_invalid_request(f"Tool '{name}' not found in provided tools")
