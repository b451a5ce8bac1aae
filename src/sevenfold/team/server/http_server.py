"""The server on a port: listens until it is told to end, then finishes what is under way."""

from __future__ import annotations

import asyncio
import random
import resource
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from sevenfold.core.errors import DatabaseFailed
from sevenfold.core.listening import listen, listener_url
from sevenfold.team.server.api_errors import ApiError
from sevenfold.team.server.app_state import AppState
from sevenfold.team.server.http_api import TeamApi
from sevenfold.team.server.http_timeouts import make_protocol
from sevenfold.team.server.metrics import ServerMetrics
from sevenfold.team.server.people import list_orgs
from sevenfold.team.server.repos import collect_garbage, list_repos
from sevenfold.team.server.shared_rates import SHARE_EVERY, SharedRates, forget_taken

if TYPE_CHECKING:
    from uvicorn import Server
    from uvicorn._types import ASGIApplication

DRAIN_SECONDS = 20
"""Longer than the slowest request, shorter than the half minute after which supervisors kill."""
COLLECT_EVERY = timedelta(hours=1)
BACKLOG = 4096
SWITCH_INTERVAL = timedelta(microseconds=500)
"""How long the database's threads may keep the interpreter from the loop. Python's own five milliseconds are
as much as a whole request, and the loop would wait so long after each of its calls to the system."""


class TeamServer:
    def __init__(self, desk: AppState, meters: ServerMetrics, *, address: str, port: int) -> None:
        self._desk, self._meters = desk, meters
        self._front = TeamApi(desk, meters)
        self._server = self._make_server()
        self._listener = listen(address, port, backlog=BACKLOG)
        self.url = listener_url(address, self._listener)

    def run(self) -> None:
        """Until SIGTERM or SIGINT, or `stop` from another thread. What was begun is finished first."""
        sys.setswitchinterval(SWITCH_INTERVAL.total_seconds())
        _allow_connections()
        with _signals_only_heard():
            asyncio.run(self._serve())

    def stop(self) -> None:
        self._server.should_exit = True

    async def _serve(self) -> None:
        beside = [asyncio.create_task(work) for work in (self._collect_on(), self._share_on())]
        try:
            await self._server.serve(sockets=[self._listener])
        finally:
            for one in beside:
                one.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await asyncio.to_thread(self._desk.close)
        self._meters.tell("ended")

    async def _share_on(self) -> None:
        rates, is_shared = SharedRates(self._desk, self._front.gate), True
        while True:
            await asyncio.sleep(SHARE_EVERY.total_seconds())
            try:
                await rates.share()
                is_shared = True
            except (DatabaseFailed, ApiError) as error:
                if is_shared:  # once, and not every second
                    self._meters.tell("rates not shared", error=str(error)[:500])
                is_shared = False

    async def _collect_on(self) -> None:
        # Processes that were started together do not collect together.
        await asyncio.sleep(random.random() * COLLECT_EVERY.total_seconds())
        while True:
            try:
                await self._collect()
            except (DatabaseFailed, ApiError) as error:
                self._meters.tell("collection failed", error=str(error)[:500])
            await asyncio.sleep(COLLECT_EVERY.total_seconds())

    async def _collect(self) -> None:
        desk = self._desk
        await desk.write(None, lambda tx: forget_taken(tx, desk.now_ms))
        for org in await desk.read(None, list_orgs):
            for repo in await desk.read(org.id, lambda tx, org=org: list_repos(tx, org.id)):
                gone = await desk.write(
                    org.id,
                    lambda tx, org=org, repo=repo: collect_garbage(
                        tx, org.id, repo.id, desk.now_ms, desk.limits
                    ),
                )
                if gone.tombstones or gone.bodies or gone.answers:
                    self._meters.tell(
                        "collected", repo=repo.id, tombstones=gone.tombstones, bodies=gone.bodies
                    )

    def _make_server(self) -> Server:
        import uvicorn

        config = uvicorn.Config(
            cast("ASGIApplication", self._front.make_app()),
            http=make_protocol(),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            backlog=BACKLOG,
        )
        return uvicorn.Server(config)


def _allow_connections() -> None:
    """As many as the system lets us: the usual 1,024 files are fewer than a team has laptops."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _hear(_number: int, _frame: object) -> None:
    """It was heard, and that is all."""


@contextmanager
def _signals_only_heard() -> Generator[None]:
    """Uvicorn ends on a signal and then raises it again, which would end us before the database is closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.signal(one, _hear) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, action in before.items():
            signal.signal(one, action)
