"""The proxy over HTTP: forwards each request as it came, and streams the response as it comes.

What a client sent is never changed, except for headers that belong to one connection. The address of a run
has a random path, which is its token; a request without one is forwarded and booked too.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import InputError, ProxyError, describe_missing
from sevenfold.core.json import JsonObject, write_json
from sevenfold.core.system import listen, listener_url, run_blocking
from sevenfold.proxy.ledger import ProxyLedger
from sevenfold.proxy.profiles import AgentProfile, recognize_agent
from sevenfold.proxy.requests import find_wire_format, read_request
from sevenfold.proxy.responses import UsageReader

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Request, Response
    from uvicorn import Server

PROXY_ADDRESS = "127.0.0.1"
ANTHROPIC_API, OPENAI_API = "https://api.anthropic.com", "https://api.openai.com"
MAX_FORWARDED_BYTES = 64 * 1024 * 1024
"""Twice what a provider takes."""
STALL_SECONDS = 600.0
"""How long a response may bring nothing: the SDKs wait as long."""
CONNECT_SECONDS = 30.0
PROXY_STOP_SECONDS = 10.0
RUN_PATH = "/run/"

_CONNECTION_HEADERS = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "upgrade", "host", "content-length", "proxy-connection", "expect"),
    }
)
_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
_Headers: TypeAlias = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Where requests go to."""

    anthropic: str = ANTHROPIC_API
    openai: str = OPENAI_API

    def __post_init__(self) -> None:
        for url in (self.anthropic, self.openai):
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.username:
                raise InputError(f"the upstream {url!r} is no address; expected http(s)://HOST[:PORT][/PATH]")

    def find(self, path: str, headers: Mapping[str, str]) -> str:
        # An Anthropic client names its key so; OpenAI's name theirs as a bearer.
        is_messages = (
            find_wire_format(path) == "messages" or "anthropic-version" in headers or "x-api-key" in headers
        )
        return (self.anthropic if is_messages else self.openai).rstrip("/")


@dataclass(frozen=True, slots=True)
class ProxyRun:
    """One agent that was started behind the proxy."""

    token: str
    profile: AgentProfile | None

    @classmethod
    def create(cls, profile: AgentProfile | None) -> ProxyRun:
        return cls(secrets.token_urlsafe(16), profile)


@dataclass(slots=True, kw_only=True)
class ProxyApp:
    """The application: one request in, the same request out."""

    ledger: ProxyLedger
    upstreams: Upstreams = field(default_factory=Upstreams)
    runs: dict[str, ProxyRun] = field(default_factory=dict[str, ProxyRun])
    clock: Clock = field(default_factory=SystemClock)
    _client: AsyncClient | None = None
    _salt: bytes = field(default_factory=lambda: secrets.token_bytes(16))

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            return
        with suppress(_ClientGone):
            await _Exchange(app=self, scope=scope, receive=receive, send=send).run()

    def book(self, booking: _Booking) -> None:
        """Write a request down, however it ended. Blocks."""
        profile = (booking.run.profile if booking.run else None) or recognize_agent(booking.headers)
        self.ledger.add(
            at=booking.at,
            agent=profile.name if profile else "",
            client=self.identify(booking.headers),
            facts=read_request(booking.path, booking.headers, booking.body, profile),
            status=booking.status,
            usage=booking.reader.read_usage() if booking.reader else None,
            first_byte=booking.first_byte,
        )

    def client(self) -> AsyncClient:
        if self._client is None:
            import httpx2

            timeout = httpx2.Timeout(STALL_SECONDS, connect=CONNECT_SECONDS)
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
            self._client = httpx2.AsyncClient(timeout=timeout, limits=limits, follow_redirects=False)
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def identify(self, headers: Mapping[str, str]) -> str:
        """Who a request comes from: by its key, which is not kept, and by how the client calls itself."""
        key = headers.get("x-api-key") or headers.get("authorization") or ""
        digest = blake2b(key.encode(), key=self._salt, digest_size=12).hexdigest()
        return f"{digest} {headers.get('user-agent', '')}"


class _ClientGone(Exception):
    """The client has closed its connection: there is nobody to answer."""


@dataclass(slots=True, kw_only=True)
class _Booking:
    """What is known of a request and its response, for the ledger."""

    at: datetime
    path: str
    headers: Mapping[str, str]
    body: bytes
    run: ProxyRun | None
    status: int = 499
    """Until a response comes: the client left before it."""
    reader: UsageReader | None = None
    first_byte_at: timedelta | None = None
    first_byte: timedelta = timedelta()


@dataclass(slots=True, kw_only=True)
class _Exchange:
    """One request and its response."""

    app: ProxyApp
    scope: _Message
    receive: _Receive
    send: _Send
    is_started: bool = False

    async def run(self) -> None:
        headers = _read_headers(self.scope["headers"])
        if not _is_local(headers.get("host", "")):
            await self._refuse(403, "this proxy answers to requests for this machine alone")
            return
        path, run = self._find_run(self.scope["path"])
        body = await self._read_body()
        if body is None:
            await self._refuse(413, f"the request has more than {MAX_FORWARDED_BYTES:,} bytes")
            return
        await self._forward(path, headers, body, run)

    def _find_run(self, path: str) -> tuple[str, ProxyRun | None]:
        if path.startswith(RUN_PATH):
            token, _, rest = path.removeprefix(RUN_PATH).partition("/")
            if token in self.app.runs:
                return f"/{rest}", self.app.runs[token]
        return path, None

    async def _read_body(self) -> bytes | None:
        """The body; None if it is too long."""
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise _ClientGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > MAX_FORWARDED_BYTES:
                return None
            if not message.get("more_body"):
                return b"".join(parts)

    async def _forward(
        self, path: str, headers: Mapping[str, str], body: bytes, run: ProxyRun | None
    ) -> None:
        import httpx2

        app, began = self.app, self.app.clock.uptime()
        booking = _Booking(at=app.clock.now(), path=path, headers=headers, body=body, run=run)
        query = self.scope.get("query_string", b"").decode("latin-1")
        url = app.upstreams.find(path, headers) + path + (f"?{query}" if query else "")
        # Made here and not by the client, which would add headers and cookies of its own.
        request = httpx2.Request(
            self.scope["method"], url, headers=_forwarded_headers(self.scope["headers"]), content=body
        )
        gone = asyncio.ensure_future(self._wait_for_disconnect())
        try:
            response = await self._send_upstream(request, gone)
            booking.reader = UsageReader(find_wire_format(path), response.headers)
            booking.status = response.status_code
            await self._copy(response, booking, gone)
        except httpx2.HTTPError as error:
            if self.is_started:
                raise  # the client sees a response that broke off, as it would without us
            booking.status = 502
            host = urlsplit(url).netloc
            await self._refuse(502, f"{host} cannot be reached: {type(error).__name__}: {error}")
        finally:
            gone.cancel()
            booking.first_byte = (booking.first_byte_at or app.clock.uptime()) - began
            # What the request says is read after the response: nothing waits for it.
            await run_blocking(lambda: app.book(booking))

    async def _send_upstream(self, request: Request, gone: asyncio.Future[None]) -> Response:
        """The response, unless the client leaves first: then the provider is told so by the connection."""
        sending = asyncio.ensure_future(self.app.client().send(request, stream=True))
        await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not sending.done():
            sending.cancel()
            raise _ClientGone
        return await sending

    async def _copy(self, response: Response, booking: _Booking, gone: asyncio.Future[None]) -> None:
        """Send the response on, piece by piece, until it ends or the client is gone."""
        try:
            await self._start(response.status_code, _returned_headers(response.headers.raw))
            async for chunk in response.aiter_raw():
                booking.first_byte_at = booking.first_byte_at or self.app.clock.uptime()
                if booking.reader is not None:
                    booking.reader.feed(chunk)
                if gone.done():
                    return
                await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await response.aclose()

    async def _wait_for_disconnect(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def _start(self, status: int, headers: _Headers) -> None:
        self.is_started = True
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def _refuse(self, status: int, reason: str) -> None:
        """An error of the proxy itself, in the form that clients of both providers read."""
        told = JsonObject({"type": "api_error", "message": f"sevenfold proxy: {reason}"})
        data = write_json(JsonObject({"type": "error", "error": told}))
        await self._start(status, [(b"content-type", b"application/json")])
        await self.send({"type": "http.response.body", "body": data})


def _read_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


def _is_local(host: str) -> bool:
    """Whether the request was made for this machine. A page in a browser that found us by a name of its own
    says that name."""
    with suppress(ValueError):
        return urlsplit(f"//{host}").hostname in _LOCAL_NAMES
    return False


def _forwarded_headers(raw: Iterable[tuple[bytes, bytes]]) -> _Headers:
    """Without those of the connection; of encodings only what the usage can be read from."""
    kept = [(name, value) for name, value in raw if name.decode("latin-1").lower() not in _CONNECTION_HEADERS]
    return [
        (name, b"gzip" if b"gzip" in value else b"identity")
        if name.lower() == b"accept-encoding"
        else (name, value)
        for name, value in kept
    ]


def _returned_headers(raw: Iterable[tuple[bytes, bytes]]) -> _Headers:
    """All but those of the connection. A length that was named still holds: the bytes are the same."""
    dropped = _CONNECTION_HEADERS - {"content-length"}
    return [(name, value) for name, value in raw if name.decode("latin-1").lower() not in dropped]


class ProxyServer:
    """Listens from `start` to `stop`, on loopback."""

    def __init__(self, app: ProxyApp, *, port: int = 0) -> None:
        self.app, self._port = app, port
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        self._url = ""

    @property
    def url(self) -> str:
        if not self._url:
            raise ProxyError("the proxy is not running; start it first")
        return self._url

    def run_url(self, run: ProxyRun) -> str:
        """The base URL of one agent."""
        self.app.runs[run.token] = run
        return f"{self.url}{RUN_PATH}{run.token}"

    def start(self) -> None:
        try:
            import httpx2
            import uvicorn
        except ImportError as error:
            raise ProxyError(describe_missing("the proxy", ["httpx2", "uvicorn"], "proxy")) from error
        del httpx2
        listener = listen(PROXY_ADDRESS, self._port)
        config = uvicorn.Config(
            self.app,
            ws="none",
            lifespan="off",
            log_config=None,  # logging belongs to whoever embeds us
            log_level="critical",
            access_log=False,
            date_header=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = server = uvicorn.Server(config)
        self._url = listener_url(PROXY_ADDRESS, listener)

        async def serve() -> None:
            try:
                await server.serve(sockets=[listener])
            finally:
                await self.app.close()

        self._thread = threading.Thread(
            target=lambda: asyncio.run(serve()), name="sevenfold-proxy", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and wait for the thread. Again does nothing."""
        thread, server = self._thread, self._server
        self._thread = self._server = None
        if thread is None or server is None:
            return
        server.should_exit = True
        thread.join(PROXY_STOP_SECONDS)
        if thread.is_alive():
            raise ProxyError(f"the proxy did not stop within {PROXY_STOP_SECONDS:g} seconds")
