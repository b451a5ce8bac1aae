"""Commands inside command lines: found however they are dressed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.text.command_lines import has_command, split_commands

SPELLINGS = Path(__file__).parent / "push_spellings.txt"


def spellings(title: str) -> list[str]:
    listed = SPELLINGS.read_text("utf-8").partition(f"== {title}\n")[2].partition("== ")[0]
    return [line.replace("␤", "\n") for line in listed.splitlines()]


def is_push(line: str) -> bool:
    return has_command(split_commands(line), ["git", "push"])


def test_a_command_is_found_however_it_is_spelled() -> None:
    lines = spellings("runs it")
    assert len(lines) > 200
    assert [line for line in lines if not is_push(line)] == []


def test_words_that_only_speak_of_a_command_are_not_it() -> None:
    lines = spellings("does not")
    assert len(lines) > 100
    assert [line for line in lines if is_push(line)] == []


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("make VAR=1 deploy", "make deploy"),
        ("make -j4 -C api STAGE=prod deploy", "make deploy"),
        ("make build deploy", "make deploy"),
        ("sudo make A=1 B=2 deploy", "make deploy"),
        ("python -m pytest", "pytest"),
        ("python3.12 -W ignore -m pytest -x", "pytest"),
        ("python -mpytest tests", "pytest"),
        ("uv run python -m pytest", "pytest"),
        ("coverage run -m pytest", "pytest"),
        ("python -m pytest", "python -m pytest"),
        ("python3 -m pip install rich", "pip install"),
        ("cargo +nightly test", "cargo test"),
    ],
)
def test_a_command_is_found_behind_variables_and_as_a_module(line: str, wanted: str) -> None:
    assert has_command(split_commands(line), wanted.split())


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("make -C deploy test", "make deploy"),
        ("make VAR=deploy build", "make deploy"),
        ("python -c 'x' -m pytest", "pytest"),
        ("python run.py -m pytest", "pytest"),
        ("python -m venv pytest", "pytest"),
        ("yarn test", "yarn |"),
        ("yarn --silent test", "yarn |"),
    ],
)
def test_a_value_or_an_argument_is_no_command(line: str, wanted: str) -> None:
    assert not has_command(split_commands(line), wanted.split())


def test_a_star_stands_for_any_letters_of_one_word() -> None:
    commands = split_commands("python3.12 -m pip install rich")
    assert has_command(commands, ["python*", "-m", "pip", "install"])
    assert has_command(commands, ["p?p", "install"]) is has_command(commands, ["pip*", "install"]) is True
    assert not has_command(commands, ["pip*", "inst"])


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


@pytest.mark.parametrize(
    "line", ["find . -name '*.pyc' -delete", "find . -exec rm {} +", "ls | xargs rm", "fd -e pyc -x rm"]
)
def test_what_a_search_deletes_is_removed_by_rm(line: str) -> None:
    assert has_command(split_commands(line), ["rm"])


@pytest.mark.parametrize("line", ["sudo rm x", "ssh host ls", "xargs rm", "find . -delete"])
def test_what_runs_another_command_is_a_command_too(line: str) -> None:
    assert has_command(split_commands(line), [line.split(maxsplit=1)[0]])


def test_with_a_depth_of_one_only_what_runs_here_is_told() -> None:
    assert split_commands("sudo make && ssh host make all && bash -c 'make x'", depth=1) == (
        ("sudo", "make"),
        ("make",),
        ("ssh", "host", "make", "all"),
        ("bash", "-c", "make x"),
    )


@pytest.mark.parametrize("part", ["-a b ", "sudo -u ", "find -exec ", "ssh ", "xargs "])
def test_a_long_row_of_words_is_read_as_a_few_commands(part: str) -> None:
    assert len(split_commands("ssh " + part * 10_000)) < 5_000


def test_of_many_arrays_the_later_ones_are_read_as_commands() -> None:
    assert not is_push("a=(git push); " * 10)
    assert is_push("a=(git push); " * 50)


def test_many_here_documents_that_do_not_end_are_read_as_commands() -> None:
    assert len(split_commands("".join(f"cat <<A{at}\n" for at in range(5_000)))) == 5_000


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ("npm test", "npm run test"),
        ("npm test", "npm t"),
        ("npm test", "npm --prefix web run test"),
        ("npm run test", "npm test -- --watch"),
        ("yarn build", "yarn run build"),
        ("make deploy", "gmake -C infra deploy"),
        ("pytest", "xvfb-run -a pytest -q"),
    ],
)
def test_a_command_is_found_by_its_other_names(wanted: str, line: str) -> None:
    assert has_command(split_commands(line), wanted.split())


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ("npm test", "npm run test:docs"),
        ("npm install", "npm run install-hooks"),
        ("pnpm i", "pnpm run i"),
        ("npm test", "npm view test"),
        ("make deploy", "cmake deploy"),
        ("make deploy", "make deploy-docs"),
    ],
)
def test_a_command_is_not_found_by_what_is_alike(wanted: str, line: str) -> None:
    assert not has_command(split_commands(line), wanted.split())
