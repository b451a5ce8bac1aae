"""What each model accepts and does by default, from its family and version; and the models endpoint."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from sevenfold.core.json import Json, JsonObject
from sevenfold.core.models import Model
from sevenfold.core.prices import Catalog
from sevenfold.simulator.wire.error_response import ErrorResponse, RequestRefused

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
