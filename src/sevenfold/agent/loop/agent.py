"""The agent loop: assemble, send, run tools, repeat. Also `Inbox`, the messages that others send to an agent.

`_run_rounds` is the whole loop, and each method that it calls can be overridden.

A turn can be interrupted at any moment. What was said and done until then stays in the history, every tool
call has a result, and the next turn continues from there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from sevenfold.agent.loop.choose_provider import fit_request_params
from sevenfold.agent.loop.turn import (
    TRUNCATED_STOPS,
    AgentDeps,
    CallLoop,
    OnTurnEvent,
    OpeningMessages,
    RoundEnded,
    TurnEnd,
    TurnState,
    ignore_turn_event,
    select_complete_calls,
)
from sevenfold.agent.permissions.guard import Guard, PermissionRequest, deny_unattended
from sevenfold.agent.tool import AccessRequest, ToolOutput
from sevenfold.agent.tools.executor import INTERRUPTED_RESULT, ToolBatch
from sevenfold.core.errors import (
    CompactionStopped,
    InputError,
    LoopStopped,
    PromptTooLong,
    ProviderError,
    SevenfoldError,
    ThinkingRefused,
)
from sevenfold.core.events import AnswerTruncated, LoopDetected, TurnInterrupted, WriterFailed
from sevenfold.core.messages import Message, Text
from sevenfold.core.models import Model
from sevenfold.core.prices import sum_costs
from sevenfold.core.requests import ModelResponse, PreparedRequest
from sevenfold.core.settings.sections import PermissionMode
from sevenfold.core.system import SingleFlight, await_shielded
from sevenfold.core.text.safe_text import render_reminder, truncate_bytes
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.compaction.job import Compacted
from sevenfold.layers.context import ContextSource
from sevenfold.layers.forks.policy import find_open_calls
from sevenfold.session.cache.monitor import SpendSummary, UsageLedger

if TYPE_CHECKING:
    from sevenfold.agent.tools.checkpoints import CheckpointStore
    from sevenfold.layers.dreams.dreamer import RunDream


class Inbox:
    """Messages in the order they came. Filled at any moment, emptied at the boundary of a round."""

    def __init__(self) -> None:
        self._waiting = deque[Message]()
        self._arrived = asyncio.Event()
        self.on_taken: Callable[[Message], None] = _ignore_taken
        """Called with each message when a round takes it in."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, note: Message) -> None:
        self._waiting.append(note)
        self._arrived.set()

    @property
    def first(self) -> Message | None:
        """The message that waits longest; None: none does."""
        return self._waiting[0] if self._waiting else None

    def take_all(self) -> list[Message]:
        taken = list(self._waiting)
        self._waiting.clear()
        self._arrived.clear()
        for note in taken:
            self.on_taken(note)
        return taken

    def take_back(self, note: Message) -> bool:
        """Remove this very message, if it still waits; whether it did."""
        kept = deque(one for one in self._waiting if one is not note)
        is_found = len(kept) < len(self._waiting)
        self._waiting = kept
        if not kept:
            self._arrived.clear()
        return is_found

    async def wait(self) -> None:
        """Wait until there is a message."""
        await self._arrived.wait()


def _ignore_taken(_note: Message) -> None:
    """The callback of an inbox without a listener."""


MAX_PARTIAL_BYTES = 128 * 1024
"""Kept of an answer that broke off: more than max_tokens allow is no answer, and would fill the window."""

INCOMPLETE_REMARK = "[no more of the answer came]"

MAX_STOP_BLOCKS = 8
"""How often hooks may continue a turn: one that always does would spend without end."""

MAX_CONTINUATIONS = 3
"""How often a turn continues after such a stop: an answer that long makes no progress."""

CONTINUE_REMINDER = (
    "Your answer reached the limit of its length. Go on from where it broke off, and repeat nothing."
)

PROMPT_DROPPED_NOTICE = (
    "interrupted before the hooks had read what you said: it was not taken in, so say it again"
)

NOT_RUN_RESULT = (
    "[not run: the answer broke off here, and the call may not be whole; call again, with less at once]"
)

RESUMABLE_STOPS = frozenset({"pause_turn", "compaction"})
"""Stop reasons that do not end a turn: the provider expects another request."""

WRITERS_TIMEOUT = timedelta(seconds=15)
"""For the writers of a turn when the agent is closed: a hung writer must not block the exit."""

WriteAfterTurn: TypeAlias = Callable[[TurnEnd], Awaitable[None]]
"""What a writer does after a turn."""
FinishWriting: TypeAlias = Callable[[], Awaitable[None]]
"""What it does with postponed work when the session ends."""


class Agent:
    """An agent at work in one session."""

    def __init__(self, deps: AgentDeps, opening: OpeningMessages | None = None) -> None:
        self._deps, self._opening = deps, opening or OpeningMessages()
        self.session, self.toolbox, self.provider = deps.session, deps.toolbox, deps.provider
        self.hooks, self.frame, self._kept = deps.hooks, deps.frame, deps.kept
        self.inbox = Inbox()
        self.subagent_usage = UsageLedger()
        """What agents that this one started have spent."""
        self.dream: RunDream | None = None
        """Merges and tidies the project's memories now; None for an agent of another's."""
        self.checkpoints: CheckpointStore | None = None
        """Files as they were before each edit; None for an agent of another's, whose edits are that one's."""
        self._asides = list(self._opening.texts)
        for text in self._opening.posts:
            self.post(text)
        self._writers: list[SingleFlight[TurnEnd]] = []
        self._finishing: list[tuple[SingleFlight[TurnEnd], SingleFlight[None]]] = []
        """Writers, and what each does last."""
        self._sources: tuple[ContextSource, ...] = ()
        self._work: asyncio.Task[TurnEnd] | None = None
        self._is_closed = False

    @property
    def place(self) -> ToolContext:
        return self.toolbox.place

    @property
    def mode(self) -> PermissionMode:
        """The permission mode: what is allowed without a question."""
        guard = self.toolbox.guard
        return guard.mode if isinstance(guard, Guard) else "read-only"

    @mode.setter
    def mode(self, mode: PermissionMode) -> None:
        guard = self.toolbox.guard
        if not isinstance(guard, Guard):
            raise InputError(f"this agent has nobody to ask, so that {mode} means nothing to it")
        guard.mode = mode

    @property
    def is_busy(self) -> bool:
        return self._work is not None

    async def run_turn(
        self, prompt: Message | str | None = None, watch: OnTurnEvent = ignore_turn_event
    ) -> TurnEnd:
        """From what a person says to the last answer; without a prompt, from what was posted.

        Cancelled, it leaves a history that goes on and raises; interrupted, it leaves the same and returns.
        """
        if self._work is not None or self._is_closed:
            raise InputError(
                "the agent is closed" if self._is_closed else "a turn is under way; interrupt it or post"
            )
        turn = TurnState(watch=watch)
        self._deps.relay.set_watcher(watch)
        turn.notice(*self._opening.notices)
        self._opening = OpeningMessages()
        caller = asyncio.current_task()
        cancelled_before = caller.cancelling() if caller else 0
        self._work = asyncio.create_task(self._run(_as_message(prompt), turn))
        try:
            end = await self._work
        except asyncio.CancelledError:
            if caller and caller.cancelling() > cancelled_before:
                raise
            end = turn.end("interrupted")
        finally:
            self._work = None
        for writer in self._writers:
            writer.ask(end)
        return end

    def interrupt(self) -> None:
        """Cut the turn short, wherever it is. Does nothing between turns."""
        if self._work is not None:
            self._work.cancel()

    def post(self, note: Message | str) -> None:
        """Send a message to the agent at any time; its next round includes it."""
        self.inbox.put(note if isinstance(note, Message) else Message("user", note))

    def remind(self, text: str) -> None:
        """Tell the model something at its next round, in the name of the program and not of a person."""
        self._asides.append(text)

    def add_writer(self, name: str, write: WriteAfterTurn, finish: FinishWriting | None = None) -> None:
        """Have this done after every turn, in the background, one run at a time; `finish` when the session
        ends. An exception is an event."""

        def failed(reason: str) -> None:
            self._deps.relay(WriterFailed(name, reason))

        writer = SingleFlight(name, write, failed)
        self._writers.append(writer)
        if finish is not None:
            last = finish
            self._finishing.append((writer, SingleFlight(name, lambda _: last(), failed)))

    def use_model(self, name: str) -> Model:
        """Use another model from the next request on. The prefix changes, and that is announced.

        The session keeps it from its first answer on, so that a name nobody knows is not taken up again.
        """
        model = self._deps.catalog.find(name)
        frame = replace(self.frame, model=name)
        self.frame = fit_request_params(frame, model, self.provider, thinks=self._deps.thinks)
        return model

    async def compact(self, focus: str = "") -> Compacted:
        """Compact the view now. Hooks may add instructions for the summary, or refuse."""
        hook_result = await self.hooks.ask(
            "PreCompact", "manual", trigger="manual", custom_instructions=focus
        )
        if hook_result.blocked is not None:
            raise CompactionStopped(f"a hook refused the compaction: {hook_result.blocked}")
        return await self.session.compact("\n".join((focus, *hook_result.context)).strip())

    async def settle(self, limit: timedelta = WRITERS_TIMEOUT) -> bool:
        """Wait for the writers of past turns; whether all of them are done."""
        return all([await writer.settle(limit) for writer in self._writers])

    async def finish(self, limit: timedelta = WRITERS_TIMEOUT) -> None:
        """Have the writers do their postponed work, unless they still run. `close` does it too."""
        await self.settle(limit)
        for writer, finishing in self._finishing:
            if not writer.is_running:
                finishing.ask(None)
                await finishing.settle(limit)

    async def close(self, reason: str = "other") -> None:
        """Run the hooks of the session end, finish or stop writers, close files. Again does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait({self._work})
        async with self._deps.exits:
            stopped = [writer for writer in self._writers if not await writer.close(WRITERS_TIMEOUT)]
            for writer, finishing in self._finishing:
                # A writer that was stopped would take too long again. The stop was an event.
                if writer not in stopped:
                    finishing.ask(None)
                    await finishing.close(WRITERS_TIMEOUT)
            if not self._deps.is_child:
                await self.hooks.ask("SessionEnd", reason, reason=reason)

    async def _run_rounds(self, prompt: Message | None, turn: TurnState) -> TurnEnd:
        refusal = await self._begin(prompt, turn)
        if refusal is not None:
            return TurnEnd(refusal, 0, "refused")
        while turn.rounds < self._deps.max_rounds:
            self._take_in()
            reply = await self._ask_model(turn)
            if reply.tool_uses:
                halted = await self._run_tools(reply, turn)
                if halted is not None:
                    return turn.end("answered")
            if reply.stop_reason == "refusal":
                return turn.end("refused")
            turn.count_pause(is_paused=reply.stop_reason in RESUMABLE_STOPS)
            if reply.tool_uses or reply.stop_reason in RESUMABLE_STOPS:
                continue
            if await self._is_done(reply, turn):
                return turn.end("answered")
        return turn.end("out of rounds")

    async def _run(self, prompt: Message | None, turn: TurnState) -> TurnEnd:
        """The rounds, and whatever cuts them short."""
        try:
            return await self._run_rounds(prompt, turn)
        except asyncio.CancelledError:
            self._mend(turn, INTERRUPTED_RESULT)
            raise
        except SevenfoldError as error:
            self._mend(turn, INCOMPLETE_REMARK)
            return turn.end("failed", error)
        except Exception:
            self._mend(turn, INCOMPLETE_REMARK)
            raise
        finally:
            await self.session.turn_ended()

    async def _begin(self, prompt: Message | None, turn: TurnState) -> str | None:
        """Add the prompt of the person; returns the reason if a hook refuses it."""
        if prompt is None:
            if not self.inbox:
                raise InputError("there is nothing to answer: no prompt was given and nothing was posted")
            return None
        try:
            hook_result = await self.hooks.ask("UserPromptSubmit", prompt=_text(prompt))
        except asyncio.CancelledError:
            turn.notice(PROMPT_DROPPED_NOTICE)  # not kept: the hook might have refused it
            raise
        turn.notice(*hook_result.notices)
        refusal = hook_result.blocked or hook_result.stop_reason
        if refusal is None:
            self.session.history.append(prompt)
            self._asides += (
                f"UserPromptSubmit hook additional context: {text}" for text in hook_result.context
            )
        return refusal

    def _take_in(self) -> None:
        """Add messages of others since the last round, then those of the program: only an answer may follow a
        system message."""
        for note in self.inbox.take_all():
            self.session.history.append(note)
        asides, self._asides = "\n\n".join(self._asides), []
        if asides:
            self._say_aside(asides)

    def _say_aside(self, text: str) -> None:
        """Add text of the program: as a system message where one is allowed, after a user message."""
        history = self.session.history
        if self.session.capabilities.takes_system_role and history and history[-1].role == "user":
            history.append(Message("system", text))
        else:
            history.append(Message("user", (Text(render_reminder(text)),)))

    async def _ask_model(self, turn: TurnState) -> ModelResponse:
        sources = tuple(source for read in self._deps.sources for source in read())
        if sources != self._sources:
            self._sources = sources
            await self.session.add_context(*sources)
        view = await self.session.prepare(frame=self.frame)
        started = self.place.clock.now()
        try:
            reply = await self._send(view, turn)
        except (PromptTooLong, ThinkingRefused) as error:
            shorter = await self.session.recover(error)
            if shorter is None:
                raise
            view, started = shorter, self.place.clock.now()
            reply = await self._send(view, turn)
        turn.partial_text = []
        # An answer that came is paid for, so it is kept even if the turn was cancelled meanwhile.
        await await_shielded(self._record(reply))
        turn.rounds, turn.text = turn.rounds + 1, reply.text
        tokens = reply.usage.context_tokens if reply.usage.requests else None
        size, limit, spent = tokens or view.tokens, self.session.limit_tokens, self.spent_usd
        turn.watch(
            RoundEnded(reply=reply, context_tokens=size, limit_tokens=limit, spent_usd=spent, started=started)
        )
        return reply

    async def _record(self, reply: ModelResponse) -> None:
        await self.session.record(reply)
        if self._kept != self.frame and await self._deps.keep(self.frame):
            self._kept = self.frame

    async def _send(self, view: PreparedRequest, turn: TurnState) -> ModelResponse:
        turn.partial_text = []
        try:
            return await self.provider.send(view.request, turn.add_delta)
        except ProviderError as error:
            self.session.note_failure(error)
            raise

    async def _run_tools(self, reply: ModelResponse, turn: TurnState) -> str | None:
        """Answer every call of a reply; returns the reason if a hook ends the turn here."""
        turn.tool_batch = ToolBatch(uses=reply.tool_uses)
        whole = select_complete_calls(reply)
        undone = reply.tool_uses[len(whole) :]
        turn.tool_batch.outputs.update((use.id, ToolOutput(NOT_RUN_RESULT, is_error=True)) for use in undone)
        await self.toolbox.run(whole, turn.watch, turn.tool_batch)
        answers = turn.tool_batch
        halted = self._answer_calls(answers, turn)
        repeated = turn.loop_guard.find_loop(answers)
        if repeated is not None and halted is None:
            await self._ask_on_loop(repeated, turn)
        return halted

    async def _ask_on_loop(self, loop: CallLoop, turn: TurnState) -> None:
        """Go on with a model whose calls keep failing if a person says so, or raise `LoopStopped`."""
        said = f"{loop.use.name}: go on, though the model {loop.said}"
        need = AccessRequest(kind="nothing", said=said)
        request = PermissionRequest(use=loop.use, need=need, reason="")
        guard = self.toolbox.guard
        if isinstance(guard, Guard):
            async with guard.grants.asking:
                answer = await guard.ask(request)
        else:
            answer = await deny_unattended(request)
        self._deps.relay(LoopDetected(loop.use.name, loop.count, not answer.is_allowed))
        if not answer.is_allowed:
            raise LoopStopped(f"the model {loop.said}; say what to do instead")
        turn.loop_guard.reset()

    def _answer_calls(self, answers: ToolBatch, turn: TurnState) -> str | None:
        turn.tool_batch = None
        self.session.history.append(Message("user", answers.results()))
        self._asides += answers.context
        turn.notice(*answers.notices)
        return answers.stop_reason

    async def _is_done(self, reply: ModelResponse, turn: TurnState) -> bool:
        """Whether the turn may end: the answer is complete, no message came, and no hook objects."""
        if self.inbox:
            return False
        if reply.stop_reason in TRUNCATED_STOPS:
            if turn.continuations < MAX_CONTINUATIONS:
                turn.continuations += 1
                self._say_aside(CONTINUE_REMINDER)
                return False
            self._deps.relay(AnswerTruncated(turn.continuations))
        hook_result = await self.hooks.ask(
            "SubagentStop" if self._deps.is_child else "Stop",
            stop_hook_active=turn.stops_refused > 0,
            last_assistant_message=reply.text,
        )
        turn.notice(*hook_result.notices)
        reasons = [text for text in (hook_result.blocked, *hook_result.context) if text]
        if not reasons or hook_result.stop_reason is not None or turn.stops_refused >= MAX_STOP_BLOCKS:
            return True
        turn.stops_refused += 1
        self._say_aside("\n\n".join(reasons))
        return False

    def _mend(self, turn: TurnState, remark: str) -> None:
        """Leave a history that can continue: a partial answer stays, and every open call gets a result."""
        history = self.session.history
        waiting = find_open_calls(history)
        half = truncate_bytes("".join(turn.partial_text), MAX_PARTIAL_BYTES).strip()
        if waiting:
            self._answer_calls(turn.tool_batch or ToolBatch(uses=waiting), turn)
        elif half or (history and history[-1].role != "assistant"):
            # Not the user's words: what they say next may not follow a system message.
            history.append(Message("assistant", (Text(f"{half}\n\n{remark}".strip()),)))
        if remark == INTERRUPTED_RESULT:
            self._deps.relay(TurnInterrupted(self.session.id, turn.rounds, len(waiting)))

    @property
    def spent(self) -> tuple[SpendSummary, ...]:
        """What was billed since the session was opened here, to agents that it started too, by whose calls
        they were. A teammate that goes on by itself keeps its own account."""
        return (*self.session.spent, *self.subagent_usage.spent())

    @property
    def spent_usd(self) -> float | None:
        """What all of that comes to; None where a price is not known."""
        total = sum_costs(spent.cost for spent in self.spent)
        return None if total is None else float(total.total)


def _as_message(prompt: Message | str | None) -> Message | None:
    return Message("user", prompt) if isinstance(prompt, str) else prompt


def _text(message: Message) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, Text))
