"""Looking into JSON that may be anything: what is not there, or not of the kind, is simply absent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TypeAlias, cast

from sevenfold.core.errors import WireError
from sevenfold.core.messages import Block, Text
from sevenfold.core.wire import read_block

JsonFields: TypeAlias = Mapping[str, object]

NO_JSON_FIELDS: JsonFields = MappingProxyType({})
_MAX_NAME_CHARS = 200
"""No id, model or type is longer; what is longer is no name, and would fill the report."""


def as_fields(value: object) -> JsonFields:
    """The object itself, or an empty one."""
    return cast("JsonFields", value) if isinstance(value, dict) else NO_JSON_FIELDS


def get_object(fields: JsonFields, key: str) -> JsonFields:
    return as_fields(fields.get(key))


def get_list(fields: JsonFields, key: str) -> list[object]:
    value = fields.get(key)
    return cast("list[object]", value) if isinstance(value, list) else []


def get_text(fields: JsonFields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def get_name(fields: JsonFields, *keys: str) -> str:
    """The first of these that is a short text: an id, a model, a type."""
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str) and value:
            return value[:_MAX_NAME_CHARS]
    return ""


def get_int(fields: JsonFields, key: str) -> int | None:
    value = fields.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def get_time(fields: JsonFields, *keys: str) -> datetime | None:
    """A time in UTC, from ISO text or from seconds since 1970."""
    for key in keys:
        value = fields.get(key)
        try:
            if isinstance(value, str):
                parsed = datetime.fromisoformat(value)
                return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):
            continue
    return None


def as_blocks(content: object) -> tuple[Block, ...]:
    """Content as blocks: text alone is one; what is no block is left out."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if not isinstance(content, list):
        return ()
    found = (_block(item) for item in cast("list[object]", content))
    return tuple(item for item in found if item is not None)


def _block(item: object) -> Block | None:
    if isinstance(item, str):
        return Text(item)
    try:
        return read_block(item)
    except WireError:
        return None
