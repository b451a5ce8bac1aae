"""One tenant asks a hundred times as often as others: what that does to the others.

Alone and beside the noise by turns, in the same run, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Literal, TypeAlias

from bench.server_wire import MEMORY, Laptop, Tally, Tenant, make_tenant

from tests.team.server.processes import Served

Kind: TypeAlias = Literal["small texts", "large texts"]
OTHERS = 5
PAUSE_SECONDS = 0.1
"""Between two pushes of a laptop: ten times a second. The noisy tenant has a hundred of them."""
NOISY = 100
SETTLE_SECONDS = 1.5
"""For a line that has formed to pass, and for one to form."""
LARGE = "what the team has learnt about the deploy of the service " * 1_500
MOST_RATIO = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    database: str
    processes: int
    noise: Kind
    pushes: int
    """Of the others, in each of the two."""
    alone_p50_ms: float
    alone_p99_ms: float
    beside_p50_ms: float
    beside_p99_ms: float
    ratio: float
    """Of the last percentiles."""

    @property
    def is_bad(self) -> bool:
        return self.ratio > MOST_RATIO


def run_noise(
    kind: str, url: str, folder: Path, *, processes: int, noise: Kind, rounds: int, seconds: float
) -> Noise:
    others = [make_tenant(url, f"other {number} {noise}", tokens=1, repos=1) for number in range(OTHERS)]
    noisy = make_tenant(url, f"noisy {noise}", tokens=NOISY, repos=1)
    context = multiprocessing.get_context("spawn")
    loud = context.Event()
    alone, beside = Tally(), Tally()
    with ExitStack() as stack:
        servers = [stack.enter_context(Served(url, folder)) for _ in range(processes)]
        ports = [served.port for served in servers]
        maker = context.Process(target=make_noise, args=(ports, noisy, noise, loud))
        maker.start()
        stack.callback(maker.join)
        stack.callback(maker.kill)
        asyncio.run(_push_on(ports, others, 1, Tally()))
        for _ in range(rounds):
            asyncio.run(_push_on(ports, others, seconds, alone))
            loud.set()
            time.sleep(SETTLE_SECONDS)
            asyncio.run(_push_on(ports, others, seconds, beside))
            loud.clear()
            time.sleep(SETTLE_SECONDS)
    found = Noise(
        database=kind,
        processes=processes,
        noise=noise,
        pushes=min(alone.done, beside.done),
        alone_p50_ms=round(alone.percentile(0.5), 1),
        alone_p99_ms=round(alone.percentile(0.99), 1),
        beside_p50_ms=round(beside.percentile(0.5), 1),
        beside_p99_ms=round(beside.percentile(0.99), 1),
        ratio=round(beside.percentile(0.99) / alone.percentile(0.99), 2),
    )
    print(found, file=sys.stderr, flush=True)  # the next may take minutes
    return found


def make_noise(ports: Sequence[int], tenant: Tenant, noise: Kind, loud: Event) -> None:
    """A thousand times a second, as far as the server lets it, while it is to be loud, until it is killed."""
    text = LARGE if noise == "large texts" else ""

    async def push_on(number: int) -> None:
        laptop, turn = Laptop(port=ports[number % len(ports)], token=tenant.tokens[number]), 0
        while True:
            if not loud.is_set():
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            turn += 1
            body = {"entries": {f"k{number}.md": f"noise {turn} {text}"}}
            await laptop.ask("PUT", f"{MEMORY}?repo={tenant.repos[0]}", body)
            await asyncio.sleep(PAUSE_SECONDS)

    async def everybody() -> None:
        await asyncio.gather(*(push_on(number) for number in range(len(tenant.tokens))))

    asyncio.run(everybody())


async def _push_on(ports: Sequence[int], tenants: Sequence[Tenant], seconds: float, tally: Tally) -> None:
    until = time.perf_counter() + seconds

    async def push_on(number: int) -> None:
        tenant = tenants[number]
        laptop, turn = Laptop(port=ports[number % len(ports)], token=tenant.tokens[0]), 0
        while time.perf_counter() < until:
            turn += 1
            began = time.perf_counter()
            body = {"entries": {"k.md": f"text {turn} {began}"}}
            reply = await laptop.ask("PUT", f"{MEMORY}?repo={tenant.repos[0]}", body)
            assert reply.status == 200, reply
            tally.seconds.append(time.perf_counter() - began)
            tally.done += 1
            await asyncio.sleep(PAUSE_SECONDS)
        laptop.close()

    await asyncio.gather(*(push_on(number) for number in range(len(tenants))))
