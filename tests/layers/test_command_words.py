"""Commands inside command lines: found however they are dressed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.layers.command_words import has_command, split_commands


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git push origin main --force",
        "cd api && git push",
        "git -C ../api push origin",
        "git -c user.name=x --no-pager push",
        "FOO=1 git push",
        "sudo -E git push",
        "/usr/bin/git push",
        "bash -c 'git push origin main'",
        "ssh host \"sh -c 'git push'\"",
        "echo ready; (git push)",
        "make test | tee log && git push > out.txt 2>&1",
        "git \\\n push",
        "if git status; then git push; fi",
        "timeout 30 git push",
        "'git' push",
        "x=$(git push 2>&1)",
        "git add .\ngit push",
    ],
)
def test_a_command_is_found_however_it_is_dressed(line: str) -> None:
    assert has_command(split_commands(line), ["git", "push"])


@pytest.mark.parametrize(
    "line",
    [
        "git pull",
        "git commit -m 'git push comes later'",
        "echo git push",
        "grep -rn 'git push' docs",
        "git pushall",
        "legit push",
        "",
    ],
)
def test_words_that_only_speak_of_a_command_are_not_it(line: str) -> None:
    assert not has_command(split_commands(line), ["git", "push"])


def test_a_star_stands_for_any_letters_of_one_word() -> None:
    commands = split_commands("python3.12 -m pip install rich")
    assert has_command(commands, ["python*", "-m", "pip", "install"])
    assert not has_command(commands, ["pip*", "install"])


@given(st.text(max_size=300))
def test_any_text_is_split_without_failing(line: str) -> None:
    for command in split_commands(line):
        assert command
        assert has_command([command], [command[0]]) or any(sign in command[0] for sign in "[*?")


@given(st.lists(st.sampled_from(["git", "push", "-C", "a b", "it's", "x\\y"]), min_size=1, max_size=6))
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    quoted = ["'" + word.replace("'", "'\\''") + "'" for word in words]
    first = split_commands("run " + " ".join(quoted))[0]
    assert list(first[1:]) == words
