"""Where the bytes of an image or a document come from, and the blocks that hold others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sevenfold.core.json import Json, JsonObject
from sevenfold.simulator.wire.error_response import make_invalid_request
from sevenfold.simulator.wire.json_fields import as_list, as_object, as_one_of, as_text, require_field

IMAGE_MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
REQUIRED_TEXT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name"),
    "server_tool_use": ("id", "name"),
    "mcp_tool_use": ("id", "name", "server_name"),
    "tool_result": ("tool_use_id",),
    "search_result": ("source", "title"),
    "container_upload": ("file_id",),
    "tool_reference": ("tool_name",),
}
"""Fields that a block of each type must have, all of them text."""

TOOL_REQUEST_TYPES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
RESULT_CONTENT_TYPES = frozenset({"text", "image", "document", "search_result", "tool_reference"})
"""What a tool result may hold."""
DOCUMENT_CONTENT_TYPES = frozenset({"text", "image"})

_Check: TypeAlias = Callable[[str, JsonObject], None]


def check_block_fields(path: str, kind: str, block: JsonObject) -> None:
    """Refuse a block that lacks what its type needs. `path` is the block's own."""
    own = f"{path}.{kind}"
    for key in REQUIRED_TEXT_FIELDS.get(kind, ()):
        as_text(f"{own}.{key}", require_field(own, block, key))
    if kind in TOOL_REQUEST_TYPES:
        as_object(f"{own}.input", require_field(own, block, "input"))
    elif kind in _SOURCES:
        _check_source(own, _SOURCES[kind], block)
    elif kind == "tool_result":
        _check_content(f"{own}.content", block.get("content"), RESULT_CONTENT_TYPES)
    elif kind == "search_result":
        content = require_field(own, block, "content")
        _check_content(f"{own}.content", as_list(f"{own}.content", content), frozenset({"text"}))


def _check_source(path: str, kinds: Mapping[str, _Check], block: JsonObject) -> None:
    source = as_object(f"{path}.source", require_field(path, block, "source"))
    kind = as_one_of(f"{path}.source.type", require_field(f"{path}.source", source, "type"), tuple(kinds))
    kinds[kind](f"{path}.source.{kind}", source)


def _check_content(path: str, content: Json, allowed: frozenset[str]) -> None:
    """Text, or blocks of some types."""
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, tuple):
        raise make_invalid_request(f"{path}: Input should be a valid string or list")
    for index, item in enumerate(content):
        inner = f"{path}.{index}"
        block = as_object(inner, item)
        kind = as_one_of(f"{inner}.type", require_field(inner, block, "type"), sorted(allowed))
        check_block_fields(inner, kind, block)


def _bytes(*media: str) -> _Check:
    def check(path: str, source: JsonObject) -> None:
        as_one_of(f"{path}.media_type", require_field(path, source, "media_type"), media)
        if not as_text(f"{path}.data", require_field(path, source, "data")):
            raise make_invalid_request(f"{path}.data: must not be empty")

    return check


def _text(key: str) -> _Check:
    def check(path: str, source: JsonObject) -> None:
        as_text(f"{path}.{key}", require_field(path, source, key))

    return check


def _blocks(path: str, source: JsonObject) -> None:
    _check_content(f"{path}.content", require_field(path, source, "content"), DOCUMENT_CONTENT_TYPES)


_SOURCES: Mapping[str, Mapping[str, _Check]] = {
    "image": {"base64": _bytes(*IMAGE_MEDIA_TYPES), "url": _text("url"), "file": _text("file_id")},
    "document": {
        "base64": _bytes("application/pdf"),
        "text": _bytes("text/plain"),
        "content": _blocks,
        "url": _text("url"),
        "file": _text("file_id"),
    },
}
