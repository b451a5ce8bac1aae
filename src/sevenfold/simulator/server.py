"""A simulator on a local port, served by a thread. Connections are counted for `state/arrivals`."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, cast

from sevenfold.core.errors import SimulatorError
from sevenfold.core.listening import listen, listener_url
from sevenfold.simulator.app import FindState, make_simulator_app
from sevenfold.simulator.state.arrivals import ArrivalBarrier

if TYPE_CHECKING:
    from uvicorn import Server

    from sevenfold.simulator.state.arrivals import AsgiApp


# Counts connections of uvicorn from the moment they are made.


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
_EXTRA = "the simulator needs starlette and uvicorn: install sevenfold[simulator]"
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
        raise SimulatorError(f"{_EXTRA} ({error})") from error
    config = uvicorn.Config(
        app,
        http=make_counting_protocol(arrivals),
        ws="none",
        lifespan="off",
        log_config=None,  # logging belongs to whoever embeds us
        log_level="critical",
        access_log=False,
        date_header=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)
