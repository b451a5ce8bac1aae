from __future__ import annotations

import copy
import json
import math
import pickle
import re
from collections.abc import Mapping
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import InputError, WireError
from sevenfold.core.json import (
    EMPTY_OBJECT,
    MAX_INT_DIGITS,
    MAX_NESTING,
    Json,
    JsonObject,
    freeze,
    get_choice,
    get_flag,
    get_integer,
    get_string,
    iterate_texts,
    nesting_depth,
    read_json,
    read_object,
    thaw,
    write_json,
)
from tests.core import wires


def nested(levels: int, core: str = "1") -> str:
    return "[" * levels + core + "]" * levels


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


@given(st.data(), wires.anything)
def test_text_is_read_the_same_as_text_and_as_bytes(data: st.DataObject, value: object) -> None:
    text = data.draw(wires.spelled(value))
    assert write_json(read_json(text)) == write_json(read_json(wires.as_bytes(text)))


@given(wires.anything)
def test_what_was_written_reads_back_equal(value: object) -> None:
    frozen = freeze({"value": value})
    again = read_json(write_json(frozen))
    assert again == frozen
    assert hash(again) == hash(frozen)
    assert write_json(again) == write_json(frozen)


@given(wires.anything)
def test_freezing_and_thawing_gives_plain_json_back(value: object) -> None:
    assert thaw(freeze(value)) == thaw(freeze(thaw(freeze(value))))


@given(wires.objects)
def test_objects_are_equal_whatever_the_order_of_their_keys(value: wires.Wire) -> None:
    backwards = dict(reversed(list(value.items())))
    assert freeze(value) == freeze(backwards)
    assert hash(freeze(value)) == hash(freeze(backwards))


@given(wires.anything, wires.anything)
def test_values_are_equal_exactly_when_their_sorted_bytes_are(left: object, right: object) -> None:
    one, other = freeze({"value": left}), freeze({"value": right})
    assert (one == other) == (write_json(one, sort_keys=True) == write_json(other, sort_keys=True))


@pytest.mark.parametrize(
    ("left", "right"),
    [("1", "true"), ("1", "1.0"), ("0", "false"), ("0.0", "-0.0"), ('"1"', "1"), ("1e400", "10e399")],
)
def test_values_that_differ_on_the_wire_differ_as_values(left: str, right: str) -> None:
    one, other = read_object(f'{{"a":[{left}]}}'), read_object(f'{{"a":[{right}]}}')
    assert one != other
    assert len({one, other}) == 2


def test_an_object_is_not_equal_to_a_dict_that_could_change() -> None:
    assert JsonObject({"a": 1}) != cast("object", {"a": 1})


def test_an_object_cannot_be_changed() -> None:
    source: dict[str, Json] = {"a": 1}
    value = JsonObject(source)
    source["a"] = 2
    assert value["a"] == 1
    with pytest.raises(TypeError):
        value["a"] = 2  # pyright: ignore[reportIndexIssue]
    with pytest.raises(AttributeError):
        value.more = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_freezing_copies_all_the_way_down() -> None:
    source = {"a": [{"b": 1}]}
    value = freeze(source)
    source["a"][0]["b"] = 2
    assert write_json(value) == b'{"a":[{"b":1}]}'


def test_a_value_survives_copying_and_pickling() -> None:
    value = freeze({"a": [1, {"b": None}]})
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_an_object_keeps_the_order_of_its_keys_unless_told_to_sort() -> None:
    value = read_json('{"b":1,"a":2}')
    assert write_json(value) == b'{"b":1,"a":2}'
    assert write_json(value, sort_keys=True) == b'{"a":2,"b":1}'


def test_the_last_of_two_equal_keys_counts() -> None:
    assert read_json('{"a":1,"a":2}') == JsonObject({"a": 2})


def test_without_leaves_the_rest() -> None:
    assert JsonObject({"a": 1, "b": 2, "c": 3}).without("a", "c", "z") == JsonObject({"b": 2})
    assert not EMPTY_OBJECT


@pytest.mark.parametrize(
    "text", ["1e400", "-1E+400", "123e9999", "1" * (MAX_INT_DIGITS + 1), "-" + "9" * 5000]
)
def test_a_number_too_large_for_python_keeps_its_digits(text: str) -> None:
    value = read_object(f'{{"n":{text}}}')
    assert isinstance(value["n"], Decimal)
    assert value["n"] == Decimal(text)
    assert read_json(write_json(value)) == value


@pytest.mark.parametrize("digits", [MAX_INT_DIGITS - 1, MAX_INT_DIGITS, MAX_INT_DIGITS + 1, 5000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_long_integer_is_the_same_value_read_or_handed_in(digits: int, sign: str) -> None:
    read = read_object(f'{{"n":{sign}{"7" * digits}}}')
    number = int(sign + "7") if digits == 1 else 7 * (10**digits - 1) // 9 * (-1 if sign else 1)
    assert read == freeze({"n": number})
    assert write_json(read) == f'{{"n":{sign}{"7" * digits}}}'.encode()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("Infinity")])
def test_a_number_with_no_json_form_is_refused(value: object) -> None:
    with pytest.raises(WireError, match="no JSON form"):
        freeze([value])


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), 1j])
def test_a_value_that_is_no_json_is_refused_by_its_type(value: object) -> None:
    with pytest.raises(WireError, match=type(value).__name__):
        freeze({"a": value})


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(WireError, match="1"):
        freeze({1: "a"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nul",
        "[1,]",
        "NaN",
        "Infinity",
        "-Infinity",
        '"\x01"',
        "1 2",
        b"\xff",
        "1e99999999999999999999999",
    ],
)
def test_text_that_cannot_be_read_is_a_wire_error(text: str | bytes) -> None:
    with pytest.raises(WireError, match="JSON"):
        read_json(text)


@given(st.binary() | st.text())
def test_reading_fails_in_no_other_way_than_a_wire_error(noise: bytes | str) -> None:
    try:
        value = read_json(noise)
    except WireError:
        return
    assert read_json(write_json(value)) == value


@pytest.mark.parametrize("text", ["[]", "1", "null", '"{}"'])
def test_an_object_is_expected_where_one_is_asked_for(text: str) -> None:
    with pytest.raises(WireError, match="object"):
        read_object(text)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, {"b": b"x"}]}, "a[1].b"),
        ([{"a": 1, 2: 3}], "[0]"),
        ({"a": {"b": [float("inf")]}}, "a.b[0]"),
    ],
)
def test_what_is_no_json_is_named_by_its_place(value: object, place: str) -> None:
    with pytest.raises(WireError, match=rf"^{re.escape(place)}: "):
        freeze(value)


def test_a_value_that_holds_itself_twice_is_refused_at_once() -> None:
    value: list[object] = []
    value += [value, value]
    with pytest.raises(WireError, match="holds itself"):
        freeze({"in": value})


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 500, 5_000, 200_000])
def test_nesting_has_a_limit_that_is_told(levels: int) -> None:
    with pytest.raises(WireError, match=str(MAX_NESTING)):
        read_json(nested(levels))


@pytest.mark.parametrize("core", ["1", "1e400"], ids=["plain", "spelled the slow way"])
def test_a_value_as_deep_as_allowed_can_do_everything(core: str) -> None:
    value = read_json('{"a":' * MAX_NESTING + core + "}" * MAX_NESTING)
    again = read_json(write_json(value))
    assert nesting_depth(value) == MAX_NESTING
    assert again == value
    assert hash(again) == hash(value)
    assert freeze(thaw(value)) == value
    assert repr(again) == repr(value)


@pytest.mark.parametrize(("text", "levels"), [("1", 0), ("[]", 1), ("[[],[[1]]]", 3), ('{"a":{"b":[]}}', 3)])
def test_nesting_counts_lists_and_objects(text: str, levels: int) -> None:
    assert nesting_depth(read_json(text)) == levels


def test_halves_of_a_surrogate_pair_that_meet_become_one_character() -> None:
    halves = "\ud83d" + "\ude00"
    assert freeze(halves) == "\U0001f600"
    assert read_json(wires.as_bytes(json.dumps(halves, ensure_ascii=False))) == "\U0001f600"
    assert freeze({halves: 1}) == freeze({"\U0001f600": 1})


def test_half_a_surrogate_pair_is_written_as_its_escape() -> None:
    assert write_json("a\ud83d") == b'"a\\ud83d"'
    assert read_json(b'"a\\ud83d"') == "a\ud83d"


def test_enumerations_freeze_to_what_they_are_on_the_wire() -> None:
    value = freeze({"colour": Colour.RED, "size": Size.SMALL})
    assert isinstance(value, Mapping)
    assert [type(item) for item in value.values()] == [str, int]
    assert value == read_json('{"colour":"red","size":1}')


class Dumped:
    """As the values of an SDK are."""

    def __init__(self, found: object) -> None:
        self.found = found

    def model_dump(self, *, mode: str, by_alias: bool, exclude_unset: bool) -> object:
        assert (mode, by_alias, exclude_unset) == ("json", True, True)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def test_a_value_of_an_sdk_is_frozen_as_the_sdk_would_send_it() -> None:
    assert freeze({"said": Dumped({"type": "text"})}) == freeze({"said": {"type": "text"}})


def test_a_value_of_an_sdk_that_cannot_be_dumped_is_named_with_the_reason() -> None:
    with pytest.raises(WireError, match=r"model_dump of a Dumped failed: KeyError: 'type'; send a dict"):
        freeze({"said": Dumped(KeyError("type"))})


def test_a_string_has_its_default_where_it_is_missing_or_null_and_is_required_without_one() -> None:
    given = JsonObject({"there": "a", "null": None, "number": 1})
    assert get_string(given, "there", "b") == "a"
    assert [get_string(given, key, "b") for key in ("missing", "null")] == ["b", "b"]
    for key in ("missing", "null", "number"):
        with pytest.raises(InputError, match=f"{key} is .*; expected text"):
            get_string(given, key)


def test_a_number_is_taken_as_number_or_text_within_its_bounds() -> None:
    given = JsonObject({"one": 1, "text": " 12 ", "most": 20, "null": None})
    assert [get_integer(given, key, 7, at_least=1, at_most=20) for key in given] == [1, 12, 20, 7]
    assert get_integer(given, "missing", 7, at_least=9) == 7
    for wrong in (0, 21, True, 1.5, "x", "-1", "", "1" * 20, ("1",)):
        with pytest.raises(InputError, match="expected a whole number from 1 to 20"):
            get_integer(JsonObject({"n": wrong}), "n", 7, at_least=1, at_most=20)
    assert get_integer(JsonObject({"n": "1" * 19}), "n", 7, at_least=1, at_most=10**19) == int("1" * 19)


def test_a_flag_is_taken_as_itself_or_its_word() -> None:
    given = JsonObject({"yes": True, "no": False, "True": "True", "false": "false", "null": None})
    assert [get_flag(given, key) for key in (*given, "missing")] == [True, False, True, False, False, False]
    for wrong in (1, 0, "yes", "", ()):
        with pytest.raises(InputError, match="expected true or false"):
            get_flag(JsonObject({"flag": wrong}), "flag")


def test_a_choice_is_one_of_its_words() -> None:
    given = JsonObject({"kind": "a", "other": "c"})
    assert get_choice(given, "kind", ("a", "b")) == "a"
    assert get_choice(given, "missing", ("a", "b"), "b") == "b"
    for key, default in (("other", None), ("missing", "c"), ("missing", None)):
        with pytest.raises(InputError):
            get_choice(given, key, ("a", "b"), default)


def test_texts_are_found_at_any_depth_in_order_and_keys_are_not() -> None:
    value = freeze({"a": "one", "b": [2, {"c": "three", "d": None}, "four"], "e": True})
    assert list(iterate_texts(value)) == ["one", "three", "four"]
