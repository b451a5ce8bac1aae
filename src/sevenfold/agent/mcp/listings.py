"""What servers listed the last time, kept on disk.

The list of tools is part of the cached prefix, so it must not depend on which server was up first. A session
declares what a server has listed before, whether it is up yet or not. What it lists now is kept for the next
session.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from sevenfold.agent.mcp.tool_values import ServerTool, make_server_tool
from sevenfold.core.canonical import digest
from sevenfold.core.errors import SevenfoldError, WireError
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.core.settings.sections import McpServer
from sevenfold.store.files.folder import Folder

MAX_LISTING_BYTES = 2 * 1024 * 1024
"""Of one server. A longer listing is not kept: its tools would not fit into a prompt."""

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerListing:
    """What a server says of itself and offers."""

    server_name: str = ""
    server_version: str = ""
    instructions: str = ""
    tools: tuple[ServerTool, ...] = ()
    was_late: bool = False
    """It was waited for in vain, and nothing is known of it."""

    def is_same(self, other: ServerListing) -> bool:
        """Whether both say the same, in whatever order."""
        mine, theirs = ({tool.name: tool for tool in listing.tools} for listing in (self, other))
        return mine == theirs and (self.server_name, self.server_version, self.instructions) == (
            other.server_name,
            other.server_version,
            other.instructions,
        )


class ListingStore:
    """The listings of one project's servers. What cannot be read is not there; what cannot be kept is asked
    for again."""

    def __init__(self, folder: Folder | None = None) -> None:
        self._folder = folder
        """None: nothing is kept."""

    def find(self, name: str, server: McpServer) -> ServerListing | None:
        if self._folder is None:
            return None
        try:
            wire = read_object(self._folder.read(_file_name(server), max_bytes=MAX_LISTING_BYTES))
            return _read_listing(name, wire)
        except (SevenfoldError, OSError):
            return None

    def keep(self, server: McpServer, listing: ServerListing) -> None:
        if self._folder is None:
            return
        data = write_json(_write_listing(listing))
        if len(data) <= MAX_LISTING_BYTES:
            with suppress(SevenfoldError, OSError):
                self._folder.replace(_file_name(server), data, durable=False)


def _file_name(server: McpServer) -> str:
    """A server is known by how it is started: another command or address is another server."""
    started = freeze_object(
        {
            "command": server.command,
            "args": server.args,
            "env": server.env,
            "url": server.url,
            "headers": server.headers,
        }
    )
    return f"{digest(write_json(started))[:32]}.json"


def _write_listing(listing: ServerListing) -> JsonObject:
    return freeze_object(
        {
            "format": _FORMAT,
            "server_name": listing.server_name,
            "server_version": listing.server_version,
            "instructions": listing.instructions,
            "was_late": listing.was_late,
            "tools": [
                {"name": tool.own_name, "description": tool.description, "schema": tool.schema}
                for tool in listing.tools
            ],
        }
    )


def _read_listing(name: str, wire: JsonObject) -> ServerListing:
    if wire.get("format") != _FORMAT:
        raise WireError("a listing of another version")
    listed = wire.get("tools")
    return ServerListing(
        server_name=_text(wire.get("server_name")),
        server_version=_text(wire.get("server_version")),
        instructions=_text(wire.get("instructions")),
        tools=tuple(_read_tools(name, listed if isinstance(listed, tuple) else ())),
        was_late=wire.get("was_late") is True,
    )


def _read_tools(server: str, listed: Iterable[Json]) -> Iterable[ServerTool]:
    for item in listed:
        schema = item.get("schema") if isinstance(item, JsonObject) else None
        if not isinstance(item, JsonObject) or not isinstance(schema, JsonObject):
            raise WireError("a tool without a schema")
        yield make_server_tool(server, _text(item.get("name")), _text(item.get("description")), schema)


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise WireError("no text where one is expected")
    return value
