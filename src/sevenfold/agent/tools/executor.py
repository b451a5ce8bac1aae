"""Runs the tool calls of an answer: checks each one first, runs those that change nothing concurrently, and
returns one result for each, in the order of the calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from sevenfold.agent.hooks.config import NO_HOOK_RESULT, HookEvent, HookResult
from sevenfold.agent.hooks.runner import SessionHooks
from sevenfold.agent.permissions.guard import (
    NO_CALL_NOTICE,
    CallNotice,
    CallReviewer,
    ForkGuard,
    Guard,
    PermissionRequest,
    PermissionVerdict,
    Reach,
)
from sevenfold.agent.tool import (
    AccessRequest,
    DeferredTools,
    OnToolEvent,
    Previewer,
    Tool,
    ToolEnded,
    ToolOutput,
    ToolPrinted,
    ToolStarted,
    ignore_tool_event,
)
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import ToolDenied, ToolFailed
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.system import run_blocking
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.compaction.keep_policy import Extra, Restorable
from sevenfold.layers.forks.runner import ToolRunner

INTERRUPTED_RESULT = "[interrupted by the user]"
"""The result of a call that was cut short."""

MAX_PARALLEL_CALLS = 10
"""Calls that run side by side. Each may hold a thread, a process or a connection."""

MAIN_AGENT = "main"
"""Who calls, where no sub-agent or fork does."""
_LOOK_UP = "tool_search"

AnyGuard: TypeAlias = Guard | ForkGuard
"""Decides for a person who can be asked, or for a fork that has nobody to ask."""


@dataclass(slots=True, kw_only=True)
class ToolBatch:
    """What the calls of one answer came to so far. Whoever was cancelled finds here what had been done."""

    uses: tuple[ToolUse, ...]
    outputs: dict[ToolUseId, ToolOutput] = field(default_factory=dict[ToolUseId, ToolOutput])
    context: list[str] = field(default_factory=list[str])
    """What hooks want the model to know beside the results."""
    notices: list[str] = field(default_factory=list[str])
    """What hooks want the person to know."""
    stop_reason: str | None = None
    """Why a hook wants the agent to stop."""

    def results(self) -> tuple[ToolResult, ...]:
        """A result for every call; one that has not ended says so."""
        return tuple(_result(use, self.outputs.get(use.id, _CUT_SHORT)) for use in self.uses)

    def add_hook_result(self, event: HookEvent, hook_result: HookResult) -> None:
        self.context += (f"{event} hook additional context: {text}" for text in hook_result.context)
        self.notices += hook_result.notices
        self.stop_reason = self.stop_reason or hook_result.stop_reason


_CUT_SHORT = ToolOutput(INTERRUPTED_RESULT, is_error=True)


class ToolExecutor:
    """The tools of one agent in one place. The list never changes: it is part of the cached prefix."""

    def __init__(
        self,
        tools: Sequence[Tool],
        place: ToolContext,
        guard: AnyGuard,
        hooks: SessionHooks | None = None,
        rules: CallReviewer | None = None,
        *,
        who: str = MAIN_AGENT,
    ) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self.place, self.guard, self.hooks, self.rules, self.who = place, guard, hooks, rules, who

    def declared(self) -> tuple[JsonObject, ...]:
        return tuple(tool.spec.declared() for tool in self._tools.values())

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    def at(self, place: ToolContext, guard: AnyGuard | None = None, *, who: str = MAIN_AGENT) -> ToolExecutor:
        """The same tools for another agent, in a place and under a guard of its own."""
        rules = self.rules.branch() if self.rules else None
        return ToolExecutor(self.tools, place, guard or self.guard, self.hooks, rules, who=who)

    def extras(self) -> tuple[Extra, ...]:
        """What the tools want back in view after a compaction."""
        holders = (tool for tool in self._tools.values() if isinstance(tool, Restorable))
        return tuple(extra for holder in holders for extra in holder.extras())

    async def run(
        self,
        uses: Sequence[ToolUse],
        watch: OnToolEvent = ignore_tool_event,
        answers: ToolBatch | None = None,
    ) -> tuple[ToolResult, ...]:
        """The results of these calls, in their order. `answers` has what was done if this is cancelled."""
        found = answers or ToolBatch(uses=tuple(uses))
        for group in self._groups(uses):
            room = asyncio.Semaphore(MAX_PARALLEL_CALLS)
            async with asyncio.TaskGroup() as running:
                for use in group:
                    running.create_task(_Call(box=self, use=use, watch=watch, answers=found).run_within(room))
        return found.results()

    def runner(self, place: ToolContext) -> ToolRunner:
        """Runs calls for a fork, in its own place. What it may call its brief has said: nobody is asked, and
        a command only reads."""
        confined = replace(place, confined_to="read-only")

        async def run(use: ToolUse) -> ToolResult:
            tool = self._tools.get(use.name)
            if tool is None:
                return _result(use, self.unknown(use))
            return _result(use, await self.settle(use, tool.run(use.input, confined, _ignore_output)))

        return run

    def reader(self, folders: tuple[Path, ...], *, who: str) -> ToolRunner:
        """Runs read-only calls that may read the project and these folders, and nothing else."""
        place = replace(self.place.clone(), confined_to="read-only")
        box = self.at(place, ForkGuard(Reach(read=(place.root, *folders))), who=who)

        async def run(use: ToolUse) -> ToolResult:
            (result,) = await box.run((use,))
            return result

        return run

    def find(self, name: str) -> Tool | None:
        """The tool of that name; one that is not declared too, where another tool knows it."""
        found = self._tools.get(name)
        knowing = () if found else (tool for tool in self.tools if isinstance(tool, DeferredTools))
        return found or next((tool for one in knowing if (tool := one.find_deferred(name))), None)

    def unknown(self, use: ToolUse) -> ToolOutput:
        named = ", ".join(self._tools) or "none"
        way = f"; tools of MCP servers are looked up with {_LOOK_UP}" if _LOOK_UP in self._tools else ""
        return ToolOutput(f"there is no tool called {use.name!r}; there are: {named}{way}", is_error=True)

    async def review_call(self, use: ToolUse, need: AccessRequest, beside: Sequence[ToolUse]) -> CallNotice:
        """What to say before a call; nothing before one that is denied anyway. No person is asked yet."""
        if self.rules is None:
            return NO_CALL_NOTICE
        guard = self.guard
        if isinstance(guard, Guard) and guard.decide(use, need).decision == "deny":
            return NO_CALL_NOTICE
        return await self.rules.before(use, need, beside)

    async def add_preview(self, tool: Tool, use: ToolUse, need: AccessRequest) -> AccessRequest:
        """The access that is asked for, with what it would change. Raises where the call cannot succeed, so
        that no person is asked for nothing."""
        guard = self.guard
        if not isinstance(tool, Previewer) or isinstance(guard, ForkGuard):
            return need
        if guard.decide(use, need).decision != "ask":
            return need
        preview = await run_blocking(lambda: tool.preview(use.input, self.place))
        return replace(need, diff=preview) if preview else need

    async def admit(self, use: ToolUse, need: AccessRequest, hook_result: HookResult) -> PermissionVerdict:
        """Whether a call may run, by the hooks first, then by the guard. What rules deny no hook allows."""
        if hook_result.blocked is not None or hook_result.decision == "deny":
            return PermissionVerdict("deny", hook_result.blocked or hook_result.reason or "a hook denied it")
        guard = self.guard
        if hook_result.decision is None or isinstance(guard, ForkGuard):
            return await guard.admit(use, need)
        verdict = guard.decide(use, need)
        if verdict.decision == "deny":
            return verdict
        if hook_result.decision == "ask":
            reason = hook_result.reason or "a hook wants you to be asked"
            async with guard.grants.asking:
                answer = await guard.ask(PermissionRequest(use=use, need=need, reason=reason))
            if not answer.is_allowed:
                return PermissionVerdict("deny", f"the user did not allow it. {answer.words}".strip())
        return replace(verdict, decision="allow")

    def deny(self, use: ToolUse, reason: str) -> ToolOutput:
        self.place.emit(ToolDenied(self.who, use.name, use.id, reason))
        return ToolOutput(f"not allowed: {reason}", is_error=True)

    async def settle(self, use: ToolUse, work: Awaitable[ToolOutput]) -> ToolOutput:
        """What a call comes to; what it raises is an output that says so."""
        try:
            return await work
        except SevenfoldError as error:
            return ToolOutput(str(error), is_error=True)
        except Exception as error:  # a tool is anybody's code, and a turn must not die of it
            reason = f"{type(error).__name__}: {error}"
            self.place.emit(ToolFailed(use.name, use.id, reason))
            return ToolOutput(f"{use.name} failed: {reason}", is_error=True)

    def _groups(self, uses: Sequence[ToolUse]) -> Iterator[list[ToolUse]]:
        """Runs of calls that may go side by side, and each of the others alone."""
        for is_parallel, group in groupby(uses, self._is_parallel):
            listed = list(group)
            yield from [listed] if is_parallel else ([use] for use in listed)

    def _is_parallel(self, use: ToolUse) -> bool:
        tool = self.find(use.name)
        return tool is None or tool.spec.is_parallel


@dataclass(slots=True, kw_only=True)
class _Call:
    """One call: hooks before it, permission, run, hooks after it."""

    box: ToolExecutor
    use: ToolUse
    watch: OnToolEvent
    answers: ToolBatch

    took: timedelta = timedelta()
    said: str = ""
    is_denied: bool = False

    async def run_within(self, room: asyncio.Semaphore) -> None:
        async with room:
            output = await self._run()
            self.answers.outputs[self.use.id] = output
            self.watch(
                ToolEnded(
                    use=self.use, output=output, took=self.took, said=self.said, is_denied=self.is_denied
                )
            )

    async def _run(self) -> ToolOutput:
        tool = self.box.find(self.use.name)
        if tool is None:
            return self.box.unknown(self.use)
        return await self.box.settle(self.use, self._run_found(tool))

    async def _run_found(self, tool: Tool) -> ToolOutput:
        use = self.use
        need = tool.need(use.input, self.box.place)
        self.said = need.title
        foreword = await self.box.review_call(use, need, self.answers.uses)
        if foreword.hold:
            return ToolOutput(foreword.hold, is_error=True)
        return _with_note(await self._run_needed(tool, need), foreword.note)

    async def _run_needed(self, tool: Tool, need: AccessRequest) -> ToolOutput:
        place, hooks, use = self.box.place, self.box.hooks, self.use
        hook_result = await hooks.ask_before(use, need.tool) if hooks else NO_HOOK_RESULT
        self.answers.add_hook_result("PreToolUse", hook_result)
        if hook_result.updated_input is not None:
            # What the model asked for stays in the history; this is what is done.
            use = replace(use, input=hook_result.updated_input)
            need = tool.need(use.input, place)
        need = await self.box.add_preview(tool, use, need)
        self.said = need.title
        verdict = await self.box.admit(use, need, hook_result)
        if verdict.decision != "allow":
            self.is_denied = True
            return self.box.deny(use, verdict.reason)
        self.watch(ToolStarted(use, need.title))
        started = place.clock.uptime()
        judged = replace(place, admitted=verdict.paths)
        work = tool.run(use.input, judged, lambda text: self.watch(ToolPrinted(use, text)))
        output = await self.box.settle(use, work)
        self.took = place.clock.uptime() - started
        # Done is done: whatever becomes of the hooks, this call has a result.
        self.answers.outputs[self.use.id] = output
        if hooks is None:
            return output
        after = await hooks.ask_after(use, _shown(output), self.took, need.tool)
        self.answers.add_hook_result("PostToolUse", after)
        return _with_hook_result(output, after)


def _ignore_output(_text: str) -> None:
    """For a tool that prints where nobody looks."""


def _with_note(output: ToolOutput, note: str) -> ToolOutput:
    """Before the output: of one that is stored away, the beginning stays."""
    if not note:
        return output
    content = output.content
    blocks = content if isinstance(content, tuple) else (Text(content),) if content else ()
    return replace(output, content=(Text(note), *blocks))


def _with_hook_result(output: ToolOutput, hook_result: HookResult) -> ToolOutput:
    if hook_result.updated_output is not None:
        output = replace(output, content=hook_result.updated_output)
    if hook_result.blocked is None:
        return output
    remark = Text(f"[a hook objects: {hook_result.blocked}]")
    blocks = (Text(output.content),) if isinstance(output.content, str) else output.content
    return replace(output, content=(*blocks, remark))


def _result(use: ToolUse, output: ToolOutput) -> ToolResult:
    return ToolResult(use.id, output.content, is_error=True if output.is_error else None)


def _shown(output: ToolOutput) -> str:
    """What a hook is told of an output: its text."""
    if isinstance(output.content, str):
        return output.content
    return "\n".join(block.text for block in output.content if isinstance(block, Text))
