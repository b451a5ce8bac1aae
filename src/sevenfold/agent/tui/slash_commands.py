"""The slash commands: the table of commands, parsing, and help."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

COMMAND_PREFIX = "/"


@dataclass(frozen=True, slots=True)
class SlashCommand:
    name: str
    takes: str
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
    SlashCommand("resume", "[ID]", "list sessions, or go on with one"),
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
    return (*lines, "", *(f"{keys:{width}}  {what}" for keys, what in _KEYS))


_KEYS = (
    ("Enter", "send; in the middle of a turn it is read at the next round"),
    ("Alt-Enter, \\ Enter", "a new line"),
    ("Ctrl-C", "interrupt the turn; twice within 2 s: leave"),
    ("Ctrl-R", "search what you typed before"),
    ("Ctrl-O", "unfold the last output"),
    ("Tab", "complete a command or an @path"),
    ("@photo.png", "show the model an image; so does its path alone"),
)


def _usage(slash: SlashCommand) -> str:
    return f"/{slash.name} {slash.takes}".rstrip()
