"""The slash commands: the table of commands, parsing, help, and what each command does.

`ChatServices` is what the chat is given, `ChatHandle` what a handler may do with the chat.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Protocol, TypeAlias

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.tui.background_view import describe_agent_state, end_task, find_agent_tool, run_tasks
from sevenfold.agent.tui.choice_menu import Choice, ChoiceMenu, FilterMenu, choose_filtered
from sevenfold.agent.tui.custom_commands import CustomCommand, ask_command, fill_command, make_command_prompt
from sevenfold.agent.tui.inspect_commands import INSPECT_COMMANDS
from sevenfold.agent.tui.render.wrapped_text import LabelledText
from sevenfold.agent.tui.rewind_menu import run_rewind
from sevenfold.agent.tui.session_list import (
    MAX_PRICED_SESSIONS,
    PastUsage,
    SessionCard,
    find_session_card,
    list_session_choices,
)
from sevenfold.agent.tui.text_renderer import TextRenderer, TextTone
from sevenfold.agent.tui.turn_view import TurnView
from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.messages import Message
from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.session.cache.monitor import SpendSummary
from sevenfold.store.project.trust import TrustStore

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
    SlashCommand("cost", "", "what this session cost so far, by layer", is_anytime=True),
    SlashCommand("status", "", "model, session, context, cache and cost at a glance", is_anytime=True),
    SlashCommand("why", "", "explain the last cache break or cut, with its price", is_anytime=True),
    SlashCommand("layers", "", "what the layers did last, and how to undo it", is_anytime=True),
    SlashCommand("memory", "[ACTION]", "what is remembered; show, review, log, undo …", is_anytime=True),
    SlashCommand("recalled", "", "which memories came with prompts; forget one", is_anytime=True),
    SlashCommand("dream", "", "merge and tidy the memories now"),
    SlashCommand("agents", "", "agents that can be started, and those that run", is_anytime=True),
    SlashCommand("tasks", "[NAME]", "what runs in the background, and its output", is_anytime=True),
    SlashCommand("kill", "NAME", "end a background task or agent", is_anytime=True),
    SlashCommand("expand", "[N]", "show the output that was folded last, or N before", is_anytime=True),
    SlashCommand("verbose", "", "show output whole, or fold it again", is_anytime=True),
    SlashCommand("mode", "[MODE]", "choose what may be done unasked", is_anytime=True),
    SlashCommand("model", "[NAME]", "choose the model; says what a switch bills"),
    SlashCommand("permissions", "", "the mode and the rules that hold", is_anytime=True),
    SlashCommand("mcp", "", "MCP servers and their tools", is_anytime=True),
    SlashCommand("hooks", "", "commands that run at events", is_anytime=True),
    SlashCommand("skills", "", "skills that the agent can load", is_anytime=True),
    SlashCommand("init", "[focus]", "have the agent write an AGENTS.md"),
    SlashCommand("export", "[FILE]", "write the conversation to a markdown file", is_anytime=True),
    SlashCommand("rewind", "[undo]", "go back to an earlier message; Esc Esc does too"),
    SlashCommand("resume", "[NUMBER]", "list sessions, or go on with one"),
    SlashCommand("clear", "", "begin a new session; this one can be resumed"),
    SlashCommand("quit", "", "leave; so do Ctrl-D and Ctrl-C twice", is_anytime=True),
)

_BY_NAME = {slash.name: slash for slash in SLASH_COMMANDS}
BUILT_IN_NAMES = frozenset(_BY_NAME)
"""That no file can take."""


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


def list_command_help() -> tuple[LabelledText, ...]:
    """One row a command."""
    return tuple(LabelledText(_usage(slash), slash.help) for slash in SLASH_COMMANDS)


def list_line_help() -> tuple[LabelledText, ...]:
    """The same where lines are read, and keys are the terminal's own."""
    return tuple(LabelledText(keys, what) for keys, what in _LINES)


def list_key_help() -> tuple[LabelledText, ...]:
    """One row a key."""
    return tuple(LabelledText(keys, what) for keys, what in _KEYS)


_LINES = (
    ("Enter", "send; in the middle of a turn it is read at the next round"),
    ("\\ Enter", "a new line"),
    ("Ctrl-C", "interrupt the turn; twice within 2 s: leave"),
    ("Ctrl-D", "leave"),
    ("!command", "run it and show the model, once you have said yes; !!command only runs it"),
    ("#text", "remember it, once you have said yes"),
    ("@photo.png", "show the model an image; so does its path alone"),
)
_KEYS = (
    ("Enter", "send; in the middle of a turn it is read at the next round"),
    ("Alt-Enter, \\ Enter", "a new line"),
    ("Esc, Ctrl-C", "interrupt the turn; Ctrl-C twice within 2 s: leave"),
    ("Esc Esc", "between turns: go back to an earlier message"),
    ("Shift-Tab", "the next permission mode"),
    ("Ctrl-R", "what you typed before, as a list to search"),
    ("↑", "take back what waits, or what you typed before"),
    ("Ctrl-G, Ctrl-V", "edit the text in $EDITOR; paste an image"),
    ("Ctrl-B", "send the running command to the background"),
    ("Ctrl-O", "unfold pasted text, or the last output"),
    ("/  @", "a command, a file: a menu opens as you type"),
    ("!command", "run it and show the model; !!command only runs it"),
    ("#text", "remember it"),
    ("?", "in an empty input: show this"),
    ("@photo.png", "show the model an image; so does its path alone"),
)


def _usage(slash: SlashCommand) -> str:
    return f"/{slash.name} {slash.argument_hint}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServices:
    """What a chat is given by whoever opens it."""

    open_agent: Callable[[str | None], Awaitable[Agent]]
    """An agent in a session of that id; None: in a new one."""
    sessions: Callable[[], Sequence[SessionCard]]
    """A person's own, the one written to last first."""
    past_usage: Callable[[str], PastUsage]
    """What a session was billed, and left behind, before it was opened here."""
    describe_context: Callable[[str], Awaitable[str]]
    """What fills the window of a session, by its id."""
    memories: Callable[[str], Sequence[str]]
    """What `sevenfold memory` says to these words, line by line."""
    preview_session: Callable[[SessionCard], str] = lambda _: ""
    """What was said last in a session."""
    read_messages: Callable[[str], Sequence[Message]] = lambda _: ()
    """All that was ever said in a session, by its id, if it was compacted; else nothing."""
    custom_commands: Callable[[], Sequence[CustomCommand]] = lambda: ()
    """Commands of the user and the project."""
    command_helps: Callable[[], Mapping[str, str]] = dict
    """The same for the menu, with their help."""
    trust: TrustStore | None = None
    """What the person has answered about files of the repository."""
    catalog: Catalog = CATALOG
    key_variable: str = ""
    """The environment variable that the provider's key came from; empty where there is none."""
    stall: timedelta | None = None
    """How long a server's answer may bring nothing new."""


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
    def unbilled(self) -> int:
        """Requests without a bill, here and before."""
        ...

    @property
    def is_busy(self) -> bool: ...

    def say(self, text: str, tone: TextTone = "plain") -> None: ...

    def put(self, text: str) -> None:
        """Print what is painted already."""
        ...

    @property
    def has_menus(self) -> bool:
        """Whether a person can choose from a menu here."""
        ...

    def renderer(self) -> TextRenderer: ...

    def offer_input(self, text: str) -> None:
        """Put a text into the input, if that is empty."""
        ...

    def refresh_status(self) -> None:
        """The model or the mode may have changed."""
        ...

    async def switch_session(self, session: str | None) -> None:
        """Go on in another session, or in a new one."""
        ...

    def send(self, text: str, shown: str = "") -> None:
        """Say something to the agent, as if it had been typed; `shown` is what a person sees of it."""
        ...

    async def choose(self, menu: ChoiceMenu) -> int | None:
        """Have the person choose a row; None: none of them."""
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


async def handle_custom_command(chat: ChatHandle, command: CustomCommand, arguments: str) -> None:
    """Send the text of a command of the user or the project, which a person has agreed to."""
    if chat.is_busy:
        chat.say(f"/{command.name} waits for the end of the turn; Ctrl-C interrupts it", "warning")
        return

    async def confirm(question: str) -> bool:
        *text, title = question.split("\n")
        for line in text:
            chat.say(line, "faint")
        rows = [
            Choice(label="no", letter="n", is_instant=True),
            Choice(label="yes", letter="y", is_instant=True),
        ]
        return await chat.choose(ChoiceMenu(title=title, choices=rows)) == 1

    try:
        await ask_command(command, chat.services.trust, confirm)
        chat.send(make_command_prompt(command, arguments), fill_command(command, arguments))
    except SevenfoldError as error:
        chat.say(f"error: {error}", "error")


async def _help(chat: ChatHandle, _: str) -> None:
    renderer = chat.renderer()
    chat.put(renderer.rows(list_command_help()))
    chat.put("\n" + renderer.rows(list_key_help() if chat.has_menus else list_line_help()))


async def _compact(chat: ChatHandle, focus: str) -> None:
    await chat.agent.compact(focus)
    chat.say("nothing left the transcript; /expand shows the summary, /why what it cost", "faint")


async def _context(chat: ChatHandle, _: str) -> None:
    try:
        text = await chat.services.describe_context(chat.agent.session.id)
        chat.put(_DRAWING.sub("", text) if chat.renderer().is_spoken else text)
    except FileMissing:
        # A session has a file from its first words on.
        chat.say("nothing was said yet: the window is empty", "faint")


_DRAWING = re.compile(r"[█▉▊▋▌▍▎▏░]+ *| *\^")
"""Bars, and what points at them."""
_OWN_COMMAND = re.compile(r"`sevenfold (memory [^`]*)`")


def _name_chat_commands(line: str) -> str:
    """What a command of the shell says, as it is typed in a chat."""
    return _OWN_COMMAND.sub(r"/\1", line)


async def _memory(chat: ChatHandle, words: str) -> None:
    for line in await asyncio.to_thread(lambda: chat.services.memories(words)):
        chat.say(_name_chat_commands(line))


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
    agents, renderer = find_agent_tool(chat.agent), chat.renderer()
    if agents is None:
        chat.say("this session has no tool for starting agents", "faint")
        return
    kinds = (line.removeprefix("- ").partition(": ") for line in agents.listing())
    chat.put(renderer.rows(LabelledText(name, what) for name, _, what in kinds))
    running = [
        LabelledText(row.name, f"{describe_agent_state(row.state)}, {row.activity}")
        for row in agents.running()
    ]
    if running:
        chat.put("\n" + renderer.rows(running, "accent"))


async def _expand(chat: ChatHandle, argument: str) -> None:
    back = int(argument) if argument.isascii() and argument.isdigit() else 1
    if not chat.view.unfold(back):
        chat.say(f"{len(chat.view.folds)} outputs are folded; /expand 1 is the last of them", "faint")


async def _resume(chat: ChatHandle, session: str) -> None:
    cards = await asyncio.to_thread(chat.services.sessions)
    if not session:
        found = await choose_session(chat, cards)
        if found is None:
            chat.say("this session goes on", "faint")
        else:
            await chat.switch_session(found.entry.id)
        return
    found = find_session_card(cards, session)
    if isinstance(found, str):
        chat.say(f"{found}; /resume lists them", "warning")
        return
    await chat.switch_session(found.entry.id)


async def choose_session(chat: ChatHandle, cards: Sequence[SessionCard]) -> SessionCard | None:
    """Have the person choose a session from a menu."""
    if not cards:
        chat.say("no session is kept for this project", "faint")
        return None
    if not chat.has_menus:
        cards = cards[:MAX_PRICED_SESSIONS]  # more would scroll away
    now, here = datetime.now(UTC), chat.agent.session.id
    rows = list_session_choices(cards, now, here, chat.renderer())

    def preview(at: int) -> str:
        row, end = rows[at], chat.services.preview_session(cards[at])
        is_whole = all(part in row.label for part in row.remark.split("  "))
        return end if is_whole else "\n".join(part for part in (row.remark, end) if part)

    menu = FilterMenu(title="go on with a session", choices=rows, preview=preview)
    at = await choose_filtered(chat, menu)
    return None if at is None else cards[at]


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
    "memory": _memory,
    "dream": _dream,
    "agents": _agents,
    "tasks": run_tasks,
    "kill": end_task,
    "expand": _expand,
    "rewind": run_rewind,
    "resume": _resume,
    "clear": _clear,
    "quit": _quit,
    **INSPECT_COMMANDS,
}
