"""Where the bytes of an image or a document come from, and the blocks that hold others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sevenfold.core.json import Json, JsonObject
from sevenfold.simulator.refusals import invalid
from sevenfold.simulator.shape import as_list, as_object, as_one_of, as_text, require

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
TEXTS: Mapping[str, tuple[str, ...]] = {
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

REQUESTS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
IN_RESULTS = frozenset({"text", "image", "document", "search_result", "tool_reference"})
"""What a tool result may hold."""
IN_DOCUMENTS = frozenset({"text", "image"})

_Check: TypeAlias = Callable[[str, JsonObject], None]


def check_fields(path: str, kind: str, block: JsonObject) -> None:
    """Refuse a block that lacks what its type needs. `path` is the block's own."""
    own = f"{path}.{kind}"
    for key in TEXTS.get(kind, ()):
        as_text(f"{own}.{key}", require(own, block, key))
    if kind in REQUESTS:
        as_object(f"{own}.input", require(own, block, "input"))
    elif kind in _SOURCES:
        _check_source(own, _SOURCES[kind], block)
    elif kind == "tool_result":
        _check_content(f"{own}.content", block.get("content"), IN_RESULTS)
    elif kind == "search_result":
        content = require(own, block, "content")
        _check_content(f"{own}.content", as_list(f"{own}.content", content), frozenset({"text"}))


def _check_source(path: str, kinds: Mapping[str, _Check], block: JsonObject) -> None:
    source = as_object(f"{path}.source", require(path, block, "source"))
    kind = as_one_of(f"{path}.source.type", require(f"{path}.source", source, "type"), tuple(kinds))
    kinds[kind](f"{path}.source.{kind}", source)


def _check_content(path: str, content: Json, allowed: frozenset[str]) -> None:
    """Text, or blocks of some types."""
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, tuple):
        raise invalid(f"{path}: Input should be a valid string or list")
    for index, item in enumerate(content):
        inner = f"{path}.{index}"
        block = as_object(inner, item)
        kind = as_one_of(f"{inner}.type", require(inner, block, "type"), sorted(allowed))
        check_fields(inner, kind, block)


def _bytes(*media: str) -> _Check:
    def check(path: str, source: JsonObject) -> None:
        as_one_of(f"{path}.media_type", require(path, source, "media_type"), media)
        if not as_text(f"{path}.data", require(path, source, "data")):
            raise invalid(f"{path}.data: must not be empty")

    return check


def _text(key: str) -> _Check:
    def check(path: str, source: JsonObject) -> None:
        as_text(f"{path}.{key}", require(path, source, key))

    return check


def _blocks(path: str, source: JsonObject) -> None:
    _check_content(f"{path}.content", require(path, source, "content"), IN_DOCUMENTS)


_SOURCES: Mapping[str, Mapping[str, _Check]] = {
    "image": {"base64": _bytes(*IMAGES), "url": _text("url"), "file": _text("file_id")},
    "document": {
        "base64": _bytes("application/pdf"),
        "text": _bytes("text/plain"),
        "content": _blocks,
        "url": _text("url"),
        "file": _text("file_id"),
    },
}
