"""Tools of MCP servers as values: names, the choice of what is declared, and the search."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.agent.mcp.servers import expand_variables
from sevenfold.agent.mcp.tool_values import (
    MAX_FOUND_TOOLS,
    MAX_TOOL_DESCRIPTION,
    ServerTool,
    choose_declared,
    find_declared_tools,
    find_tools,
    make_server_tool,
    make_tool_name,
    with_unique_names,
)
from sevenfold.core.errors import InputError
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.settings.sections import McpServer

SCHEMA = freeze_object({"type": "object", "properties": {"a": {"type": "string"}}})


def tool(name: str, said: str = "", server: str = "s", schema: JsonObject = SCHEMA) -> ServerTool:
    return make_server_tool(server, name, said, schema)


def test_a_plain_name_stays_as_it_is() -> None:
    assert make_tool_name("github", "create_issue") == "mcp__github__create_issue"


@given(st.text(max_size=100), st.text(max_size=200))
def test_every_name_is_one_that_every_provider_takes(server: str, own: str) -> None:
    name = make_tool_name(server, own)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)
    assert name.startswith("mcp__")


@given(st.sets(st.text(max_size=90), max_size=20))
def test_names_that_differ_stay_apart(names: set[str]) -> None:
    assert len({make_tool_name("server", name) for name in names}) == len(names)


def test_a_description_without_end_is_cut() -> None:
    assert len(tool("a", "x" * 100_000).description) == MAX_TOOL_DESCRIPTION + 1


def test_servers_are_declared_whole_and_in_order_while_they_fit() -> None:
    small, large = tool("a", "Short."), tool("b", "word " * 300, "t")
    room = small.tokens + large.tokens
    assert choose_declared({"s": [small], "t": [large]}, room).declared == (small, large)
    choice = choose_declared({"t": [large, tool("c", "word " * 50, "t")], "s": [small], "u": None}, room)
    assert choice.declared == (small,)
    assert list(choice.deferred) == ["t", "u"]
    assert "tokens" in choice.deferred["t"]
    assert choice.deferred["u"] == "it is not connected yet"


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"type": "object", "anyOf": []}])
def test_a_schema_that_a_provider_would_refuse_is_never_declared(schema: dict[str, object]) -> None:
    choice = choose_declared({"s": [tool("a", schema=freeze_object(schema))]}, 10_000)
    assert (choice.declared, list(choice.deferred)) == ((), ["s"])


def test_what_was_declared_before_is_read_back_as_it_was() -> None:
    own = tool("a", "Does it.").spec
    other = freeze_object({"name": "read", "description": "", "input_schema": {"type": "object"}})
    server_side = freeze_object({"type": "web_search_20260209", "name": "web_search"})
    assert find_declared_tools([other, own.declared(), server_side]) == (own,)


def test_a_search_finds_by_name_and_by_words() -> None:
    issue = tool("createIssue", "Open an issue in a repository.")
    label = tool("add_label", "Put a label on an issue.")
    weather = tool("forecast", "What the weather will be.")
    known = [weather, label, issue]
    assert find_tools(known, "create an issue") == (issue, label)
    assert find_tools(known, "mcp__s__forecast") == (weather,)
    assert find_tools(known, "forecast, createIssue") == (weather, issue)
    assert find_tools(known, "zzz") == ()
    assert len(find_tools([tool(f"issue_{at}") for at in range(50)], "issue")) == MAX_FOUND_TOOLS


def test_a_tool_that_is_listed_twice_counts_once() -> None:
    assert with_unique_names([tool("a"), tool("b"), tool("a")]) == (tool("a"), tool("b"))


def test_variables_are_filled_in_everywhere() -> None:
    server = McpServer(
        command="${BIN}/run",
        args=("--key", "${KEY:-none}"),
        env=JsonObject({"A": "${KEY:-}x"}),
        url="https://${HOST}/mcp",
        headers=JsonObject({"Authorization": "Bearer ${BIN}"}),
    )
    filled = expand_variables(server, {"BIN": "/opt", "HOST": "example.org"})
    assert (filled.command, filled.args, filled.url) == (
        "/opt/run",
        ("--key", "none"),
        "https://example.org/mcp",
    )
    assert (filled.env, filled.headers) == (
        JsonObject({"A": "x"}),
        JsonObject({"Authorization": "Bearer /opt"}),
    )
    with pytest.raises(InputError, match="HOST is not set"):
        expand_variables(server, {"BIN": "/opt"})


def test_a_path_that_looks_like_a_variable_and_is_none_stays() -> None:
    server = McpServer(command=str(Path("/opt/$BIN/{x}")))
    assert expand_variables(server, {}).command == "/opt/$BIN/{x}"
