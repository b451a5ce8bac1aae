"""The proxy over HTTP: forwards each request, and streams the response as it comes.

The address of a run has a random path, which is its token: it says for which agent and project a request is
made. A main turn of a run passes the layers. Every other request is forwarded as it came, except for headers
that belong to one connection. Where the layers fail, the original is forwarded and the ledger says so.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import InputError, ProxyError, describe_missing
from sevenfold.core.json import JsonObject, write_json
from sevenfold.core.system import LOCAL_SERVER_OPTIONS, listen, listener_url, run_blocking
from sevenfold.proxy.bodies import UnfitBody
from sevenfold.proxy.headers import (
    LOOPBACK_ADDRESSES,
    RawHeaders,
    is_from_web_page,
    is_local_host,
    make_forwarded_headers,
    make_returned_headers,
    read_raw_path,
    read_scope_headers,
)
from sevenfold.proxy.layers import ProxyLayers
from sevenfold.proxy.ledger import NO_TARGET, NO_TOUCH, ProxyLedger, RequestTarget, RequestTouch
from sevenfold.proxy.profiles import AgentProfile, find_profile, recognize_agent
from sevenfold.proxy.requests import UNREAD_REQUEST, Upstreams, find_wire_format, read_request
from sevenfold.proxy.responses import UsageReader
from sevenfold.proxy.state import RunStore, StoredRun
from sevenfold.proxy.turns import PreparedTurn, TurnRequest

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Request, Response
    from uvicorn import Server

PROXY_ADDRESS = "127.0.0.1"
MAX_FORWARDED_BYTES = 64 * 1024 * 1024
"""Twice what a provider takes."""
STALL_SECONDS = 600.0
"""How long a response may bring nothing: the SDKs wait as long."""
CONNECT_SECONDS = 30.0
PROXY_STOP_SECONDS = 10.0
MAX_WAITING_THREADS = 32
"""Requests that are prepared or booked at the same time."""
RUN_PATH = "/run/"
REFUSALS = frozenset({400, 413, 422})
"""Answers to a request that is not as the provider wants it."""

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ProxyRun:
    """One agent that was started behind the proxy."""

    token: str
    profile: AgentProfile | None
    project: str = ""
    """The folder that it works in; empty: its requests are forwarded and billed alone."""
    records_only: bool = False

    @classmethod
    def create(
        cls, profile: AgentProfile | None, project: str = "", *, records_only: bool = False
    ) -> ProxyRun:
        return cls(secrets.token_urlsafe(16), profile, project, records_only)

    @property
    def has_layers(self) -> bool:
        return bool(self.profile and self.profile.layers and self.project and not self.records_only)


@dataclass(slots=True, kw_only=True)
class ProxyApp:
    """The application: one request in, one request out."""

    ledger: ProxyLedger
    upstreams: Upstreams = field(default_factory=Upstreams)
    layers: ProxyLayers | None = None
    """None: every request is forwarded as it came."""
    runs: dict[str, ProxyRun] = field(default_factory=dict[str, ProxyRun])
    run_store: RunStore | None = None
    access_token: str = ""
    """What a request has to show where the proxy does not listen on loopback: in the path of a run, or as a
    bearer token in `proxy-authorization`."""
    clock: Clock = field(default_factory=SystemClock)
    _client: AsyncClient | None = None
    _salt: bytes = field(default_factory=lambda: secrets.token_bytes(16))

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            return
        with suppress(_ClientGone):
            await _Exchange(app=self, scope=scope, receive=receive, send=send).run()

    def add_to_ledger(self, booking: _Booking) -> None:
        """Write a request down, however it ended. Blocks."""
        profile, prepared = booking.profile, booking.prepared
        usage = booking.reader.read_usage() if booking.reader else None
        facts = prepared.facts if prepared else UNREAD_REQUEST
        if facts is UNREAD_REQUEST:
            facts = read_request(booking.path, booking.headers, booking.body, profile)
        self.ledger.add(
            at=booking.at,
            agent=profile.name if profile else "",
            client=self.identify(booking.headers),
            facts=facts,
            status=booking.status,
            usage=usage,
            touch=booking.touch,
            target=booking.target,
        )
        if self.layers is not None and prepared is not None:
            has_call = booking.reader is not None and booking.reader.has_call
            is_ended = booking.status < 300 and not has_call
            self.layers.answered(prepared, usage, is_ended=is_ended)

    def prepare(self, turn: TurnRequest) -> PreparedTurn:
        """What is sent in place of a request of a run. Blocks. Fails open: a request that the layers cannot
        take is sent as it came."""
        if self.layers is None:
            raise UnfitBody("there are no layers")
        try:
            return self.layers.prepare(turn)
        except UnfitBody as error:
            touch = RequestTouch(failures=(f"body: {error}",))
        except Exception as error:
            touch = RequestTouch(failures=(f"layers: {type(error).__name__}: {error}",))
        return PreparedTurn(body=turn.body, facts=UNREAD_REQUEST, touch=touch)

    def find_run(self, token: str) -> ProxyRun | None:
        """The run of a token; one of before a restart is in a file. Blocks."""
        run = self.runs.get(token)
        if run is None and self.run_store is not None:
            stored = self.run_store.read(token)
            if stored is not None:
                profile = find_profile(stored.agent)
                run = ProxyRun(token, profile, stored.project, stored.records_only)
                self.runs[token] = run
        return run

    def add_run(self, run: ProxyRun) -> None:
        self.runs[run.token] = run
        if self.run_store is not None:
            agent = run.profile.name if run.profile else ""
            self.run_store.write(run.token, StoredRun(agent, run.project, run.records_only))

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
        if self.layers is not None:
            return self.layers.store.identify(key, headers.get("user-agent", ""))
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
    prepared: PreparedTurn | None = None
    touch: RequestTouch = NO_TOUCH
    first_byte_at: timedelta | None = None
    target: RequestTarget = NO_TARGET

    @property
    def profile(self) -> AgentProfile | None:
        return (self.run.profile if self.run else None) or recognize_agent(self.headers)


@dataclass(slots=True, kw_only=True)
class _Exchange:
    """One request and its response."""

    app: ProxyApp
    scope: _Message
    receive: _Receive
    send: _Send
    is_started: bool = False

    async def run(self) -> None:
        headers = read_scope_headers(self.scope["headers"])
        path, run, is_stale = await self._find_run(read_raw_path(self.scope))
        refusal = self._find_refusal(headers, run)
        if refusal or not path.startswith("/"):
            await self._refuse(403 if refusal else 400, refusal or "the path must begin with a slash")
            return
        body = await self._read_body()
        if body is None:
            await self._refuse(413, f"the request has more than {MAX_FORWARDED_BYTES:,} bytes")
            return
        app = self.app
        booking = _Booking(at=app.clock.now(), path=path, headers=headers, body=body, run=run)
        if is_stale:
            booking.touch = RequestTouch(failures=("run: its token is not known; the request is left alone",))
        is_known = find_wire_format(path) != "other"
        if run is not None and run.has_layers and app.layers is not None and is_known:
            await self._prepare(booking, run)
        await self._forward(booking)

    async def _find_run(self, path: str) -> tuple[str, ProxyRun | None, bool]:
        """The path behind that of a run, the run, and whether nobody knows its token."""
        if not path.startswith(RUN_PATH):
            return path, None, False
        token, _, rest = path.removeprefix(RUN_PATH).partition("/")
        run = self.app.runs.get(token) or await run_blocking(lambda: self.app.find_run(token))
        return f"/{rest}", run, run is None

    def _find_refusal(self, headers: Mapping[str, str], run: ProxyRun | None) -> str:
        """Why a request is not forwarded; empty: it is."""
        if is_from_web_page(headers):
            return "requests of web pages are not forwarded"
        token = self.app.access_token
        if not token:
            is_local = is_local_host(headers.get("host", ""))
            return "" if is_local else "this proxy answers to requests for this machine alone"
        given = headers.get("proxy-authorization", "").removeprefix("Bearer ")
        is_allowed = run is not None or secrets.compare_digest(given.encode(), token.encode())
        return "" if is_allowed else "the token is missing: use the address of a run, or proxy-authorization"

    async def _prepare(self, booking: _Booking, run: ProxyRun) -> None:
        app, profile = self.app, run.profile
        if profile is None:
            return
        turn = TurnRequest(
            path=booking.path,
            headers=booking.headers,
            body=booking.body,
            client=app.identify(booking.headers),
            profile=profile,
            project=run.project,
            at=booking.at,
        )
        booking.prepared = await run_blocking(lambda: app.prepare(turn))
        booking.touch = booking.prepared.touch

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

    async def _forward(self, booking: _Booking) -> None:
        import httpx2

        app, began, path, prepared = self.app, self.app.clock.uptime(), booking.path, booking.prepared
        query = self.scope.get("query_string", b"").decode("latin-1")
        url = app.upstreams.make_url(path, booking.headers, booking.profile) + (f"?{query}" if query else "")
        booking.target = RequestTarget(method=self.scope["method"], path=path, host=urlsplit(url).netloc)
        # Made here and not by the client, which would add headers and cookies of its own.
        request = httpx2.Request(
            self.scope["method"],
            url,
            headers=make_forwarded_headers(self.scope["headers"], prepared.betas if prepared else ()),
            content=prepared.body if prepared else booking.body,
        )
        if find_wire_format(path) != "other" and not path.endswith("/count_tokens"):
            agent = booking.profile.name if booking.profile else ""
            number = await run_blocking(lambda: app.ledger.send(booking.at, agent))
            booking.target = replace(booking.target, number=number)
        gone = asyncio.ensure_future(self._wait_for_disconnect())
        try:
            response = await self._send_upstream(request, gone)
            if response.status_code in REFUSALS and booking.touch.is_changed:
                await response.aclose()
                response = await self._send_original(request, booking, gone)
            if self.scope["method"] == "POST" and response.has_redirect_location:
                await self._refuse_redirect(response, booking)
                return
            booking.reader = UsageReader(find_wire_format(path), response.headers)
            booking.status = response.status_code
            await self._copy(response, booking, gone)
        except httpx2.HTTPError as error:
            if self.is_started:
                raise  # the client sees a response that broke off, as it would without us
            reason = f"{booking.target.host} cannot be reached: {type(error).__name__}: {error}"
            booking.status, booking.target = 502, replace(booking.target, error=reason)
            await self._refuse(502, reason)
        finally:
            gone.cancel()
            waited = (booking.first_byte_at or app.clock.uptime()) - began
            booking.target = replace(booking.target, first_byte=waited)
            # What the request says is read after the response: nothing waits for it.
            await run_blocking(lambda: app.add_to_ledger(booking))

    async def _send_original(
        self, request: Request, booking: _Booking, gone: asyncio.Future[None]
    ) -> Response:
        """The provider refused what the layers made: send what came. Its answer to that is the client's."""
        import httpx2

        headers = make_forwarded_headers(self.scope["headers"])
        original = httpx2.Request(request.method, request.url, headers=headers, content=booking.body)
        response = await self._send_upstream(original, gone)
        reason = "provider: it refused the changed request, and the original was sent"
        booking.touch = replace(booking.touch, is_changed=False, failures=(*booking.touch.failures, reason))
        state = booking.prepared.state if booking.prepared else None
        if state is not None and response.status_code < min(REFUSALS):
            state.is_refused = True  # until the proxy is started again
        return response

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
            headers = make_returned_headers(response.headers.raw)
            if booking.touch is not NO_TOUCH:
                headers += booking.touch.make_headers()
            await self._start(response.status_code, headers)
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

    async def _refuse_redirect(self, response: Response, booking: _Booking) -> None:
        """A client that follows it would send the whole conversation elsewhere, and often the key."""
        await response.aclose()
        reason = (
            f"{booking.target.host} answered {response.status_code} and leads elsewhere, where the "
            "conversation is not sent; name the right address with --upstream URL"
        )
        booking.status, booking.target = 502, replace(booking.target, error=reason)
        await self._refuse(502, reason)

    async def _wait_for_disconnect(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def _start(self, status: int, headers: RawHeaders) -> None:
        self.is_started = True
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def _refuse(self, status: int, reason: str) -> None:
        """An error of the proxy itself, in the form that clients of both providers read."""
        error = JsonObject({"type": "api_error", "message": f"sevenfold proxy: {reason}"})
        data = write_json(JsonObject({"type": "error", "error": error}))
        await self._start(status, [(b"content-type", b"application/json")])
        await self.send({"type": "http.response.body", "body": data})


class ProxyServer:
    """Listens from `start` to `stop`: on loopback, or elsewhere if the application asks for a token."""

    def __init__(self, app: ProxyApp, *, port: int = 0, address: str = PROXY_ADDRESS) -> None:
        if address not in LOOPBACK_ADDRESSES and not app.access_token:
            raise InputError(f"{address} can be reached from other machines; the proxy needs a token there")
        self.app, self._port, self._address = app, port, address
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
        self.app.add_run(run)
        return f"{self.url}{RUN_PATH}{run.token}"

    def start(self) -> None:
        try:
            import httpx2
            import uvicorn
        except ImportError as error:
            raise ProxyError(describe_missing("the proxy", ["httpx2", "uvicorn"], "proxy")) from error
        del httpx2
        listener = listen(self._address, self._port)
        if self.app.upstreams.leads_to(listener.getsockname()[1]):
            listener.close()
            raise InputError(
                f"the upstream is this proxy itself, on port {self._port}; name the server behind it"
            )
        self._server = server = uvicorn.Server(uvicorn.Config(self.app, **LOCAL_SERVER_OPTIONS))
        self._url = listener_url(self._address, listener)

        async def serve() -> None:
            # Requests wait in threads for disks and memory. With few threads, other requests would wait too.
            threads = ThreadPoolExecutor(MAX_WAITING_THREADS, thread_name_prefix="sevenfold-proxy")
            asyncio.get_running_loop().set_default_executor(threads)
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
