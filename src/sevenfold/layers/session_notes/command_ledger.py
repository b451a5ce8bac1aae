"""Commands with how they ended, and errors with what mended them."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field

from sevenfold.layers.session_notes.call_outcome import CallOutcome
from sevenfold.layers.session_notes.entries import NotesEntry
from sevenfold.layers.session_notes.tool_actions import ToolAction

EXACT_CHARS = 400
"""A longer command is a script typed in: its first line and its size tell which one."""
MAX_COMMANDS = 500
MAX_ERRORS = 200
MAX_OUTCOME_CHARS = 160
_RECENT = 12
"""Commands that are told with how they ended; of the rest the line alone."""


_GOES_TO = re.compile(r"^\s*cd \S+ *(?:&&|;)\s*")
_SHOWN_BY = re.compile(r"(?:\s*2>&1)?(?:\s*\|\s*(?:head|tail|grep|less|cat|rg)\b[^|;&]*)*\s*$")


@dataclass(slots=True, kw_only=True)
class CommandFacts:
    command: str
    count: int = 0
    failures: int = 0
    last: int = 0
    has_failed: bool = False
    told: str = ""

    def said(self) -> str:
        times = f"{self.count}×, " if self.count > 1 else ""
        ended = "failed" if self.has_failed else "ok"
        again = f" ({self.failures} failed)" if self.failures and self.count > 1 else ""
        told = f": {self.told}" if self.told else ""
        return f"{times}{ended}{again}{told}"


@dataclass(slots=True, kw_only=True)
class ErrorFacts:
    tool: str
    subject: str
    error: str
    at: int
    count: int = 1
    steps: list[str] = field(default_factory=list[str])
    """What was changed since, while it was still open."""
    fix: str | None = None


class CommandLedger:
    __slots__ = ("_commands", "_open", "closed", "dropped", "errors_dropped")

    def __init__(self) -> None:
        self._commands: OrderedDict[str, CommandFacts] = OrderedDict()
        self._open: OrderedDict[str, ErrorFacts] = OrderedDict()
        self.closed: list[ErrorFacts] = []
        self.dropped = 0
        self.errors_dropped = 0

    def take(self, action: ToolAction, outcome: CallOutcome, at: int) -> None:
        """A call has ended."""
        if action.command:
            self._count(action, outcome, at)
        if outcome.failed:
            self._fail(action, outcome, at)
        else:
            self._succeed(action)

    def open_errors(self) -> list[ErrorFacts]:
        return list(self._open.values())

    def latest(self) -> CommandFacts | None:
        return next(reversed(self._commands.values()), None)

    def entries(self) -> list[NotesEntry]:
        """Newest last; those run often or lately weigh most."""
        facts = list(self._commands.values())
        size = len(facts)
        return [
            NotesEntry(
                f"- {render_command(item.command)} → {item.said()}",
                brief=f"- {render_command(item.command)}",
                weight=min(30, 6 * item.count) + (60 if size - place <= _RECENT else 0) + place / size,
            )
            for place, item in enumerate(facts)
        ]

    def error_entries(self) -> list[NotesEntry]:
        """Open ones weigh most, then the newest."""
        mended = [
            NotesEntry(f"- {_about(item)}: {item.error} → {item.fix}", weight=float(item.at))
            for item in self.closed
        ]
        still = [
            NotesEntry(f"- OPEN {_about(item)}{_again(item)}: {item.error}", weight=1e9 + item.at)
            for item in self._open.values()
        ]
        return mended + still

    def _count(self, action: ToolAction, outcome: CallOutcome, at: int) -> None:
        facts = self._commands.pop(action.command, None) or CommandFacts(command=action.command)
        facts.count += 1
        facts.failures += outcome.failed
        facts.last, facts.has_failed = at, outcome.failed
        facts.told = (outcome.error if outcome.failed else outcome.last)[:MAX_OUTCOME_CHARS]
        self._commands[action.command] = facts
        if len(self._commands) > MAX_COMMANDS:
            self._commands.popitem(last=False)
            self.dropped += 1

    def _fail(self, action: ToolAction, outcome: CallOutcome, at: int) -> None:
        key = _key(action)
        known = self._open.pop(key, None)
        facts = ErrorFacts(tool=action.tool, subject=action.subject, error=outcome.error, at=at)
        if known:
            facts.count = known.count + 1
        self._open[key] = facts
        if len(self._open) > MAX_ERRORS:
            self._close(self._open.popitem(last=False)[1], "not tried again")

    def _succeed(self, action: ToolAction) -> None:
        facts = self._open.pop(_key(action), None) if self._open else None
        if facts:
            steps = ", ".join(dict.fromkeys(facts.steps))
            self._close(facts, f"went through after {steps}" if steps else "went through when tried again")
        if action.kind in ("edit", "write"):
            for waiting in self._open.values():
                if len(waiting.steps) < 6:
                    waiting.steps.append(f"{action.tool} of {_last_part(action.subject)}")

    def _close(self, facts: ErrorFacts, fix: str) -> None:
        facts.fix = fix
        self.closed.append(facts)
        if len(self.closed) > MAX_ERRORS:
            del self.closed[0]
            self.errors_dropped += 1


def render_command(command: str) -> str:
    """The exact line where it is one line of a bearable length; else how it begins, and how long it is."""
    lines = command.strip().splitlines() or [""]
    if len(command) <= EXACT_CHARS and len(lines) <= 3:
        return f"`{' ⏎ '.join(line.strip() for line in lines)}`"
    more = f"{len(lines) - 1:,} more lines" if len(lines) > 1 else f"{len(command):,} characters"
    return f"`{lines[0][:EXACT_CHARS]}` … ({more})"


def _key(action: ToolAction) -> str:
    """The same command, however its output is shown, or a call of the same kind on the same file."""
    if not action.command:
        return f"{action.kind} {action.subject}"
    return _SHOWN_BY.sub("", _GOES_TO.sub("", action.command)).strip()


def _about(item: ErrorFacts) -> str:
    return f"{item.tool} {render_command(item.subject)}" if item.subject else item.tool


def _again(item: ErrorFacts) -> str:
    return f" ({item.count}×)" if item.count > 1 else ""


def _last_part(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1][:60]
