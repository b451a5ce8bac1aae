"""A server on a port of this machine, in a thread, and a team that uses it."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx2

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.team.server.app_state import AppState
from sevenfold.team.server.database import Database
from sevenfold.team.server.http_api import ServerMetrics
from sevenfold.team.server.http_server import TeamServer
from sevenfold.team.server.policy import ServerLimits
from sevenfold.team.server.repos import Forge

LOOSE = ServerLimits(token_rate=100_000, org_rate=100_000, stranger_rate=100_000, seldom_rate=100_000)
MEMORY = "/api/v1/memory"


@dataclass(slots=True)
class Live:
    url: str
    client: httpx2.Client
    lines: list[str] = field(default_factory=list[str])
    """Of the log."""

    def ask(
        self,
        method: str,
        path: str,
        token: str | None = None,
        *,
        json: object = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> httpx2.Response:
        own = {} if token is None else {"authorization": f"Bearer {token}"}
        return self.client.request(
            method, path, params=query or None, json=json, content=content, headers={**own, **(headers or {})}
        )


@contextmanager
def serving(
    database: Database,
    *,
    limits: ServerLimits = LOOSE,
    clock: Clock | None = None,
    forge: Forge | None = None,
) -> Generator[Live]:
    lines: list[str] = []
    desk = AppState(database, limits, clock or SystemClock(), forge)
    host = TeamServer(desk, ServerMetrics(lines.append), address="127.0.0.1", port=0)
    thread = threading.Thread(target=host.run)
    thread.start()
    try:
        with httpx2.Client(base_url=host.url, timeout=30, verify=False) as client:
            yield Live(host.url, client, lines)
    finally:
        host.stop()
        thread.join(30)
        assert not thread.is_alive()
