"""Patterns of commands match one simple command by its words, and nothing that could be more."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sevenfold.agent.permissions.command_patterns import (
    matches_command,
    parse_simple_command,
    preview_pattern,
    suggest_pattern,
)

FRAGMENTS = (
    *("git", "log", "-5", "--oneline", " ", "  ", "\t", "a b", "HEAD~1", "HEAD^", "x=y", "A=1", "%s", "@{u}"),
    *(
        "'",
        '"',
        "\\",
        "$",
        "`",
        "$(",
        ")",
        "(",
        "{",
        "}",
        "{a,b}",
        "*",
        "?",
        "[a]",
        "~",
        "#",
        "!",
        "!!",
        "^a^b",
    ),
    *(
        ";",
        "&",
        "&&",
        "|",
        "||",
        "|&",
        ">",
        ">>",
        "<",
        "<<<",
        "2>&1",
        "&>",
        ">|",
        "<(",
        ">(",
        "\n",
        "\r",
        "\0",
    ),
    *(
        "touch marker",
        "$IFS",
        "${x}",
        "$'\\x3b'",
        '$"x"',
        "\v",
        "\f",
        "\x1b",
        "\u00a0",
        "\u2028",
        "ä",
        "==",
        "-",
    ),
)
"""Everything that bash reads as more than a word, and some that only look like it."""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("git log", ("git", "log")),
        ("  git\tlog  -5 ", ("git", "log", "-5")),
        ("git commit -m 'it; works'", ("git", "commit", "-m", "it; works")),
        ('git commit -m "two words"', ("git", "commit", "-m", "two words")),
        ("g'it' log ''", ("git", "log", "")),
        *((line, None) for line in ("", " ", "a | b", "a > b", "a $(b)", "a `b`", "A=1 a", "a; b", "a & b")),
        *((line, None) for line in ("'a", 'a "$b"', "a \\b", "a *", "a ~", "a {b,c}", "a\nb", "if a", "! a")),
    ],
)
def test_a_line_is_its_words_or_more_than_a_simple_command(
    command: str, words: tuple[str, ...] | None
) -> None:
    assert parse_simple_command(command) == words


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("git log --oneline", "git log *"),
        ("git push origin main", "git push *"),
        ("ls -la", "ls *"),
        ("pytest tests/x.py -q", "pytest *"),
        ("npm run build", "npm run *"),
        *(
            (line, None)
            for line in ("git -c core.pager=sh log", "git log | head", "git log > x", "A=1 git log")
        ),
        *(
            (line, None)
            for line in ("sudo git log", "env git log", "bash x.sh", "python3.12 -m x", "xargs ls")
        ),
        *((line, None) for line in ("find . -exec rm x", "uv run x", "git bisect run x", "/usr/bin/env ls")),
    ],
)
def test_a_pattern_is_offered_where_first_words_say_what_a_command_does(
    command: str, pattern: str | None
) -> None:
    assert suggest_pattern(command) == pattern


def test_a_pattern_that_names_a_program_which_runs_others_covers_nothing() -> None:
    assert not matches_command("sudo *", "sudo ls")
    assert not matches_command("git *", "git submodule foreach ls")
    assert not matches_command("git log", "git log"), "only a wildcard is a pattern"


def test_a_preview_shows_what_is_covered_and_what_is_asked_for() -> None:
    shown = preview_pattern("git log *")
    assert all(matches_command("git log *", line) for line in shown.matched.split(", "))
    assert not any(matches_command("git log *", line) for line in shown.asked.split(", "))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `git` that only says how it was called."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "git").write_text("#!/bin/sh\nprintf '%s\\0' git \"$@\"\n", encoding="utf-8")
    (folder / "git").chmod(0o755)
    (folder / "empty").mkdir()
    return folder


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=6))
@example(["git", " ", "log", " ", "'", "a b", "'"])
@example(["git", " ", "log", " ", '"', "!", '"'])
@example(["git", " ", "log", "|", "touch marker"])
def test_whatever_a_pattern_covers_bash_runs_as_that_one_program_with_those_words(
    programs: Path, parts: list[str]
) -> None:
    line = "git log " + "".join(parts)
    if not matches_command("git log *", line):
        return
    ran = subprocess.run(
        ["/bin/bash", "-c", line],
        cwd=programs / "empty",
        env={"PATH": str(programs)},
        capture_output=True,
        check=True,
    )
    assert ran.stdout.decode().split("\0")[:-1] == list(parse_simple_command(line) or ())
    assert os.listdir(programs / "empty") == []
