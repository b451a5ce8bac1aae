"""What each model accepts and does by default, from its family and version; betas; the models endpoint."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from sevenfold.core.json import Json, JsonObject
from sevenfold.core.models import Model
from sevenfold.core.prices import Catalog
from sevenfold.simulator.wire.error_response import ErrorResponse, RequestRefused

# The beta header: which values the API knows, and which of them enable something here.

THINKING_BINDING_BETA = "thinking-binding-controls-2026-08-01"
CLEAR_AT_BETA = "mid-conversation-system-clear-at-2026-08-21"
COMPACT_ON_DEMAND_BETA = "compact-2026-09-04"
COMPACT_THRESHOLD_BETA = "compact-2026-01-12"
CONTEXT_EDITS_BETA = "context-management-2025-06-27"
INLINE_TOOLS_BETA = "inline-tools-2026-09-15"
PER_TURN_CONTROL_BETA = "per-turn-control-2026-07-01"
SYSTEM_EFFORT_BETA = "mid-conversation-output-config-2026-07-01"
TASK_BUDGETS_BETA = "task-budgets-2026-03-13"
THINKING_UPDATES_BETA = "thinking-display-updates-2026-08-18"
THREADS_BETA = "message-threads-2026-08-12"
TOOL_CHANGES_BETA = "mid-conversation-tool-changes-2026-07-01"

KNOWN_BETAS = frozenset(
    {
        *(
            THINKING_BINDING_BETA,
            CLEAR_AT_BETA,
            COMPACT_ON_DEMAND_BETA,
            COMPACT_THRESHOLD_BETA,
            CONTEXT_EDITS_BETA,
            INLINE_TOOLS_BETA,
            PER_TURN_CONTROL_BETA,
            SYSTEM_EFFORT_BETA,
        ),
        *(TASK_BUDGETS_BETA, THINKING_UPDATES_BETA, THREADS_BETA, TOOL_CHANGES_BETA),
        "admin-user-sign-out-2026-10-08",
        "advanced-tool-use-2025-11-20",
        "advisor-tool-2026-03-01",
        "agent-memory-2026-07-22",
        "analytics-usage-cost-2026-08-24",
        "cache-diagnosis-2026-04-07",
        "ce-plugins-2026-09-01",
        "ce-user-management-2026-07-13",
        "claude-code-20250219",
        "code-execution-2025-05-22",
        "computer-use-2024-10-22",
        "computer-use-2025-01-24",
        "computer-use-2025-11-24",
        "context-1m-2025-08-07",
        "dev-full-thinking-2025-05-14",
        "dreaming-2026-04-21",
        "effort-2025-11-24",
        "experimental-claude-tag-2026-10-21",
        "extended-cache-ttl-2025-04-11",
        "fallback-credit-2026-06-01",
        "fallback-credit-2026-07-01",
        "fast-mode-2026-02-01",
        "files-api-2025-04-14",
        "fine-grained-tool-streaming-2025-05-14",
        "interleaved-thinking-2025-05-14",
        "managed-agents-2026-04-01",
        "mcp-client-2025-04-04",
        "mcp-client-2025-11-20",
        "mcp-client-2026-09-15",
        "mcp-tunnels-2026-06-22",
        "message-batches-2024-09-24",
        "model-context-window-exceeded-2025-08-26",
        "oauth-2025-04-20",
        "output-128k-2025-02-19",
        "output-300k-2026-03-24",
        "pdfs-2024-09-25",
        "prompt-caching-2024-07-31",
        "server-side-fallback-2026-06-01",
        "server-side-fallback-2026-07-01",
        "skills-2025-10-02",
        "spend-limit-reads-2026-09-26",
        "structured-outputs-2025-11-13",
        "telemetry-destinations-2026-08-11",
        "thinking-token-count-2026-05-13",
        "token-counting-2024-11-01",
        "token-efficient-tools-2025-02-19",
        "user-profiles-2026-03-24",
        "user-profiles-2026-08-18",
        "user-profiles-2026-09-04",
        "webhooks-2026-10-07",
    }
)
"""Values that the official SDK and Claude Code send; another is a 400."""

EffortLevel: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
EFFORT_LEVELS: tuple[EffortLevel, ...] = ("low", "medium", "high", "xhigh", "max")

_NAME = re.compile(r"claude-(?P<family>[a-z]+)-(?P<major>[0-9]{1,2})(?:-(?P<minor>[0-9]{1,2}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFeatures:
    """The defaults are those of a model that nobody knows: it may do everything."""

    thinking: frozenset[str] = frozenset({"adaptive", "enabled", "disabled"})
    """The values of `thinking.type` that it takes."""
    thinks_unasked: bool = False
    """Thinks when the request says nothing about it."""
    shows_thinking: bool = True
    """Returns the text of its thinking when the request does not say; else the signature alone."""
    takes_prefill: bool = True
    takes_forced_choice: bool = True
    takes_sampling: bool = True
    """On the older API version; the newer one refuses sampling parameters for all."""
    compacts: bool = True


@lru_cache(maxsize=256)
def find_model_features(model: Model) -> ModelFeatures:
    named = _NAME.fullmatch(model.name)
    if named is None:
        return ModelFeatures()
    family = named["family"]
    version = (int(named["major"]), int(named["minor"] or 0))
    legends = family in {"fable", "mythos"}
    always_thinks = legends or (family, version) == ("opus", (5, 5))
    refuses_force = {"opus": (5, 5), "sonnet": (5, 5), "haiku": (99, 0)}.get(family, (5, 1))
    return ModelFeatures(
        thinking=_thinking(family, version, always_thinks=always_thinks),
        thinks_unasked=always_thinks or (family, version) == ("sonnet", (5, 5)),
        shows_thinking=version < (4, 7),
        takes_prefill=version < (4, 6),
        takes_forced_choice=version < refuses_force,
        takes_sampling=version < (4, 7),
        compacts=version >= (4, 6),
    )


def _thinking(family: str, version: tuple[int, int], *, always_thinks: bool) -> frozenset[str]:
    if always_thinks:
        return frozenset({"adaptive"})
    if (family, version) == ("sonnet", (5, 5)):
        return frozenset({"adaptive", "between_tools"})
    if version >= (4, 7):
        return frozenset({"adaptive", "disabled"})
    if version >= (4, 6):
        return frozenset({"adaptive", "enabled", "disabled"})
    return frozenset({"enabled", "disabled"})


# The models endpoint: the table of `core/models.py` in the API's format.

UNKNOWN_DATE = "1970-01-01T00:00:00Z"
"""Release dates are not in our table; the API itself gives an epoch value where it does not know."""

FEWEST, MOST = 1, 1000


def render_model_page(catalog: Catalog, query: dict[str, str]) -> JsonObject:
    """One page of all models."""
    limit = _limit(query.get("limit", "20"))
    models = list(catalog.models)
    names = [model.name for model in models]
    after, before = query.get("after_id"), query.get("before_id")
    first = names.index(after) + 1 if after in names else 0
    last = names.index(before) if before in names else len(models)
    if before in names and after is None:
        first = max(0, last - limit)
    page = models[first : min(last, first + limit)]
    return JsonObject(
        {
            "data": tuple(describe_model(model) for model in page),
            "has_more": first + len(page) < last if before is None else first > 0,
            "first_id": page[0].name if page else None,
            "last_id": page[-1].name if page else None,
        }
    )


def render_found_model(catalog: Catalog, name: str) -> JsonObject:
    """One model, by any spelling that a request could use."""
    model = catalog.find(name)
    if not model.is_known:
        raise RequestRefused(ErrorResponse(status=404, message=f"model: {name}"))
    return describe_model(model)


def describe_model(model: Model) -> JsonObject:
    family = model.name.split("-")
    return JsonObject(
        {
            "type": "model",
            "id": model.name,
            "display_name": " ".join(word.capitalize() for word in family),
            "created_at": UNKNOWN_DATE,
            "lifecycle": "active",
            "line": family[1] if len(family) > 1 and family[0] == "claude" else None,
            "max_input_tokens": model.window_tokens,
            "max_tokens": model.max_output_tokens,
            "capabilities": _capabilities(model),
        }
    )


def _capabilities(model: Model) -> JsonObject:
    gates = find_model_features(model)
    modes = {mode: _supported(mode in gates.thinking) for mode in ("adaptive", "enabled")}
    edits = {
        "clear_thinking_20251015": _supported(True),
        "clear_tool_uses_20250919": _supported(True),
        "compact_20260112": _supported(gates.compacts),
    }
    efforts: dict[str, Json] = {effort: _supported(True) for effort in EFFORT_LEVELS}
    plain = ("batch", "citations", "image_input", "pdf_input", "structured_outputs")
    return JsonObject(
        {
            **{name: _supported(True) for name in plain},
            "code_execution": _supported(False),
            "server_tools": JsonObject(
                {
                    "supported": False,
                    "web_search": _supported(False),
                    "code_execution": _supported(False),
                }
            ),
            "context_management": JsonObject({"supported": True, **edits}),
            "effort": JsonObject({"supported": True, **efforts}),
            "thinking": JsonObject({"supported": True, "types": JsonObject(modes)}),
        }
    )


def _supported(value: bool) -> JsonObject:
    return JsonObject({"supported": value})


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not FEWEST <= int(text) <= MOST:
        raise RequestRefused(
            ErrorResponse(status=400, message=f"limit: Input should be an integer from {FEWEST} to {MOST}")
        )
    return int(text)
