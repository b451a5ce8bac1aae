"""Looking for secrets without holding up the loop: small texts at once, larger ones in other processes.

A search keeps the interpreter to itself for as long as it lasts, so that in a thread the largest text would
make every other request wait for a tenth of a second.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from asyncio import Semaphore
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from sevenfold.core.secrets import Allowance
from sevenfold.team.server.api_errors import ApiError
from sevenfold.team.server.database import OrgId
from sevenfold.team.server.scanning import BlockedFindings, find_blocked

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

AT_ONCE = 2
"""They are all computing; more would only take turns."""
SMALL_CHARS = 2_000
"""A millisecond's work; to hand it to another process and back costs as much."""
NICENESS = 5
"""Answering those who wait comes before looking through what was just sent."""


class SecretScanners:
    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._free = Semaphore(AT_ONCE)
        self._lines: WeakValueDictionary[OrgId, Semaphore] = WeakValueDictionary()

    async def find(
        self, org: OrgId, texts: Mapping[str, str], key: bytes, allowances: Sequence[Allowance]
    ) -> Mapping[str, BlockedFindings]:
        """What seems to hold a secret, by the name of its text."""
        if sum(map(len, texts.values())) <= SMALL_CHARS:
            return find_blocked(texts, key, allowances)
        line = self._lines.get(org)
        if line is None:
            self._lines[org] = line = Semaphore(1)
        # One of an organisation at a time, so that a hundred texts of one are not before all others'.
        async with line, self._free:
            return await self._find_elsewhere(texts, key, allowances)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    async def _find_elsewhere(
        self, texts: Mapping[str, str], key: bytes, allowances: Sequence[Allowance]
    ) -> Mapping[str, BlockedFindings]:
        pool = self._pool = self._pool or _make_pool()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(pool, find_blocked, dict(texts), key, tuple(allowances))
        except BrokenExecutor as error:
            if self._pool is pool:
                self._pool = None
            raise ApiError(
                status=503,
                kind="not ready",
                message="the search for secrets ended before it was done; nothing was stored",
                advice="send the same again",
                retry=True,
                retry_after_seconds=1,
            ) from error


def _make_pool() -> ProcessPoolExecutor:
    """Multiprocessing is imported here, since it marks the interpreter that imports it."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn"), initializer=_settle_in)


def _settle_in() -> None:
    """A process that searches ends with its server, whether that is told to end or killed."""
    os.nice(NICENESS)
    for one in (signal.SIGINT, signal.SIGTERM):  # a supervisor sends them to the whole group
        signal.signal(one, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(0)
