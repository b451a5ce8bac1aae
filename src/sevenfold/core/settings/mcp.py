"""MCP servers as settings name them, and how long anybody waits for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.settings import limit, line, lines, pairs, switch


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    SECTION: ClassVar[str] = "mcp_client"

    enabled: bool = switch(True)
    """On: nothing is started unless a server is named. Off starts none, whatever names one."""

    project_file: bool = switch(True)
    """On: what a repository's .mcp.json names is run once a person has agreed to it, and not before."""

    start_seconds: int = limit(2)
    """What the first request waits for servers at most; a later one is used through tool_search."""

    connect_seconds: int = limit(30, at_least=1)
    """A server that is fetched and built by its own command takes long the first time; more is a hang."""

    call_seconds: int = limit(600, at_least=1)
    """As long as a command may run: whoever waits longer has lost sight of why."""

    schema_tokens: int = limit(8_000)
    """Four per cent of a 200,000-token window: schemas stand in every prompt, used or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One `[mcp."name"]`: a program that is started, or an address. `${NAME}` is a variable's value."""

    SECTION: ClassVar[str] = "mcp"
    EACH: ClassVar[str] = "MCP server"

    enabled: bool = switch(True)
    """On: a server that is named is wanted. Off leaves out one that another file names."""

    command: str | None = line(None)
    """Unset: a server is started by its command, or reached at its address."""

    args: tuple[str, ...] = lines(())
    """None, as most programs need none; each is one argument and no shell reads it."""

    env: JsonObject = pairs(EMPTY_OBJECT)
    """None: a server inherits the path, the home and the user's name, and no key of yours."""

    url: str | None = line(None)
    """Unset: the address of a server over streamable HTTP, in place of a command."""

    headers: JsonObject = pairs(EMPTY_OBJECT)
    """None: what a server over HTTP asks for, mostly a key, is its own affair."""
