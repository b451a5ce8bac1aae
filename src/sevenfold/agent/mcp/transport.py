"""How a server is reached: a supervised process, or a URL."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TextIO, TypeVar, cast

from sevenfold.agent.mcp.child_supervisor import build_supervised_command
from sevenfold.core.errors import InputError
from sevenfold.core.json import JsonObject
from sevenfold.core.settings.sections import McpServer

if TYPE_CHECKING:
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
        async with httpx2.AsyncClient(headers=headers, timeout=timeout) as client:
            yield cast("Transport", streamable_http_client(given.url, http_client=client))
        return
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command, *args = build_supervised_command([given.command or "", *given.args])
    env = {key: str(value) for key, value in given.env.items()}
    parameters = StdioServerParameters(command=command, args=args, env=env, cwd=place.cwd)
    yield cast("Transport", stdio_client(parameters, words.file))
