"""The Responses API: parses requests; renders responses and events. Nothing is stored, even if asked."""

from __future__ import annotations

from collections.abc import Iterator

from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, write_json
from sevenfold.core.messages import Block, Message, Role, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.usage import Usage
from sevenfold.simulator.openai.chat import (
    OpenAIReply,
    OpenAIRequest,
    ToolCallPairing,
    parse_content,
    parse_tool_call,
    read_count,
    require_list,
    require_object,
    require_text,
    seal_reasoning,
    split_chunks,
    unseal_reasoning,
)
from sevenfold.simulator.openai.prompt import NAMESPACE_SEPARATOR
from sevenfold.simulator.wire.error_response import make_invalid_request

_INCOMPLETE = {"max_tokens": "max_output_tokens", "model_context_window_exceeded": "max_output_tokens"}
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}


def parse_responses_request(body: JsonObject) -> OpenAIRequest:
    """The conversation of a request."""
    for name in ("previous_response_id", "conversation"):
        if body.get(name) is not None:
            raise make_invalid_request(f"{name}: nothing is stored here; send the whole input instead")
    given, instructions = body.get("input"), body.get("instructions")
    reader = _Reader()
    if isinstance(given, str):
        reader.messages.append(Message("user", given))
    else:
        for at, item in enumerate(require_list("input", given)):
            reader.add(f"input[{at}]", require_object(f"input[{at}]", item))
    tools = require_list("tools", body.get("tools", ()))
    reasoning = body.get("reasoning")
    effort = reasoning.get("effort") if isinstance(reasoning, JsonObject) else None
    return OpenAIRequest(
        model=require_text("model", body.get("model")),
        system=require_text("instructions", instructions) if instructions is not None else "",
        tools=tuple(require_object(f"tools[{at}]", tool) for at, tool in enumerate(tools)),
        messages=reader.finish(),
        max_tokens=read_count("max_output_tokens", body.get("max_output_tokens")),
        streams=body.get("stream") is True,
        thinks=effort not in (None, "none"),
    )


def render_response(answer: OpenAIReply) -> JsonObject:
    """The whole answer."""
    return _response(answer, _status(answer), tuple(_items(answer)))


def iter_response_events(answer: OpenAIReply) -> Iterator[JsonObject]:
    """The same answer as a stream, each event numbered."""
    for number, event in enumerate(_events(answer)):
        yield JsonObject({**event, "sequence_number": number})


def render_responses_usage(usage: Usage) -> JsonObject:
    return JsonObject(
        {
            "input_tokens": usage.prompt,
            "input_tokens_details": JsonObject({"cached_tokens": usage.read, "cache_write_tokens": 0}),
            "output_tokens": usage.output,
            "output_tokens_details": JsonObject({"reasoning_tokens": usage.thinking}),
            "total_tokens": usage.prompt + usage.output,
        }
    )


class _Reader:
    """Items to messages: what one side says in a row is one message of it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._pairing = ToolCallPairing()

    def add(self, path: str, item: JsonObject) -> None:
        match item.get("type", "message"):
            case "message":
                role = _ROLES.get(require_text(f"{path}.role", item.get("role")))
                if role is None:
                    raise make_invalid_request(f"Invalid value: '{item.get('role')}' at '{path}.role'.")
                self._put(role, *parse_content(f"{path}.content", item.get("content")))
            case "function_call":
                space, name = item.get("namespace"), item.get("name")
                if isinstance(space, str) and space:
                    name = f"{space}{NAMESPACE_SEPARATOR}{name}"
                call = parse_tool_call(path, item.get("call_id"), name, item.get("arguments"))
                self._pairing.ask((call,))
                self._put("assistant", call)
            case "function_call_output":
                self._put("user", self._result(path, item))
            case "reasoning":
                self._put(
                    "assistant",
                    Thinking(unseal_reasoning(f"{path}.encrypted_content", item.get("encrypted_content"))),
                )
            case kind:
                raise make_invalid_request(
                    f"Invalid value: '{kind}' at '{path}.type' is no item that is known here."
                )

    def finish(self) -> tuple[Message, ...]:
        left = self._pairing.close()
        if left is not None:
            raise make_invalid_request(f"No tool output found for function call {left}.")
        return tuple(self.messages)

    def _result(self, path: str, item: JsonObject) -> ToolResult:
        call_id = require_text(f"{path}.call_id", item.get("call_id"))
        result = ToolResult(ToolUseId(call_id), parse_content(f"{path}.output", item.get("output")))
        self._pairing.answer(result, f"No tool call found for function call output with call_id {call_id}.")
        return result

    def _put(self, role: Role, *blocks: Block) -> None:
        last = self.messages[-1] if self.messages else None
        if last is not None and last.role == role:
            self.messages[-1] = Message(role, (*last.blocks, *blocks))
        else:
            self.messages.append(Message(role, blocks))


def _items(answer: OpenAIReply) -> Iterator[JsonObject]:
    for at, block in enumerate(answer.blocks):
        item_id = f"{answer.id.removeprefix('resp_')}{at:02d}"
        match block:
            case Text():
                part = JsonObject({"type": "output_text", "text": block.text, "annotations": ()})
                yield _item(
                    "message", f"msg_{item_id}", role="assistant", status="completed", content=(part,)
                )
            case Thinking():
                sealed = seal_reasoning(block.thinking)
                yield _item("reasoning", f"rs_{item_id}", summary=(), encrypted_content=sealed)
            case ToolUse():
                arguments = write_json(block.input).decode()
                space, _, name = block.name.rpartition(NAMESPACE_SEPARATOR)
                call: dict[str, Json] = {"call_id": block.id, "name": name, "arguments": arguments}
                call |= {"namespace": space} if space else {}
                yield _item("function_call", f"fc_{item_id}", status="completed", **call)
            case _:
                pass


def _events(answer: OpenAIReply) -> Iterator[JsonObject]:
    opened = _response(answer, "in_progress", ())
    yield _event("response.created", response=opened)
    yield _event("response.in_progress", response=opened)
    for at, item in enumerate(_items(answer)):
        yield _event("response.output_item.added", output_index=at, item=_blank(item))
        for event in _inside(item):
            yield JsonObject({**event, "output_index": at, "item_id": item["id"]})
        yield _event("response.output_item.done", output_index=at, item=item)
    status = _status(answer)
    yield _event(f"response.{status}", response=render_response(answer))


def _inside(item: JsonObject) -> Iterator[JsonObject]:
    """What happens between an item's beginning and its end."""
    content = item.get("content")
    if isinstance(content, tuple) and content and isinstance(content[0], JsonObject):
        part = content[0]
        text = require_text("text", part.get("text"))
        opened = JsonObject({**part, "text": ""})
        yield _event("response.content_part.added", content_index=0, part=opened)
        for piece in split_chunks(text):
            yield _event("response.output_text.delta", content_index=0, delta=piece, logprobs=())
        yield _event("response.output_text.done", content_index=0, text=text, logprobs=())
        yield _event("response.content_part.done", content_index=0, part=part)
    elif item.get("type") == "function_call":
        text = require_text("arguments", item.get("arguments"))
        for piece in split_chunks(text):
            yield _event("response.function_call_arguments.delta", delta=piece)
        yield _event("response.function_call_arguments.done", name=item.get("name"), arguments=text)


def _blank(item: JsonObject) -> JsonObject:
    """An item that has begun and says nothing yet."""
    empty: dict[str, Json] = {"content": (), "arguments": "", "status": "in_progress"}
    return JsonObject({key: empty.get(key, value) for key, value in item.items()})


def _response(answer: OpenAIReply, status: str, output: tuple[JsonObject, ...]) -> JsonObject:
    reason = _INCOMPLETE.get(answer.stop_reason, "content_filter")
    is_done = status != "in_progress"
    return JsonObject(
        {
            "id": answer.id,
            "object": "response",
            "created_at": answer.created,
            "status": status,
            "error": None,
            "incomplete_details": JsonObject({"reason": reason}) if status == "incomplete" else None,
            "model": answer.model,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": (),
            "metadata": EMPTY_OBJECT,
            "store": False,
            "usage": render_responses_usage(answer.usage) if is_done else None,
        }
    )


def _status(answer: OpenAIReply) -> str:
    return "incomplete" if answer.stop_reason in {*_INCOMPLETE, "refusal"} else "completed"


def _item(kind: str, item_id: str, **fields: Json) -> JsonObject:
    return JsonObject({"type": kind, "id": item_id, **fields})


def _event(kind: str, **fields: Json) -> JsonObject:
    return JsonObject({"type": kind, **fields})
