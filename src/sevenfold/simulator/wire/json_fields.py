"""Reading JSON whose shape nobody has checked yet: the right kind of value, or a refusal with its path."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sevenfold.core.json import Json, JsonObject
from sevenfold.simulator.wire.error_response import make_invalid_request


def require_field(path: str, holder: JsonObject, key: str) -> Json:
    """A field that must be there."""
    if key not in holder:
        raise make_invalid_request(f"{_under(path, key)}: Field required")
    return holder[key]


def as_object(path: str, value: Json) -> JsonObject:
    if not isinstance(value, JsonObject):
        raise make_invalid_request(f"{path}: Input should be an object")
    return value


def as_list(path: str, value: Json) -> tuple[Json, ...]:
    if not isinstance(value, tuple):
        raise make_invalid_request(f"{path}: Input should be a valid list")
    return value


def as_text(path: str, value: Json) -> str:
    if not isinstance(value, str):
        raise make_invalid_request(f"{path}: Input should be a valid string")
    return value


def as_switch(path: str, value: Json) -> bool:
    if not isinstance(value, bool):
        raise make_invalid_request(f"{path}: Input should be a valid boolean")
    return value


def as_count(path: str, value: Json, at_least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise make_invalid_request(f"{path}: Input should be a valid integer")
    if value < at_least:
        raise make_invalid_request(f"{path}: Input should be greater than or equal to {at_least}")
    return value


def as_one_of(path: str, value: Json, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise make_invalid_request(f"{path}: Input should be {_either(allowed)}")
    return value


def as_texts(path: str, value: Json) -> tuple[str, ...]:
    return tuple(as_text(f"{path}.{index}", item) for index, item in enumerate(as_list(path, value)))


def as_objects(path: str, value: Json) -> tuple[JsonObject, ...]:
    """A list of objects."""
    found = as_list(path, value)
    return tuple(
        [
            item if isinstance(item, JsonObject) else as_object(f"{path}.{index}", item)
            for index, item in enumerate(found)
        ]
    )


def optional_object(path: str, holder: JsonObject, key: str) -> JsonObject | None:
    """A field that may be absent or null."""
    value = holder.get(key)
    return None if value is None else as_object(_under(path, key), value)


def refuse_extra(path: str, holder: JsonObject, allowed: Collection[str]) -> None:
    for key in holder:
        if key not in allowed:
            raise make_extra_refusal(_under(path, key))


def make_extra_refusal(path: str) -> Exception:
    """What a field is met with that the API does not know, or not without a beta header."""
    return make_invalid_request(f"{path}: Extra inputs are not permitted")


def _under(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _either(words: Iterable[str]) -> str:
    quoted = [f"'{word}'" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
