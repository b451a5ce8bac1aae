"""The proxy with a tap on both sides: what came from the agent, and what went to the provider."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Self, TypeAlias, TypedDict, cast

import httpx2

from sevenfold.core.clock import SystemClock
from sevenfold.core.events import ignore_event
from sevenfold.proxy.layers import ProxyLayers
from sevenfold.proxy.ledger import ProxyLedger
from sevenfold.proxy.memory import ProxyMemory
from sevenfold.proxy.profiles import AgentProfile
from sevenfold.proxy.requests import Upstreams
from sevenfold.proxy.server import ProxyApp, ProxyRun, ProxyServer
from sevenfold.proxy.state import StateStore
from sevenfold.store.files.folder import Folder

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]

THINKING = ("thinking", "redacted_thinking", "reasoning")


@dataclass(slots=True)
class TappedExchange:
    """One request on both sides of the proxy."""

    came: bytes
    came_at: float
    sent: bytes | None = None
    sent_at: float = 0.0
    status: int = 0
    is_marked: bool = False
    """The response says that a layer changed the request."""


class Measured(TypedDict):
    touched: int
    thinking_lost: int
    most_breakpoints: int
    changed_untouched: int
    delay_ms: float
    slowest_ms: float


NOTHING_MEASURED = Measured(
    touched=0, thinking_lost=0, most_breakpoints=0, changed_untouched=0, delay_ms=0.0, slowest_ms=0.0
)

_current: ContextVar[TappedExchange | None] = ContextVar("exchange", default=None)


@dataclass(slots=True, kw_only=True)
class TappedApp(ProxyApp):
    exchanges: list[TappedExchange] = field(default_factory=list[TappedExchange])

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            await ProxyApp.__call__(self, scope, receive, send)
            return
        parts: list[_Message] = [await receive()]
        while parts[-1].get("more_body"):
            parts.append(await receive())
        body = b"".join(part.get("body", b"") for part in parts)
        exchange = TappedExchange(body, time.perf_counter())
        self.exchanges.append(exchange)
        _current.set(exchange)

        async def replay() -> _Message:
            return parts.pop(0) if parts else await receive()

        async def tap(message: _Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                exchange.is_marked = (b"x-sevenfold-changed", b"yes") in [
                    tuple(one) for one in message["headers"]
                ]
            await send(message)

        await ProxyApp.__call__(self, scope, replay, tap)


async def _note_sent(request: httpx2.Request) -> None:
    exchange = _current.get()
    if exchange is not None:
        exchange.sent, exchange.sent_at = request.content, time.perf_counter()


class TapProxy:
    """A proxy in front of one upstream, with its state in a folder of its own."""

    def __init__(self, upstream: str, home: Path) -> None:
        self._exits = ExitStack()
        home.mkdir(parents=True, exist_ok=True)
        folder = self._exits.enter_context(Folder.open(home / "proxy", create=True))
        environ = {"HOME": str(home.parent), "SEVENFOLD_HOME": str(home)}
        memory = ProxyMemory(clock=SystemClock(), environ=environ, emit=ignore_event)
        layers = ProxyLayers(store=StateStore(folder), memory=memory)
        self._exits.callback(layers.close)
        client = httpx2.AsyncClient(
            timeout=120, follow_redirects=False, trust_env=False, event_hooks={"request": [_note_sent]}
        )
        self.app = TappedApp(
            ledger=ProxyLedger(), upstreams=Upstreams(upstream, upstream), layers=layers, _client=client
        )
        self._server = ProxyServer(self.app)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        self._exits.close()

    def add_run(self, profile: AgentProfile | None, project: Path, *, records_only: bool) -> str:
        run = ProxyRun.create(profile, str(project.resolve()), records_only=records_only)
        if run.has_layers and self.app.layers is not None:
            self.app.layers.warm_up(run.project)  # as `sevenfold run` does
        return self._server.run_url(run)

    def finish(self) -> None:
        """Wait until all that was answered is booked."""
        end = time.monotonic() + 10
        while len(self.app.ledger.entries) < len(self.app.exchanges) and time.monotonic() < end:
            time.sleep(0.05)
        if self.app.layers is not None:
            self.app.layers.finish()

    def measure(self) -> Measured:
        done = [one for one in self.app.exchanges if one.sent is not None]
        delays = sorted((one.sent_at - one.came_at) * 1000 for one in done)
        return Measured(
            touched=sum(one.is_marked for one in done),
            thinking_lost=sum(_lost_thinking(one) for one in done),
            most_breakpoints=max((_count_breakpoints(one.sent or b"") for one in done), default=0),
            changed_untouched=sum(one.came != one.sent and not one.is_marked for one in done),
            delay_ms=median(delays) if delays else 0.0,
            slowest_ms=delays[-1] if delays else 0.0,
        )


def _lost_thinking(exchange: TappedExchange) -> int:
    """Blocks of thinking that came and were not sent, or not as they came and in their order."""
    came, sent = (list(_find_thinking(_parse(data))) for data in (exchange.came, exchange.sent or b""))
    left = iter(sent)
    return sum(block not in left for block in came) + max(0, len(sent) - len(came))


def _find_thinking(value: object) -> Iterator[str]:
    for wire in _list_objects(value):
        is_signed = any(key in wire for key in ("signature", "encrypted_content", "data"))
        if wire.get("type") in THINKING and is_signed:
            yield json.dumps(wire, sort_keys=True)


def _count_breakpoints(data: bytes) -> int:
    return sum(wire.get("cache_control") is not None for wire in _list_objects(_parse(data)))


def _list_objects(value: object) -> Iterator[dict[str, object]]:
    """Every object of a body, at any depth."""
    if isinstance(value, dict):
        wire = cast("dict[str, object]", value)
        yield wire
        for item in wire.values():
            yield from _list_objects(item)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _list_objects(item)


def _parse(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return None
