"""A line that begins with a slash is a command, unless it is a path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.agent.tui.render.wrapped_text import wrap_rows
from sevenfold.agent.tui.slash_commands import (
    SLASH_COMMANDS,
    SlashCommand,
    TypedCommand,
    UnknownCommand,
    list_command_help,
    list_key_help,
    parse_slash_command,
)


@pytest.mark.parametrize("slash", SLASH_COMMANDS, ids=lambda slash: slash.name)
def test_every_command_is_read_with_its_argument_and_stands_in_help(slash: SlashCommand) -> None:
    assert parse_slash_command(f"/{slash.name}") == TypedCommand(slash, "")
    assert parse_slash_command(f"/{slash.name.upper()}  on the  tests ") == TypedCommand(
        slash, "on the  tests"
    )
    assert any(row.label.split()[0] == f"/{slash.name}" for row in list_command_help())


def test_a_path_is_no_command() -> None:
    assert parse_slash_command("/etc/hosts says what?") is None
    assert parse_slash_command("/") is None


def test_a_slip_of_the_finger_is_answered_with_a_guess() -> None:
    found = parse_slash_command("/contxt")
    assert isinstance(found, UnknownCommand)
    assert "/context" in found.text


@given(st.text(max_size=40))
def test_a_line_without_a_slash_is_never_a_command(line: str) -> None:
    assert line.startswith("/") or parse_slash_command(line) is None


@pytest.mark.parametrize("columns", [40, 60, 80, 160])
def test_help_fits_every_terminal(columns: int) -> None:
    for rows in (list_command_help(), list_key_help()):
        lines = wrap_rows(rows, columns)
        assert max(len(line) for line in lines) <= columns
        assert len(lines) == len(rows) or columns < 80, "a command takes one line where there is room"
