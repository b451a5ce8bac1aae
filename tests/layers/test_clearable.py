"""Only results that can be had again by asking again may go."""

from __future__ import annotations

import pytest

from sevenfold.layers.clearable import is_clearable


@pytest.mark.parametrize(
    "tool",
    [
        "Read",
        "read_file",
        "Bash",
        "shell",
        "exec_command",
        "Grep",
        "glob",
        "WebSearch",
        "web_fetch",
        "Edit",
        "Write",
    ],
)
def test_results_of_the_usual_tools_may_go_however_they_are_spelled(tool: str) -> None:
    assert is_clearable(tool)


@pytest.mark.parametrize("tool", ["mcp__files__read", "mcp__x__bash", "deploy", "send_message", "agent", ""])
def test_results_of_an_mcp_server_or_of_a_tool_that_nobody_knows_never_go(tool: str) -> None:
    assert not is_clearable(tool)
