"""`sevenfold chat`: an agent at the terminal, or one answer for a script.

`render_setup_help` is shown where no model is configured: what was looked for, and how to set one up.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from argparse import Namespace
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sevenfold.agent.loop.choose_provider import PROVIDER_VARIABLES, find_key_variable
from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.agent.opening.workspace import open_agent_workspace
from sevenfold.agent.tui.chat import Chat
from sevenfold.agent.tui.chat_input import ChatTerminal
from sevenfold.agent.tui.cost_text import compute_saved, describe_unbilled, render_dollars
from sevenfold.agent.tui.custom_commands import (
    CommandHelps,
    CustomCommand,
    list_command_folders,
    read_custom_commands,
)
from sevenfold.agent.tui.early_input import EarlyInput
from sevenfold.agent.tui.error_text import render_key_remedy
from sevenfold.agent.tui.event_text import render_event_text
from sevenfold.agent.tui.headless import (
    HeadlessOptions,
    HeadlessResult,
    OutputFormat,
    describe_lost_work,
    is_full_disk,
    render_opening_failure,
    run_headless,
)
from sevenfold.agent.tui.permission_prompt import PermissionPrompt
from sevenfold.agent.tui.prompt_input import InputDelegate, InputHistory, drop_closed_terminal
from sevenfold.agent.tui.session_list import (
    PastUsage,
    SessionCard,
    find_session_card,
    read_messages,
    read_past_usage,
    read_session_cards,
    read_session_preview,
    render_session_cards,
)
from sevenfold.agent.tui.slash_commands import BUILT_IN_NAMES, ChatServices
from sevenfold.agent.tui.terminal import PlainTerminal, Terminal
from sevenfold.agent.tui.user_input import read_user_input
from sevenfold.cli.inspect.context import show_context
from sevenfold.cli.inspect.context_facts import find_session_id, list_recent_sessions, read_context_facts
from sevenfold.cli.options.running import CHOOSE_SESSION
from sevenfold.cli.screen import Screen, read_piped_input, wrap_lines
from sevenfold.cli.workspace import open_workspace, require_folder
from sevenfold.core import __version__
from sevenfold.core.errors import InputError, ProviderMissing, SevenfoldError, SignInRefused, StoreError
from sevenfold.core.events import (
    AnswerTruncated,
    DefinitionSkipped,
    Event,
    HooksIgnored,
    McpSkipped,
    RetryScheduled,
    SettingRefused,
    WriterFailed,
)
from sevenfold.core.extras import render_install_command
from sevenfold.core.prices import sum_costs
from sevenfold.core.settings.sections import AgentSettings, ChatSettings, PermissionMode
from sevenfold.core.system import run_blocking
from sevenfold.core.text.safe_text import fence_text
from sevenfold.session.opening import Workspace
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.settings_files import USER_SETTINGS_FILE
from sevenfold.store.transcript.transcript import SessionId, is_agent_session

if TYPE_CHECKING:
    from sevenfold.agent.loop.agent import Agent


def render_setup_help(environ: Mapping[str, str], settings_path: str) -> tuple[str, ...]:
    """For a person who has no model yet."""
    found = [name for name in PROVIDER_VARIABLES if environ.get(name)]
    looked = f"found only {', '.join(found)}" if found else "none of them is set"
    return (
        "There is no model to talk to yet. I looked for",
        f"  in the environment  {', '.join(PROVIDER_VARIABLES[:3])},",
        f"                      {', '.join(PROVIDER_VARIABLES[3:])}: {looked}",
        f"  in settings         agent.base_url, in {settings_path}",
        "",
        "Ways to get going:",
        "  an Anthropic API key            export ANTHROPIC_API_KEY=...",
        "  an OpenAI-compatible server     export SEVENFOLD_AGENT_BASE_URL=http://127.0.0.1:11434/v1",
        "                                  and name its model: sevenfold chat --model NAME",
        f"  a GGUF file on this machine     {render_install_command('local')}",
        "                                  sevenfold chat --model path/to/model.gguf",
        "  no model at all                 sevenfold tour shows everything, offline, in a minute",
        "                                  sevenfold simulate is a model's API to test against",
    )


EXIT_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""A supervisor, or a terminal that was closed: the session is closed in order."""


def run_chat(options: Namespace, screen: Screen) -> int:
    """One answer for a script, or a chat where no input line can be drawn."""
    if options.print:
        return asyncio.run(_explain(_print(options, screen), screen))
    screen.show_line(f"sevenfold {__version__}")
    return asyncio.run(chat_in_terminal(options, screen, EarlyInput(sys.stdin, is_full=False)))


async def chat_in_terminal(options: Namespace, screen: Screen, early: EarlyInput) -> int:
    """A chat, after what was typed early. Where the terminal is full, `early` has drawn an input line."""
    return await _explain(_chat_after(options, screen, early), screen)


async def _chat_after(options: Namespace, screen: Screen, early: EarlyInput) -> int:
    try:
        return await _chat(options, screen, early)
    finally:
        await early.stop_prompt()  # nothing is said beside an input line


async def _explain(running: Coroutine[None, None, int], screen: Screen) -> int:
    """Say what to do where there is no model."""
    try:
        return await running
    except ProviderMissing:
        home = open_workspace().home
        for line in render_setup_help(os.environ, str(home / USER_SETTINGS_FILE)):
            screen.note(line)
        return 2


def _read_options(options: Namespace) -> AgentOptions:
    project = cast("Path", options.project)
    wanted = "latest" if getattr(options, "continue") else cast("str | None", options.resume)
    if options.print and wanted == CHOOSE_SESSION:
        raise InputError("--resume needs the ID of a session with -p; sevenfold chat --resume lists them")
    if options.fork and wanted is None:
        raise InputError("--fork needs a session to go on from: add --continue or --resume ID")
    if wanted is not None:
        require_folder(project)
    return AgentOptions(
        project=project,
        model=cast("str", options.model),
        mode=cast("PermissionMode | None", options.mode),
        session=wanted,
        is_fork=cast("bool", options.fork),
        max_rounds=cast("int | None", options.max_rounds),
    )


async def _open_agent(options: AgentOptions, workspace: Workspace) -> Agent:
    """The agent of a session that may be named by the first characters of its id."""
    if (wanted := options.session) is not None:
        options = replace(options, session=await run_blocking(lambda: find_session_id(workspace, wanted)))
    return await open_agent(options, workspace)


async def _choose_session(workspace: Workspace, screen: Screen) -> str | None:
    """The session that a person chooses by its number; None: they press Enter for a new one."""
    cards = await run_blocking(lambda: list_session_cards(workspace))
    lines = "\n".join(render_session_cards(cards, datetime.now(UTC)))
    if not cards:
        raise InputError(f"no session is kept for the project of {workspace.cwd}; sevenfold chat begins one")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError(f"--resume needs the ID of a session here; those of this project:\n{lines}")
    screen.note(f"{lines}\nwhich one? A number, words of its title, or Enter for a new session")
    typed = (await _read_line(sys.stdin.fileno())).strip()
    found = find_session_card(cards, typed) if typed else None
    if isinstance(found, str):
        raise InputError(f"{found}; the list has numbers from 1 to {len(cards)}")
    return found.entry.id if found else None


def list_session_cards(workspace: Workspace) -> Sequence[SessionCard]:
    """The sessions that a person had in this project, the last first."""
    entries = [entry for entry in list_recent_sessions(workspace) if not is_agent_session(entry.id)]
    return read_session_cards(workspace.project.sessions, entries, workspace.catalog) if entries else ()


async def _print(options: Namespace, screen: Screen) -> int:
    agent_options = _read_options(options)
    prompt = cast("str | None", options.prompt)
    # Python has no stdin where it was closed before the start.
    piped = read_piped_input(sys.stdin.fileno(), screen.note, is_needed=not prompt) if sys.stdin else ""
    # Beside a prompt it is what the prompt is about, and not the user's words.
    shown = fence_text("stdin", piped) if prompt and piped else piped
    text = "\n\n".join(part for part in (prompt, shown) if part)
    if not text.strip():
        raise InputError("-p has nothing to say; give it a PROMPT, or pipe something in")
    form = HeadlessOptions(cast("OutputFormat", options.output), cast("float | None", options.max_usd))
    noting = _Noting(screen)
    agent_options = replace(agent_options, emit=noting)
    with ExitStack() as exits:
        try:
            workspace = exits.enter_context(await open_agent_workspace(agent_options, agent_options.confirm))
            agent = await _open_agent(agent_options, workspace)
        except SevenfoldError as error:
            # A script that reads JSON gets JSON, also where there is no session yet to fail in.
            if form.form != "text":
                _write(screen, render_opening_failure(error))
            raise
        try:
            facts = await _answer(agent, text, form, screen)
        except SignInRefused:
            found = find_key_variable(workspace.settings.of(AgentSettings), workspace.environ)
            screen.note(render_key_remedy(found))
            raise
        finally:
            await agent.close()
    # What is written after the answer counts too.
    unsaved = facts.unsaved or _list_unsaved(agent) or tuple(noting.lost)
    for loss in unsaved:
        screen.note(f"not saved: {loss}")
    return facts.exit_code or int(bool(unsaved))


def _list_unsaved(agent: Agent) -> tuple[str, ...]:
    waiting = agent.session.unsaved_records
    return (f"{waiting} records of the transcript",) if waiting else ()


async def _answer(agent: Agent, text: str, form: HeadlessOptions, screen: Screen) -> HeadlessResult:
    typed = read_user_input(text, agent.place.cwd)
    for problem in typed.problems:
        screen.note(problem)
    facts = await run_headless(agent, typed.message, lambda line: _write(screen, line), form)
    if facts.exit_code and form.form == "text" and not facts.unsaved:
        why = "the budget is used up" if facts.is_over_budget else facts.end.reason
        screen.note(f"not finished: {why}; to go on: sevenfold chat --resume {facts.session[:12]}")
    return facts


@dataclass(frozen=True, slots=True)
class _Noting:
    """Says what of a repository was ignored, and what is waited for, whatever form the answer has."""

    screen: Screen
    lost: list[str] = field(default_factory=list[str])
    """Work of writers that a full disk did not take."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, WriterFailed) and is_full_disk(event):
            self.lost.append(describe_lost_work(event))
        elif isinstance(event, SettingRefused):
            self.screen.note(f"ignored: {event.key} of {event.source}: {event.reason}")
        elif isinstance(
            event, (AnswerTruncated, DefinitionSkipped, HooksIgnored, McpSkipped, RetryScheduled)
        ):
            shown = render_event_text(event)
            self.screen.note(shown.text if shown else "")


def _write(screen: Screen, line: str) -> None:
    screen.show_text(line)
    screen.flush()


async def _chat(options: Namespace, screen: Screen, early: EarlyInput) -> int:
    agent_options = _read_options(options)
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for number in EXIT_SIGNALS:
        # Until the chat itself listens: the terminal must be given back as it was.
        loop.add_signal_handler(number, task.cancel if task else loop.stop)
    asking, confirming = PermissionPrompt(), _Confirming(screen, early)
    agent_options = replace(agent_options, ask=asking.ask, confirm=confirming.ask, is_attended=True)
    with await open_agent_workspace(agent_options, confirming.ask) as workspace:
        is_choosing = agent_options.session == CHOOSE_SESSION and early.is_full and not agent_options.is_fork
        if is_choosing:
            # In a new session, which nothing is kept of if another one is chosen.
            agent_options = replace(agent_options, session=None)
        elif agent_options.session == CHOOSE_SESSION:
            async with early.paused():
                agent_options = replace(agent_options, session=await _choose_session(workspace, screen))
        agent = await _open_agent(agent_options, workspace)
        confirming.is_over = True
        with Folder.open(workspace.home, create=True) as home:
            past, services = InputHistory(home), _make_services(agent_options, workspace)
            await early.stop_prompt()
            _keep_lines(past, early.lines)
            cwd, typed, look = agent.place.cwd, early.take_keys(), workspace.settings.of(ChatSettings)
            has_vi_keys = workspace.settings.of(AgentSettings).vi_keys

            def make_keyboard(delegate: InputDelegate) -> ChatTerminal:
                if not early.is_full:
                    return PlainTerminal(delegate)
                pastes = early.pastes
                return Terminal(delegate, past, cwd, typed, look, pastes=pastes, has_vi_keys=has_vi_keys)

            chat = Chat(agent, services, asking, make_keyboard)
            loop = asyncio.get_running_loop()
            for number in EXIT_SIGNALS:
                loop.add_signal_handler(number, _leave, chat)
            first = ["/resume"] if is_choosing else []
            await chat.run(*first, cast("str | None", options.prompt) or "", typed=early.lines)
    cost = sum_costs(one.cost for one in chat.spent)
    billed = "" if cost is None else f"\nthis session cost ${cost.total:.4f}"
    if billed and (saved := compute_saved(chat.spent)) is not None and saved > 0:
        billed += f" and saved {render_dollars(saved)}"
    if billed and (unknown := describe_unbilled(chat.unbilled)):
        billed += f"; that is without {unknown.removesuffix(' so far')}"
    command = f"to go on: sevenfold chat --resume {chat.agent.session.id[:12]}"
    if len(command) > shutil.get_terminal_size().columns:
        command = command.replace(": ", ":\n  ")  # the command stays one line, to be copied
    screen.note(f"{command}{billed}")
    return 0


def _leave(chat: Chat) -> None:
    drop_closed_terminal()
    chat.leave()


def _keep_lines(past: InputHistory, lines: Sequence[str]) -> None:
    """What was entered before there was a chat is found again, too."""
    with suppress(StoreError):
        for line in lines:
            past.add(line)


def _make_services(options: AgentOptions, workspace: Workspace) -> ChatServices:
    async def open_session(session: str | None) -> Agent:
        # Opens a workspace of its own: settings may have changed since.
        start = "clear" if session is None else options.start
        return await open_agent(replace(options, session=session, is_fork=False, start=start))

    async def describe_context(session: str) -> str:
        facts = await asyncio.to_thread(read_context_facts, workspace, SessionId(session), None)
        with redirect_stdout(StringIO()) as page:
            show_context(facts, Screen())
        return wrap_lines(page.getvalue().rstrip("\n"), shutil.get_terminal_size().columns)

    def memories(words: str) -> list[str]:
        from sevenfold.cli.memory.command import capture_memory_output

        return capture_memory_output(options.project, words)

    def past_usage(session: str) -> PastUsage:
        return read_past_usage(workspace.project.sessions, session, workspace.catalog)

    def custom_commands() -> Sequence[CustomCommand]:
        folders = list_command_folders(workspace.home, workspace.user_home, workspace.root)
        return read_custom_commands(folders, BUILT_IN_NAMES)

    settings = workspace.settings.of(AgentSettings)
    return ChatServices(
        open_agent=open_session,
        sessions=lambda: list_session_cards(workspace),
        past_usage=past_usage,
        describe_context=describe_context,
        memories=memories,
        preview_session=lambda card: read_session_preview(
            workspace.project.sessions, card, workspace.catalog
        ),
        read_messages=lambda session: read_messages(workspace.project.sessions, session),
        custom_commands=custom_commands,
        command_helps=CommandHelps(custom_commands).list_helps,
        trust=workspace.trust,
        catalog=workspace.catalog,
        key_variable=find_key_variable(settings, workspace.environ),
        stall=timedelta(seconds=settings.stall_seconds),
    )


@dataclass(slots=True)
class _Confirming:
    """Asks before the terminal is drawn: nothing of a repository's own runs unless a person agreed."""

    screen: Screen
    early: EarlyInput
    is_over: bool = False
    """The keyboard is the terminal's from now on, and a line read past it never comes: what agents and other
    sessions find meanwhile stays off, and is asked for at the next start."""

    async def ask(self, question: str) -> bool | None:
        if self.is_over or not sys.stdin.isatty():
            return None
        async with self.early.paused():
            self.screen.note(f"{question} [y/N]")
            while line := await _read_line(sys.stdin.fileno()):
                word = line.strip().lower()
                if word in ("", "n", "no", "y", "yes"):
                    return word in ("y", "yes")
                self.screen.note("answer y or n")
        return None  # the terminal was closed: no answer


async def _read_line(terminal: int) -> str:
    """A line that is typed. Not in a thread, which Ctrl-C cannot end before an Enter."""
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(terminal, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(terminal)
    # A terminal hands out whole lines.
    return os.read(terminal, 4_096).decode("utf-8", "replace")
