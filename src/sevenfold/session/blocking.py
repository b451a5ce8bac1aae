"""`Session` for code that does not await: the same calls, run on an event loop in a thread of its own.

It contains no logic. Every method passes its call to the async session and waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from sevenfold.core.clock import Clock
from sevenfold.core.errors import PromptTooLong, ThinkingRefused
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelResponse, PreparedRequest, RequestParams
from sevenfold.core.system import LoopThread
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

    def rewind(self, place: int, reason: str) -> tuple[Message, ...]:
        return self._loop.run(self._inner.rewind(place, reason))

    def recover(self, error: PromptTooLong | ThinkingRefused) -> PreparedRequest | None:
        return self._loop.run(self._inner.recover(error))

    def close(self) -> None:
        try:
            self._loop.run(self._inner.close())
        finally:
            self._loop.stop()
