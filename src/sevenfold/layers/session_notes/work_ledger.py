"""The worklog, the plan and the answers: what was done in what order, what is open, what came out."""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass, field

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse
from sevenfold.layers.session_notes.entries import NotesEntry
from sevenfold.layers.session_notes.sections import render_quote
from sevenfold.layers.session_notes.tool_actions import ToolAction

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

    def said(self) -> str:
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
        turns = [NotesEntry(turn.said(), weight=100.0 + place) for place, turn in enumerate(self._turns)]
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
