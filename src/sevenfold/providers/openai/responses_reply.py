"""An answer of OpenAI's Responses API, whole or in events, as a reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sevenfold.core.errors import ReplyBroken
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, freeze
from sevenfold.core.messages import Block, Message, Opaque, Text, ToolUse, ToolUseId
from sevenfold.core.requests import ModelResponse
from sevenfold.providers.error_map import map_fault, read_provider_fault
from sevenfold.providers.openai.chat_reply import make_tool_use, read_reported_usage
from sevenfold.providers.provider import Delta, TextDelta, ThinkingDelta, ToolDelta

_INCOMPLETE: Mapping[str, str] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
_STATUSES: Mapping[str, int] = {"server_error": 500, "rate_limit_exceeded": 429, "vector_store_timeout": 504}
"""The status that the code of a failed answer stands for; with the others, the request is at fault."""
_NAMED = ("id", "object", "model", "output", "usage")
ENDINGS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


def read_response(wire: Json) -> ModelResponse:
    """A whole answer. One that failed is raised as the error that it is."""
    body = _object(wire)
    error, output = body.get("error"), body.get("output")
    if body.get("status") == "failed" or isinstance(error, JsonObject):
        said = _object(error)
        status = _STATUSES.get(_word(said.get("code")), 400)
        raise map_fault(read_provider_fault("the answer failed, and does not say why", status, said, {}))
    if not isinstance(output, tuple):
        raise ReplyBroken(f"the answer has no output: got {', '.join(list(body)[:8]) or 'an empty object'}")
    blocks = tuple(_blocks(output))
    used = read_reported_usage(body.get("usage"))
    return ModelResponse(
        message=Message("assistant", blocks),
        usage=used.usage,
        usage_wire=used.wire,
        stop_reason=_stop_reason(body, output, blocks),
        id=_word(body.get("id")),
        model=_word(body.get("model")),
        extra=JsonObject({**body.without(*_NAMED), **used.extra}),
        dialect="openai",
    )


class ResponsesAssembler:
    """An answer that comes in events. The last holds it whole, or, on some servers, all but its items."""

    def __init__(self) -> None:
        self._whole: JsonObject | None = None
        self._items: dict[int, Json] = {}
        self._calls: dict[int, ToolDelta] = {}

    def add(self, event: object) -> Iterator[Delta]:
        wire = _object(freeze(event))
        kind, place = _word(wire.get("type")), wire.get("output_index")
        at = place if isinstance(place, int) else len(self._items)
        if kind in ENDINGS:
            self._whole = _object(wire.get("response"))
        elif kind == "error":
            raise map_fault(
                read_provider_fault("the stream ended in an error", None, wire.without("type"), {})
            )
        elif kind == "response.output_item.done":
            self._items[at] = wire.get("item")
        elif kind == "response.output_item.added":
            yield from self._opened(at, _object(wire.get("item")))
        else:
            yield from self._grown(kind, at, _word(wire.get("delta")))

    def reply(self) -> ModelResponse:
        if self._whole is None:
            raise ReplyBroken("the stream ended before the answer did; send the request again")
        if self._whole.get("output"):
            return read_response(self._whole)
        items = tuple(self._items[at] for at in sorted(self._items))
        return read_response(JsonObject({**self._whole, "output": items}))

    def _opened(self, at: int, item: JsonObject) -> Iterator[Delta]:
        if item.get("type") == "function_call":
            self._calls[at] = ToolDelta(ToolUseId(_word(item.get("call_id"))), _word(item.get("name")))
            yield self._calls[at]

    def _grown(self, kind: str, at: int, text: str) -> Iterator[Delta]:
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                yield TextDelta(text)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield ThinkingDelta(text)
            case "response.function_call_arguments.delta" if at in self._calls:
                call = self._calls[at]
                yield ToolDelta(call.id, call.name, text)
            case _:
                pass


def _blocks(output: tuple[Json, ...]) -> Iterator[Block]:
    taken: set[str] = set()
    for item in output:
        wire = _object(item)
        match wire.get("type"):
            case "message":
                yield from _texts(wire)
            case "function_call":
                name, text = _word(wire.get("name")), _word(wire.get("arguments"))
                yield make_tool_use(_word(wire.get("call_id")), name, text, taken)
            case _:
                # Reasoning, above all: encrypted, and wanted back as it is.
                yield Opaque(wire)


def _texts(item: JsonObject) -> Iterator[Text]:
    phase = item.get("phase")
    extra = EMPTY_OBJECT if phase is None else JsonObject({"phase": phase})
    content = item.get("content")
    for part in content if isinstance(content, tuple) else ():
        wire = _object(part)
        text = _word(wire.get("text")) or _word(wire.get("refusal"))
        if text:
            yield Text(text, extra)


def _stop_reason(body: JsonObject, output: tuple[Json, ...], blocks: tuple[Block, ...]) -> str | None:
    if body.get("status") == "incomplete":
        reason = _word(_object(body.get("incomplete_details")).get("reason"))
        return _INCOMPLETE.get(reason, reason or None)
    if any(_refuses(_object(item)) for item in output):
        return "refusal"
    return "tool_use" if any(isinstance(block, ToolUse) for block in blocks) else "end_turn"


def _refuses(item: JsonObject) -> bool:
    content = item.get("content")
    parts = content if isinstance(content, tuple) else ()
    return any(_object(part).get("type") == "refusal" for part in parts)


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, JsonObject) else EMPTY_OBJECT


def _word(value: Json) -> str:
    return value if isinstance(value, str) else ""
