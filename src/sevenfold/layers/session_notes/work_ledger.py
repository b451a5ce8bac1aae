"""The worklog of a session: turns and rounds, the plan and the answers; commands and how they ended; errors
and what fixed them."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse
from sevenfold.layers.session_notes.sections import NotesEntry, render_quote
from sevenfold.layers.session_notes.tool_calls import CallOutcome, ToolAction

_ROUNDS = 40
"""Rounds that keep a line of their own; older ones are folded into their turn."""
MAX_TURNS_LISTED = 100
STEPS_EACH = 6
MAX_ANSWERS_LISTED = 40
ANSWER_CHARS = 2_400
_BRIEF_CHARS = 200
_SCANNED_CHARS = 2_000

_COMMIT = re.compile(r"^\[([\w./-]+) (?:\(root-commit\) )?([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class TurnFacts:
    number: int
    request: str
    rounds: int = 0
    kinds: Counter[str] = field(default_factory=Counter[str])
    failures: int = 0
    changed: dict[str, None] = field(default_factory=dict[str, None])

    def render_summary(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        failed = f", {self.failures} failed" if self.failures else ""
        changed = f"; changed {', '.join(list(self.changed)[:6])}" if self.changed else ""
        asked = f" “{self.request}”" if self.request else ""
        return f"- turn {self.number}{asked}: {kinds or 'talk'}{failed}{changed}"


class WorkLedger:
    """Turns and rounds. Old rounds live on in the counts of their turn."""

    __slots__ = ("_answers", "_plan", "_rounds", "_steps", "_turns", "commits", "rounds", "turns")

    def __init__(self) -> None:
        self._turns: deque[TurnFacts] = deque(maxlen=MAX_TURNS_LISTED)
        self._rounds: deque[str] = deque(maxlen=_ROUNDS)
        self._steps: list[str] = []
        self._answers: deque[str] = deque(maxlen=MAX_ANSWERS_LISTED)
        self._plan: dict[str, str] = {}
        self.commits: deque[str] = deque(maxlen=30)
        self.rounds = 0
        self.turns = 0

    def start_turn(self, request: str) -> None:
        self._end_round()
        self.turns += 1
        self._turns.append(TurnFacts(number=self.turns, request=" ".join(request[:400].split())[:80]))

    def start_round(self) -> None:
        self._end_round()
        self.rounds += 1
        self._turn().rounds += 1

    def take(self, action: ToolAction, *, failed: bool, text: str) -> None:
        """A call has ended."""
        turn = self._turn()
        turn.kinds[action.kind] += 1
        turn.failures += failed
        if action.kind in ("edit", "write") and not failed:
            for path in action.paths:
                turn.changed.setdefault(path.rsplit("/", 1)[-1])
        self._steps.append(_step(action) + (" FAILED" if failed else ""))
        if action.kind == "delegate" and not failed:
            self.answer(text[:ANSWER_CHARS])
        if "commit" in action.command:
            head = text[:_SCANNED_CHARS]
            self.commits.extend(
                f"{found[2]} on {found[1]}: {found[3][:120]}" for found in _COMMIT.finditer(head)
            )

    def answer(self, text: str) -> None:
        """A turn has ended with these words."""
        if text.strip():
            self._answers.append(text.strip())

    def plan(self, use: ToolUse) -> None:
        """The todo list as last written, or one task of it."""
        for key in ("todos", "plan", "items"):
            items = use.input.get(key)
            if isinstance(items, tuple):
                self._plan = {
                    what: _text(item, "status")
                    for item in items
                    if isinstance(item, JsonObject) and (what := _text(item, "content", "step", "subject"))
                }
        if subject := _text(use.input, "subject"):
            self._plan[subject] = "pending"
        if (task := _text(use.input, "taskId")) and (status := _text(use.input, "status")):
            names = list(self._plan)
            if task.isdigit() and 0 < int(task) <= len(names):
                self._plan[names[int(task) - 1]] = status

    def open_items(self) -> list[str]:
        return [
            f"[in_progress] {what}" if status == "in_progress" else what
            for what, status in self._plan.items()
            if status not in ("completed", "done", "deleted", "cancelled")
        ]

    def done_items(self) -> list[str]:
        return [what for what, status in self._plan.items() if status in ("completed", "done")]

    def changed(self) -> list[str]:
        """File names that the present turn has changed."""
        return list(self._turns[-1].changed) if self._turns else []

    def answer_entries(self) -> list[NotesEntry]:
        """Commits, then the answers that ended turns: the newest whole, older ones by how they begin."""
        commits = [
            NotesEntry(f"- commit {line}", weight=500 + place) for place, line in enumerate(self.commits)
        ]
        return commits + [
            NotesEntry(
                f"- {render_quote(text[:ANSWER_CHARS])}",
                brief=f"- {' '.join(text[: 2 * _BRIEF_CHARS].split())[:_BRIEF_CHARS]}",
                weight=float(place),
            )
            for place, text in enumerate(self._answers)
        ]

    def entries(self) -> list[NotesEntry]:
        """Turns first, folded; then the last rounds one by one."""
        rounds = [*self._rounds, *([self._line()] if self._steps else [])]
        turns = [
            NotesEntry(turn.render_summary(), weight=100.0 + place) for place, turn in enumerate(self._turns)
        ]
        return turns + [NotesEntry(line, weight=float(place)) for place, line in enumerate(rounds)]

    def _turn(self) -> TurnFacts:
        if not self._turns:
            self._turns.append(TurnFacts(number=self.turns, request=""))
        return self._turns[-1]

    def _end_round(self) -> None:
        if self._steps:
            self._rounds.append(self._line())
            self._steps = []

    def _line(self) -> str:
        shown = "; ".join(self._steps[:STEPS_EACH])
        more = f"; {len(self._steps) - STEPS_EACH} more" if len(self._steps) > STEPS_EACH else ""
        return f"- round {self.rounds}: {shown}{more}"


def _step(action: ToolAction) -> str:
    if action.command:
        return f"{action.tool} `{action.command.strip().split(chr(10), 1)[0][:80]}`"
    subject = action.paths[0].rsplit("/", 1)[-1] if action.paths else action.sought[:60]
    return f"{action.tool} {subject}".rstrip()


def _text(given: JsonObject, *keys: str) -> str:
    return next((value for key in keys if isinstance(value := given.get(key), str)), "")


EXACT_CHARS = 400
"""A longer command is a script typed in: its first line and its size tell which one."""
MAX_COMMANDS = 500
MAX_ERRORS = 200
MAX_OUTCOME_CHARS = 160
_RECENT = 12
"""Commands that are shown with their outcome; of the rest only the line."""


_GOES_TO = re.compile(r"^\s*cd \S+ *(?:&&|;)\s*")
_SHOWN_BY = re.compile(r"(?:\s*2>&1)?(?:\s*\|\s*(?:head|tail|grep|less|cat|rg)\b[^|;&]*)*\s*$")


@dataclass(slots=True, kw_only=True)
class CommandFacts:
    command: str
    count: int = 0
    failures: int = 0
    last: int = 0
    has_failed: bool = False
    outcome: str = ""

    def render_outcome(self) -> str:
        times = f"{self.count}×, " if self.count > 1 else ""
        ended = "failed" if self.has_failed else "ok"
        again = f" ({self.failures} failed)" if self.failures and self.count > 1 else ""
        outcome = f": {self.outcome}" if self.outcome else ""
        return f"{times}{ended}{again}{outcome}"


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
    __slots__ = ("_commands", "_open", "closed", "dropped")

    def __init__(self) -> None:
        self._commands: OrderedDict[str, CommandFacts] = OrderedDict()
        self._open: OrderedDict[str, ErrorFacts] = OrderedDict()
        self.closed: list[ErrorFacts] = []
        self.dropped = 0

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
                f"- {render_command(item.command)} → {item.render_outcome()}",
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
        facts.outcome = (outcome.error if outcome.failed else outcome.last)[:MAX_OUTCOME_CHARS]
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
