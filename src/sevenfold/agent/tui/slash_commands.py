"""The slash commands: the table of commands, parsing, help, and what each command does.

`ChatServices` is what the chat is given, `ChatHandle` what a handler may do with the chat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Protocol, TypeAlias

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.sandbox.job import BackgroundTasks
from sevenfold.agent.subagents.agent_team import AgentTool
from sevenfold.agent.tools.shell import TaskOutputTool
from sevenfold.agent.tui.session_list import SessionCard, find_session_card, render_session_cards
from sevenfold.agent.tui.text_renderer import TextTone
from sevenfold.agent.tui.turn_view import TurnView
from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.prices import Cost, sum_costs
from sevenfold.core.settings.sections import PERMISSION_MODES
from sevenfold.session.cache.monitor import SpendSummary

COMMAND_PREFIX = "/"


@dataclass(frozen=True, slots=True)
class SlashCommand:
    name: str
    argument_hint: str
    """How its argument is called in help; empty when it takes none."""
    help: str
    is_anytime: bool = False
    """It may run beside a turn."""


SLASH_COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand("help", "", "show the commands and keys", is_anytime=True),
    SlashCommand("compact", "[focus]", "cut the context down to a summary now; focus: what matters"),
    SlashCommand("context", "", "what fills the window, and the next compaction", is_anytime=True),
    SlashCommand("cost", "", "what this session cost so far, by whose calls", is_anytime=True),
    SlashCommand("memory", "[ACTION]", "what is remembered; show, review, log, undo …", is_anytime=True),
    SlashCommand("dream", "", "merge and tidy the memories now"),
    SlashCommand("agents", "", "agents that can be started, and those that run", is_anytime=True),
    SlashCommand("tasks", "", "what runs in the background", is_anytime=True),
    SlashCommand("kill", "TASK", "end a background task", is_anytime=True),
    SlashCommand("expand", "[N]", "show the output that was folded last, or N before", is_anytime=True),
    SlashCommand("mode", "[MODE]", "ask, accept-edits, plan, read-only or bypass", is_anytime=True),
    SlashCommand("model", "[NAME]", "show or change the model"),
    SlashCommand("resume", "[NUMBER]", "list sessions, or go on with one"),
    SlashCommand("clear", "", "begin a new session; this one can be resumed"),
    SlashCommand("quit", "", "leave; so do Ctrl-D and Ctrl-C twice", is_anytime=True),
)

_BY_NAME = {slash.name: slash for slash in SLASH_COMMANDS}


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """A command as it was typed."""

    slash: SlashCommand
    argument: str


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """A line that begins like a command and is none."""

    text: str


def parse_slash_command(line: str) -> TypedCommand | UnknownCommand | None:
    """The command that a line asks for; None when it is something to say to the agent.

    A path such as `/etc/hosts` is no command: a command's name holds no further slash.
    """
    if not line.startswith(COMMAND_PREFIX):
        return None
    name, _, argument = line[1:].partition(" ")
    if COMMAND_PREFIX in name or not name:
        return None
    slash = _BY_NAME.get(name.strip().lower())
    if slash is not None:
        return TypedCommand(slash, argument.strip())
    near = get_close_matches(name.lower(), _BY_NAME, 1)
    hint = f"did you mean /{near[0]}?" if near else "/help lists the commands"
    return UnknownCommand(f"there is no command /{name}; {hint}")


def render_chat_help() -> tuple[str, ...]:
    """One line a command, then the keys."""
    width = max(len(_usage(slash)) for slash in SLASH_COMMANDS)
    lines = [f"{_usage(slash):{width}}  {slash.help}" for slash in SLASH_COMMANDS]
    return (*lines, "", *render_keys(width))


def render_keys(width: int = 20) -> tuple[str, ...]:
    """One line a key."""
    return tuple(f"{keys:{width}}  {what}" for keys, what in _KEYS)


_KEYS = (
    ("Enter", "send; in the middle of a turn it is read at the next round"),
    ("Alt-Enter, \\ Enter", "a new line"),
    ("Esc, Ctrl-C", "interrupt the turn; Ctrl-C twice within 2 s: leave"),
    ("Shift-Tab", "the next permission mode"),
    ("Ctrl-R", "search what you typed before"),
    ("Ctrl-O", "unfold pasted text, or the last output"),
    ("/  @", "a command, a file: a menu opens as you type"),
    ("!command", "run it and show the model; !!command only runs it"),
    ("#text", "remember it"),
    ("?", "in an empty input: show this"),
    ("@photo.png", "show the model an image; so does its path alone"),
)


def _usage(slash: SlashCommand) -> str:
    return f"/{slash.name} {slash.argument_hint}".rstrip()


# Background commands and agents, found through the tools that start them.
RUNNING_STATE = "running"


def find_background_tasks(agent: Agent) -> BackgroundTasks | None:
    """The background commands; None where the agent has no tool for them."""
    return next((tool.tasks for tool in agent.toolbox.tools if isinstance(tool, TaskOutputTool)), None)


def find_agent_tool(agent: Agent) -> AgentTool | None:
    return next((tool for tool in agent.toolbox.tools if isinstance(tool, AgentTool)), None)


def count_running(agent: Agent) -> int:
    tasks, agents = find_background_tasks(agent), find_agent_tool(agent)
    states = [task.state for task in tasks.all()] if tasks else []
    states += [row.state for row in agents.running()] if agents else []
    return states.count(RUNNING_STATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServices:
    """What a chat is given by whoever opens it."""

    open_agent: Callable[[str | None], Awaitable[Agent]]
    """An agent in a session of that id; None: in a new one."""
    sessions: Callable[[], Sequence[SessionCard]]
    """A person's own, the one written to last first."""
    earlier_spend: Callable[[str], Sequence[SpendSummary]]
    """What a session was billed before it was opened here."""
    describe_context: Callable[[str], Awaitable[str]]
    """What fills the window of a session, by its id."""
    memories: Callable[[str], Sequence[str]]
    """What `sevenfold memory` says to these words, line by line."""
    key_variable: str = ""
    """The environment variable that the provider's key came from; empty where there is none."""


class ChatHandle(Protocol):
    """A chat as its commands see it."""

    agent: Agent
    services: ChatServices
    view: TurnView

    @property
    def spent(self) -> Sequence[SpendSummary]:
        """What the session was billed, here and before."""
        ...

    @property
    def is_busy(self) -> bool: ...

    def say(self, text: str, tone: TextTone = "plain") -> None: ...

    def put(self, text: str) -> None:
        """Print what is painted already."""
        ...

    def refresh_status(self) -> None:
        """The model or the mode may have changed."""
        ...

    async def switch_session(self, session: str | None) -> None:
        """Go on in another session, or in a new one."""
        ...

    def leave(self) -> None: ...


SlashHandler: TypeAlias = Callable[[ChatHandle, str], Awaitable[None]]


async def handle_slash_command(chat: ChatHandle, asked: TypedCommand) -> None:
    """Carry a command out. What goes wrong is said, and the chat goes on."""
    if chat.is_busy and not asked.slash.is_anytime:
        chat.say(f"/{asked.slash.name} waits for the end of the turn; Ctrl-C interrupts it", "warning")
        return
    try:
        await _DOING[asked.slash.name](chat, asked.argument)
    except SevenfoldError as error:
        chat.say(f"error: {error}", "error")
    except asyncio.CancelledError:
        chat.say(f"/{asked.slash.name} was interrupted", "warning")
        raise
    except Exception as bug:
        chat.say(f"unexpected {type(bug).__name__}: {bug}. This is a bug: please report it", "error")


async def _help(chat: ChatHandle, _: str) -> None:
    for line in render_chat_help():
        chat.say(line)


async def _compact(chat: ChatHandle, focus: str) -> None:
    done = await chat.agent.compact(focus)
    chat.say(f"compacted: {done.tokens_before:,} tokens were in view, {done.tokens_after:,} are now", "good")


async def _context(chat: ChatHandle, _: str) -> None:
    try:
        chat.put(await chat.services.describe_context(chat.agent.session.id))
    except FileMissing:
        # A session has a file from its first words on.
        chat.say("nothing was said yet: the window is empty", "faint")


async def _cost(chat: ChatHandle, _: str) -> None:
    spent, unbilled = chat.spent, chat.agent.session.unbilled_requests
    if unbilled:
        chat.say(f"{unbilled} requests without a bill: what they cost is in no sum below", "warning")
    if not spent:
        chat.say("no model was asked yet", "faint")
        return
    for one in spent:
        chat.say(
            f"{one.who:12} {one.calls:>5} calls  {one.hit_rate:6.1%} of the prompt from the cache  "
            f"{_usd(one.cost)}"
        )
    plain = _usd(sum_costs(one.cost_without_caching for one in spent))
    chat.say(f"in all {_usd(sum_costs(one.cost for one in spent))}; without caching {plain}", "strong")


async def _memory(chat: ChatHandle, words: str) -> None:
    for line in await asyncio.to_thread(lambda: chat.services.memories(words)):
        chat.say(line)


async def _dream(chat: ChatHandle, _: str) -> None:
    if chat.agent.dream is None:
        chat.say("this agent has no memories of its own to dream of", "faint")
        return
    dreamt = await chat.agent.dream(lambda step: chat.say(step, "faint"))
    for line in dreamt.diff.splitlines():
        chat.say(line, "good" if line.startswith("+") else "faint")
    for line in dreamt.record.lines():
        chat.say(line, "strong")


async def _agents(chat: ChatHandle, _: str) -> None:
    agents = find_agent_tool(chat.agent)
    for line in agents.listing() if agents else ():
        chat.say(line)
    for row in agents.running() if agents else ():
        chat.say(f"{row.name}: {row.state}, {row.activity}", "accent")
    if agents is None:
        chat.say("this session has no tool for starting agents", "faint")


async def _tasks(chat: ChatHandle, _: str) -> None:
    tasks, agents = find_background_tasks(chat.agent), find_agent_tool(chat.agent)
    lines = [task.line for task in tasks.all()] if tasks else []
    lines += [f"{row.name}: {row.state}, {row.activity}" for row in agents.running()] if agents else []
    for line in lines or ("nothing runs in the background",):
        chat.say(line)


async def _kill(chat: ChatHandle, name: str) -> None:
    tasks, agents = find_background_tasks(chat.agent), find_agent_tool(chat.agent)
    if tasks is not None and any(task.id == name for task in tasks.all()):
        await tasks.stop(name)
    elif agents is not None and any(row.name == name for row in agents.running()):
        await agents.stop(name)
    else:
        chat.say(f"no task {name!r} runs in the background; /tasks lists them", "warning")
        return
    chat.say(f"{name} was ended", "good")


async def _expand(chat: ChatHandle, argument: str) -> None:
    back = int(argument) if argument.isascii() and argument.isdigit() else 1
    if not chat.view.unfold(back):
        chat.say(f"{len(chat.view.folds)} outputs are folded; /expand 1 is the last of them", "faint")


async def _mode(chat: ChatHandle, argument: str) -> None:
    if argument in PERMISSION_MODES:
        chat.agent.mode = argument
        chat.refresh_status()
    elif argument:
        chat.say(f"there is no mode {argument!r}; expected one of {', '.join(PERMISSION_MODES)}", "warning")
        return
    chat.say(f"the mode is {chat.agent.mode}")


async def _model(chat: ChatHandle, name: str) -> None:
    if name:
        before, model = chat.agent.frame.model, chat.agent.use_model(name)
        chat.refresh_status()
        if not model.is_known:
            chat.say(
                f"no table knows {name}: should the provider not know it either, /model {before} goes back",
                "warning",
            )
    chat.say(f"the model is {chat.agent.frame.model}")


async def _resume(chat: ChatHandle, session: str) -> None:
    cards = await asyncio.to_thread(chat.services.sessions)
    if not session:
        for line in render_session_cards(cards, datetime.now(UTC), chat.agent.session.id):
            chat.say(line)
        chat.say("/resume NUMBER goes on with one; so does /resume with how its id begins", "faint")
        return
    found = find_session_card(cards, session)
    if isinstance(found, str):
        chat.say(f"{found}; /resume lists them", "warning")
        return
    await chat.switch_session(found.entry.id)


async def _clear(chat: ChatHandle, _: str) -> None:
    old = chat.agent.session.id
    await chat.switch_session(None)
    chat.say(f"a new session; /resume {old[:12]} goes back", "good")


async def _quit(chat: ChatHandle, _: str) -> None:
    chat.leave()


_DOING: dict[str, SlashHandler] = {
    "help": _help,
    "compact": _compact,
    "context": _context,
    "cost": _cost,
    "memory": _memory,
    "dream": _dream,
    "agents": _agents,
    "tasks": _tasks,
    "kill": _kill,
    "expand": _expand,
    "mode": _mode,
    "model": _model,
    "resume": _resume,
    "clear": _clear,
    "quit": _quit,
}


def _usd(cost: Cost | None) -> str:
    return "unpriced" if cost is None else f"${cost.total.quantize(Decimal('0.0001')):,}"
