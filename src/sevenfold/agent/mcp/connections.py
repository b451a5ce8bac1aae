"""The connections of one agent, and the tools that were ever heard of through them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sevenfold.agent.mcp.catalog import MCP_TOOL_PREFIX, ServerTool
from sevenfold.agent.mcp.connection import McpConnection


@dataclass(frozen=True, slots=True)
class McpConnections:
    """One for each server, in the order of the settings."""

    links: Sequence[McpConnection]

    def __iter__(self) -> Iterator[McpConnection]:
        return iter(self.links)

    @property
    def known(self) -> tuple[ServerTool, ...]:
        """Every tool of every server that was ever connected."""
        return tuple(tool for link in self.links for tool in link.tools or ())

    def find(self, name: str) -> ServerTool | None:
        return next((tool for tool in self.known if tool.name == name), None)

    def link_of(self, name: str) -> McpConnection | None:
        """The connection that a tool belongs to by its name, also where its server was not connected yet."""
        tool = self.find(name)
        if tool is not None:
            return next(link for link in self.links if link.name == tool.server)
        owners = [link for link in self.links if name.startswith(f"{MCP_TOOL_PREFIX}{link.name}__")]
        return max(owners, key=lambda link: len(link.name), default=None)

    async def wait_tried(self) -> None:
        """Until it is known of each whether it can be reached."""
        await asyncio.gather(*(link.wait_tried() for link in self.links))

    async def list_again(self) -> None:
        """Ask every server what it offers now."""
        await asyncio.gather(*(link.list_again() for link in self.links))

    async def close(self) -> None:
        await asyncio.gather(*(link.close() for link in self.links))
