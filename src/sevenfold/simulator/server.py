"""The simulator over HTTP: the application, and a server for it on a local port, in a thread.

`make_simulator_app` has the routes, request bodies, JSON and server-sent events. `SimulatorServer` counts
connections for `ArrivalBarrier`, from the moment they are made.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from sevenfold.core.errors import InputError, SimulatorError, describe_missing
from sevenfold.core.json import Json, JsonObject, read_object, write_json
from sevenfold.core.system import LOCAL_SERVER_OPTIONS, listen, listener_url
from sevenfold.simulator.exchange import MessagesExchange, MessagesResponse
from sevenfold.simulator.faults import DropFault, SlowFault, StreamFault, parse_simulated_fault
from sevenfold.simulator.openai.exchange import JSON_MEDIA_TYPE, OpenAIRoutes, json_response
from sevenfold.simulator.simulator_state import LATEST_TIME, ArrivalBarrier, SimulatorState
from sevenfold.simulator.wire.answer import iter_stream_events, render_sse
from sevenfold.simulator.wire.error_response import ErrorResponse, RequestRefused
from sevenfold.simulator.wire.messages_request import MessagesEndpoint, parse_envelope
from sevenfold.simulator.wire.models import render_found_model, render_model_page

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from uvicorn import Server

    from sevenfold.simulator.simulator_state import AsgiApp


# Starlette is imported when an application is created, so that importing the package stays fast.

FindState = Callable[[], SimulatorState]
"""The state that is served now: a reset replaces it."""

_SSE = "text/event-stream; charset=utf-8"


class ConnectionDropped(Exception):
    """Raised in mid-answer so that the server closes the connection, as a `DropFault` asks."""


def make_simulator_app(find_world: FindState) -> Starlette:
    """The application; it holds no state except the `SimulatorState` it is given."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    front, openai = MessagesRoutes(find_world), OpenAIRoutes(find_world)
    return Starlette(
        routes=[
            *openai.routes(),
            Route("/v1/messages", front.create, methods=["POST"]),
            Route("/v1/messages/count_tokens", front.count, methods=["POST"]),
            Route("/v1/models", openai.models_or(front.models), methods=["GET"]),
            Route("/v1/models/{name:path}", openai.models_or(front.model), methods=["GET"]),
            Route("/_sevenfold/ledger", front.ledger, methods=["GET"]),
            Route("/_sevenfold/clock", front.clock, methods=["GET", "POST"]),
            Route("/_sevenfold/faults", front.faults, methods=["GET", "POST", "DELETE"]),
        ],
        exception_handlers={404: front.missing, 405: front.missing},
    )


class MessagesRoutes:
    def __init__(self, find_world: FindState) -> None:
        self._find_world = find_world

    async def create(self, request: Request) -> Response:
        return await self._serve(request, "messages")

    async def count(self, request: Request) -> Response:
        return await self._serve(request, "count_tokens")

    async def models(self, request: Request) -> Response:
        world = self._find_world()
        return self._checked(request, lambda: render_model_page(world.catalog, dict(request.query_params)))

    async def model(self, request: Request) -> Response:
        world = self._find_world()
        return self._checked(request, lambda: render_found_model(world.catalog, request.path_params["name"]))

    async def ledger(self, request: Request) -> Response:
        """Every request so far; `?since=N` leaves out the first N."""
        since = request.query_params.get("since", "0")
        return json_response(
            self._find_world().ledger.to_json(int(since) if since.isascii() and since.isdigit() else 0)
        )

    async def clock(self, request: Request) -> Response:
        """Tell the time, or put it forward: `{"advance_seconds": 3600}`."""
        clock = self._find_world().clock

        def advance(wire: JsonObject) -> None:
            seconds = wire.get("advance_seconds")
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float, Decimal)):
                raise InputError(f"advance_seconds must be a number, not {seconds!r}")
            most = (LATEST_TIME - clock.now()) // timedelta(seconds=1)
            if not 0 <= seconds <= most:
                raise InputError(f"advance_seconds must be from 0 to {most}, not {seconds}")
            clock.advance(timedelta(seconds=float(seconds)))

        return await self._controlled(request, advance, lambda: {"now": clock.now().isoformat()})

    async def faults(self, request: Request) -> Response:
        """Plan a fault, forget all, or list them: `{"status": 529, "times": 2}`."""
        plan = self._find_world().faults
        if request.method == "DELETE":
            plan.clear()

        def add(wire: JsonObject) -> None:
            times = wire.get("times", 1)
            if isinstance(times, bool) or not isinstance(times, int):
                raise InputError(f"times must be a whole number, not {times!r}")
            plan.add(parse_simulated_fault(wire), times)

        return await self._controlled(request, add, lambda: {"waiting": tuple(str(fault) for fault in plan)})

    async def missing(self, _request: Request, error: Exception) -> Response:
        """A path or a method that is not there, in the API's own words."""
        status = getattr(error, "status_code", 404)
        message = "Not Found" if status == 404 else "Method Not Allowed"
        return self._refused(ErrorResponse(status=status, message=message))

    async def _serve(self, request: Request, endpoint: MessagesEndpoint) -> Response:
        world = self._find_world()
        data = await _read_body(request, world.choices.request_limit_bytes)
        served = await MessagesExchange(world).serve(endpoint, _headers(request), data)
        world.arrivals.mark_looked_up()
        if served.streams:
            return _stream(served, pings=world.choices.pings)
        if isinstance(served.fault, DropFault):
            return _half(served)
        return json_response(served.body, served.status, dict(served.headers))

    def _checked(self, request: Request, answer: Callable[[], JsonObject]) -> Response:
        world = self._find_world()
        try:
            parse_envelope(_headers(request), world.choices)
            return json_response(answer(), headers={"request-id": f"req_{world.next_request()}"})
        except RequestRefused as refusal:
            return self._refused(refusal.problem)

    def _refused(self, problem: ErrorResponse) -> Response:
        request_id = f"req_{self._find_world().next_request()}"
        headers = {"request-id": request_id, **problem.headers()}
        return json_response(problem.body(request_id), problem.status, headers)

    async def _controlled(
        self, request: Request, act: Callable[[JsonObject], None], state: Callable[[], dict[str, Json]]
    ) -> Response:
        try:
            if request.method == "POST":
                act(read_object(await request.body()))
        except InputError as error:
            return self._refused(ErrorResponse(status=400, message=str(error)))
        return json_response(JsonObject(state()))


def _headers(request: Request) -> dict[str, str]:
    """By lower-case name; what was sent twice, as betas may be, is one list."""
    return {name: ",".join(request.headers.getlist(name)) for name in request.headers.keys()}  # noqa: SIM118


async def _read_body(request: Request, limit_bytes: int) -> bytes:
    """The body, or just enough of one that is too large to show it."""
    data = bytearray()
    async for chunk in request.stream():
        if len(data) <= limit_bytes:
            data += chunk
    return bytes(data)


def _stream(served: MessagesResponse, *, pings: bool) -> Response:
    from starlette.responses import StreamingResponse

    return StreamingResponse(_events(served, pings=pings), 200, dict(served.headers), _SSE)


def _half(served: MessagesResponse) -> Response:
    """An answer that breaks off in the middle of its body."""
    from starlette.responses import StreamingResponse

    data = write_json(served.body)

    async def broken() -> AsyncIterator[bytes]:
        yield data[: len(data) // 2]
        raise ConnectionDropped

    headers = {**served.headers, "content-length": str(len(data))}
    return StreamingResponse(broken(), served.status, headers, JSON_MEDIA_TYPE)


async def _events(served: MessagesResponse, *, pings: bool) -> AsyncIterator[bytes]:
    """The stream, with what its fault does to it."""
    fault = served.fault
    for at, event in enumerate(iter_stream_events(served.body, pings=pings)):
        if at == served.breaks_after:
            if isinstance(fault, StreamFault):
                yield render_sse(
                    ErrorResponse(status=fault.status, message=fault.message).body(
                        served.headers["request-id"]
                    )
                )
                return
            raise ConnectionDropped
        if isinstance(fault, SlowFault):
            await asyncio.sleep(fault.each.total_seconds())
        yield render_sse(event)


def make_counting_protocol(arrivals: ArrivalBarrier) -> type[asyncio.Protocol]:
    """A protocol that reports its connections to `arrivals`. Uvicorn takes a class, so each gets one."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Watched(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            arrivals.connect(self.client)

        def connection_lost(self, exc: Exception | None) -> None:
            arrivals.disconnect(self.client)
            super().connection_lost(exc)

    return Watched


LOOPBACK = "127.0.0.1"
SERVER_STOP_SECONDS = 10
"""A request that is still being answered by then is stuck; its thread is left behind."""


class SimulatorServer:
    """Listens from `start` to `stop`, on loopback unless told otherwise: there is no real authentication."""

    def __init__(self, find_world: FindState, *, port: int = 0, address: str = LOOPBACK) -> None:
        self._find_world, self._address, self._wanted = find_world, address, port
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        self._url: str | None = None

    @property
    def url(self) -> str:
        """What `ANTHROPIC_BASE_URL` has to be."""
        if self._url is None:
            raise SimulatorError("the simulator is not running; start it, or use it as a context manager")
        return self._url

    def start(self) -> None:
        if self._thread is not None:
            raise SimulatorError("the simulator is running already; stop it before it is started again")
        listener = listen(self._address, self._wanted)
        try:
            self._server = server = _make_server(self._find_world)
        except BaseException:
            listener.close()
            raise
        self._url = listener_url(self._address, listener)
        # The socket is bound and listening, so a client may connect before the loop runs.
        self._thread = threading.Thread(
            target=lambda: server.run(sockets=[listener]), name="sevenfold-simulator", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and wait for the thread. Again does nothing."""
        thread, server = self._thread, self._server
        self._thread = self._server = self._url = None
        if thread is None or server is None:
            return
        server.should_exit = True
        thread.join(SERVER_STOP_SECONDS)
        if thread.is_alive():
            raise SimulatorError(
                f"the simulator did not stop within {SERVER_STOP_SECONDS} seconds: a brain is stuck"
            )


def _make_server(find_world: FindState) -> Server:
    try:
        import uvicorn

        arrivals = find_world().arrivals
        app = arrivals.watch(cast("AsgiApp", make_simulator_app(find_world)))
    except ImportError as error:
        missing = ["starlette", "uvicorn"]
        raise SimulatorError(describe_missing("the simulator", missing, "simulator")) from error
    config = uvicorn.Config(app, http=make_counting_protocol(arrivals), **LOCAL_SERVER_OPTIONS)
    return uvicorn.Server(config)
