"""Usage as the API reports it: from the cache's bill, or from what a script says instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sevenfold.core.cache.prompt_cache import PromptBill
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.usage import Iteration, Usage
from sevenfold.simulator.wire.messages_request import MessagesRequest

USAGE_OVERRIDES: Mapping[str, str] = {
    "input_tokens": "fresh",
    "cache_read_input_tokens": "read",
    "ephemeral_5m_input_tokens": "written_5m",
    "ephemeral_1h_input_tokens": "written_1h",
    "output_tokens": "output",
    "thinking_tokens": "thinking",
}
"""The counts that a script may set, with the names that `Usage` has for them."""


@dataclass(frozen=True, slots=True)
class RunUsage:
    """One model run: what its prompt was billed as, and what it said."""

    kind: str
    bill: PromptBill
    output: int
    thinking: int = 0

    @property
    def iteration(self) -> Iteration:
        bill = self.bill
        return Iteration(
            fresh=bill.fresh,
            read=bill.read,
            written_5m=bill.written_5m,
            written_1h=bill.written_1h,
            output=self.output,
            thinking=self.thinking,
            kind=self.kind,
        )


def compute_request_usage(
    call: MessagesRequest, runs: Iterable[RunUsage], overrides: Mapping[str, int]
) -> Usage:
    """The whole request. Compactions are listed and left out of the totals; a lone run is not listed."""
    spent = [run.iteration for run in runs]
    spoken = [run for run in spent if run.kind == "message"]
    geo = call.body.get("inference_geo")
    speed = call.body.get("speed")
    total = Usage(
        fresh=sum(run.fresh for run in spoken),
        read=sum(run.read for run in spoken),
        written_5m=sum(run.written_5m for run in spoken),
        written_1h=sum(run.written_1h for run in spoken),
        output=sum(run.output for run in spoken),
        thinking=sum(run.thinking for run in spoken),
        iterations=tuple(spent) if len(spent) > len(spoken) else (),
        service_tier="standard",
        speed=speed if isinstance(speed, str) else None,
        geo=geo if isinstance(geo, str) else None,
    )
    changed = {USAGE_OVERRIDES[name]: value for name, value in overrides.items() if name in USAGE_OVERRIDES}
    if not changed:
        return total
    told = replace(total, **changed)
    # Thinking is a part of the output: clients refuse a bill where it is more.
    return replace(told, thinking=min(told.thinking, told.output))


def render_usage(usage: Usage) -> JsonObject:
    wire: dict[str, Json] = dict(_counts(usage))
    wire["output_tokens_details"] = JsonObject({"thinking_tokens": usage.thinking})
    wire["service_tier"] = usage.service_tier
    if usage.speed is not None:
        wire["speed"] = usage.speed
    if usage.geo is not None:
        wire["inference_geo"] = usage.geo
    if usage.iterations:
        wire["iterations"] = tuple(JsonObject({"type": run.kind, **_counts(run)}) for run in usage.iterations)
    return JsonObject(wire)


def _counts(counts: Usage | Iteration) -> dict[str, Json]:
    return {
        "input_tokens": counts.fresh,
        "cache_creation_input_tokens": counts.written,
        "cache_read_input_tokens": counts.read,
        "cache_creation": JsonObject(
            {
                "ephemeral_5m_input_tokens": counts.written_5m,
                "ephemeral_1h_input_tokens": counts.written_1h,
            }
        ),
        "output_tokens": counts.output,
    }
