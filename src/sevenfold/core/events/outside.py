"""What comes from outside, and living documents, as events; `core/events.py` has them in its union."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DocDropped:
    """A living document is no longer kept up to date."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class DocSkipped:
    """A living document was due and was left as it is."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class DocTracked:
    """A file that was read says that it is a living document, and is kept up to date from now on."""

    path: str
    title: str


@dataclass(frozen=True, slots=True)
class DocUpdated:
    """A living document was brought up to date."""

    path: str
    edits: int


@dataclass(frozen=True, slots=True)
class McpConnected:
    """An MCP server answered, and its tools can be called."""

    server: str
    tools: int
    milliseconds: int


@dataclass(frozen=True, slots=True)
class McpDeferred:
    """Tools of an MCP server are not in the list of tools: the model finds and calls them by name."""

    server: str
    reason: str


@dataclass(frozen=True, slots=True)
class McpFailed:
    """An MCP server could not be reached, or its connection ended: its tools answer with an error."""

    server: str
    reason: str
    failures_in_row: int
    retry_seconds: int


@dataclass(frozen=True, slots=True)
class McpSkipped:
    """An MCP server, or one of its tools, is not used."""

    server: str
    reason: str


@dataclass(frozen=True, slots=True)
class UntrustedEntered:
    """What somebody outside says went into the context: none of it may be remembered as the user's word."""

    kind: str
    """Where from: `mcp`, `web`."""
    name: str
    """The tool or the address."""
    size_bytes: int
