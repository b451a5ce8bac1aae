"""Many streaming conversations at once through the proxy, beside a plain forwarding proxy in the same run.

    python -m bench.proxy_load [--conversations 100] [--rounds 4] [--chunks 40] [--turns 3]

Upstream, each proxy and the clients are processes of their own. The upstream streams small events with a
pause between them, as a model does. Printed for the plain proxy, for recording alone and for layers: the time
to the first event, the time between events, what the proxy adds, its CPU time and its memory. Recording may
take 1.5 times the CPU of the plain proxy, and the layers 3 times: else the exit code is 1. The order of the
three changes from turn to turn, and the median turn counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import uvicorn

from sevenfold.core.clock import SystemClock
from sevenfold.core.events import ignore_event
from sevenfold.core.system import listen, listener_url
from sevenfold.proxy.layers import ProxyLayers
from sevenfold.proxy.ledger import ProxyLedger
from sevenfold.proxy.memory import ProxyMemory
from sevenfold.proxy.profiles import find_profile
from sevenfold.proxy.requests import Upstreams
from sevenfold.proxy.server import ProxyApp, ProxyRun, ProxyServer
from sevenfold.proxy.state import StateStore
from sevenfold.store.files.folder import Folder

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]

KINDS = ("direct", "plain", "record", "layers")
LIMITS = {"record": 1.5, "layers": 3.0}
"""CPU against the plain proxy."""
EVENT_SECONDS = 0.1
"""Between two events of a stream: what a model takes, and slow enough for two cores to keep up."""
RESULT_LINES = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    conversations: int
    rounds: int
    chunks: int


@dataclass(slots=True)
class LoadResult:
    kind: str
    first_ms: list[float] = field(default_factory=list[float])
    gap_ms: list[float] = field(default_factory=list[float])
    cpu_seconds: float = 0.0
    memory_mb: float = 0.0
    seconds: float = 0.0


def write_event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


class Upstream:
    """Answers each Messages request with a stream of text."""

    def __init__(self, chunks: int) -> None:
        self._chunks = chunks

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            return
        size, more = 0, True
        while more:
            part = await receive()
            size, more = size + len(part.get("body", b"")), part.get("more_body", False)
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for data in self._events(size // 4):
            await send({"type": "http.response.body", "body": data, "more_body": True})
            await asyncio.sleep(EVENT_SECONDS)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _events(self, prompt: int) -> list[bytes]:
        usage = {"input_tokens": 10, "cache_read_input_tokens": prompt, "output_tokens": 1}
        message: dict[str, object] = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": "claude-opus-5",
        }
        delta = {"type": "text_delta", "text": "some words "}
        return [
            write_event("message_start", message={**message, "usage": usage}),
            write_event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            *[write_event("content_block_delta", index=0, delta=delta)] * self._chunks,
            write_event("content_block_stop", index=0),
            write_event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 80}),
            write_event("message_stop"),
        ]


class PlainProxy:
    """Forwards requests and responses, and does nothing else: what any proxy with these libraries costs."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._client: httpx2.AsyncClient | None = None

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            return
        if self._client is None:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
            self._client = httpx2.AsyncClient(timeout=120, limits=limits, trust_env=False)
        parts: list[bytes] = []
        more = True
        while more:
            part = await receive()
            parts.append(part.get("body", b""))
            more = part.get("more_body", False)
        dropped = (b"host", b"content-length", b"transfer-encoding", b"connection")
        headers = [(name, value) for name, value in scope["headers"] if name not in dropped]
        request = httpx2.Request(
            scope["method"], self._upstream + scope["path"], headers=headers, content=b"".join(parts)
        )
        response = await self._client.send(request, stream=True)
        kept = [(name, value) for name, value in response.headers.raw if name.lower() not in dropped]
        await send({"type": "http.response.start", "status": response.status_code, "headers": kept})
        async for chunk in response.aiter_raw():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        await response.aclose()


def serve_app(app: Any, pipe: Connection) -> None:
    """Serve until the other end says so, and then tell what it took."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, access_log=False)
    server = uvicorn.Server(config)

    async def run() -> None:
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        server.should_exit = True
        await serving

    idle = _count_cpu()
    pipe.send(listener_url("127.0.0.1", listener))
    asyncio.run(run())
    pipe.send(_measure_self(idle))


def serve_proxy(upstream: str, home: str, kind: str, pipe: Connection) -> None:
    with ExitStack() as exits:
        folder = exits.enter_context(Folder.open(Path(home) / ".sevenfold" / "proxy", create=True))
        memory = ProxyMemory(clock=SystemClock(), environ={"HOME": home}, emit=ignore_event)
        layers = ProxyLayers(store=StateStore(folder), memory=memory)
        exits.callback(layers.close)
        ledger = ProxyLedger(folder=folder)
        app = ProxyApp(ledger=ledger, upstreams=Upstreams(upstream, upstream), layers=layers)
        server = ProxyServer(app)
        server.start()
        exits.callback(server.stop)
        project = Path(home) / "project"
        project.mkdir(exist_ok=True)
        run = ProxyRun.create(find_profile("pi"), str(project), records_only=kind == "record")
        idle = _count_cpu()
        pipe.send(server.run_url(run))
        pipe.recv()
        pipe.send(_measure_self(idle))


def _measure_self(idle_seconds: float) -> tuple[float, float]:
    """CPU seconds without those of the start, and megabytes."""
    return _count_cpu() - idle_seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _count_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def send_load(url: str, load: Load, pipe: Connection) -> None:
    """The clients: each has one conversation, and sends all of it in each round."""
    result = asyncio.run(_converse_all(url, load))
    pipe.send(result)


async def _converse_all(url: str, load: Load) -> LoadResult:
    result = LoadResult("")
    limits = httpx2.Limits(max_connections=None)
    began = time.perf_counter()
    async with httpx2.AsyncClient(timeout=120, limits=limits, trust_env=False) as client:
        talks = (_converse(client, url, number, load, result) for number in range(load.conversations))
        await asyncio.gather(*talks)
    result.seconds = time.perf_counter() - began
    return result


async def _converse(
    client: httpx2.AsyncClient, url: str, number: int, load: Load, result: LoadResult
) -> None:
    messages: list[object] = [{"role": "user", "content": f"Conversation {number}: begin."}]
    tools = [
        {"name": "bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
    ]
    await asyncio.sleep(number * EVENT_SECONDS / 2)
    for at in range(load.rounds):
        body = {"model": "claude-opus-5", "max_tokens": 1_000, "stream": True, "tools": tools}
        data = json.dumps({**body, "system": "You help. " * 200, "messages": messages}).encode()
        headers = {"x-api-key": "k", "content-type": "application/json", "user-agent": "pi/1"}
        began = last = time.perf_counter()
        is_first = True
        async with client.stream("POST", f"{url}/v1/messages", content=data, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            async for _ in response.aiter_raw():
                now = time.perf_counter()
                (result.first_ms if is_first else result.gap_ms).append(
                    (now - (began if is_first else last)) * 1000
                )
                last, is_first = now, False
        use = {"type": "tool_use", "id": f"t{number}_{at}", "name": "bash", "input": {"command": "ls"}}
        lines = "\n".join(f"{number} {at} line {line}: some output of a tool" for line in range(RESULT_LINES))
        answer = {"type": "tool_result", "tool_use_id": f"t{number}_{at}", "content": lines}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]


class _Process:
    """A process that serves, from `with` on."""

    def __init__(self, target: Callable[..., None], *arguments: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=target, args=(*arguments, theirs), daemon=True)
        self._process.start()

    def receive(self) -> Any:
        if not self._pipe.poll(180):
            raise TimeoutError("a process of the benchmark said nothing for three minutes")
        return self._pipe.recv()

    def end(self) -> tuple[float, float]:
        self._pipe.send("end")
        measured = self.receive()
        self._process.join(30)
        return measured

    def join(self) -> None:
        self._process.join(30)


def serve_upstream(chunks: int, pipe: Connection) -> None:
    serve_app(Upstream(chunks), pipe)


def serve_plain(upstream: str, pipe: Connection) -> None:
    serve_app(PlainProxy(upstream), pipe)


def run_kind(kind: str, load: Load) -> LoadResult:
    with tempfile.TemporaryDirectory(prefix="sevenfold-load-") as home:
        upstream = _Process(serve_upstream, load.chunks)
        url: str = upstream.receive()
        proxy: _Process | None = None
        if kind == "plain":
            proxy = _Process(serve_plain, url)
        elif kind != "direct":
            proxy = _Process(serve_proxy, url, home, kind)
        target = proxy.receive() if proxy else url
        clients = _Process(send_load, target, load)
        result: LoadResult = clients.receive()
        clients.join()
        result.kind = kind
        if proxy is not None:
            result.cpu_seconds, result.memory_mb = proxy.end()
        upstream.end()
        return result


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--conversations", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--chunks", type=int, default=40)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    load = Load(conversations=options.conversations, rounds=options.rounds, chunks=options.chunks)
    results: dict[str, list[LoadResult]] = {kind: [] for kind in KINDS}
    for turn in range(options.turns):
        for kind in (*KINDS[turn % len(KINDS) :], *KINDS[: turn % len(KINDS)]):
            results[kind].append(run_kind(kind, load))
    direct = results["direct"]
    print(f"{load.conversations} conversations of {load.rounds} rounds, {load.chunks} events each")
    print(
        f"{'':8} {'first event p50':>16} {'p99':>8} {'gap p99':>8} {'added p99':>10} {'CPU s':>7} "
        f"{'MB':>6} {'x plain':>8}"
    )
    failed = False
    plain = statistics.median(one.cpu_seconds for one in results["plain"])
    base = statistics.median(percentile(one.first_ms, 0.99) for one in direct)
    for kind, runs in results.items():
        cpu = statistics.median(one.cpu_seconds for one in runs)
        first = statistics.median(percentile(one.first_ms, 0.5) for one in runs)
        last = statistics.median(percentile(one.first_ms, 0.99) for one in runs)
        gap = statistics.median(percentile(one.gap_ms, 0.99) for one in runs)
        memory = statistics.median(one.memory_mb for one in runs)
        ratio = cpu / plain if plain and cpu else 0.0
        failed = failed or ratio > LIMITS.get(kind, float("inf"))
        print(
            f"{kind:8} {first:>13.1f} ms {last:>5.1f} ms {gap:>5.1f} ms {last - base:>7.1f} ms {cpu:>7.2f} "
            f"{memory:>6.0f} {ratio:>7.2f}x"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
