"""Dataclasses as JSON: what is written, what is read back, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, NewType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import WireError
from sevenfold.core.fields import JsonForm, NonNegative, read_fields, write_fields
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, freeze_object, read_object, write_json

Name = NewType("Name", str)
WHEN = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: NonNegative = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    name: Name
    size: NonNegative
    kind: Literal["small", "large"] = "small"
    is_new: Annotated[bool, JsonForm(name="new")] = True
    at: datetime | None = None
    lasts: timedelta = timedelta()
    points: tuple[Point, ...] = ()
    rows: Mapping[Name, Annotated[Point, JsonForm(as_list=True)]] = field(default_factory=dict[Name, Point])
    slots: Mapping[int, str] = field(default_factory=dict[int, str])
    words: frozenset[str] = frozenset()
    note: Annotated[str, JsonForm(omits_default=True)] = ""
    middle: Annotated[Point, JsonForm(is_inline=True)] = Point(0)
    extra: Annotated[JsonObject, JsonForm(keeps_unknown=True)] = EMPTY_OBJECT


FULL = Everything(
    name=Name("a"),
    size=3,
    kind="large",
    is_new=False,
    at=WHEN,
    lasts=timedelta(seconds=1.5),
    points=(Point(1, 2), Point(-3)),
    rows={Name("r"): Point(4, 5)},
    slots={7: "seven"},
    words=frozenset({"b", "a"}),
    note="n",
    middle=Point(8, 9),
    extra=freeze_object({"later": [1, None]}),
)
FULL_JSON = (
    '{"name":"a","size":3,"kind":"large","new":false,"at":"2026-11-15T09:30:00+00:00","lasts":1.5,'
    '"points":[{"x":1,"y":2},{"x":-3,"y":0}],"rows":{"r":[4,5]},"slots":{"7":"seven"},"words":["a","b"],'
    '"note":"n","x":8,"y":9,"later":[1,null]}'
)


def test_fields_are_written_in_their_order_with_those_of_others_last() -> None:
    assert write_json(write_fields(FULL)).decode() == FULL_JSON


def test_what_was_written_is_read_back() -> None:
    assert read_fields(Everything, read_object(FULL_JSON)) == FULL


def test_a_default_is_left_out_where_the_form_says_so() -> None:
    assert "note" not in write_fields(replace(FULL, note=""))


def test_absent_fields_take_their_defaults_and_unknown_ones_are_kept() -> None:
    wire = freeze_object({"name": "a", "size": 0, "x": 1, "later": "kept"})
    expected = Everything(name=Name("a"), size=0, middle=Point(1), extra=JsonObject({"later": "kept"}))
    assert read_fields(Everything, wire) == expected
    assert write_fields(expected)["later"] == "kept"


def test_unknown_fields_are_ignored_by_a_class_that_keeps_none() -> None:
    assert read_fields(Point, freeze_object({"x": 1, "z": 2})) == Point(1)


@given(st.builds(Point, st.integers(), st.integers(0)), st.text(), st.datetimes(timezones=st.just(UTC)))
def test_values_survive_their_json(point: Point, note: str, at: datetime) -> None:
    value = replace(FULL, points=(point,), note=note, at=at)
    assert read_fields(Everything, read_object(write_json(write_fields(value)))) == value


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("name", 1, "name is 1; expected text"),
        ("size", -1, "size is -1; expected a whole number of 0 or more"),
        ("size", True, "size is True; expected a whole number of 0 or more"),
        ("kind", "huge", "kind is 'huge'; expected one of small, large"),
        ("new", 1, "new is 1; expected true or false"),
        ("at", "2026-11-15T09:30:00", "at is '2026-11-15T09:30:00'; expected a time with its zone"),
        ("at", "soon", "at is 'soon'; expected a time with its zone"),
        ("lasts", "1", "lasts is '1'; expected seconds"),
        ("lasts", 1e30, "lasts is 1e+30; expected seconds"),
        ("points", "none", "points is 'none'; expected a list"),
        ("points", [{"x": 1}, {}], "points[1].x is missing"),
        ("points", [1], "points[0] is 1; expected an object"),
        ("rows", {"r": [1]}, "rows.r is (1,); expected a list of 2"),
        ("rows", {"r": [1, "2"]}, "rows.r.y is '2'; expected a whole number of 0 or more"),
        ("slots", {"x": "1"}, "slots is 'x'; expected a whole number"),
        ("slots", [], "slots is (); expected an object"),
        ("words", ["a", 1], "words[1] is 1; expected text"),
    ],
)
def test_a_field_that_does_not_fit_is_named(key: str, value: object, said: str) -> None:
    wire = freeze_object({**read_object(FULL_JSON), key: value})
    with pytest.raises(WireError) as caught:
        read_fields(Everything, wire)
    assert str(caught.value) == said


@dataclass(frozen=True, slots=True)
class Sure:
    size: Annotated[int, JsonForm(is_required=True)] = 0


def test_a_field_that_every_file_has_must_be_there() -> None:
    with pytest.raises(WireError, match="size is missing"):
        read_fields(Sure, EMPTY_OBJECT)


@pytest.mark.parametrize("wire", [None, (), "x", 1])
def test_what_is_no_object_is_refused(wire: Json) -> None:
    with pytest.raises(WireError, match="expected an object"):
        read_fields(Point, wire)


@dataclass(frozen=True, slots=True)
class Priced:
    usd: Decimal
    path: Path
    kind: Literal["a"] | Literal["b", "c"] = "a"


def test_prices_paths_and_joined_choices_are_read_back() -> None:
    value = Priced(Decimal("0.10"), Path("/srv/app"), "c")
    wire = write_fields(value)
    assert write_json(wire) == b'{"usd":"0.10","path":"/srv/app","kind":"c"}'
    assert read_fields(Priced, wire) == value


@pytest.mark.parametrize(
    ("key", "given"), [("usd", "NaN"), ("usd", "x"), ("usd", 1), ("path", 1), ("kind", "d")]
)
def test_what_is_no_price_path_or_choice_is_refused(key: str, given: object) -> None:
    wire = {"usd": "1", "path": "/", "kind": "a", key: given}
    with pytest.raises(WireError, match=key):
        read_fields(Priced, freeze_object(wire))


@dataclass(frozen=True, slots=True)
class Odd:
    either: int | str


def test_a_type_without_a_json_form_is_named() -> None:
    with pytest.raises(TypeError, match=r"int \| str has no JSON form"):
        write_fields(Odd(1))
