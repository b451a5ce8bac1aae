"""Which MCP servers there are: those in settings, and those of a repository's `.mcp.json` once a person has
agreed to run them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeGuard

from sevenfold.agent.mcp.transport import list_variables
from sevenfold.core.errors import FileMissing, InputError, SevenfoldError, WireError
from sevenfold.core.events import Emit, McpSkipped, ignore_event
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_object
from sevenfold.core.settings import Settings
from sevenfold.core.settings.kinds import is_name
from sevenfold.core.settings.sections import McpServer, McpSettings
from sevenfold.core.settings.text_kinds import LinesKind, PairsKind, is_single_line
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.project.instructions import CachedFileReader
from sevenfold.store.project.trust import TrustStore

MCP_PROJECT_FILE = ".mcp.json"

Confirm: TypeAlias = Callable[[str], Awaitable[bool | None]]
"""Asks a person a question that is answered by yes or no; None where nobody could be asked."""


async def decline_confirmation(_question: str) -> bool | None:
    """For a run with nobody to ask: what has not been agreed to stays off."""
    return None


@dataclass(frozen=True, slots=True)
class ProjectServers:
    """What a repository's own file names, and the bytes that are agreed to."""

    servers: Mapping[str, McpServer]
    content: bytes


async def find_servers(
    settings: Settings,
    root: Path | None,
    trust: TrustStore | None,
    *,
    confirm: Confirm = decline_confirmation,
    emit: Emit = ignore_event,
) -> dict[str, McpServer]:
    """The servers to connect to, by name. Settings win over the project's file, and may switch one off."""
    if not settings.of(McpSettings).enabled:
        return {}
    own = settings.each(McpServer)
    others: Mapping[str, McpServer] = {}
    if root is not None and settings.of(McpSettings).project_file:
        others = await _agreed(root, trust, confirm, emit)
    servers: dict[str, McpServer] = {}
    for name, server in {**others, **own}.items():
        if not server.enabled:
            continue
        if bool(server.command) == bool(server.url):
            emit(McpSkipped(name, "a server has a command or an url, and exactly one of the two; set one"))
            continue
        servers[name] = server
    return servers


async def _agreed(
    root: Path, trust: TrustStore | None, confirm: Confirm, emit: Emit
) -> Mapping[str, McpServer]:
    path = root / MCP_PROJECT_FILE
    try:
        found = await run_blocking(lambda: read_project_file(path, root))
        if not found.servers or await run_blocking(lambda: _is_agreed(found, trust)):
            return found.servers
        if not await confirm(_question(path, found.servers)):
            emit(McpSkipped(", ".join(found.servers), f"nobody has agreed to run what {path} names"))
            return {}
        if trust is not None:
            await run_blocking(lambda: trust.trust(MCP_PROJECT_FILE, found.content))
    except FileMissing:
        return {}
    except SevenfoldError as error:
        emit(McpSkipped(str(path), str(error)))
        return {}
    return found.servers


def _is_agreed(found: ProjectServers, trust: TrustStore | None) -> bool:
    return trust is not None and trust.is_trusted(MCP_PROJECT_FILE, found.content)


def read_project_file(path: Path, root: Path) -> ProjectServers:
    """The servers that the file names, in the form that other agents read too."""
    text = CachedFileReader().read(path, (root,)).text
    wire = read_object(text)
    named = wire.get("mcpServers", EMPTY_OBJECT)
    if not isinstance(named, JsonObject):
        raise WireError("mcpServers is no object; expected a server for each name")
    return ProjectServers({name: _read_server(name, item) for name, item in named.items()}, text.encode())


def _read_server(name: str, wire: Json) -> McpServer:
    if not is_name(name) or not isinstance(wire, JsonObject):
        raise InputError(f"mcpServers.{name[:80]!r} is no server; expected a name without blanks, an object")
    if wire.get("type") == "sse":
        raise InputError(f"mcpServers.{name} is of type sse, which MCP has given up; use its http address")
    args = LinesKind().read(wire.get("args", ()))
    env, headers = (PairsKind().read(wire.get(key, EMPTY_OBJECT)) for key in ("env", "headers"))
    command, url = wire.get("command"), wire.get("url")
    if (
        _is_optional(command)
        and _is_optional(url)
        and isinstance(args, tuple)
        and isinstance(env, JsonObject)
        and isinstance(headers, JsonObject)
    ):
        return McpServer(command=command, args=args, env=env, url=url, headers=headers)
    raise InputError(
        f"mcpServers.{name} cannot be read; expected command, args and env, or url and headers, as text"
    )


def _is_optional(value: Json) -> TypeGuard[str | None]:
    return value is None or is_single_line(value)


def _question(path: Path, servers: Mapping[str, McpServer]) -> str:
    lines = [f"{path} wants to run MCP servers, which can do whatever you can:"]
    for name, server in servers.items():
        what = server.url or " ".join((server.command or "", *server.args))
        keys = ", ".join((*server.env, *server.headers))
        lines.append(f"  {name}: {what}" + (f" (with {keys})" if keys else ""))
        variables = ", ".join(list_variables(server))
        if variables:
            lines.append(f"    is given the values of these variables of yours: {variables}")
    return "\n".join([*lines, "Run them, now and whenever this file is the same?"])
