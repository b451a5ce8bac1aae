"""Dataclasses as JSON objects and back, by the types of their fields.

For what we alone write and read: small state files, records, messages between our own processes. A field is
written under its name, in its order, unless a `JsonForm` says otherwise:

    stamps: Annotated[tuple[PidStamp, ...], JsonForm(name="faces")] = ()

A field that is absent takes its default, so that a new field with a default reads old files. What the class
has no field for is ignored, unless it has a field that `keeps_unknown`.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, NewType, TypeAlias, TypeVar, cast, get_args, get_origin

from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonForm:
    """How a value is written, where the name and the type of its field do not say it."""

    name: str = ""
    is_required: bool = False
    """Absent is an error, though the field has a default: every file has it."""
    omits_default: bool = False
    at_least: int | None = None
    """A smaller number is refused."""
    as_list: bool = False
    """A dataclass as the list of its values."""
    is_inline: bool = False
    """The fields of a dataclass stand after those of the one that holds it."""
    keeps_unknown: bool = False
    """A `JsonObject` with what no other field takes, written after them."""


NonNegative: TypeAlias = Annotated[int, JsonForm(at_least=0)]


def write_fields(value: object) -> JsonObject:
    """A dataclass as a JSON object."""
    return cast("JsonObject", _class_codec(type(value)).write(value))


def read_fields(kind: type[_T], wire: Json) -> _T:
    """The dataclass that an object stands for; `WireError` names the first field that does not fit."""
    return cast("_T", _class_codec(kind).read(wire, ""))


@dataclass(frozen=True, slots=True)
class _Codec:
    read: Callable[[Json, str], object]
    """Takes the name of the place too, for the error."""
    write: Callable[[object], Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class _FieldCodec:
    attribute: str
    name: str
    codec: _Codec
    form: JsonForm
    default: object
    """`MISSING`: the field has to be there."""
    names: tuple[str, ...]
    """The keys that it takes: its own, or those of the dataclass that stands inline."""

    @property
    def is_spread(self) -> bool:
        return self.form.is_inline or self.form.keeps_unknown

    def read(self, given: JsonObject, place: str, known: Sequence[str]) -> object:
        """Its value in an object, `MISSING` for the default; `known` are the names of all fields."""
        if self.is_spread:
            return given.without(*known) if self.form.keeps_unknown else self.codec.read(given, place)
        if self.name in given:
            return self.codec.read(given[self.name], _join(place, self.name))
        if self.default is MISSING or self.form.is_required:
            raise WireError(f"{_join(place, self.name)} is missing")
        return MISSING


@cache
def _class_codec(kind: type) -> _Codec:
    fields, build = _field_codecs(kind), cast("Callable[..., object]", kind)
    names = [name for each in fields for name in each.names]
    spread_last = sorted(fields, key=lambda each: each.is_spread)

    def read(wire: Json, place: str) -> object:
        given = _expect(wire, JsonObject, place, "an object")
        values = {each.attribute: each.read(given, place, names) for each in fields}
        return build(**{name: value for name, value in values.items() if value is not MISSING})

    def write(value: object) -> Json:
        wire: dict[str, Json] = {}
        for each in spread_last:
            part: object = getattr(value, each.attribute)
            if each.is_spread:
                wire |= cast("JsonObject", each.codec.write(part))
            elif not each.form.omits_default or part != each.default:
                wire[each.name] = each.codec.write(part)
        return JsonObject(wire)

    return _Codec(read, write)


def _field_codecs(kind: type) -> list[_FieldCodec]:
    hints: dict[str, object] = typing.get_type_hints(kind, include_extras=True)
    listed: tuple[Field[object], ...] = dataclasses.fields(kind)
    return [_field_codec(each, hints[each.name]) for each in listed if each.init]


def _field_codec(each: Field[object], hint: object) -> _FieldCodec:
    form = _form(hint)
    default = each.default if each.default_factory is MISSING else each.default_factory()
    name, inner = form.name or each.name, _plain_type(hint)
    names = (name,)
    if form.is_inline and isinstance(inner, type):
        names = tuple([key for below in _field_codecs(inner) for key in below.names])
    return _FieldCodec(
        attribute=each.name, name=name, codec=_codec(hint), form=form, default=default, names=names
    )


def _form(hint: object) -> JsonForm:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((each for each in notes if isinstance(each, JsonForm)), JsonForm())


def _codec(hint: object) -> _Codec:
    form, plain = _form(hint), _plain_type(hint)
    if plain is int:
        return _int_codec(form.at_least)
    if plain in _SCALARS:
        return _SCALARS[plain]
    if isinstance(plain, type) and dataclasses.is_dataclass(plain):
        return _row_codec(plain) if form.as_list else _class_codec(plain)
    return _generic_codec(_plain_type(hint))


def _plain_type(hint: object) -> object:
    """Without what annotates it, and below new types."""
    if isinstance(hint, NewType):
        return _plain_type(hint.__supertype__)
    return _plain_type(get_args(hint)[0]) if get_origin(hint) is Annotated else hint


def _generic_codec(hint: object) -> _Codec:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (typing.Union, UnionType) and NoneType in parts and len(parts) == 2:
        return _optional_codec(_codec(parts[0] if parts[1] is NoneType else parts[1]))
    if origin in (typing.Union, UnionType) and all(get_origin(part) is Literal for part in parts):
        return _choice_codec(tuple([choice for part in parts for choice in get_args(part)]))
    if origin is Literal:
        return _choice_codec(parts)
    if origin is tuple and parts[1:] == (...,):
        return _list_codec(_codec(parts[0]), tuple)
    if origin is frozenset:
        return _list_codec(_codec(parts[0]), frozenset)
    if origin is Mapping:
        return _map_codec(_codec(parts[1]), is_numbered=parts[0] is int)
    raise TypeError(f"{hint!r} has no JSON form; see the types that {__name__} knows")


def _row_codec(kind: type) -> _Codec:
    fields, build = _field_codecs(kind), cast("Callable[..., object]", kind)

    def read(wire: Json, place: str) -> object:
        if not isinstance(wire, tuple) or len(wire) != len(fields):
            raise _unfit(wire, place, f"a list of {len(fields)}")
        return build(
            **{
                each.attribute: each.codec.read(value, _join(place, each.name))
                for each, value in zip(fields, wire, strict=True)
            }
        )

    return _Codec(
        read, lambda value: tuple([one.codec.write(getattr(value, one.attribute)) for one in fields])
    )


def _optional_codec(inner: _Codec) -> _Codec:
    return _Codec(
        lambda wire, place: None if wire is None else inner.read(wire, place),
        lambda value: None if value is None else inner.write(value),
    )


def _list_codec(item: _Codec, build: Callable[[list[object]], object]) -> _Codec:
    def read(wire: Json, place: str) -> object:
        if not isinstance(wire, tuple):
            raise _unfit(wire, place, "a list")
        return build([item.read(value, f"{place}[{index}]") for index, value in enumerate(wire)])

    def write(value: object) -> Json:
        values = sorted(cast("frozenset[str]", value)) if isinstance(value, frozenset) else value
        return tuple([item.write(each) for each in cast("tuple[object, ...]", values)])

    return _Codec(read, write)


def _map_codec(item: _Codec, *, is_numbered: bool) -> _Codec:
    def read_key(key: str, place: str) -> str | int:
        if is_numbered and not (key.isascii() and key.isdigit()):
            raise _unfit(key, place, "a whole number")
        return int(key) if is_numbered else key

    def read(wire: Json, place: str) -> object:
        given = _expect(wire, JsonObject, place, "an object").items()
        return {read_key(key, place): item.read(value, _join(place, key)) for key, value in given}

    def write(value: object) -> Json:
        items = cast("Mapping[str | int, object]", value).items()
        return JsonObject({str(key): item.write(each) for key, each in items})

    return _Codec(read, write)


def _choice_codec(choices: tuple[object, ...]) -> _Codec:
    def read(wire: Json, place: str) -> object:
        if wire not in choices:
            raise _unfit(wire, place, f"one of {', '.join(map(str, choices))}")
        return wire

    return _Codec(read, _as_is)


def _int_codec(at_least: int | None) -> _Codec:
    expected = "a whole number" if at_least is None else f"a whole number of {at_least} or more"

    def read(wire: Json, place: str) -> int:
        if isinstance(wire, bool) or not isinstance(wire, int) or (at_least is not None and wire < at_least):
            raise _unfit(wire, place, expected)
        return wire

    return _Codec(read, _as_is)


def _scalar_codec(kind: type[_T], expected: str) -> _Codec:
    return _Codec(lambda wire, place: _expect(wire, kind, place, expected), _as_is)


def _read_time(wire: Json, place: str) -> datetime:
    try:
        found = datetime.fromisoformat(wire) if isinstance(wire, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise _unfit(wire, place, "a time with its zone")
    return found


def _read_decimal(wire: Json, place: str) -> Decimal:
    try:
        found = Decimal(wire) if isinstance(wire, str) else None
    except InvalidOperation:
        found = None
    if found is None or not found.is_finite():
        raise _unfit(wire, place, "a decimal number as text")
    return found


def _read_span(wire: Json, place: str) -> timedelta:
    if isinstance(wire, bool) or not isinstance(wire, (int, float)):
        raise _unfit(wire, place, "seconds")
    try:
        return timedelta(seconds=wire)
    except (ValueError, OverflowError) as error:
        raise _unfit(wire, place, "seconds") from error


def _expect(wire: Json, kind: type[_T], place: str, expected: str) -> _T:
    if not isinstance(wire, kind):
        raise _unfit(wire, place, expected)
    return wire


def _unfit(wire: Json, place: str, expected: str) -> WireError:
    return WireError(f"{place or 'it'} is {wire!r:.80}; expected {expected}")


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _as_is(value: object) -> Json:
    return cast("Json", value)


_SCALARS: Mapping[object, _Codec] = {
    str: _scalar_codec(str, "text"),
    bool: _scalar_codec(bool, "true or false"),
    JsonObject: _scalar_codec(JsonObject, "an object"),
    datetime: _Codec(_read_time, lambda value: cast("datetime", value).isoformat()),
    timedelta: _Codec(_read_span, lambda value: cast("timedelta", value).total_seconds()),
    Decimal: _Codec(_read_decimal, str),
    Path: _Codec(lambda wire, place: Path(_expect(wire, str, place, "a path")), str),
}
