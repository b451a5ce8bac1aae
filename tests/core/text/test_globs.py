"""A pattern names the paths that a person would expect, in time that no pattern can stretch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.text.globs import MAX_ALTERNATIVES, expand_braces, matches_path

PARTS = st.lists(st.text("ab.", min_size=1, max_size=3), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("pattern", "path", "is_named"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "src/deep/a.py", True),
        ("src/**", "src/a/b", True),
        ("src/**", "src", True),
        ("src/**/test_*.py", "src/a/b/test_x.py", True),
        ("src/**/b/**/c", "src/b/x/b/c", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/b/c", False),
        ("a?c", "abc", True),
        ("[ab]c", "bc", True),
        ("A.py", "a.py", False),
        ("a*", "a/b", False),
    ],
)
def test_a_pattern_names_a_path(pattern: str, path: str, is_named: bool) -> None:
    assert matches_path(pattern, path) is is_named


@given(PARTS)
def test_two_stars_name_everything_and_a_path_names_itself(parts: list[str]) -> None:
    path = "/".join(parts)
    assert matches_path("**", path)
    assert matches_path(path, path)
    assert matches_path(f"{parts[0]}/**", path)


@given(PARTS, st.lists(st.sampled_from(["**", "*", "a", "b"]), min_size=1, max_size=5))
def test_a_pattern_says_what_trying_every_way_says(parts: list[str], pattern: list[str]) -> None:
    assert matches_path("/".join(pattern), "/".join(parts)) is every_way(pattern, parts)


def every_way(pattern: list[str], parts: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(every_way(pattern[1:], parts[skip:]) for skip in range(len(parts) + 1))
    is_first = bool(parts) and pattern[0] in ("*", parts[0])
    return is_first and every_way(pattern[1:], parts[1:])


def test_a_hostile_pattern_takes_no_time() -> None:
    assert not matches_path("/".join(["**", "a"] * 200 + ["b"]), "/".join(["a"] * 400))
    assert not matches_path("*a" * 100 + "b", "a" * 4_000)


def test_braces_stand_for_either() -> None:
    assert expand_braces("*.{ts,tsx}") == ("*.ts", "*.tsx")
    assert expand_braces("{a,b}/{c,d}") == ("a/c", "a/d", "b/c", "b/d")
    assert expand_braces("{a,{b,c}}") == ("a", "b", "c")
    assert expand_braces("plain") == ("plain",)


def test_too_many_braces_are_taken_as_they_stand() -> None:
    pattern = "{a,b}" * 40
    assert expand_braces(pattern) == (pattern,)
    assert len(expand_braces("{a,b}" * 6)) == MAX_ALTERNATIVES
