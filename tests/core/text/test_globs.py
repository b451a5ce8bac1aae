"""A pattern names the paths that a person would expect, in time that no pattern can stretch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.text.globs import (
    MAX_ALTERNATIVES,
    MAX_PATHS_EACH,
    ShellPaths,
    expand_braces,
    find_shell_paths,
    find_text_paths,
    is_ignored,
    matches_path,
    parse_ignore_rules,
)

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


@pytest.mark.parametrize(
    ("rules", "path", "is_left_out"),
    [
        ("*.pyc", "a/b.pyc", True),
        ("*.pyc", "a/b.py", False),
        ("# *.py", "a.py", False),
        ("", "a.py", False),
        ("/", "a", False),
        ("build", "deep/build", True),
        ("/build", "build", True),
        ("/build", "deep/build", False),
        ("docs/api", "docs/api", True),
        ("docs/api", "deep/docs/api", False),
        ("build/", "build", False),
        ("build/", "build/", True),
        ("deep/build/", "deep/build/", True),
        ("*.log\n!keep.log", "keep.log", False),
        ("!keep.log\n*.log", "keep.log", True),
        ("*.log\n!keep.log\nkeep.*", "keep.log", True),
        ("\\#odd", "#odd", True),
        ("\\!odd", "!odd", True),
        ("\\*", "*", True),
        ("\\*", "a", False),
        ("logs/**", "logs/a/b", True),
        ("logs/**", "logs/", False),
        ("a.txt   ", "a.txt", True),
        ("a.txt\\ ", "a.txt ", True),
        ("a.txt\r", "a.txt", True),
    ],
)
def test_ignore_rules_say_what_git_says(rules: str, path: str, is_left_out: bool) -> None:
    parts = path.strip("/").split("/")
    found = is_ignored(parts, parse_ignore_rules(rules, ()), is_folder=path.endswith("/"))
    assert found is is_left_out


def test_rules_of_a_folder_hold_below_it_alone() -> None:
    rules = parse_ignore_rules("*.log\n/top\n", ("deep",))
    assert is_ignored(("deep", "a.log"), rules, is_folder=False)
    assert is_ignored(("deep", "more", "a.log"), rules, is_folder=False)
    assert is_ignored(("deep", "top"), rules, is_folder=True)
    assert not is_ignored(("a.log",), rules, is_folder=False)
    assert not is_ignored(("other", "a.log"), rules, is_folder=False)
    assert not is_ignored(("deep", "more", "top"), rules, is_folder=True)


def test_a_pattern_without_braces_is_itself() -> None:
    assert list(expand_braces("src/*.py")) == ["src/*.py"]
    assert sorted(expand_braces("{a,b}.{c,d}")) == ["a.c", "a.d", "b.c", "b.d"]


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("cat src/a.py", ShellPaths(read=("src/a.py",))),
        ("cat src/a.py | grep x", ShellPaths(read=("src/a.py",), searches=True)),
        ("cd api && sed -n 1,9p src/a.py lib/b.py", ShellPaths(read=("src/a.py", "lib/b.py"))),
        ("grep -rn word src/api", ShellPaths(mentioned=("src/api",), searches=True)),
        ("make docs/page.md", ShellPaths(mentioned=("docs/page.md",))),
        ("sort in.txt > out.txt", ShellPaths(written=("out.txt",), mentioned=("in.txt",))),
        ("make | tee -a logs/make.txt", ShellPaths(written=("logs/make.txt",))),
        ("make > /dev/null", ShellPaths()),
        ("cat > a.py <<'EOF'\nfrom lib/x.py import y\nEOF\n", ShellPaths(written=("a.py",))),
        (
            "apply_patch <<X\n*** Update File: src/a.py\n*** Add File: b.py \n*** Update File: src/a.py\nX",
            ShellPaths(patched=("src/a.py", "b.py")),
        ),
    ],
)
def test_the_paths_of_a_command_are_found_by_what_it_does(line: str, paths: ShellPaths) -> None:
    assert find_shell_paths(line) == paths


def test_what_only_looks_like_a_path_is_left_out() -> None:
    text = "see src/a.py, ./b.md. and src/a.py; not 1.2/3.4, 2026/11/02, /dev/null, a/b or https://x.org/y.py"
    assert find_text_paths(text) == ("src/a.py", "./b.md")
    many = " ".join(f"src/file{n}.py" for n in range(MAX_PATHS_EACH + 5))
    assert find_text_paths(many) == tuple(f"src/file{n}.py" for n in range(MAX_PATHS_EACH))
