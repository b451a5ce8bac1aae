"""Runs a fork: a side run that inherits the prefix of its parent and so reads the parent's cache.

Parameters and messages are the parent's own objects, and breakpoints stand where the parent has them. Calls
that the fork may not make are denied when it makes them, because the list of tools is part of the prefix.

Forks that start together form a `ForkBatch`: if the prefix is not cached, the first one writes it and the
others wait for its first token. With a warm cache none waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal, TypeAlias

from sevenfold.core.events import Emit, ForkEnded, ForkStarted, ToolDenied, ignore_event
from sevenfold.core.messages import Message, ToolResult, ToolUse, is_breakpoint_allowed
from sevenfold.core.requests import MAX_BREAKPOINTS, Breakpoint, ModelRequest, ModelResponse, RequestParams
from sevenfold.core.usage import Usage, sum_usage
from sevenfold.layers.forks.policy import (
    ForkBrief,
    plan_fork,
    render_denial,
    takes_parallel_calls,
    thinking_budget,
)
from sevenfold.layers.microcompact.server_clearing import list_answered_uses, with_more_kept
from sevenfold.providers.provider import OnDelta, Provider

ToolRunner: TypeAlias = Callable[[ToolUse], Awaitable[ToolResult]]
"""Runs one call that the brief allows. Called for one at a time, in the order of the answer."""

MIN_ANSWER_TOKENS = 1_024
"""What an answer needs beside its thinking."""

ForkOutcome: TypeAlias = Literal["answered", "failed", "cancelled", "out of rounds"]


@dataclass(frozen=True, slots=True)
class ForkDenial:
    tool: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkResult:
    replies: tuple[ModelResponse, ...]
    text: str
    """Of the last answer."""
    denials: tuple[ForkDenial, ...]
    usage: Usage
    """All answers together, apart from the parent's."""
    is_done: bool
    """The last answer called no tool, or did the last of the work; False: the rounds were used up."""

    @property
    def last(self) -> ModelResponse:
        return self.replies[-1]


@dataclass(slots=True)
class _Progress:
    """What a fork has done so far, for the event at its end, however it ends."""

    replies: list[ModelResponse] = field(default_factory=list[ModelResponse])
    denials: list[ForkDenial] = field(default_factory=list[ForkDenial])
    outcome: ForkOutcome = "cancelled"


async def run_fork(
    parent: ModelRequest,
    brief: ForkBrief,
    provider: Provider,
    *,
    run_tool: ToolRunner | None = None,
    on_delta: OnDelta | None = None,
    emit: Emit = ignore_event,
) -> ForkResult:
    """Run a fork to its last answer or its last round. It is cancelled with its caller.

    `on_delta` receives its answers as they are streamed.

    A `ProviderError` of any round is raised; `ForkEnded` reports what was paid until then.
    """
    appended = plan_fork(parent.messages, brief)
    emit(ForkStarted(brief.kind, len(parent.messages)))
    progress = _Progress()
    try:
        messages = [*parent.messages, *appended]
        await _run_rounds(
            parent,
            messages,
            brief,
            provider,
            run_tool=run_tool,
            on_delta=on_delta,
            emit=emit,
            progress=progress,
        )
    except Exception:
        progress.outcome = "failed"
        raise
    finally:
        emit(_ended(brief, progress))
    replies = tuple(progress.replies)
    return ForkResult(
        replies=replies,
        text=replies[-1].text,
        denials=tuple(progress.denials),
        usage=sum_usage(reply.usage for reply in replies),
        is_done=progress.outcome == "answered",
    )


async def _run_rounds(
    parent: ModelRequest,
    messages: list[Message],
    brief: ForkBrief,
    provider: Provider,
    run_tool: ToolRunner | None,
    on_delta: OnDelta | None,
    emit: Emit,
    progress: _Progress,
) -> None:
    frame = build_fork_params(parent.frame, brief)
    for number in range(max(1, brief.max_rounds)):
        markers = plan_fork_breakpoints(parent, messages if number else ())
        # What is cleared on the provider's side is counted from the end, which has moved.
        added = sum(1 for message in messages[len(parent.messages) :] for _ in list_answered_uses(message))
        params = with_more_kept(frame.params, added)
        own = frame if params is frame.params else replace(frame, params=params)
        reply = await provider.send(ModelRequest(own, tuple(messages), markers, brief.kind), on_delta)
        progress.replies.append(reply)
        if not reply.tool_uses:
            progress.outcome = "answered"
            return
        results = [await _answer(use, brief, run_tool, emit, progress) for use in reply.tool_uses]
        if takes_parallel_calls(frame.params) and brief.is_finished(reply.tool_uses, results):
            progress.outcome = "answered"
            return
        messages += [reply.message, Message("user", tuple(results))]
    progress.outcome = "out of rounds"


def build_fork_params(frame: RequestParams, brief: ForkBrief) -> RequestParams:
    """The parent's parameters, except `max_tokens`, which does not affect the cache."""
    if brief.max_tokens is None:
        return frame
    budget = thinking_budget(frame.params)
    return replace(frame, max_tokens=max(brief.max_tokens, budget + MIN_ANSWER_TOKENS if budget else 0))


def plan_fork_breakpoints(parent: ModelRequest, own: Sequence[Message] = ()) -> tuple[Breakpoint, ...]:
    """The parent's breakpoints, and one more if the limit allows: at the end of what is shared, or in later
    rounds at the end of the fork's own messages. The first round adds none where the parent has none."""
    marks = parent.breakpoints
    if not own and all(mark.level != "messages" for mark in marks):
        return marks
    # The automatic one counts, and stands on the fork's last block by itself.
    is_automatic = "cache_control" in parent.frame.params
    messages = parent.messages if is_automatic else own or parent.messages
    place = _last_cacheable(messages)
    if not marks or place is None or len(marks) + is_automatic >= MAX_BREAKPOINTS:
        return marks
    # A longer TTL may not follow a shorter one, and the last breakpoint has the shortest.
    end = replace(place, ttl=marks[-1].ttl)
    return marks if end in marks else (*marks, end)


def _last_cacheable(messages: Sequence[Message]) -> Breakpoint | None:
    """The last block that may carry a breakpoint, in the last message that has one."""
    for index in range(len(messages) - 1, -1, -1):
        blocks = messages[index].blocks
        for at in range(len(blocks) - 1, -1, -1):
            if is_breakpoint_allowed(blocks[at]):
                return Breakpoint("messages", index, at)
    return None


async def _answer(
    use: ToolUse, brief: ForkBrief, run_tool: ToolRunner | None, emit: Emit, progress: _Progress
) -> ToolResult:
    reason = brief.denial(use)
    if reason is None and run_tool is not None:
        return await run_tool(use)
    reason = reason or f"{use.name} cannot be run here"
    progress.denials.append(ForkDenial(use.name, reason))
    emit(ToolDenied(brief.kind, use.name, use.id, reason))
    return render_denial(use, reason)


def _ended(brief: ForkBrief, progress: _Progress) -> ForkEnded:
    used = sum_usage(reply.usage for reply in progress.replies)
    return ForkEnded(
        kind=brief.kind,
        outcome=progress.outcome,
        rounds=len(progress.replies),
        read_tokens=used.read,
        written_tokens=used.written,
        fresh_tokens=used.fresh,
        output_tokens=used.output,
    )


WARM_LIFETIME = timedelta(minutes=4)
"""How long after its request a prefix is surely still cached, of the five minutes that it lives at least."""


def is_prefix_warm(parent: ModelRequest, since: timedelta) -> bool:
    """Whether the cache entry of a request sent that long ago can still be read."""
    marks = parent.breakpoints
    if not marks and "cache_control" not in parent.frame.params:
        return True  # nothing is cached, or everything is cached automatically: waiting would not help
    longest = max((mark.ttl for mark in marks), default=timedelta(minutes=5))
    return since < longest * (WARM_LIFETIME / timedelta(minutes=5))


class ForkBatch:
    """Forks of one parent that were asked for together."""

    def __init__(self) -> None:
        self._leader: asyncio.Event | None = None

    @asynccontextmanager
    async def join(self, *, warm: bool) -> AsyncGenerator[OnDelta | None]:
        """Wait until the prefix can be read. The first caller gets a function to call at each token."""
        while not warm and self._leader is not None and not self._leader.is_set():
            await self._leader.wait()
        if warm or self._leader is not None:
            yield None
            return
        leader = self._leader = asyncio.Event()
        try:
            yield lambda _delta: leader.set()
        finally:
            if not leader.is_set():
                # It ended without a token: another fork goes first.
                self._leader = None
                leader.set()
