"""Settings in the user's own words: lines, and lines by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.cli.settings import format_value
from sevenfold.core.json import JsonObject
from sevenfold.core.settings.kinds import (
    MAX_SETTING_LINES,
    LineKind,
    LinesKind,
    PairsKind,
    SettingKind,
    SettingValue,
)

KINDS: tuple[SettingKind, ...] = (LineKind(), LinesKind(), PairsKind())


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (LineKind(), "npx -y some server", "npx -y some server"),
        (LineKind(), "", None),
        (LineKind(), "two\nlines", None),
        (LineKind(), "\x1b[2J", None),
        (LineKind(), 5, None),
        (LinesKind(), ["shell(git status *)", "a, b"], ("shell(git status *)", "a, b")),
        (LinesKind(), [], ()),
        (LinesKind(), ["fine", ""], None),
        (LinesKind(), "a line alone", None),
        (LinesKind(), ["x"] * (MAX_SETTING_LINES + 1), None),
        (PairsKind(), {"TOKEN": "s e c"}, JsonObject({"TOKEN": "s e c"})),
        (PairsKind(), {"TOKEN": ""}, JsonObject({"TOKEN": ""})),
        (PairsKind(), {"TO KEN": "x"}, None),
        (PairsKind(), {"TOKEN": 5}, None),
        (PairsKind(), {5: "x"}, None),
    ],
)
def test_a_kind_takes_what_it_says_and_nothing_else(
    kind: SettingKind, raw: object, value: SettingValue | None
) -> None:
    assert kind.read(raw) == value


def test_the_environment_has_one_on_each_line() -> None:
    assert LinesKind().read_text("one, with a comma\n\ntwo") == ("one, with a comma", "two")
    assert PairsKind().read_text("A=1\nB=x=y") == JsonObject({"A": "1", "B": "x=y"})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_committed_file_may_set_none_of_them(kind: SettingKind) -> None:
    value = kind.read_text("A=1")
    assert value is not None
    assert (kind.objection(value, None) or "").startswith("a committed file")
    assert kind.objection(value, value) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(KINDS), ANYTHING, st.text())
def test_what_was_read_once_reads_the_same_again(kind: SettingKind, raw: object, text: str) -> None:
    for value in (kind.read(raw), kind.read_text(text)):
        assert value is None or kind.read(value) == value


def test_a_value_that_may_be_secret_is_not_spelled() -> None:
    assert format_value(JsonObject({"TOKEN": "sk-1", "B": "x"})) == "{TOKEN = …, B = …}"
