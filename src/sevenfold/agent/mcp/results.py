"""What an MCP server answered, as what a tool gives back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sevenfold.agent.tool import ToolOutput
from sevenfold.core.errors import WireError
from sevenfold.core.json import JsonObject, freeze, write_json
from sevenfold.core.messages import Block, Image, Text

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_IMAGE_CHARS = 5 * 1024 * 1024
"""In base64: providers refuse a request for a larger one, and with it the whole session."""


def parse_tool_result(result: CallToolResult) -> ToolOutput:
    """Text and images as they are, the rest in words. Of structured content the text is enough, if any is."""
    blocks = tuple(_block(item) for item in result.content)
    if result.structured_content is not None and not any(isinstance(block, Text) for block in blocks):
        blocks = (*blocks, Text(_as_json(result.structured_content)))
    return ToolOutput(_simplest(blocks), is_error=result.is_error)


def _block(item: ContentBlock) -> Block:
    from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent

    match item:
        case TextContent():
            return Text(item.text)
        case ImageContent():
            return _image(item.data, item.mime_type)
        case AudioContent():
            return Text(f"[audio of type {item.mime_type}, which is not shown]")
        case ResourceLink():
            return Text(f"[resource {item.name}: {item.uri}]")
        case EmbeddedResource():
            held = item.resource
            text = getattr(held, "text", None)
            if isinstance(text, str):
                return Text(f"[resource {held.uri}]\n{text}")
            return Text(f"[resource {held.uri} of type {held.mime_type}, which is no text and not shown]")


def _image(data: str, media_type: str) -> Block:
    if media_type not in IMAGE_TYPES:
        return Text(f"[image of type {media_type}, which is not shown]")
    if len(data) > MAX_IMAGE_CHARS:
        return Text(f"[image of {len(data):,} characters in base64, too large to be shown]")
    return Image(JsonObject({"type": "base64", "media_type": media_type, "data": data}))


def _as_json(value: object) -> str:
    try:
        return write_json(freeze(value)).decode("utf-8", "replace")
    except WireError as error:
        return f"[structured content that cannot be shown: {error}]"


def _simplest(blocks: Sequence[Block]) -> str | tuple[Block, ...]:
    """One string where all is text: what every provider and layer takes as it is."""
    texts = [block.text for block in blocks if isinstance(block, Text)]
    if len(texts) < len(blocks):
        return tuple(blocks)
    return "\n".join(texts) or "[no output]"


def count_output_bytes(output: ToolOutput) -> int:
    """How much a server has said, for the event that says that it did."""
    if isinstance(output.content, str):
        return len(output.content.encode("utf-8", "replace"))
    return sum(
        len(block.text.encode("utf-8", "replace"))
        if isinstance(block, Text)
        else len(str(block.source.get("data", "")))
        for block in output.content
        if isinstance(block, (Text, Image))
    )
