"""Commands and errors of a session: how they are counted, told and let go."""

from __future__ import annotations

import pytest

from sevenfold.layers.session_notes.tool_calls import CallOutcome, ToolAction
from sevenfold.layers.session_notes.work_ledger import (
    EXACT_CHARS,
    MAX_COMMANDS,
    MAX_ERRORS,
    MAX_OUTCOME_CHARS,
    CommandLedger,
    render_command,
)

FINE, BROKEN = CallOutcome(failed=False, last="ok"), CallOutcome(failed=True, error="no")


def ran(command: str) -> ToolAction:
    return ToolAction(kind="run", tool="Bash", command=command)


def edited(path: str) -> ToolAction:
    return ToolAction(kind="edit", tool="Edit", paths=(path,))


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ls", "`ls`"),
        ("", "``"),
        ("a\n b\nc", "`a ⏎ b ⏎ c`"),
        ("a\nb\nc\nd", "`a` … (3 more lines)"),
        ("x" * EXACT_CHARS, f"`{'x' * EXACT_CHARS}`"),
        ("x" * (EXACT_CHARS + 1), f"`{'x' * EXACT_CHARS}` … (401 characters)"),
        ("x" * EXACT_CHARS + "\ny", f"`{'x' * EXACT_CHARS}` … (1 more lines)"),
    ],
)
def test_a_command_is_shown_exactly_up_to_three_short_lines(command: str, shown: str) -> None:
    assert render_command(command) == shown


def test_runs_of_the_same_command_are_counted_with_how_the_last_one_ended() -> None:
    ledger = CommandLedger()
    for at, outcome in enumerate((BROKEN, FINE, CallOutcome(failed=True, error="e" * 500))):
        ledger.take(ran("make"), outcome, at)
    latest = ledger.latest()
    assert latest is not None
    assert (latest.count, latest.failures, latest.last, latest.has_failed) == (3, 2, 2, True)
    assert latest.outcome == "e" * MAX_OUTCOME_CHARS
    assert len(ledger.entries()) == 1
    assert ledger.entries()[0].brief == "- `make`"


def test_an_error_is_open_until_the_same_is_done_and_says_what_was_changed_before() -> None:
    ledger = CommandLedger()
    ledger.take(ran("pytest"), BROKEN, 1)
    ledger.take(ran("pytest | tail"), BROKEN, 2)
    assert [entry.text for entry in ledger.error_entries()] == ["- OPEN Bash `pytest | tail` (2×): no"]
    for number in range(8):
        ledger.take(edited(f"/src/{number}.py"), FINE, 3)
    ledger.take(ran("pytest"), FINE, 4)
    assert ledger.open_errors() == []
    (closed,) = ledger.closed
    assert closed.fix == f"went through after {', '.join(f'Edit of {number}.py' for number in range(6))}"
    ledger.take(edited("/a.py"), BROKEN, 5)
    ledger.take(edited("/a.py"), FINE, 6)
    assert ledger.closed[-1].fix == "went through when tried again"
    assert ledger.open_errors() == []


def test_of_too_many_commands_and_errors_the_oldest_go() -> None:
    ledger = CommandLedger()
    for number in range(MAX_COMMANDS + 1):
        ledger.take(ran(f"make {number}"), FINE, number)
    assert ledger.dropped == 1
    assert ledger.entries()[0].brief == "- `make 1`"
    assert len(ledger.entries()) == MAX_COMMANDS
    for number in range(2 * MAX_ERRORS + 1):
        ledger.take(edited(f"/{number}.py"), BROKEN, number)
    assert len(ledger.open_errors()) == MAX_ERRORS
    assert len(ledger.closed) == MAX_ERRORS
    assert (ledger.closed[0].subject, ledger.closed[0].fix) == ("/1.py", "not tried again")
    assert ledger.open_errors()[0].subject == f"/{MAX_ERRORS + 1}.py"
