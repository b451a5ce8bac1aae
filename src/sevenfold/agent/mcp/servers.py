"""Which MCP servers there are, and how each is reached.

`find_servers` returns those in settings, and those of a repository's `.mcp.json` once a person has agreed to
run them. `open_transport` starts a supervised process or connects to a URL.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TextIO, TypeGuard, TypeVar, cast

from sevenfold.agent.mcp.child_supervisor import build_supervised_command
from sevenfold.core.errors import FileMissing, InputError, SevenfoldError, WireError
from sevenfold.core.events import Emit, McpSkipped, ignore_event
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_object
from sevenfold.core.settings import Settings
from sevenfold.core.settings.kinds import LinesKind, PairsKind, is_name, is_single_line
from sevenfold.core.settings.sections import McpServer, McpSettings
from sevenfold.core.system import run_blocking
from sevenfold.providers.reply_limits import IDENTITY_HEADERS, limit_reply_async
from sevenfold.store.project.instructions import CachedFileReader
from sevenfold.store.project.trust import (
    Confirm,
    ConsentRequest,
    TrustStore,
    ask_consent,
    decline_confirmation,
)

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Transport
    from mcp.client._transport import ReadStream, TransportStreams


_T = TypeVar("_T")

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_TAIL_BYTES = 8_000
MAX_STDERR_CHARS = 400
"""Of what a server prints as errors: its last words say why it died."""


@dataclass(frozen=True, slots=True)
class ServerEnvironment:
    """Where servers are started, and with which variables their settings are filled in."""

    cwd: Path
    environ: Mapping[str, str]


def expand_variables(server: McpServer, environ: Mapping[str, str]) -> McpServer:
    """The server with `${NAME}` and `${NAME:-otherwise}` replaced; `InputError` for one that is not set."""

    def value(match: re.Match[str]) -> str:
        name, otherwise = match[1], match[2]
        found = environ.get(name) or otherwise
        if found is None:
            raise InputError(f"the variable {name} is not set; set it, or write ${{{name}:-value}}")
        return found

    def filled(text: str) -> str:
        return _VARIABLE.sub(value, text)

    def table(pairs: JsonObject) -> JsonObject:
        return JsonObject({key: filled(str(item)) for key, item in pairs.items()})

    return replace(
        server,
        command=filled(server.command) if server.command else None,
        args=tuple(map(filled, server.args)),
        env=table(server.env),
        url=filled(server.url) if server.url else None,
        headers=table(server.headers),
    )


def list_variables(server: McpServer) -> list[str]:
    """The variables of the environment that `expand_variables` puts into a server's settings."""
    texts = (server.command or "", *server.args, server.url or "")
    pairs = (*server.env.values(), *server.headers.values())
    found = (match[1] for text in (*texts, *map(str, pairs)) for match in _VARIABLE.finditer(text))
    return list(dict.fromkeys(found))


class StderrTail:
    """The end of what a program prints as errors, kept while it runs."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self._fd = reading
        self._tail = b""
        self.file: TextIO = os.fdopen(writing, "w")
        asyncio.get_running_loop().add_reader(reading, self._read)

    @property
    def text(self) -> str:
        return " ".join(self._tail.decode("utf-8", "replace").split())[-MAX_STDERR_CHARS:]

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 65_536)
        except BlockingIOError:
            return
        self._tail = (self._tail + data)[-_TAIL_BYTES:]
        if not data:
            asyncio.get_running_loop().remove_reader(self._fd)

    def close(self) -> None:
        self.file.close()
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)


class _Stream(Generic[_T]):
    """A stream of messages that tells of its end, which the library keeps to itself."""

    def __init__(self, source: ReadStream[_T], ended: asyncio.Event) -> None:
        self._source, self._ended = source, ended

    @property
    def last_context(self) -> object:
        return getattr(self._source, "last_context", None)

    async def receive(self) -> _T:
        import anyio

        try:
            return await self._source.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended.set()
            raise

    async def aclose(self) -> None:
        await self._source.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _T:
        import anyio

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@asynccontextmanager
async def watch_transport(
    transport: Transport, ended: asyncio.Event, on_open: Callable[[], None]
) -> AsyncGenerator[TransportStreams]:
    """The same transport, with callbacks for when it opens and when nothing more can arrive."""
    async with transport as (reading, writing):
        on_open()
        yield cast("TransportStreams", (_Stream(reading, ended), writing))


MAX_SERVER_BYTES = 32 * 1024 * 1024
"""Of one answer that is no stream; those of a tool are cut far below that."""


async def limit_server_body(response: httpx2.Response) -> None:
    """A stream of events may go on for as long as the server runs; one event of it may not."""
    is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    limit_reply_async(response, None if is_stream and response.is_success else MAX_SERVER_BYTES)


@asynccontextmanager
async def open_transport(
    server: McpServer, place: ServerEnvironment, words: StderrTail
) -> AsyncGenerator[Transport]:
    """What the client talks through, while it is needed."""
    given = expand_variables(server, place.environ)
    if given.url:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {key: str(value) for key, value in given.headers.items()}
        # A stream may be silent for long; calls have a limit of their own.
        timeout = httpx2.Timeout(30, read=None)
        async with httpx2.AsyncClient(
            headers={**IDENTITY_HEADERS, **headers},
            timeout=timeout,
            follow_redirects=False,
            event_hooks={"response": [limit_server_body]},
        ) as client:
            yield cast("Transport", streamable_http_client(given.url, http_client=client))
        return
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command, *args = build_supervised_command([given.command or "", *given.args])
    env = {key: str(value) for key, value in given.env.items()}
    parameters = StdioServerParameters(command=command, args=args, env=env, cwd=place.cwd)
    yield cast("Transport", stdio_client(parameters, words.file))


MCP_PROJECT_FILE = ".mcp.json"


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
        request = request_servers(path, found)
        consent = await ask_consent(request, trust, confirm) if found.servers else "agreed"
    except FileMissing:
        return {}
    except SevenfoldError as error:
        emit(McpSkipped(str(path), str(error)))
        return {}
    if consent != "agreed":
        emit(McpSkipped(", ".join(found.servers), f"{path} names it: {request.explain(consent)}"))
        return {}
    return found.servers


def request_servers(path: Path, found: ProjectServers) -> ConsentRequest:
    """What a person is asked about a repository's servers."""
    return ConsentRequest(
        name=MCP_PROJECT_FILE,
        path=path,
        content=found.content,
        wants=tuple(f"{name}: {_describe(server)}" for name, server in found.servers.items()),
        question=_question(path, found.servers),
    )


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
        lines.append(f"  {name}: {_describe(server)}")
        variables = ", ".join(list_variables(server))
        if variables:
            lines.append(f"    is given the values of these variables of yours: {variables}")
    return "\n".join([*lines, "Run them, now and whenever this file is the same?"])


def _describe(server: McpServer) -> str:
    what = server.url or " ".join((server.command or "", *server.args))
    keys = ", ".join((*server.env, *server.headers))
    return what + (f" (with {keys})" if keys else "")
