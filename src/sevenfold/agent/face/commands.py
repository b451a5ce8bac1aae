"""The slash commands: what there is, and what a typed line asks for."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

SLASH = "/"


@dataclass(frozen=True, slots=True)
class Slash:
    name: str
    takes: str
    """How its argument is called in help; empty when it takes none."""
    help: str
    is_anytime: bool = False
    """It may run beside a turn."""


SLASHES: tuple[Slash, ...] = (
    Slash("help", "", "show the commands and keys", is_anytime=True),
    Slash("compact", "[focus]", "cut the context down to a summary now; focus: what matters"),
    Slash("context", "", "what fills the window, and the next compaction", is_anytime=True),
    Slash("cost", "", "what this session cost so far, by whose calls", is_anytime=True),
    Slash("memory", "[ACTION]", "what is remembered; show, review, log, undo …", is_anytime=True),
    Slash("dream", "", "merge and tidy the memories now"),
    Slash("agents", "", "agents that can be started, and those that run", is_anytime=True),
    Slash("tasks", "", "what runs in the background", is_anytime=True),
    Slash("kill", "TASK", "end a background task", is_anytime=True),
    Slash("expand", "[N]", "show the output that was folded last, or N before", is_anytime=True),
    Slash("mode", "[MODE]", "ask, accept-edits, plan, read-only or bypass", is_anytime=True),
    Slash("model", "[NAME]", "show or change the model"),
    Slash("resume", "[ID]", "list sessions, or go on with one"),
    Slash("clear", "", "begin a new session; this one can be resumed"),
    Slash("quit", "", "leave; so do Ctrl-D and Ctrl-C twice", is_anytime=True),
)

_BY_NAME = {slash.name: slash for slash in SLASHES}


@dataclass(frozen=True, slots=True)
class Asked:
    """A command as it was typed."""

    slash: Slash
    argument: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A line that begins like a command and is none."""

    text: str


def read_command(line: str) -> Asked | Unknown | None:
    """The command that a line asks for; None when it is something to say to the agent.

    A path such as `/etc/hosts` is no command: a command's name holds no further slash.
    """
    if not line.startswith(SLASH):
        return None
    name, _, argument = line[1:].partition(" ")
    if SLASH in name or not name:
        return None
    slash = _BY_NAME.get(name.strip().lower())
    if slash is not None:
        return Asked(slash, argument.strip())
    near = get_close_matches(name.lower(), _BY_NAME, 1)
    hint = f"did you mean /{near[0]}?" if near else "/help lists the commands"
    return Unknown(f"there is no command /{name}; {hint}")


def render_help() -> tuple[str, ...]:
    """One line a command, then the keys."""
    width = max(len(_usage(slash)) for slash in SLASHES)
    lines = [f"{_usage(slash):{width}}  {slash.help}" for slash in SLASHES]
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


def _usage(slash: Slash) -> str:
    return f"/{slash.name} {slash.takes}".rstrip()
