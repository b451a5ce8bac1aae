"""The chat: reads what a person types, runs turns and shows them. It has one agent at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.turn import TurnEnd
from sevenfold.agent.tui.background_view import count_running, read_summary, render_live_tasks
from sevenfold.agent.tui.chat_input import (
    MEMORY_PREFIX,
    SHELL_PREFIX,
    ChatInput,
    ChatTerminal,
    QueuedInput,
    TypedLine,
)
from sevenfold.agent.tui.cost_text import fill_costs, merge_spent, render_cache_state
from sevenfold.agent.tui.error_text import render_error
from sevenfold.agent.tui.permission_prompt import PermissionPrompt, find_hidden_request
from sevenfold.agent.tui.prompt_input import InputDelegate
from sevenfold.agent.tui.render.status_line import FRAME_TIME, BusyLine, StatusLine, render_status_line
from sevenfold.agent.tui.session_list import (
    NO_PAST_USAGE,
    describe_mail,
    render_history_tail,
)
from sevenfold.agent.tui.slash_commands import (
    COMMAND_PREFIX,
    ChatServices,
    TypedCommand,
    UnknownCommand,
    handle_custom_command,
    handle_slash_command,
    list_key_help,
    parse_slash_command,
)
from sevenfold.agent.tui.text_renderer import TextRenderer, TextTone
from sevenfold.agent.tui.turn_view import TurnView
from sevenfold.agent.tui.user_input import add_context, read_user_input
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import ProviderError, SevenfoldError
from sevenfold.core.messages import Message
from sevenfold.core.models import is_local_model
from sevenfold.core.settings.sections import PERMISSION_MODES, PermissionMode
from sevenfold.session.cache.monitor import SpendSummary
from sevenfold.store.project.git import read_branch

LONG_TURN = timedelta(seconds=30)
"""After which a person may look elsewhere, and is called when it ends."""
SAID_PHASE = timedelta(seconds=3)
"""After which it is printed what a turn is doing, where it cannot be drawn."""
DOUBLE_ESCAPE_WINDOW = timedelta(seconds=1.5)
"""Two Esc within this go back: the second one may wait for the rest of a key that begins alike."""
DOUBLE_INTERRUPT_WINDOW = timedelta(seconds=2)
"""Two Ctrl-C within this leave: a person who means it is faster, one who does not is slower."""


class Chat(ChatInput):
    """One person's conversation, until they leave."""

    def __init__(
        self,
        agent: Agent,
        services: ChatServices,
        asking: PermissionPrompt,
        make_keyboard: Callable[[InputDelegate], ChatTerminal],
        clock: Clock | None = None,
    ) -> None:
        self.services = services
        self._clock = clock or SystemClock()
        super().__init__(agent, asking, make_keyboard)
        self.view = TurnView(
            self._keyboard,
            StatusLine(),
            root=str(agent.place.cwd),
            unfolding="ctrl-o or /expand",
            clock=self._clock,
        )
        self.view.read_summary = lambda: read_summary(self.agent)
        self.view.is_echoed = self._keyboard.has_echo
        self._past = NO_PAST_USAGE
        self._started = timedelta()
        """When the turn began, by uptime."""
        self._phase, self._phase_since, self._said_phases = "", timedelta(), set[str]()
        """What the turn does, since when, and what was printed of it."""
        self._unanswered: Message | None = None
        """What was said last, where the provider failed in a way that may pass."""
        self._turn: asyncio.Task[None] | None = None
        self._mail_task: asyncio.Task[None] | None = None
        self._is_shown = asyncio.Event()
        """What was said before stands on the screen, and what is typed may be done."""
        self._last_interrupt: timedelta | None = None
        self._interrupt_key = 0
        """Which key, of all, the last Ctrl-C was."""
        self._last_escape: timedelta | None = None
        self._is_over = False
        self.refresh_status()

    async def run(self, *first: str, typed: Sequence[str] = ()) -> None:
        """Until the person leaves: then the turn is interrupted, and the session closed.

        `typed` are lines that the person entered before there was a chat."""
        for line in (*first, *typed):
            if line.strip():
                self._lines.put(TypedLine(line, is_typed=line in typed))
        self._mail_task = asyncio.create_task(self._handle_mail())
        doing, ticking = asyncio.create_task(self._do_lines()), asyncio.create_task(self._tick())
        try:
            with self._keyboard:
                self._show_state()
                self._show_header()
                await self._show_earlier()
                self._is_shown.set()
                await self._listen()
                if not self._is_over:
                    await doing
        finally:
            # The terminal is a person's own again: Ctrl-C ends us, should closing take too long.
            self._mail_task.cancel()
            ticking.cancel()
            doing.cancel()
            await asyncio.wait({doing})
            await self._end_turn()
            await self.agent.close("prompt_input_exit")

    @property
    def is_busy(self) -> bool:
        return self._turn is not None and not self._turn.done()

    def say(self, text: str, tone: TextTone = "plain") -> None:
        self.view.say(text, tone)

    def echo(self, typed: str) -> None:
        self.view.echo(typed)

    def put(self, text: str) -> None:
        """Print what is painted already."""
        self._keyboard.put(text)

    def leave(self) -> None:
        self._is_over = True
        self._keyboard.leave()

    async def switch_session(self, session: str | None) -> None:
        """Go on in another session, or in a new one. The one that was open is closed only if that works."""
        fresh = await self.services.open_agent(session)
        old, self.agent = self.agent, fresh
        self._queue.watch(fresh)
        if self._mail_task is not None:
            self._mail_task.cancel()
            self._mail_task = asyncio.create_task(self._handle_mail())
        await old.close("clear" if session is None else "resume")
        self._context = []
        await self._show_earlier()
        self.refresh_status()

    @property
    def spent(self) -> Sequence[SpendSummary]:
        """What the session was billed, here and before."""
        return merge_spent(self._past.spent, self.agent.spent)

    @property
    def unbilled(self) -> int:
        return self.agent.session.unbilled_requests + self._past.unbilled

    def _show_header(self) -> None:
        agent, renderer = self.agent, self._keyboard.renderer()
        branch = read_branch(agent.place.root)
        facts = (agent.frame.model, f"mode {agent.mode}", f"session {agent.session.id[:8]}")
        folder = f"{agent.place.cwd}{f' on {branch}' if branch else ''}"
        self.put(renderer.parts(facts, "strong"))
        self.put(renderer.parts((folder, "? shows keys, /help commands"), "faint"))

    async def _show_earlier(self) -> None:
        """Of a session that goes on: the end of the conversation, and what it cost so far."""
        session, history = self.agent.session.id, self.agent.session.history
        self._past = await asyncio.to_thread(self.services.past_usage, session) if history else NO_PAST_USAGE
        self.view.take_up(self._past, self.agent.session.limit_tokens)
        if tail := render_history_tail(history, self._keyboard.renderer()):
            self.put(f"{tail}\n")
            self.say(f"session {session[:8]} goes on: {len(history)} messages", "good")

    async def _end_turn(self) -> None:
        """Interrupt the turn, if one runs, and wait until its history is whole."""
        if self._turn is not None and not self._turn.done():
            self.agent.interrupt()
            with suppress(asyncio.CancelledError):
                await self._turn

    # Methods of `InputDelegate`, which the terminal calls.

    def live(self, renderer: TextRenderer) -> str:
        busy, tasks = self._render_busy(renderer), render_live_tasks(self.agent, renderer)
        below = "\n".join(part for part in (busy, tasks, self._render_waiting(renderer)) if part)
        return "\n".join(part for part in (self.view.live(renderer), below and f"\n{below}") if part)

    def _render_busy(self, renderer: TextRenderer) -> str:
        now = self._clock.uptime()
        if self._questions.is_asking:
            return ""
        if self.view.status.is_working:
            line = BusyLine(
                phase=self.view.phase,
                elapsed=now - self._started,
                tokens=self.view.turn_tokens,
                can_leave=self.has_foreground,
            )
            return line.render(renderer)
        elapsed = now - self._started_doing
        if not self.is_doing or self.menu is not None or elapsed < FRAME_TIME:
            return ""
        line = BusyLine(phase=self._doing_what, elapsed=elapsed, can_leave=self.has_foreground)
        return line.render(renderer)

    def question(self, renderer: TextRenderer) -> str:
        return self._questions.render(renderer)

    def status_line(self, columns: int) -> str:
        status = replace(
            # Read each time: forks are billed after the turn that they follow.
            fill_costs(self.view.status, self.spent, self.unbilled),
            mode=self.agent.mode,
            queued=len(self.agent.inbox),
            tasks=count_running(self.agent),
            cache=self._cache_text,
        )
        return render_status_line(status, columns)

    @property
    def _cache_text(self) -> str:
        return render_cache_state(self.view.cache, self._model, self._clock.now())

    def interrupt(self, *, is_typed: bool) -> None:
        """Ctrl-C: the turn first, then what is typed, then the chat itself."""
        now, last = self._clock.uptime(), self._last_interrupt
        keys = self._keyboard.keys_pressed
        # Whoever types in between means the input, and not the chat.
        is_next = keys <= self._interrupt_key + 1
        is_twice = is_next and last is not None and now - last <= DOUBLE_INTERRUPT_WINDOW
        self._last_interrupt, self._interrupt_key = now, keys
        if is_twice:
            self.leave()
        elif self.is_busy:
            self.agent.interrupt()
        elif self._doing is not None and self.is_doing:
            self._doing.cancel()
        elif is_typed:
            self._keyboard.clear_input()
        else:
            self.say("Ctrl-C again leaves; so does Ctrl-D", "faint")

    def escape(self) -> None:
        """Esc interrupts the turn; twice between turns it goes back to an earlier message. Ctrl-C leaves."""
        now, last = self._clock.uptime(), self._last_escape
        self._last_escape = now
        if self.is_busy:
            self.agent.interrupt()
        elif self._doing is not None and self.is_doing:
            self._doing.cancel()
        elif last is not None and now - last <= DOUBLE_ESCAPE_WINDOW and self.menu is None:
            self._last_escape = None
            self._lines.put(TypedLine("/rewind", is_typed=True))

    def cycle_mode(self) -> None:
        """Shift-Tab: the next permission mode. `bypass` is for `/mode` alone: no key should be one press away
        from allowing everything."""
        modes: list[PermissionMode] = [mode for mode in PERMISSION_MODES if mode != "bypass"]
        at = modes.index(self.agent.mode) if self.agent.mode in modes else -1
        self.agent.mode = modes[(at + 1) % len(modes)]
        self.refresh_status()

    def own_commands(self) -> Mapping[str, str]:
        return self.services.command_helps()

    def show_keys(self) -> None:
        self.put("\n" + self._keyboard.renderer().rows(list_key_help()))

    def unfold(self) -> None:
        if not self.view.unfold():
            self.say("nothing is folded", "faint")

    async def _listen(self) -> None:
        """Hand on what is typed, or answer with it. The input stays open whatever else goes on."""
        with suppress(EOFError):
            while not self._is_over:
                line = await self._keyboard.read()
                if self._questions.answer(line):
                    continue
                if not line.strip():
                    self._try_again()
                    if not self.is_busy:
                        self._keyboard.settle()
                else:
                    self._lines.put(TypedLine(line, self._keyboard.is_typed))
        self._questions.close()
        self._lines.close()

    async def _do_lines(self) -> None:
        """One line after the other: what follows a long command waits for it."""
        await self._is_shown.wait()
        while (line := await self._lines.get()) is not None:
            asked, typed = parse_slash_command(line.text.strip()), line.text.strip()
            # What a program piped in, or a person pasted, is no command however it begins.
            has_prefix = (line.is_typed or self._keyboard.has_echo) and "\n" not in typed
            if isinstance(asked, UnknownCommand):
                await self._do_unknown(asked, typed)
            elif isinstance(asked, TypedCommand):
                await self._do(handle_slash_command(self, asked), typed)
            elif has_prefix and typed.startswith((SHELL_PREFIX, MEMORY_PREFIX)):
                await self._do(self._do_shortcut(typed, is_sure=line.is_typed), typed)
            else:
                self._say_to_agent(line.text)

    async def _do_unknown(self, asked: UnknownCommand, typed: str) -> None:
        """A command of the user's or the project's, if there is one of that name."""
        name, _, arguments = typed.removeprefix(COMMAND_PREFIX).partition(" ")
        own = await asyncio.to_thread(self.services.custom_commands)
        command = next((one for one in own if one.name == name.lower()), None)
        if command is None:
            self.echo(typed)
            self.say(asked.text, "warning")
            if not self.is_busy:
                self._keyboard.settle()
        else:
            await self._do(handle_custom_command(self, command, arguments.strip()), typed)

    async def _do(self, work: Coroutine[None, None, None], typed: str) -> None:
        """Carry out what was typed; Ctrl-C ends it, and the chat goes on."""
        self.echo(typed)
        self._doing, self._started_doing = asyncio.create_task(work), self._clock.uptime()
        self._doing_what = " ".join(typed.split())
        await asyncio.wait({self._doing})
        if not self.is_busy:
            self._keyboard.settle()
        bug = None if self._doing.cancelled() else self._doing.exception()
        if bug is not None:
            self.say(f"unexpected {type(bug).__name__}: {bug}. This is a bug: please report it", "error")

    def refresh_status(self) -> None:
        """The model or the mode may have changed."""
        self._model = self.services.catalog.find(self.agent.frame.model)
        self.view.model = self._model.name
        # A model on this machine has another limit, which nobody sits through.
        self.view.stall = None if is_local_model(self.agent.frame.model) else self.services.stall
        self.view.status = replace(self.view.status, model=self.agent.frame.model, mode=self.agent.mode)
        self._keyboard.refresh()

    def send(self, text: str, shown: str = "") -> None:
        """Say something to the agent, as if it had been typed; `shown` is what a person sees of it."""
        self._say_to_agent(text, shown)

    def _say_to_agent(self, line: str, shown: str = "") -> None:
        typed = read_user_input(line, self.agent.place.cwd)
        for problem in typed.problems:
            self.say(problem, "warning")
        if typed.problems and self._keyboard.is_typed:
            self.offer_input(line)  # to be put right: the model could not see what it is about
            return
        context, self._context = tuple(self._context), []
        message = add_context(typed.message, context)
        if not self.is_busy:
            self.view.begin(shown or line)
            self._start(message)
            return
        self._send_later(QueuedInput(line, message, context))

    def _try_again(self) -> None:
        """Send once more what the provider could not answer."""
        if self._unanswered is not None and not self.is_busy:
            self.view.begin("(once more)")
            self._start(self._unanswered)

    def _start(self, prompt: Message | None) -> None:
        self._unanswered = self._last_interrupt = None
        self._started, self._phase, self._said_phases = self._clock.uptime(), "", set[str]()
        self._turn = asyncio.create_task(self._run_turn(prompt))

    async def _tick(self) -> None:
        """Have the screen say for how long the turn, and what goes on beside it, has been running."""
        shown = ""
        while True:
            self._show_state()
            if self.is_busy and self._keyboard.has_echo and not self._questions.is_asking:
                self._say_phase()
            await asyncio.sleep(FRAME_TIME.total_seconds())
            # The cache goes cold while nobody does anything.
            is_doing = self.is_doing and self.menu is None
            if self.is_busy or is_doing or count_running(self.agent) or self._cache_text != shown:
                shown = self._cache_text
                self._keyboard.refresh()

    def _say_phase(self) -> None:
        """Where only lines are printed: once in words what the turn has been doing for a while."""
        now, phase = self._clock.uptime(), self.view.phase
        if phase != self._phase:
            self._phase, self._phase_since = phase, now
        elif now - self._phase_since >= SAID_PHASE and phase not in self._said_phases:
            self._said_phases.add(phase)
            self.say(f"working: {phase}; Ctrl-C interrupts", "faint")

    async def _run_turn(self, prompt: Message | None) -> None:
        try:
            end = await self.agent.run_turn(prompt, self.view.watch)
            self.view.end()
            self._show_end(end, prompt)
            if end.reason == "interrupted":
                await self._return_prompt(prompt)
        except SevenfoldError as error:
            self.say(render_error(error, self.services.key_variable), "error")
        except Exception as bug:
            # The history is on disk and whole: a bug of ours costs this turn and not the conversation.
            self.say(f"unexpected {type(bug).__name__}: {bug}. This is a bug: please report it", "error")
        finally:
            self.view.end()
            self._keyboard.settle()
            self._show_state()
            if self._clock.uptime() - self._started >= LONG_TURN:
                self._keyboard.call_person(f"{self._name}: the turn is over")

    @property
    def _name(self) -> str:
        return f"sevenfold {self.agent.place.cwd.name}"

    def _show_state(self) -> None:
        """In the terminal's title: whether it works, or waits for an answer."""
        mark = "? " if self._questions.is_asking else "● " if self.is_busy else ""
        self._keyboard.show_state(f"{mark}{self._name}")

    def _person_wanted(self) -> None:
        question = self._asking.question
        if question and (hidden := find_hidden_request(question)):
            self.view.fold(hidden.title, hidden.text, is_diff=hidden.is_diff)
        if question:
            self.view.asked_diffs[question.use.id] = question.need.diff
        self._show_state()
        self._keyboard.call_person(f"{self._name}: a question waits")

    def _show_end(self, end: TurnEnd, prompt: Message | None) -> None:
        match end.reason:
            case "answered":
                return
            case "interrupted":
                self.say("interrupted; what was done stays done", "warning")
            case "failed":
                error = render_error(end.error, self.services.key_variable, self.view.retries)
                self.say(error, "error")
                if isinstance(end.error, ProviderError) and end.error.may_pass:
                    self._unanswered = prompt
                    self.say("Enter tries again", "faint")
            case "refused":
                self.say(f"refused: {end.text}" if end.text else "the model refused", "warning")
            case "out of rounds":
                self.say(f"stopped after {end.rounds} rounds; say something to go on", "warning")

    async def _handle_mail(self) -> None:
        """What comes to this agent while nobody works begins a turn of its own."""
        while True:
            await self.agent.inbox.wait()
            if not self.is_busy:
                if not self.has_queue:  # else the person's own, which is shown as it is read
                    self.say(f"a message came in{describe_mail(self.agent.inbox.first)}", "accent")
                self.view.status = replace(self.view.status, is_working=True)
                self._start(None)
            if self._turn is not None:
                await asyncio.wait({self._turn})
