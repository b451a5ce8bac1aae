"""`sevenfold mcp`: serves other agents over MCP. Without options `cli/__init__` does it, which loads less."""

from __future__ import annotations

import os
import re
import secrets
from argparse import Namespace
from contextlib import suppress
from errno import EACCES, EADDRINUSE

from sevenfold.cli.screen import Screen
from sevenfold.cli.workspace import require_folder
from sevenfold.core.errors import InputError
from sevenfold.integrations.mcp_server.backend import McpBackend
from sevenfold.integrations.mcp_server.dispatch import McpDispatcher
from sevenfold.integrations.mcp_server.stdio import serve_stdio
from sevenfold.resident.client import make_run_folder

_TOKEN_FILE = "mcp-token"
_TOKEN_BYTES = 24
_MIN_TOKEN_CHARS, _MAX_TOKEN_CHARS = 32, 200
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")


def run_mcp(options: Namespace, screen: Screen) -> int:
    require_folder(options.project)
    project = str(options.project.resolve())
    if not options.http:
        if options.port:
            raise InputError("--port is given without --http; a server on standard input has no port")
        return serve_stdio(project)
    from sevenfold.integrations.mcp_server.streamable_http import McpHttpServer

    try:
        server = McpHttpServer(McpDispatcher(McpBackend(project)), options.port, _read_token())
    except OSError as error:
        if error.errno not in (EADDRINUSE, EACCES):
            raise
        raise InputError(f"cannot listen on port {options.port}: {error.strerror}; choose another") from error
    with server:
        screen.show_line(server.url)
        screen.flush()
        server.serve_forever()
    return 0


def _read_token() -> str:
    """The secret part of the address. It is kept, so that an agent's configuration stays right."""
    path = os.path.join(make_run_folder(os.environ), _TOKEN_FILE)
    token, fresh = secrets.token_urlsafe(_TOKEN_BYTES), f"{path}.{secrets.token_hex(8)}"
    kept = _find_token(path)
    if kept:
        return kept
    with os.fdopen(
        os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii"
    ) as file:
        file.write(token)
        file.flush()
        os.fsync(file.fileno())
    try:
        with suppress(FileExistsError):  # another server was faster, or what is there is no token
            os.link(fresh, path)
            return token
        kept = _find_token(path)
        if not kept:
            os.replace(fresh, path)
        return kept or token
    finally:
        with suppress(FileNotFoundError):
            os.unlink(fresh)


def _find_token(path: str) -> str:
    """Empty where there is none, or a file that holds none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return ""
    with os.fdopen(fd, encoding="ascii", errors="replace") as file:
        kept = file.read(_MAX_TOKEN_CHARS)
    return kept if len(kept) >= _MIN_TOKEN_CHARS and _TOKEN.fullmatch(kept) else ""
