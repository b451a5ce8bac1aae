"""JSON as immutable values: what a provider sends is kept whole, and nobody can change it in place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TypeAlias, cast, final

from sevenfold.core.errors import WireError

Scalar: TypeAlias = str | int | float | bool | Decimal | None
Json: TypeAlias = "Scalar | JsonObject | tuple[Json, ...]"
"""A frozen JSON value. Lists are tuples, objects are `JsonObject`s."""

JsonInput: TypeAlias = "Scalar | Mapping[str, JsonInput] | list[JsonInput] | tuple[JsonInput, ...]"
"""What `freeze` takes: anything `json.loads` or an SDK's `model_dump` returns."""

INT_DIGITS = 4300
"""CPython refuses longer decimal strings as `int`; they are kept as `Decimal` instead of failing."""


@final
class JsonObject(Mapping[str, Json]):
    """A JSON object that keeps its key order, cannot be changed, and compares by content."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Json] | None = None) -> None:
        self._items: dict[str, Json] = dict(items) if items else {}

    def __getitem__(self, key: str) -> Json:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        # 1, 1.0 and true are equal in Python and different on the wire.
        return isinstance(other, JsonObject) and _key(self) == _key(other)

    def __hash__(self) -> int:
        return hash(_key(self))

    def __repr__(self) -> str:
        return f"JsonObject({self._items!r})"

    def without(self, *keys: str) -> JsonObject:
        """The same object less these keys."""
        return JsonObject({k: v for k, v in self._items.items() if k not in keys})


EMPTY = JsonObject()


def freeze(value: object) -> Json:
    """A deep, immutable copy of plain JSON data; a value that is no JSON is refused by its type."""
    if value is None or isinstance(value, (str, bool, int, Decimal, JsonObject)):
        return value
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, Mapping):
        return JsonObject({_text(k): freeze(v) for k, v in cast("Mapping[object, object]", value).items()})
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in cast("list[object]", value))
    raise WireError(f"a {type(value).__name__} is no JSON value; expected text, number, list or object")


def thaw(value: Json) -> object:
    """The plain form of a frozen value: dicts and lists, free to be changed or sent."""
    if isinstance(value, JsonObject):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


def read_json(data: bytes | str) -> Json:
    """Parse what came over the wire or off the disk; every failure is a `WireError`."""
    try:
        parsed: object = json.loads(
            data, parse_float=_parse_float, parse_int=_parse_int, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from error
    return freeze(parsed)


def read_object(data: bytes | str) -> JsonObject:
    """Parse JSON that must be an object."""
    value = read_json(data)
    if not isinstance(value, JsonObject):
        raise WireError(f"expected a JSON object, got {type(value).__name__}")
    return value


def _text(key: object) -> str:
    if not isinstance(key, str):
        raise WireError(f"a JSON object's key must be text, not {key!r}")
    return key


def _finite(value: float) -> float:
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN is what differs from itself
        raise WireError(f"{value!r} has no JSON form; send a finite number or null")
    return value


def _parse_float(text: str) -> float | Decimal:
    value = float(text)
    # 1e400 is legal JSON and no float: keep it rather than turn it into infinity.
    return Decimal(text) if value in (float("inf"), float("-inf")) else value


def _parse_int(text: str) -> int | Decimal:
    return int(text) if len(text) < INT_DIGITS else Decimal(text)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON value")


def _key(value: Json) -> object:
    """A hashable stand-in that keeps apart what Python's equality would merge."""
    if isinstance(value, JsonObject):
        return frozenset((name, _key(item)) for name, item in value.items())
    if isinstance(value, tuple):
        return tuple(_key(item) for item in value)
    return (type(value), value)
