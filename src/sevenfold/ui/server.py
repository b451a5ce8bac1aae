"""The page on a local port: a server in a thread, from `start` to `stop`."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from sevenfold.core.errors import InputError, describe_missing
from sevenfold.core.system import LOCAL_SERVER_OPTIONS, listen
from sevenfold.ui.access import GuardedApp, PageAccess

if TYPE_CHECKING:
    from uvicorn import Server

PAGE_ADDRESS = "127.0.0.1"
"""Never any other: what is shown is everything that was said on this machine."""
PAGE_PORT = 7007
PAGE_STOP_SECONDS = 5.0


class PageServer:
    """Listens on loopback."""

    def __init__(self, make_app: Callable[[PageAccess], GuardedApp], port: int | None = None) -> None:
        """Without a port: `PAGE_PORT`, or any free one where that is taken."""
        try:
            import starlette
            import uvicorn
        except ImportError as error:
            raise InputError(describe_missing("the page", ["starlette", "uvicorn"], "ui")) from error
        del starlette
        self._listener = _listen(port)
        self.access = PageAccess(self._listener.getsockname()[1])
        config = uvicorn.Config(make_app(self.access), **LOCAL_SERVER_OPTIONS)
        self._server: Server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://{PAGE_ADDRESS}:{self.access.port}"

    def start(self) -> None:
        serve = self._server.serve
        self._thread = threading.Thread(
            target=lambda: asyncio.run(serve(sockets=[self._listener])), name="sevenfold-ui", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and wait for the thread. Again does nothing."""
        thread, self._thread = self._thread, None
        self._server.should_exit = True
        if thread is not None:
            thread.join(PAGE_STOP_SECONDS)
        self._listener.close()


def _listen(port: int | None) -> socket.socket:
    if port is not None:
        return listen(PAGE_ADDRESS, port)
    try:
        return listen(PAGE_ADDRESS, PAGE_PORT)
    except InputError:
        return listen(PAGE_ADDRESS, 0)
