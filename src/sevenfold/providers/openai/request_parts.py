"""Tools, other fields and content of a request, converted from the Messages API to OpenAI's two APIs.

What is in OpenAI's form already passes unchanged. What neither API has is refused by name, unless leaving it
out makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sevenfold.core.errors import InputError
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.core.messages import Block, Compaction, Document, Image, Opaque, Text, ToolResult
from sevenfold.core.requests import RequestParams

REFUSED_PARAMS = frozenset(
    {"compaction", "container", "context_management", "fallbacks", "mcp_servers", "thread"}
)
"""They ask the Messages API to do something that a reader of the answer relies on."""
_IGNORED_PARAMS = frozenset({"cache_control", "diagnostics", "inference_geo", "speed", "thinking"})
"""They tune what these providers tune by themselves, or by another field."""

_CHOICES: Mapping[str, str] = {"auto": "auto", "any": "required", "none": "none"}


@dataclass(frozen=True, slots=True)
class ApiFieldNames:
    """What the two APIs call the same thing."""

    is_nested: bool
    """A function stands in an object of its own inside the tool, the choice and the answer's format."""
    max_tokens: str
    ours: frozenset[str]
    """Fields that a request says elsewhere than in its params."""


def make_chat_names(max_tokens: str) -> ApiFieldNames:
    ours = frozenset({"model", "messages", "tools", "stream", "stream_options", "system", max_tokens})
    return ApiFieldNames(is_nested=True, max_tokens=max_tokens, ours=ours)


RESPONSES_NAMES = ApiFieldNames(
    is_nested=False,
    max_tokens="max_output_tokens",
    ours=frozenset({"model", "input", "instructions", "tools", "stream", "system", "max_output_tokens"}),
)


def system_text(frame: RequestParams) -> str:
    """The system prompt as one text; its parts are paragraphs."""
    if isinstance(frame.system, str):
        return frame.system
    texts = [part.get("text") for part in frame.system]
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def write_tool(tool: JsonObject, words: ApiFieldNames) -> JsonObject:
    """A tool of the Messages API as a function; one in OpenAI's form passes."""
    if tool.get("type") not in (None, "custom"):
        if "input_schema" not in tool and ("function" in tool or "parameters" in tool):
            return tool
        raise InputError(
            f"a tool of type {tool.get('type')!r} runs at Anthropic and cannot be offered to this provider; "
            "leave it out, or give one of your own"
        )
    function: dict[str, Json] = {"name": tool.get("name")}
    if tool.get("description") is not None:
        function["description"] = tool["description"]
    function["parameters"] = tool.get("input_schema", EMPTY_OBJECT)
    if words.is_nested:
        if tool.get("strict") is not None:
            function["strict"] = tool["strict"]
        return JsonObject({"type": "function", "function": JsonObject(function)})
    # Left out, it would be true, and schemas that were never written for that would be refused.
    return JsonObject({"type": "function", **function, "strict": tool.get("strict") is True})


def write_params(params: JsonObject, words: ApiFieldNames) -> dict[str, Json]:
    """All other fields of the body."""
    fields: dict[str, Json] = {}
    for key, value in params.items():
        if key in words.ours:
            raise InputError(f"params holds {key!r}, which a request says in a field of its own; take it out")
        if key in REFUSED_PARAMS:
            raise InputError(f"params holds {key!r}, which only Anthropic's API can do; take it out")
        for name, item in _write_param(key, value, words):
            fields.setdefault(name, item)
    return fields


def _write_param(key: str, value: Json, words: ApiFieldNames) -> Iterator[tuple[str, Json]]:
    match key:
        case "tool_choice":
            yield from _tool_choice(value, words)
        case "output_config" if isinstance(value, JsonObject):
            yield from _output_config(value, words)
        case "stop_sequences":
            if not words.is_nested:
                raise InputError("params holds 'stop_sequences', which the Responses API does not have")
            yield "stop", value
        case _:
            if key not in _IGNORED_PARAMS:
                yield key, value


def _tool_choice(value: Json, words: ApiFieldNames) -> Iterator[tuple[str, Json]]:
    kind = value.get("type") if isinstance(value, JsonObject) else None
    if not isinstance(value, JsonObject) or not isinstance(kind, str):
        yield "tool_choice", value
        return
    if kind in _CHOICES:
        yield "tool_choice", _CHOICES[kind]
    elif kind == "tool":
        name = JsonObject({"name": value.get("name")})
        named: Mapping[str, Json] = {"function": name} if words.is_nested else name
        yield "tool_choice", JsonObject({"type": "function", **named})
    else:
        yield "tool_choice", value
    if value.get("disable_parallel_tool_use") is True:
        yield "parallel_tool_calls", False


def _output_config(value: JsonObject, words: ApiFieldNames) -> Iterator[tuple[str, Json]]:
    effort, form = value.get("effort"), value.get("format")
    if effort is not None:
        name = "reasoning_effort" if words.is_nested else "reasoning"
        yield name, effort if words.is_nested else JsonObject({"effort": effort})
    if isinstance(form, JsonObject):
        schema = {"name": "answer", "schema": form.get("schema")}
        if words.is_nested:
            nested = {"type": "json_schema", "json_schema": JsonObject(schema)}
            yield "response_format", JsonObject(nested)
        else:
            yield "text", JsonObject({"format": JsonObject({"type": "json_schema", **schema})})


# Content that has no form in OpenAI's APIs becomes text that says what it was, so that the model knows of it.

_FAILED = "Error: "
"""Before the result of a tool that failed: these APIs have no field for it."""


@dataclass(frozen=True, slots=True)
class MediaPart:
    """An image or a file, by where it is."""

    kind: str
    """`image` or `file`."""
    url: str
    """An address, or the data itself as a `data:` URL."""
    name: str = "document.pdf"


def list_visible_parts(blocks: Iterable[Block]) -> Iterator[str | MediaPart]:
    """What a person could see of a message, in order: neither thinking nor tool traffic."""
    for block in blocks:
        match block:
            case Text():
                yield block.text
            case Image():
                yield _media("image", block.source) or "[image]"
            case Document():
                yield _document(block)
            case Compaction():
                yield block.content or ""
            case Opaque():
                yield f"[{block.type or 'unknown'} block]"
            case _:
                pass


def list_result_parts(result: ToolResult) -> list[str | MediaPart]:
    """What a tool answered; a failure says so."""
    content = result.content
    parts = list(list_visible_parts(content if isinstance(content, tuple) else (Text(content or ""),)))
    if result.is_error:
        first = parts[0] if parts else ""
        if isinstance(first, str) and not first.startswith(_FAILED.strip()):
            parts[:1] = [f"{_FAILED}{first}"]
    return parts


def join_parts(parts: Iterable[str | MediaPart]) -> str:
    """The text alone, with a word for each thing that is none."""
    return "\n".join(part if isinstance(part, str) else f"[{part.kind}]" for part in parts)


def _media(kind: str, source: JsonObject) -> MediaPart | None:
    match source.get("type"), source.get("data"), source.get("url"):
        case "base64", str(data), _:
            return MediaPart(kind, f"data:{_word(source.get('media_type')) or 'image/png'};base64,{data}")
        case "url", _, str(url):
            return MediaPart(kind, url)
        case _:
            return None


def _document(block: Document) -> str | MediaPart:
    source = block.source
    title = _word(block.extra.get("title"))
    data = source.get("data")
    if source.get("type") == "text" and isinstance(data, str):
        return f"{title}\n\n{data}" if title else data
    media = _media("file", source)
    if media is None or not media.url.startswith("data:"):
        return f"[document{f': {title}' if title else ''}{f' at {media.url}' if media else ''}]"
    return MediaPart("file", media.url, title or media.name)


def _word(value: Json) -> str:
    return value if isinstance(value, str) else ""
