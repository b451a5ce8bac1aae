"""What each kind of setting takes, and what a committed file may do to it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.setting_kinds import (
    MAX_WHOLE,
    Choice,
    Kind,
    Limits,
    Names,
    Percent,
    Place,
    Price,
    Switch,
    Table,
    Value,
    Whole,
)

LIMIT = Whole(1, MAX_WHOLE, lowerable=True)
AMOUNT = Whole(0, 100, lowerable=False)
TABLE = Table(1, "limit_chars")
WORDS = Choice(("slow", "fast"))
KINDS: tuple[Kind, ...] = (LIMIT, AMOUNT, TABLE, WORDS, Switch(), Percent(), Price(), Place(), Names())


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (Switch(), True, True),
        (Switch(), False, False),
        (LIMIT, 1, 1),
        (LIMIT, MAX_WHOLE, MAX_WHOLE),
        (AMOUNT, 0, 0),
        (AMOUNT, 100, 100),
        (Percent(), 100, Decimal(100)),
        (Percent(), 0.5, Decimal("0.5")),
        (Percent(), Decimal("92.5"), Decimal("92.5")),
        (Price(), 0.1, Decimal("0.1")),
        (Price(), Decimal("0.000000001"), Decimal("0.000000001")),
        (Price(), 0, Decimal(0)),
        (Place(), "/srv/memory", PurePath("/srv/memory")),
        (Place(), "~/memory", PurePath("~/memory")),
        (Place(), Path("/srv"), PurePath("/srv")),
        (WORDS, "fast", "fast"),
        (Names(), ["Read", "mcp__x__y"], ("Read", "mcp__x__y")),
        (Names(), (), ()),
        (TABLE, {"Bash": 5}, Limits({"Bash": 5})),
        (TABLE, {}, Limits()),
    ],
)
def test_a_kind_takes_what_it_allows(kind: Kind, raw: object, value: Value) -> None:
    assert kind.read(raw) == value


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (Switch(), 1),
        (Switch(), "true"),
        (LIMIT, 0),
        (LIMIT, MAX_WHOLE + 1),
        (LIMIT, True),
        (LIMIT, 5.0),
        (LIMIT, "5"),
        (LIMIT, Decimal(5)),
        (AMOUNT, 101),
        (AMOUNT, -1),
        (Percent(), 0),
        (Percent(), 100.1),
        (Percent(), Decimal("NaN")),
        (Percent(), float("inf")),
        (Percent(), True),
        (Percent(), "50"),
        (Price(), -1),
        (Price(), 10**7),
        (Price(), Decimal("0.0000000001")),
        (Price(), Decimal("Infinity")),
        (Place(), ""),
        (Place(), "memory"),
        (Place(), "./memory"),
        (Place(), "~root/memory"),
        (Place(), "~/../etc"),
        (Place(), "/srv/../etc"),
        (Place(), "/srv\0"),
        (Place(), "/srv\x1b[31m"),
        (Place(), "/" + "x" * 5_000),
        (Place(), 5),
        (WORDS, "Fast"),
        (WORDS, 5),
        (Names(), "Read"),
        (Names(), ["Read", 5]),
        (Names(), ["two words"]),
        (Names(), [""]),
        (TABLE, {"Bash": 0}),
        (TABLE, {"Bash": "5"}),
        (TABLE, {"two words": 5}),
        (TABLE, {5: 5}),
        (TABLE, [5]),
    ],
)
def test_a_kind_refuses_everything_else(kind: Kind, raw: object) -> None:
    assert kind.read(raw) is None
    assert kind.allowed


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Switch(), "1", True),
        (Switch(), " Yes ", True),
        (Switch(), "OFF", False),
        (Switch(), "maybe", None),
        (LIMIT, "50000", 50_000),
        (LIMIT, "50_000", 50_000),
        (LIMIT, " 7 ", 7),
        (LIMIT, "-1", None),
        (LIMIT, "5e3", None),
        (LIMIT, "٥", None),
        (LIMIT, "9" * 5_000, None),
        (Percent(), "92.5", Decimal("92.5")),
        (Percent(), "92,5", None),
        (Percent(), "9" * 5_000, None),
        (Price(), "0.10", Decimal("0.10")),
        (Price(), "free", None),
        (Place(), "/srv", PurePath("/srv")),
        (Place(), "srv", None),
        (WORDS, " slow ", "slow"),
        (WORDS, "quick", None),
        (Names(), "Read, Grep", ("Read", "Grep")),
        (Names(), "Read,,Grep", None),
        (TABLE, "Bash=5, Grep=7", Limits({"Bash": 5, "Grep": 7})),
        (TABLE, "Bash", None),
        (TABLE, "Bash=x", None),
    ],
)
def test_the_environment_is_read_as_text(kind: Kind, text: str, value: Value | None) -> None:
    assert kind.read_text(text) == value


@pytest.mark.parametrize(
    ("kind", "value", "default", "is_allowed"),
    [
        (Switch(), False, True, True),
        (Switch(), True, True, True),
        (Switch(), True, False, False),
        (LIMIT, 10, 50, True),
        (LIMIT, 50, 50, True),
        (LIMIT, 51, 50, False),
        (LIMIT, 10, None, False),
        (AMOUNT, 1, 50, False),
        (Percent(), Decimal(10), None, False),
        (Percent(), Decimal(10), Decimal(50), True),
        (Price(), Decimal(0), None, False),
        (Place(), PurePath("/"), None, False),
        (WORDS, "slow", "fast", False),
        (WORDS, "fast", "fast", True),
        (Names(), (), ("Read",), False),
        (TABLE, Limits({"Bash": 50_000}), 50_000, True),
        (TABLE, Limits({"Bash": 50_001}), 50_000, False),
        (TABLE, Limits({"Bash": 1}), None, False),
    ],
)
def test_a_committed_file_may_switch_off_and_lower_only(
    kind: Kind, value: Value, default: Value | None, is_allowed: bool
) -> None:
    objection = kind.objection(value, default)
    assert (objection is None) == is_allowed
    assert objection is None or objection.startswith("a committed file")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.decimals() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(KINDS), ANYTHING, st.text())
def test_no_value_whatever_makes_a_kind_fail(kind: Kind, raw: object, text: str) -> None:
    for value in (kind.read(raw), kind.read_text(text)):
        assert value is None or kind.read(value) == value


def test_limits_are_values() -> None:
    one, other = Limits({"a": 1, "b": 2}), Limits({"b": 2, "a": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one != Limits({"a": 1})
    assert repr(Limits({"a": 1})) == "Limits({'a': 1})"
