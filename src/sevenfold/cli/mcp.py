"""`sevenfold mcp`: serves other agents over MCP. Without options `cli/__init__` does it, which loads less."""

from __future__ import annotations

import secrets
from argparse import Namespace
from errno import EACCES, EADDRINUSE

from sevenfold.cli.screen import Screen
from sevenfold.cli.workspace import require_folder
from sevenfold.core.errors import InputError
from sevenfold.integrations.mcp_server.backend import McpBackend
from sevenfold.integrations.mcp_server.dispatch import McpDispatcher
from sevenfold.integrations.mcp_server.stdio import serve_stdio


def run_mcp(options: Namespace, screen: Screen) -> int:
    require_folder(options.project)
    project = str(options.project.resolve())
    if not options.http:
        if options.port:
            raise InputError("--port is given without --http; a server on standard input has no port")
        return serve_stdio(project)
    from sevenfold.integrations.mcp_server.streamable_http import McpHttpServer

    token = secrets.token_urlsafe(24)
    try:
        server = McpHttpServer(McpDispatcher(McpBackend(project)), options.port, token)
    except OSError as error:
        if error.errno not in (EADDRINUSE, EACCES):
            raise
        raise InputError(f"cannot listen on port {options.port}: {error.strerror}; choose another") from error
    with server:
        screen.show_line(server.url)
        screen.flush()
        server.serve_forever()
    return 0
