"""A finished message as stream events, and its usage.

Usage comes from the bill of the cache, or from a script that sets its own counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sevenfold.core.cache.prompt_cache import PromptBill
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, write_json
from sevenfold.core.usage import Iteration, Usage
from sevenfold.simulator.wire.messages_request import MessagesRequest, as_word

_CHUNK_CHARS = 32
"""About what the API sends at a time; small enough that a reader which forgets to join finds out."""

_OPENING = ("id", "type", "role", "model", "diagnostics", "input_transformations")
_CLOSING_USAGE = (
    *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"),
    *("output_tokens_details", "iterations"),
)


def iter_stream_events(message: JsonObject, *, pings: bool = True) -> Iterator[JsonObject]:
    """Every event in order, each with its `type`."""
    yield _event("message_start", message=_opening(message))
    if pings:
        yield _event("ping")
    content = message.get("content")
    for index, block in enumerate(content if isinstance(content, tuple) else ()):
        if isinstance(block, JsonObject):
            yield from _block_events(index, block)
    yield _closing(message)
    yield _event("message_stop")


def render_sse(event: JsonObject) -> bytes:
    """One event on the wire."""
    return b"event: " + as_word(event.get("type")).encode() + b"\ndata: " + write_json(event) + b"\n\n"


def _opening(message: JsonObject) -> JsonObject:
    usage = message.get("usage")
    counts = (
        usage.without("iterations", "output_tokens_details")
        if isinstance(usage, JsonObject)
        else EMPTY_OBJECT
    )
    # Nothing has been said yet: the count of a stream's start is a token or so, and no total.
    started = JsonObject({**counts, "output_tokens": min(1, _count(counts.get("output_tokens")))})
    kept = {key: message[key] for key in _OPENING if key in message}
    blank: dict[str, Json] = {"content": (), "stop_reason": None, "stop_sequence": None, "stop_details": None}
    return JsonObject({**kept, **blank, "usage": started})


def _closing(message: JsonObject) -> JsonObject:
    usage = message.get("usage")
    counts = usage if isinstance(usage, JsonObject) else EMPTY_OBJECT
    delta = JsonObject({key: message.get(key) for key in ("stop_reason", "stop_sequence", "stop_details")})
    fields: dict[str, Json] = {
        "delta": delta,
        "usage": JsonObject({key: counts[key] for key in _CLOSING_USAGE if key in counts}),
    }
    if "context_management" in message:
        fields["context_management"] = message["context_management"]
    return _event("message_delta", **fields)


def _block_events(index: int, block: JsonObject) -> Iterator[JsonObject]:
    kind = as_word(block.get("type"))
    match kind:
        case "text":
            yield _start(index, block, text="")
            yield from _deltas(index, "text_delta", "text", as_word(block.get("text")))
        case "thinking":
            yield _start(index, block, thinking="", signature="")
            yield from _deltas(index, "thinking_delta", "thinking", as_word(block.get("thinking")))
            yield _delta(index, "signature_delta", signature=block.get("signature"))
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            yield _start(index, block, input=EMPTY_OBJECT)
            spelt = write_json(block.get("input")).decode()
            yield from _deltas(index, "input_json_delta", "partial_json", "" if spelt == "{}" else spelt)
        case "compaction":
            # The SDK puts no later signature on such a block, so it has to stand at its start.
            yield _start(index, block, content=None)
            delta: dict[str, Json] = {key: block.get(key) for key in ("content", "encrypted_content")}
            yield _delta(index, "compaction_delta", **delta)
        case _:
            yield _start(index, block)
    yield _event("content_block_stop", index=index)


def _start(index: int, block: JsonObject, **blank: Json) -> JsonObject:
    return _event("content_block_start", index=index, content_block=JsonObject({**block, **blank}))


def _deltas(index: int, kind: str, key: str, text: str) -> Iterator[JsonObject]:
    for at in range(0, len(text), _CHUNK_CHARS):
        yield _delta(index, kind, **{key: text[at : at + _CHUNK_CHARS]})


def _delta(index: int, kind: str, **fields: Json) -> JsonObject:
    return _event("content_block_delta", index=index, delta=JsonObject({"type": kind, **fields}))


def _event(kind: str, **fields: Json) -> JsonObject:
    return JsonObject({"type": kind, **fields})


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


# Usage.

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
    usage = replace(total, **changed)
    # Thinking is a part of the output: clients refuse a bill where it is more.
    return replace(usage, thinking=min(usage.thinking, usage.output))


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
