"""JSON as immutable values: what a provider sends is kept whole, and nobody can change it in place.

The functions at the end read the fields of an object that a model filled in.
"""

from __future__ import annotations

import json
import math
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from decimal import Decimal
from typing import Protocol, TypeAlias, TypeVar, cast, final, overload

from sevenfold.core.errors import InputError, WireError

Scalar: TypeAlias = str | int | float | bool | Decimal | None
Json: TypeAlias = "Scalar | JsonObject | tuple[Json, ...]"
"""A frozen JSON value. Lists are tuples, objects are `JsonObject`s."""

JsonInput: TypeAlias = "Scalar | Mapping[str, JsonInput] | list[JsonInput] | tuple[JsonInput, ...]"
"""What `freeze` takes: anything `json.loads` or an SDK's `model_dump` returns."""

_T = TypeVar("_T")

MAX_INT_DIGITS = 600
"""Longer integers are kept as `Decimal`: 640 digits is the least that CPython may be told to stop at."""

MAX_NESTING = 200
"""How deep a value may be. Real messages have a dozen levels; with no bound a hostile one exhausts the stack,
at a depth that depends on who calls."""


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

    # What `Mapping` has is right and several times slower, and these are asked a thousand times a request.

    def __contains__(self, key: object) -> bool:
        return key in self._items

    @overload
    def get(self, key: str, /) -> Json: ...
    @overload
    def get(self, key: str, /, default: Json | _T) -> Json | _T: ...
    def get(self, key: str, /, default: Json | _T = None) -> Json | _T:
        return self._items.get(key, default)

    def keys(self) -> KeysView[str]:
        return self._items.keys()

    def values(self) -> ValuesView[Json]:
        return self._items.values()

    def items(self) -> ItemsView[str, Json]:
        return self._items.items()

    def __eq__(self, other: object) -> bool:
        # 1, 1.0 and true are equal in Python and different on the wire.
        return self is other or (isinstance(other, JsonObject) and _key(self) == _key(other))

    def __hash__(self) -> int:
        return hash(_key(self))

    def __repr__(self) -> str:
        return f"JsonObject({self._items!r})"

    def without(self, *keys: str) -> JsonObject:
        """The same object less these keys."""
        return JsonObject({k: v for k, v in self._items.items() if k not in keys})


EMPTY_OBJECT = JsonObject()


def freeze(value: object) -> Json:
    """A deep, immutable copy of JSON data, with objects of an SDK as it would send them; what is no JSON is
    refused by its place and type."""
    try:
        return _freeze(value, MAX_NESTING)
    except WireError as error:
        place = "".join(_steps_to_flaw(value)).removeprefix(".")
        raise WireError(f"{place}: {error}" if place else str(error)) from error


def thaw(value: Json) -> object:
    """The plain form of a frozen value: dicts and lists, free to be changed or sent."""
    if isinstance(value, JsonObject):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


def freeze_object(value: Mapping[str, object]) -> JsonObject:
    """The same for what is known to be an object."""
    frozen = freeze(value)
    assert isinstance(frozen, JsonObject)
    return frozen


def iterate_texts(value: Json) -> Iterator[str]:
    """Every text in a value, in order. Keys are not texts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, JsonObject):
        for item in value.values():
            yield from iterate_texts(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from iterate_texts(item)


def nesting_depth(value: Json) -> int:
    """How deep a frozen value is: 0 for a scalar, 1 for a list or object of scalars."""
    deepest, waiting = 0, [(value, 0)]
    while waiting:
        item, level = waiting.pop()
        if isinstance(item, (JsonObject, tuple)):
            level += 1
            deepest = max(deepest, level)
            waiting += [(inner, level) for inner in (item.values() if isinstance(item, JsonObject) else item)]
    return deepest


def read_json(data: bytes | str) -> Json:
    """Parse what came over the wire or off the disk; every failure is a `WireError`."""
    try:
        parsed: object = json.loads(
            data, parse_float=_parse_float, parse_int=_parse_int, parse_constant=_refuse_constant
        )
    except RecursionError as error:
        raise WireError(_TOO_DEEP) from error
    except (ValueError, ArithmeticError) as error:
        raise WireError(f"not JSON that can be read: {error or type(error).__name__}") from error
    return freeze(parsed)


def read_object(data: bytes | str) -> JsonObject:
    """Parse JSON that must be an object."""
    value = read_json(data)
    if not isinstance(value, JsonObject):
        raise WireError(f"expected a JSON object, got {type(value).__name__}")
    return value


_ENCODERS = {
    sort_keys: json.JSONEncoder(
        ensure_ascii=False, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False
    )
    for sort_keys in (False, True)
}


def write_json(value: Json, *, sort_keys: bool = False) -> bytes:
    """Compact UTF-8 on one line. A lone surrogate, which UTF-8 cannot hold, is written as its escape."""
    try:
        text = _ENCODERS[sort_keys].encode(thaw(value))
    except TypeError:
        text = _spell(value, sort_keys=sort_keys)
    return text.encode("utf-8", "backslashreplace")


def _spell(value: Json, *, sort_keys: bool) -> str:
    """The slow way, for the rare number that only a `Decimal` can hold and `json` cannot write."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, JsonObject):
        keys = sorted(value) if sort_keys else value
        pairs = (
            f"{json.dumps(key, ensure_ascii=False)}:{_spell(value[key], sort_keys=sort_keys)}" for key in keys
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, tuple):
        return "[" + ",".join(_spell(item, sort_keys=sort_keys) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


_TOO_DEEP = (
    f"JSON nested deeper than {MAX_NESTING} levels, or that holds itself; flatten it, or send it as text"
)
_TOO_LONG = 10**MAX_INT_DIGITS
_MOST_STEPS = 6
"""`content[0].content[1].source.data`; what holds itself has no end of them."""


def _freeze(value: object, levels: int) -> Json:
    if value is None or isinstance(value, (bool, JsonObject)):
        return value
    if isinstance(value, str):
        return _freeze_text(value)
    if isinstance(value, (int, float, Decimal)):
        return _freeze_number(value)
    if levels == 0:
        raise WireError(_TOO_DEEP)
    if isinstance(value, (list, tuple)):
        return tuple([_freeze(item, levels - 1) for item in cast("list[object]", value)])
    # Plain dicts first: to be asked for by an abstract class takes longer than all the rest of this.
    if isinstance(value, (dict, Mapping)):
        items = cast("Mapping[object, object]", value).items()
        return JsonObject({_freeze_key(key): _freeze(item, levels - 1) for key, item in items})
    if callable(getattr(value, "model_dump", None)):
        return _freeze(_dumped(cast("_Dumping", value)), levels - 1)
    raise WireError(f"a {type(value).__name__} is no JSON value; expected text, number, list or object")


class _Dumping(Protocol):
    """What pydantic makes, and SDKs hand out."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_unset: bool) -> object: ...


def _dumped(value: _Dumping) -> object:
    try:
        # As the SDK itself would send it: fields that were never set stay absent.
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    except Exception as error:
        # Somebody else's code may raise anything.
        reason = f"{type(error).__name__}: {error}"
        raise WireError(f"model_dump of a {type(value).__name__} failed: {reason}; send a dict") from error


def _steps_to_flaw(value: object) -> Iterator[str]:
    """The way to the first thing that is refused, as one would write it, in as many steps as can be read."""
    for _ in range(_MOST_STEPS):
        found = next(((step, item) for step, item in _iterate_items(value) if not _is_json(item)), None)
        if found is None:
            return
        step, value = found
        yield step


def _iterate_items(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield f".{key}", item
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(cast("list[object]", value)):
            yield f"[{index}]", item


def _is_json(value: object) -> bool:
    try:
        _freeze(value, MAX_NESTING)
    except WireError:
        return False
    return True


def _freeze_text(text: str) -> str:
    if type(text) is str and text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Two halves of a pair are written as two escapes, and those are read back as one character.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text if type(text) is str else str.__str__(text)


def _freeze_number(value: float | Decimal) -> int | float | Decimal:
    if isinstance(value, int):
        return int(value) if -_TOO_LONG < value < _TOO_LONG else Decimal(value)
    if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
        raise WireError(f"{value!r} has no JSON form; send a finite number or null")
    return value if isinstance(value, Decimal) else float(value)


def _freeze_key(key: object) -> str:
    if not isinstance(key, str):
        raise WireError(f"a JSON object's key must be text, not {key!r}")
    return _freeze_text(key)


def _parse_float(text: str) -> float | Decimal:
    value = float(text)
    # 1e400 is legal JSON and no float: keep it rather than turn it into infinity.
    return Decimal(text) if value in (float("inf"), float("-inf")) else value


def _parse_int(text: str) -> int | Decimal:
    return int(text) if len(text.lstrip("-")) <= MAX_INT_DIGITS else Decimal(text)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON value")


def _key(value: Json) -> object:
    """A hashable stand-in that keeps apart what Python's equality would merge."""
    if isinstance(value, JsonObject):
        return frozenset((name, _key(item)) for name, item in value.items())
    if isinstance(value, tuple):
        return tuple(_key(item) for item in value)
    # A number by its spelling: 0.0 and -0.0 are equal in Python too, and so are 1E+400 and 10E+399.
    return (type(value), repr(value) if isinstance(value, (float, Decimal)) else value)


# Fields that a model filled in. An `InputError` says what was expected.


def object_schema(properties: Mapping[str, object], required: tuple[str, ...] = ()) -> JsonObject:
    """The schema of an input that is an object with these properties and no others."""
    return freeze_object(
        {
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        }
    )


def get_string(given: JsonObject, key: str, default: str | None = None) -> str:
    """A string; required where there is no default."""
    value = given.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise InputError(f"{key} is {_said(value)}; expected text")
    return value


def get_integer(given: JsonObject, key: str, default: int, *, at_least: int, at_most: int = 10**9) -> int:
    """A whole number. Models also write one as text."""
    value = given.get(key)
    if value is None:
        return default
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
        raise InputError(f"{key} is {_said(value)}; expected a whole number from {at_least:,} to {at_most:,}")
    return value


def get_flag(given: JsonObject, key: str) -> bool:
    """True or false; false where it is left out."""
    value = given.get(key)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{key} is {_said(value)}; expected true or false")
    return bool(value)


def get_choice(given: JsonObject, key: str, words: tuple[str, ...], default: str | None = None) -> str:
    """One word of a few."""
    value = get_string(given, key, default)
    if value not in words:
        raise InputError(f"{key} is {_said(value)}; expected one of {', '.join(words)}")
    return value


def _said(value: Json) -> str:
    return "missing" if value is None else f"{value!r:.80}"


def replace_lone_surrogates(text: str) -> str:
    """A text as UTF-8 can hold it, the text itself where nothing is wrong.

    A JSON escape can name half a character. Halves that belong together are joined, others replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
