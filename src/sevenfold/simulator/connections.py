"""Uvicorn's connections, counted from the moment they are made."""

from __future__ import annotations

import asyncio

from sevenfold.simulator.state.arrivals import ArrivalBarrier


def make_counting_protocol(arrivals: ArrivalBarrier) -> type[asyncio.Protocol]:
    """A protocol whose connections are told to `arrivals`. Uvicorn takes a class, so one is made for each."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Watched(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            arrivals.connect(self.client)

        def connection_lost(self, exc: Exception | None) -> None:
            arrivals.disconnect(self.client)
            super().connection_lost(exc)

    return Watched
