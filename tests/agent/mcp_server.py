"""A real MCP server for tests: it talks over its pipes, or over HTTP when it is handed a listening socket."""

from __future__ import annotations

import base64
import os
import subprocess
import sys

from mcp.server import MCPServer
from mcp_types import CallToolResult, ImageContent, TextContent

server = MCPServer("tests", instructions="Add before you multiply.")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def greet(name: str) -> str:
    """Say hello to somebody."""
    return f"hello {name}"


@server.tool()
def fail(reason: str) -> str:
    """Fail for this reason."""
    raise ValueError(reason)


@server.tool()
def picture() -> CallToolResult:
    """Show a picture."""
    data = base64.b64encode(b"no picture at all").decode()
    seen = ImageContent(type="image", data=data, mime_type="image/png")
    return CallToolResult(content=[TextContent(type="text", text="look:"), seen])


@server.tool()
def variable(name: str) -> str:
    """A variable of the server's environment."""
    return os.environ.get(name, "unset")


@server.tool()
def grow() -> str:
    """Offer one tool more from now on."""

    def multiply(a: int, b: int) -> int:
        """Multiply two numbers."""
        return a * b

    server.add_tool(multiply)
    return "grown"


@server.tool()
def die() -> str:
    """End the server without a word."""
    os._exit(3)


@server.tool()
def pids() -> list[int]:
    """The server's process, and one that it starts in a session of its own."""
    left = subprocess.Popen(["sleep", "1000"], start_new_session=True, stdin=subprocess.DEVNULL)
    return [os.getpid(), left.pid]


def main() -> None:
    if len(sys.argv) == 1:
        server.run()
        return
    import uvicorn  # slow to load, and over pipes of no use

    app = server.streamable_http_app()
    uvicorn.run(app, fd=int(sys.argv[1]), log_level="error")


if __name__ == "__main__":
    main()
