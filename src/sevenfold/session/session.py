"""What a loop calls: `prepare` before each model call, `record` after it, `turn_ended` at the end of a turn.

A round without tools:

    params = RequestParams(model="claude-opus-5-5", max_tokens=8_000)
    async with await Session.open(params, project=".") as session:
        session.history.append(Message("user", "What does this repository do?"))
        view = await session.prepare()
        reply = await provider.send(view.request)
        await session.record(reply)
        await session.turn_ended()
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Self

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import (
    InputError,
    PromptTooLong,
    ProviderError,
    SettingsError,
    ThinkingRefused,
    WindowFull,
)
from sevenfold.core.events import Emit, Event, ignore_event
from sevenfold.core.messages import Message
from sevenfold.core.requests import (
    Capabilities,
    ModelRequest,
    ModelResponse,
    PreparedRequest,
    RequestParams,
    choose_capabilities,
)
from sevenfold.core.system import run_blocking
from sevenfold.layers.compaction.hooks import NO_COMPACT_HOOKS, CompactHookRunner, CompactHooks
from sevenfold.layers.compaction.job import Compacted, Part
from sevenfold.layers.compaction.layer import CompactionRequest
from sevenfold.layers.context import ContextFile, ContextSource
from sevenfold.layers.conversation_state import HistoryMessage
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner, run_fork
from sevenfold.providers.provider import OnDelta, Provider
from sevenfold.session.cache.monitor import CacheMonitor, MonitoredProvider, RequestLog, SpendSummary
from sevenfold.session.governor import GovernedProvider, Governor
from sevenfold.session.history import History, SharedCount, check_history
from sevenfold.session.history_sync import HistorySync
from sevenfold.session.opening import Workspace, WorkspaceOptions
from sevenfold.session.pipeline import (
    SessionResources,
    build_compaction,
    build_context,
    build_memories,
    build_notes,
    build_recall,
    build_view_steps,
)
from sevenfold.session.rebuilding import rebuild_history
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.transcript.transcript import SessionId


class Session:
    """One conversation, managed by the layers."""

    def __init__(
        self,
        frame: RequestParams,
        opened: SessionResources,
        provider: Provider | None = None,
        hooks: CompactHooks = NO_COMPACT_HOOKS,
        *,
        governs: bool = True,
        is_agent: bool = False,
        memory: MemoryDir | None = None,
    ) -> None:
        deps, self._opened, self._provider = opened.deps, opened, provider
        self._clock, self._emit, self._journal = deps.clock, deps.emit, deps.journal
        self._monitor = CacheMonitor(deps.emit, deps.catalog)
        self._request_log = RequestLog(deps.journal)
        forks = None
        if provider is not None:
            governor = opened.governor if governs else None
            governed = GovernedProvider(provider, governor) if governor else provider
            forks = MonitoredProvider(governed, self._monitor, deps.journal, deps.clock, self._request_log)
        self._forks = forks
        self._steps = steps = build_view_steps(frame, self._capabilities(frame), deps)
        self._conversation, self._window = steps.conversation, steps.window
        self._clearing, self._requests = steps.clearing, steps.requests
        self._sync = HistorySync(
            conversation=steps.conversation, spilling=steps.spilling, requests=steps.requests
        )
        self._compaction = build_compaction(steps, opened, forks)
        hook_time = timedelta(seconds=deps.settings.compact.hook_seconds)
        self._hooks = CompactHookRunner(hooks, hook_time, deps.emit)
        self._memories = build_memories(opened, memory)
        self._context = build_context(steps, opened, self._memories)
        self._notes = build_notes(steps, opened, forks, self._compaction.spill)
        self._one_at_a_time = asyncio.Lock()
        self._recorded = ""
        self.history = History()
        self._is_followed = self._is_closed = False
        self._recovered: set[type[Exception]] = set()
        self._sent: ModelRequest | None = None
        if opened.resumed is not None:
            self.history = self._sync.resume(rebuild_history(steps, opened.resumed))
        self._recall = build_recall(steps, opened, self._memories, forks, is_agent=is_agent)
        # Not before: the notes of a resumed session read its whole transcript.
        steps.conversation.listeners.append(self._notes)
        self._refuse_if_cramped()

    @classmethod
    async def open(  # noqa: PLR0913 - keywords, of which most callers give one or two
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
        """Start a session in the project that a path lies in, or resume one by its id or as `latest`.

        Without a project everything stays in memory. `settings` are by section, as in a settings file. The
        provider writes summaries; without one the session uses only what needs no model. `hooks` run around
        each compaction. `[spend]` limits what its forks cost, unless `governs` is off because the provider
        does that itself. With `is_agent` the loop is ours, and a cheaper model may choose the memories for a
        prompt. Without `trusts_local` the project-local settings file has no more rights than a committed
        one. `memory` is that of the project, if the caller has opened it. `clearable` says, by tool name,
        whether old results may be cleared.
        """
        options = WorkspaceOptions(
            project=Path(project) if project is not None else None,
            settings=settings,
            trusts_local=trusts_local,
            clock=clock or SystemClock(),
            environ=environ if environ is not None else os.environ,
        )

        def open_resources() -> SessionResources:
            workspace = Workspace.open(options)
            workspace.listen(emit)
            return SessionResources.open(workspace, session, clearable=clearable, closes_workspace=True)

        opened = await run_blocking(open_resources)
        return await cls.start(
            frame, opened, provider, hooks, governs=governs, is_agent=is_agent, memory=memory
        )

    @classmethod
    async def start(
        cls,
        frame: RequestParams,
        opened: SessionResources,
        provider: Provider | None = None,
        hooks: CompactHooks = NO_COMPACT_HOOKS,
        *,
        governs: bool = True,
        is_agent: bool = False,
        memory: MemoryDir | None = None,
    ) -> Self:
        """`open` for resources that were opened in a workspace. They are closed with the session."""
        try:
            found = cls(frame, opened, provider, hooks, governs=governs, is_agent=is_agent, memory=memory)
            if opened.project is not None and opened.resumed is not None:
                sessions = opened.project.sessions
                await run_blocking(lambda: found._notes.catch_up(sessions, found._sync.said))
        except BaseException:
            await opened.close()
            raise
        return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def id(self) -> SessionId:
        return self._opened.id

    @property
    def capabilities(self) -> Capabilities:
        """What the model and its provider support."""
        return self._conversation.capabilities

    @property
    def limit_tokens(self) -> int:
        """How full the window may be: at this point it is compacted, or new input is refused."""
        return self._window.thresholds.limit

    @property
    def parent(self) -> ModelRequest:
        """The request that a fork continues: the current view, with the breakpoints of the last request."""
        self._sync.keep_resumed()
        return self._requests.build_parent()

    @property
    def entries(self) -> Sequence[HistoryMessage]:
        """What was said since the last boundary, each with the id of its record."""
        self._sync.keep_resumed()
        return self._conversation.entries

    @property
    def hidden(self) -> frozenset[int]:
        """The places in the history for which a summary stands in the view."""
        return self._conversation.hidden

    def find_offset(self, entry: HistoryMessage) -> int:
        """Where its line starts in the transcript; 0 where that is not known."""
        return self._journal.offset(entry.id)

    @property
    def governor(self) -> Governor | None:
        """The governor that limits background work; None for a session in memory."""
        return self._opened.governor

    @property
    def spent(self) -> tuple[SpendSummary, ...]:
        """What was billed since the session was opened here, by caller: `main`, `notes`, other forks."""
        return self._monitor.ledger.spent()

    @property
    def unsaved_records(self) -> int:
        """Records of the transcript that could not be written so far; a crash now would lose them."""
        return self._journal.waiting

    @property
    def unbilled_requests(self) -> int:
        """Requests since the session was opened here that have no bill: under way, or lost."""
        return self._request_log.unbilled

    def note_failure(self, error: ProviderError) -> None:
        """The last view was not answered. A refusal has no bill; any other failure may have one."""
        self._request_log.refused(self._conversation.frame.model, "main", error)

    def count_shared(self, messages: Sequence[object]) -> SharedCount:
        """How much this list seems to share with the one that is followed here."""
        return self._sync.count_shared(messages)

    @property
    def followed(self) -> int:
        """Messages taken from a list of the caller's own."""
        return self._sync.followed

    async def prepare(
        self, history: History | Sequence[object] | None = None, *, frame: RequestParams | None = None
    ) -> PreparedRequest:
        """The view of this history: what to send now.

        Called again with nothing new, it returns the same: a retry costs nothing and changes nothing.
        """
        async with self._one_at_a_time:
            self._refuse_if_closed()
            self._use(frame)
            await self._take_in(self.history if history is None else check_history(history))
            if self._requests.is_unchanged and not self._context.is_due:
                self._request_log.resent(self._conversation.frame.model, "main")
                await self._journal.flush()
                return self._requests.resend()
            self._recall.start_search()
            await self._clearing.run(self._window.thresholds)
            if self._window.thresholds.is_compact_due(self._conversation.tokens):
                await self._compact_when_due()
            await self._context.append_changes(self._window.thresholds.auto_compact)
            await self._recall.append()
            self._conversation.finish()
            view = await self._hand_out()
            self._recovered.clear()
            return view

    def _use(self, frame: RequestParams | None) -> None:
        """Take other request parameters, where the caller has any."""
        if frame is None:
            return
        known = self._conversation.frame
        if frame is not known and frame != known:
            self._steps.use(frame, self._capabilities(frame))
        self._refuse_if_cramped()

    async def _take_in(self, history: History | Sequence[object]) -> None:
        """Begin with the context, then take in new messages and store their large results (layer 1)."""
        self._is_followed = not isinstance(history, History)
        if history and not self._conversation.entries:
            await self._context.begin(self._window.thresholds.auto_compact)
        await self._sync.sync(history)

    async def _compact_when_due(self) -> None:
        """Compact, unless a hook postpones it, which it may while the window is not full."""
        if self._compaction.is_stopped:
            return
        is_full = self._requests.build().level == "blocked"
        hook_text = await self._hooks.ask_before("auto", is_full=is_full)
        if hook_text is not None:
            await self._compact(CompactionRequest(trigger="auto", hook_text=hook_text))

    async def _hand_out(self) -> PreparedRequest:
        """Place breakpoints, make the transcript durable, and compare the request with the last one."""
        self._refuse_if_full(self._requests.build())
        self._recorded = ""
        self._request_log.sent(self._conversation.frame.model, "main")
        await self._journal.flush()
        view = self._requests.hand_out()
        self._sent = view.request
        self._monitor.check(view.request, self._clock.now(), view.cuts)
        return view

    async def add_context(self, *sources: ContextSource | ContextFile) -> None:
        """Tell the model, from the next request on, what instruction files say, and what is handed in here.

        Before the first request it stands in front of everything. A source replaces an earlier one of the
        same kind and name; one without text removes it. A file is read each time the context is written.
        """
        async with self._one_at_a_time:
            self._refuse_if_closed()
            self._context.add_sources(sources)

    async def compact(self, instructions: str = "", *, part: Part | None = None) -> Compacted:
        """Compact the view now, or a part of it. `instructions` say what the summary should cover."""
        async with self._one_at_a_time:
            self._refuse_if_closed()
            self._sync.keep_resumed()
            hook_text = await self._hooks.ask_before("manual") or ""
            done = await self._compact(
                CompactionRequest(trigger="manual", instructions=instructions, hook_text=hook_text, part=part)
            )
            await self._journal.flush()
            return done

    async def rewind(self, place: int, reason: str) -> tuple[Message, ...]:
        """Go back to before a message of `history`: what follows leaves the view, by a cut that is announced.
        It stays in the transcript, and is returned. What a summary stands for does not leave."""
        async with self._one_at_a_time:
            self._refuse_if_closed()
            if self._is_followed or place in self.hidden or not 0 <= place < len(self.history):
                raise InputError(f"message {place} is none of a history of ours, or stands in a summary now")
            await self._take_in(self.history)
            gone, self.history = tuple(self.history[place:]), History(self.history[:place])
            self._conversation.drop_from(self._conversation.places.place_of(place), reason)
            self._sync.has_taken(self.history)
            await self._journal.flush()
            return gone

    async def recover(self, error: PromptTooLong | ThinkingRefused) -> PreparedRequest | None:
        """The provider refused the last view: a shorter one, or one without thinking; None where none helps.

        Asked twice for the same reason without an answer or anything new in between, there is none.
        """
        async with self._one_at_a_time:
            self._refuse_if_closed()
            if type(error) in self._recovered:
                return None
            self.note_failure(error)
            if isinstance(error, ThinkingRefused):
                self._conversation.forget_thinking("the provider refused thinking that was sent back")
            elif self._opened.deps.settings.compact.enabled:
                await self._compaction.learn(error, self._requests.build().tokens)
                hook_text = await self._hooks.ask_before("reactive", is_full=True) or ""
                await self._compact(CompactionRequest(trigger="reactive", hook_text=hook_text, error=error))
            else:
                return None
            await self._context.append_changes(self._window.thresholds.auto_compact)
            self._recovered.add(type(error))
            self._conversation.finish()
            return await self._hand_out()

    async def record(self, reply: ModelResponse) -> None:
        """Record the answer of a model to the last view. The same id counts once until the next view."""
        async with self._one_at_a_time:
            self._refuse_if_closed()
            if reply.id and reply.id == self._recorded:
                return
            self._recorded = reply.id
            self._recovered.clear()
            self._request_log.billed("main")
            if self._sent is not None:
                self._monitor.settle(self._sent, reply, self._clock.now())
            started, resent_at = self._requests.answered(), self._requests.resent_at
            self._clearing.read_back(reply)
            answer = self._conversation.record_reply(reply, started, resent_at)
            self._sync.answered(answer, None if self._is_followed else self.history)
            self._notes.responded(lambda: self.parent)
            await self._journal.flush()
            await self._write_log()

    async def run_fork(
        self,
        brief: ForkBrief,
        *,
        run_tool: ToolRunner | None = None,
        on_delta: OnDelta | None = None,
        parent: ModelRequest | None = None,
    ) -> ForkResult:
        """Run a fork on what was said so far, or on another request that tells of it. It is billed under its
        kind, and monitored like all calls.

        The session may continue meanwhile; the fork does not see what is added.
        """
        self._refuse_if_closed()
        if self._forks is None:
            raise InputError(f"a {brief.kind} fork needs a model; open the session with a provider")
        shown, emit = parent or self.parent, self._emit
        try:
            return await run_fork(shown, brief, self._forks, run_tool=run_tool, on_delta=on_delta, emit=emit)
        finally:
            # Its bill is a record too, and perhaps nothing else is written after it.
            await self._journal.flush()

    def keep_event(self, event: Event) -> None:
        """Add an event from outside the session to its log."""
        if self._opened.log is not None:
            self._opened.log.add(event)

    async def turn_ended(self) -> None:
        """The turn is over. Messages that no request has sent yet are written too."""
        async with self._one_at_a_time:
            self._refuse_if_closed()
            if self.history and not self._is_followed:
                await self._take_in(self.history)
            await self._journal.flush()
            await self._write_log()

    async def close(self) -> None:
        """Write what is pending and close the files. A second call does nothing."""
        async with self._one_at_a_time:
            if self._is_closed:
                return
            try:
                if not self._is_followed:
                    # A result that no request has sent yet is part of the history too.
                    await self._sync.sync(self.history)
                await self._notes.close()
            finally:
                # Even after an error: another process may want the session.
                self._is_closed = True
                await self._recall.close()
                await run_blocking(self._memories.close)
                await self._opened.close()

    async def _write_log(self) -> None:
        """Write events to their log."""
        if self._opened.log is not None:
            await self._opened.log.write()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise InputError(f"session {self.id} is closed; open it again by its id to go on")

    def _refuse_if_cramped(self) -> None:
        found = self._window.thresholds
        if min(found.limit, found.blocking) > 0:
            return
        raise SettingsError(
            f"the margins of [window] leave nothing of the {self._window.tokens:,} tokens of "
            f"{self._conversation.frame.model}; set smaller output_reserve_tokens, "
            "auto_compact_margin_tokens and blocking_margin_tokens, or a larger window_tokens for this model"
        )

    async def _compact(self, asked: CompactionRequest) -> Compacted:
        notes = await self._notes.read_sources()
        asked = replace(asked, extras=await self._hooks.ask_restoring())
        context = await self._context.read(self._window.thresholds.auto_compact)
        done = await self._compaction.run(asked, self._requests.build(), notes, context)
        self._context.compacted(context, done.head, done.kept)
        await self._hooks.tell_after(done)
        return done

    def _capabilities(self, frame: RequestParams) -> Capabilities:
        model, provider = self._opened.deps.catalog.find(frame.model), self._provider
        return provider.capabilities(model) if provider else choose_capabilities(model, "anthropic")

    def _refuse_if_full(self, view: PreparedRequest) -> None:
        thresholds = self._window.thresholds
        if view.level == "blocked" and not thresholds.is_automatic:
            limit = thresholds.blocking
            raise WindowFull(
                f"the context holds {view.tokens:,} tokens, past the {limit:,} at which new input is refused "
                "while automatic compaction is off; compact by hand, or set compact.auto_compact_enabled",
                tokens=view.tokens,
                limit=limit,
            )
