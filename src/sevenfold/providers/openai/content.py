"""What stands inside a message, in the forms that OpenAI's APIs take. What has no form there becomes text
that says what it was, so that the model knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Block, Compaction, Document, Image, Opaque, Text, ToolResult

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
