"""`Session` for code that does not await: the same calls, run on an event loop in a thread of its own.

It contains no logic. Every method passes its call to the async session and waits.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from sevenfold.core.clock import Clock
from sevenfold.core.errors import InputError, PromptTooLong, ThinkingRefused
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.requests import ModelResponse, PreparedRequest, RequestParams
from sevenfold.layers.compaction.hooks import NO_COMPACT_HOOKS, CompactHooks
from sevenfold.layers.compaction.job import Compacted, Part
from sevenfold.layers.context import ContextFile, ContextSource
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner
from sevenfold.providers.provider import Provider
from sevenfold.session.cache.monitor import SpendSummary
from sevenfold.session.governor import Governor
from sevenfold.session.history import History
from sevenfold.session.session import Session
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.transcript.transcript import SessionId

_T = TypeVar("_T")

LOOK_AGAIN = timedelta(seconds=1)
"""A signal that arrives just before a thread begins to wait does not end the waiting. Python handles it when
the thread runs next."""


class LoopThread:
    """An event loop in a daemon thread, started with the first call."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()
        self._pid = os.getpid()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run to the end. If the waiting is interrupted, as by Ctrl-C, so is the work."""
        if self._pid != os.getpid():
            work.close()
            # After `fork` the child process has no copy of the thread, and would wait for ever.
            raise InputError(
                f"this belongs to process {self._pid}, which forked this one; open a session of its own here"
            )
        loop, call = self._started(), _Call(work)
        # Ctrl-C may come at any place, also before the work is known to have been handed over.
        try:
            loop.call_soon_threadsafe(call.begin)
            return call.result()
        except BaseException:
            if not call.has_ended:
                loop.call_soon_threadsafe(call.cancel)
            raise

    def stop(self) -> None:
        if self._pid != os.getpid():
            return
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=_serve, args=(loop,), name="sevenfold", daemon=True).start()
                self._loop = loop
            return self._loop


class _Call(Generic[_T]):
    """One call on the loop. It can be cancelled before, while and after it begins."""

    def __init__(self, work: Coroutine[Any, Any, _T]) -> None:
        self._work = work
        self._task: asyncio.Task[_T] | None = None
        self._ended = threading.Event()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def begin(self) -> None:
        """On the loop."""
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(lambda _: self._ended.set())

    def cancel(self) -> None:
        """On the loop."""
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()

    def result(self) -> _T:
        """Wait for the end, in the calling thread."""
        while self._task is None or not self._ended.is_set():
            self._ended.wait(LOOK_AGAIN.total_seconds())
        if self._task.cancelled():
            raise CancelledError
        return self._task.result()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


class BlockingSession:
    """`Session`, blocking."""

    def __init__(self, inner: Session, loop: LoopThread) -> None:
        self._inner, self._loop = inner, loop

    @classmethod
    def open(  # noqa: PLR0913 - as the async one
        cls,
        frame: RequestParams,
        *,
        project: str | Path | None = ".",
        session: str | None = None,
        provider: Provider | None = None,
        settings: Mapping[str, Mapping[str, object]] | None = None,
        hooks: CompactHooks = NO_COMPACT_HOOKS,
        governs: bool = True,
        is_agent: bool = False,
        trusts_local: bool = True,
        memory: MemoryDir | None = None,
        clearable: Mapping[str, bool] | None = None,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        loop = LoopThread()
        opening = Session.open(
            frame,
            project=project,
            session=session,
            provider=provider,
            settings=settings,
            hooks=hooks,
            governs=governs,
            is_agent=is_agent,
            trusts_local=trusts_local,
            memory=memory,
            clearable=clearable,
            clock=clock,
            emit=emit,
            environ=environ,
        )
        return cls(loop.run(opening), loop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def id(self) -> SessionId:
        return self._inner.id

    @property
    def governor(self) -> Governor | None:
        return self._inner.governor

    @property
    def history(self) -> History:
        return self._inner.history

    def prepare(
        self, history: History | Sequence[object] | None = None, *, frame: RequestParams | None = None
    ) -> PreparedRequest:
        return self._loop.run(self._inner.prepare(history, frame=frame))

    def add_context(self, *sources: ContextSource | ContextFile) -> None:
        self._loop.run(self._inner.add_context(*sources))

    def record(self, reply: ModelResponse) -> None:
        self._loop.run(self._inner.record(reply))

    @property
    def spent(self) -> tuple[SpendSummary, ...]:
        return self._inner.spent

    def run_fork(self, brief: ForkBrief, *, run_tool: ToolRunner | None = None) -> ForkResult:
        return self._loop.run(self._inner.run_fork(brief, run_tool=run_tool))

    def turn_ended(self) -> None:
        self._loop.run(self._inner.turn_ended())

    def compact(self, instructions: str = "", *, part: Part | None = None) -> Compacted:
        return self._loop.run(self._inner.compact(instructions, part=part))

    def recover(self, error: PromptTooLong | ThinkingRefused) -> PreparedRequest | None:
        return self._loop.run(self._inner.recover(error))

    def close(self) -> None:
        try:
            self._loop.run(self._inner.close())
        finally:
            self._loop.stop()
