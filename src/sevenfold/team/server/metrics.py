"""Figures for Prometheus and a line of JSON a request: what happened, never what was said."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

WriteLine: TypeAlias = Callable[[str], None]

HISTOGRAM_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Where the bars of a histogram end: from one read of SQLite to what a client waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLogEntry:
    """One request, for the log. Names of memories are not in it: they may tell something."""

    at: str
    operation: str
    status: int
    kind: str
    """Of a refusal; empty for an answer."""
    milliseconds: float
    bytes_in: int
    bytes_out: int
    org: str
    member: str
    token: str
    repo: str
    request: str


class ServerMetrics:
    def __init__(self, write_line: WriteLine | None) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = CollectorRegistry()
        self._write_line = write_line
        self._requests = Counter(
            "sevenfold_requests", "Requests", ["operation", "status"], registry=self._registry
        )
        self._refusals = Counter("sevenfold_refusals", "Refusals", ["kind"], registry=self._registry)
        self._seconds = Histogram(
            "sevenfold_request_seconds",
            "Time to answer",
            ["operation"],
            buckets=HISTOGRAM_SECONDS,
            registry=self._registry,
        )
        self._waiting = Gauge(
            "sevenfold_transactions_waiting", "Transactions under way or in line", registry=self._registry
        )

    def count(self, served: RequestLogEntry) -> None:
        import msgspec

        self._requests.labels(served.operation, str(served.status)).inc()
        self._seconds.labels(served.operation).observe(served.milliseconds / 1000)
        if served.kind:
            self._refusals.labels(served.kind).inc()
        if self._write_line is not None:
            self._write_line(msgspec.json.encode(served).decode())

    def tell(self, event: str, **facts: str | int) -> None:
        """Something about the server itself."""
        if self._write_line is not None:
            self._write_line(json.dumps({"event": event, **facts}, separators=(",", ":")))

    def exposition(self, waiting: int) -> str:
        from prometheus_client import generate_latest

        self._waiting.set(waiting)
        return generate_latest(self._registry).decode()
