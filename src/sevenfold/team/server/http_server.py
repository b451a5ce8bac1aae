"""The server on a port: listens until it is told to stop, then finishes what is under way.

Also here: the HTTP protocol with timeouts, and rates that hold across processes.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import signal
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from sevenfold.core.errors import DatabaseFailed
from sevenfold.core.system import listen, listener_url
from sevenfold.team.server.app_state import AccessControl, AppState
from sevenfold.team.server.database import Tx, sql_number, sql_text
from sevenfold.team.server.http_api import ServerMetrics, TeamApi
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.people import list_orgs
from sevenfold.team.server.repos import collect_garbage, list_repos

if TYPE_CHECKING:
    from uvicorn import Server
    from uvicorn._types import ASGIApplication


# Uvicorn waits for ever for a client that does not send its request or read the answer; this protocol hangs
# up. It uses h11, because httptools accepts headers of any length.

HEAD_TIME = timedelta(seconds=20)
"""For the head of a request, from its first byte, or from the connection if there is none yet."""

TAKE_TIME = timedelta(seconds=120)
"""For an answer: 85 KB a second for the largest. Until it is taken, all of it is in memory."""


class _Deadline:
    """By which something has to have happened; it begins once, until it is stopped."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop, span: timedelta, act: Callable[[], None]) -> None:
        if self._timer is None:
            self._timer = loop.call_later(span.total_seconds(), act)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def make_protocol() -> type[asyncio.Protocol]:
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class PatientProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._head, self._answer = _Deadline(), _Deadline()
            self._head.start(self.loop, HEAD_TIME, transport.close)

        def handle_events(self) -> None:
            super().handle_events()
            is_answering = self.cycle and not self.cycle.response_complete
            if is_answering or self.timeout_keep_alive_task is not None:  # a request, or none begun
                self._head.stop()
            else:
                self._head.start(self.loop, HEAD_TIME, self.transport.close)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._answer.start(self.loop, TAKE_TIME, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._answer.stop()

        def connection_lost(self, exc: Exception | None) -> None:
            self._head.stop()
            self._answer.stop()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            """What is no HTTP, or has too long a head, is refused in the shape of everything else."""
            self.transport.write(_spell_refusal(msg))
            self.transport.close()

    return PatientProtocol


def _spell_refusal(message: str) -> bytes:
    refusal = ApiError(
        status=400, kind="bad request", message=message, advice="send HTTP/1.1, with a head of 64 KB at most"
    )
    body = json.dumps(refusal.body())
    return (
        f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        f"connection: close\r\n\r\n{body}"
    ).encode()


# Each process reports to the database what it took, and reads what the others took. Counts only grow, so
# neither clocks nor order matter, and no request waits for it.

SHARE_EVERY = timedelta(seconds=1)
TAKEN_RETENTION = timedelta(days=1)
"""Much longer than any bucket takes to fill."""
_MOST_ROWS = 500
"""Of one statement."""


FOLLOWED = 10
"""Rounds in which nobody took anything before a bucket is not asked about any more."""


@dataclass(frozen=True, slots=True)
class _Followed:
    total: int
    """What all processes had taken when it was told last."""
    idle: int = 0

    def after(self, total: int) -> _Followed:
        return _Followed(total, self.idle + 1 if total == self.total else 0)


class SharedRates:
    def __init__(self, app: AppState, gate: AccessControl) -> None:
        self._app, self._gate = app, gate
        self._followed: dict[str, _Followed] = {}

    async def share(self) -> None:
        taken, now_ms = self._gate.report_taken(), self._app.now_ms
        reported = {**dict.fromkeys(self._followed, 0), **taken}
        if not reported:
            return
        totals = await self._app.write(None, lambda tx: add_taken(tx, reported, now_ms))
        known = {
            name: self._followed.get(name, _Followed(total - reported[name]))
            for name, total in totals.items()
        }
        self._gate.add_remote_taken(
            {name: totals[name] - one.total - reported[name] for name, one in known.items()}
        )
        now = {name: one.after(totals[name]) for name, one in known.items()}
        self._followed = {name: one for name, one in now.items() if one.idle < FOLLOWED}


def add_taken(tx: Tx, taken: Mapping[str, int], now_ms: int) -> dict[str, int]:
    """What has been taken of each bucket by everybody, now that this is added."""
    totals = dict[str, int]()
    # In one order for all, so that two processes never wait for each other.
    for some in _chunks(sorted(taken)):
        rows = tx.rows(
            f"INSERT INTO permit VALUES {', '.join(['(?, ?, ?)'] * len(some))} ON CONFLICT (name)"
            " DO UPDATE SET taken = permit.taken + excluded.taken, at = excluded.at RETURNING name, taken",
            *(value for name in some for value in (name, taken[name], now_ms)),
        )
        totals |= {sql_text(name): sql_number(total) for name, total in rows}
    return totals


def forget_taken(tx: Tx, now_ms: int) -> None:
    """Of buckets that nobody has used for long: they are full again."""
    tx.rows("DELETE FROM permit WHERE at < ?", now_ms - TAKEN_RETENTION // timedelta(milliseconds=1))


def _chunks(names: list[str]) -> list[list[str]]:
    return [names[start : start + _MOST_ROWS] for start in range(0, len(names), _MOST_ROWS)]


DRAIN_SECONDS = 20
"""Longer than the slowest request, shorter than the half minute after which supervisors kill."""
COLLECT_EVERY = timedelta(hours=1)
BACKLOG = 4096
SWITCH_INTERVAL = timedelta(microseconds=500)
"""How long the database's threads may keep the interpreter from the loop. Python's own five milliseconds are
as much as a whole request, and the loop would wait so long after each of its calls to the system."""


class TeamServer:
    def __init__(self, app: AppState, meters: ServerMetrics, *, address: str, port: int) -> None:
        self._app, self._meters = app, meters
        self._front = TeamApi(app, meters)
        self._server = self._make_server()
        self._listener = listen(address, port, backlog=BACKLOG)
        self.url = listener_url(address, self._listener)

    def run(self) -> None:
        """Until SIGTERM or SIGINT, or `stop` from another thread. What was begun is finished first."""
        sys.setswitchinterval(SWITCH_INTERVAL.total_seconds())
        _allow_connections()
        with _signals_handled(self.stop):
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
            await asyncio.to_thread(self._app.close)
        self._meters.log_event("ended")

    async def _share_on(self) -> None:
        rates, is_shared = SharedRates(self._app, self._front.gate), True
        while True:
            await asyncio.sleep(SHARE_EVERY.total_seconds())
            try:
                await rates.share()
                is_shared = True
            except (DatabaseFailed, ApiError) as error:
                if is_shared:  # once, and not every second
                    self._meters.log_event("rates not shared", error=str(error)[:500])
                is_shared = False

    async def _collect_on(self) -> None:
        # Processes that were started together do not collect together.
        await asyncio.sleep(random.random() * COLLECT_EVERY.total_seconds())
        while True:
            try:
                await self._collect()
            except (DatabaseFailed, ApiError) as error:
                self._meters.log_event("collection failed", error=str(error)[:500])
            await asyncio.sleep(COLLECT_EVERY.total_seconds())

    async def _collect(self) -> None:
        app = self._app
        await app.write(None, lambda tx: forget_taken(tx, app.now_ms))
        for org in await app.read(None, list_orgs):
            for repo in await app.read(org.id, lambda tx, org=org: list_repos(tx, org.id)):
                gone = await app.write(
                    org.id,
                    lambda tx, org=org, repo=repo: collect_garbage(
                        tx, org.id, repo.id, app.now_ms, app.limits
                    ),
                )
                if gone.tombstones or gone.bodies or gone.answers:
                    self._meters.log_event(
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


@contextmanager
def _signals_handled(stop: Callable[[], None]) -> Generator[None]:
    """A signal stops the server, also before Uvicorn listens to it. Uvicorn ends on a signal and raises it
    again then, which would end us before the database is closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {one: signal.signal(one, lambda _number, _frame: stop()) for one in signals}
    try:
        yield
    finally:
        for one, action in before.items():
            signal.signal(one, action)
