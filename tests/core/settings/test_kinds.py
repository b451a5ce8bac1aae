"""What each kind of setting takes, and what a committed file may do to it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.settings.kinds import (
    MAX_INTEGER,
    ChoiceKind,
    IntegerKind,
    LimitsKind,
    LimitTable,
    NamesKind,
    PathKind,
    PercentKind,
    PriceKind,
    SettingKind,
    SettingValue,
    SwitchKind,
)

LIMIT = IntegerKind(1, MAX_INTEGER, lowerable=True)
AMOUNT = IntegerKind(0, 100, lowerable=False)
TABLE = LimitsKind(1, "limit_chars")
WORDS = ChoiceKind(("slow", "fast"))
KINDS: tuple[SettingKind, ...] = (
    LIMIT,
    AMOUNT,
    TABLE,
    WORDS,
    SwitchKind(),
    PercentKind(),
    PriceKind(),
    PathKind(),
    NamesKind(),
)


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (SwitchKind(), True, True),
        (SwitchKind(), False, False),
        (LIMIT, 1, 1),
        (LIMIT, MAX_INTEGER, MAX_INTEGER),
        (AMOUNT, 0, 0),
        (AMOUNT, 100, 100),
        (PercentKind(), 100, Decimal(100)),
        (PercentKind(), 0.5, Decimal("0.5")),
        (PercentKind(), Decimal("92.5"), Decimal("92.5")),
        (PriceKind(), 0.1, Decimal("0.1")),
        (PriceKind(), Decimal("0.000000001"), Decimal("0.000000001")),
        (PriceKind(), 0, Decimal(0)),
        (PathKind(), "/srv/memory", PurePath("/srv/memory")),
        (PathKind(), "~/memory", PurePath("~/memory")),
        (PathKind(), Path("/srv"), PurePath("/srv")),
        (WORDS, "fast", "fast"),
        (NamesKind(), ["Read", "mcp__x__y"], ("Read", "mcp__x__y")),
        (NamesKind(), (), ()),
        (TABLE, {"Bash": 5}, LimitTable({"Bash": 5})),
        (TABLE, {}, LimitTable()),
    ],
)
def test_a_kind_takes_what_it_allows(kind: SettingKind, raw: object, value: SettingValue) -> None:
    assert kind.read(raw) == value


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (SwitchKind(), 1),
        (SwitchKind(), "true"),
        (LIMIT, 0),
        (LIMIT, MAX_INTEGER + 1),
        (LIMIT, True),
        (LIMIT, 5.0),
        (LIMIT, "5"),
        (LIMIT, Decimal(5)),
        (AMOUNT, 101),
        (AMOUNT, -1),
        (PercentKind(), 0),
        (PercentKind(), 100.1),
        (PercentKind(), Decimal("NaN")),
        (PercentKind(), float("inf")),
        (PercentKind(), True),
        (PercentKind(), "50"),
        (PriceKind(), -1),
        (PriceKind(), 10**7),
        (PriceKind(), Decimal("0.0000000001")),
        (PriceKind(), Decimal("Infinity")),
        (PathKind(), ""),
        (PathKind(), "memory"),
        (PathKind(), "./memory"),
        (PathKind(), "~root/memory"),
        (PathKind(), "~/../etc"),
        (PathKind(), "/srv/../etc"),
        (PathKind(), "/srv\0"),
        (PathKind(), "/srv\x1b[31m"),
        (PathKind(), "/" + "x" * 5_000),
        (PathKind(), 5),
        (WORDS, "Fast"),
        (WORDS, 5),
        (NamesKind(), "Read"),
        (NamesKind(), ["Read", 5]),
        (NamesKind(), ["two words"]),
        (NamesKind(), [""]),
        (TABLE, {"Bash": 0}),
        (TABLE, {"Bash": "5"}),
        (TABLE, {"two words": 5}),
        (TABLE, {5: 5}),
        (TABLE, [5]),
    ],
)
def test_a_kind_refuses_everything_else(kind: SettingKind, raw: object) -> None:
    assert kind.read(raw) is None
    assert kind.allowed


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (SwitchKind(), "1", True),
        (SwitchKind(), " Yes ", True),
        (SwitchKind(), "OFF", False),
        (SwitchKind(), "maybe", None),
        (LIMIT, "50000", 50_000),
        (LIMIT, "50_000", 50_000),
        (LIMIT, " 7 ", 7),
        (LIMIT, "-1", None),
        (LIMIT, "5e3", None),
        (LIMIT, "٥", None),
        (LIMIT, "9" * 5_000, None),
        (PercentKind(), "92.5", Decimal("92.5")),
        (PercentKind(), "92,5", None),
        (PercentKind(), "9" * 5_000, None),
        (PriceKind(), "0.10", Decimal("0.10")),
        (PriceKind(), "free", None),
        (PathKind(), "/srv", PurePath("/srv")),
        (PathKind(), "srv", None),
        (WORDS, " slow ", "slow"),
        (WORDS, "quick", None),
        (NamesKind(), "Read, Grep", ("Read", "Grep")),
        (NamesKind(), "Read,,Grep", None),
        (TABLE, "Bash=5, Grep=7", LimitTable({"Bash": 5, "Grep": 7})),
        (TABLE, "Bash", None),
        (TABLE, "Bash=x", None),
    ],
)
def test_the_environment_is_read_as_text(kind: SettingKind, text: str, value: SettingValue | None) -> None:
    assert kind.read_text(text) == value


@pytest.mark.parametrize(
    ("kind", "value", "default", "is_allowed"),
    [
        (SwitchKind(), False, True, True),
        (SwitchKind(), True, True, True),
        (SwitchKind(), True, False, False),
        (LIMIT, 10, 50, True),
        (LIMIT, 50, 50, True),
        (LIMIT, 51, 50, False),
        (LIMIT, 10, None, False),
        (AMOUNT, 1, 50, False),
        (PercentKind(), Decimal(10), None, False),
        (PercentKind(), Decimal(10), Decimal(50), True),
        (PriceKind(), Decimal(0), None, False),
        (PathKind(), PurePath("/"), None, False),
        (WORDS, "slow", "fast", False),
        (WORDS, "fast", "fast", True),
        (NamesKind(), (), ("Read",), False),
        (TABLE, LimitTable({"Bash": 50_000}), 50_000, True),
        (TABLE, LimitTable({"Bash": 50_001}), 50_000, False),
        (TABLE, LimitTable({"Bash": 1}), None, False),
    ],
)
def test_a_committed_file_may_switch_off_and_lower_only(
    kind: SettingKind, value: SettingValue, default: SettingValue | None, is_allowed: bool
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
def test_no_value_whatever_makes_a_kind_fail(kind: SettingKind, raw: object, text: str) -> None:
    for value in (kind.read(raw), kind.read_text(text)):
        assert value is None or kind.read(value) == value


def test_limits_are_values() -> None:
    one, other = LimitTable({"a": 1, "b": 2}), LimitTable({"b": 2, "a": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one != LimitTable({"a": 1})
    assert repr(LimitTable({"a": 1})) == "Limits({'a': 1})"
