"""Session notes without a model: keeps the ten sections current from what a session's messages show.

Taking a message costs microseconds, however long the session; the same messages always give the same notes.
What has no room goes by weight: old and seldom used things are folded into counts, and the newest stay whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.text.shell_paths import find_text_paths
from sevenfold.core.tokens.portions import TextOrigin
from sevenfold.core.tokens.shape import estimate_text_tokens
from sevenfold.layers.session_notes.call_outcome import CallOutcome, find_call_outcome
from sevenfold.layers.session_notes.command_ledger import CommandLedger
from sevenfold.layers.session_notes.entries import NotesEntry, fit_entries
from sevenfold.layers.session_notes.file_ledger import (
    FileLedger,
    find_result_paths,
    render_pointer_entries,
    render_working_entries,
)
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.session_notes.request_ledger import RequestLedger
from sevenfold.layers.session_notes.sections import (
    SECTION_NAMES,
    EstimateTokens,
    SectionName,
    render_notes,
    render_quote,
)
from sevenfold.layers.session_notes.tool_actions import ToolAction, classify_call
from sevenfold.layers.session_notes.work_ledger import WorkLedger


@dataclass(frozen=True, slots=True)
class SectionRule:
    """How a section gives way when there is more to say than room."""

    share: float
    """Of the whole file, when the sections together want more than it may hold."""
    folded: str = ""
    """What its last line calls the entries that had no room."""
    brief_share: float = 1.0
    """Of its room, for entries in brief before any is whole. Of paths, pointers to many beat a story of one;
    of a person's words, the newest whole beat the beginnings of all."""


_RULES: Mapping[SectionName, SectionRule] = {
    "Title": SectionRule(0.01),
    "Current state": SectionRule(0.10),
    "Task specification": SectionRule(0.17, "earlier messages", 0.4),
    "Files and functions": SectionRule(0.17, "files met earlier"),
    "Workflow": SectionRule(0.15, "older commands", 0.6),
    "Errors and corrections": SectionRule(0.08, "older errors"),
    "Codebase and system documentation": SectionRule(0.14, "folders met earlier"),
    "Learnings": SectionRule(0.04, "earlier remarks"),
    "Key results": SectionRule(0.08, "older answers", 0.4),
    "Worklog": SectionRule(0.06, "older steps"),
}

STATE_CHARS = 1_600
HEADING_TOKENS = 12.0
OUTPUT_SCANNED_CHARS = 6_000


class StructuralNotes:
    """The notes of one session. Not for sharing between threads; `render` changes nothing."""

    __slots__ = ("_calls", "_commands", "_files", "_said", "_work", "covered", "words")

    def __init__(self) -> None:
        self._calls: dict[ToolUseId, ToolAction] = {}
        self._files = FileLedger()
        self._commands = CommandLedger()
        self._work = WorkLedger()
        self.words = RequestLedger()
        self._said = ""
        self.covered = 0
        """How many messages were taken."""

    def add(self, message: Message, origin: TextOrigin = "human", pointer: str = "") -> None:
        """The next message of the history. `pointer` is where the whole of a long user message is kept."""
        self.covered += 1
        if message.role == "assistant":
            self._add_reply(message)
            return
        for block in message.blocks:
            match block:
                case ToolResult():
                    self._add_result(block)
                case Text() if origin == "human" and message.role == "user":
                    facts = self.words.take(block.text, self.covered, pointer)
                    if facts and not facts.is_machine:
                        self._work.start_turn(block.text)
                case _:
                    pass

    def render(
        self, settings: NotesSettings, template: str = "", count: EstimateTokens = estimate_text_tokens
    ) -> str:
        """The ten sections within their limits."""
        limit = settings.section_limit_tokens - HEADING_TOKENS
        wanted = self._entries(settings, count)
        bodies: dict[SectionName, list[str]] = {
            name: _fit(name, wanted[name], limit, count) for name in SECTION_NAMES
        }
        sizes: dict[SectionName, float] = {
            name: count("\n".join(lines)) + HEADING_TOKENS for name, lines in bodies.items()
        }
        if sum(sizes.values()) > settings.limit_tokens:
            for name, bound in _shared(sizes, settings.limit_tokens).items():
                if sizes[name] > bound:
                    bodies[name] = _fit(name, wanted[name], bound - HEADING_TOKENS, count)
        return render_notes(bodies, template)

    def _add_reply(self, message: Message) -> None:
        uses = [block for block in message.blocks if isinstance(block, ToolUse)]
        said = "\n".join(block.text for block in message.blocks if isinstance(block, Text))
        self._said = said or self._said
        if not uses:
            self._work.answer(said)
            return
        self._work.start_round()
        for use in uses:
            action = classify_call(use)
            self._calls[use.id] = action
            self._files.take(action, self.covered)
            if action.kind == "plan":
                self._work.plan(use)

    def _add_result(self, result: ToolResult) -> None:
        action = self._calls.pop(result.tool_use_id, None)
        if action is None:
            return
        outcome = find_call_outcome(result)
        if outcome.said:
            self.words.take_refusal(outcome.said, self.covered)
        if outcome.failed:
            self._files.fail(action)
        else:
            self._files.mention(_shown_paths(action, outcome), self.covered)
        self._commands.take(action, outcome, self.covered)
        self._work.take(action, failed=outcome.failed, text=outcome.text)

    def _entries(self, settings: NotesSettings, count: EstimateTokens) -> dict[SectionName, list[NotesEntry]]:
        files = self._files.files()
        title = " ".join(self.words.first()[:400].split())[:120].lstrip("#~` ")
        return {
            "Title": [NotesEntry(title)] if title else [],
            "Current state": self._state_entries(),
            "Task specification": self.words.entries(settings.section_limit_tokens, count),
            "Files and functions": render_working_entries(files),
            "Workflow": self._commands.entries(),
            "Errors and corrections": self._commands.error_entries(),
            "Codebase and system documentation": render_pointer_entries(files),
            "Learnings": self.words.rule_entries(),
            "Key results": self._work.answer_entries(),
            "Worklog": self._work.entries(),
        }

    def _state_entries(self) -> list[NotesEntry]:
        """Only what is true now: the request, the last words, what is open."""
        latest = self.words.latest()
        command = self._commands.latest()
        lines = [
            ("Last request", " ".join(latest[:STATE_CHARS].split())[:400], 90.0),
            ("Last said", render_quote(self._said.strip()[:STATE_CHARS]), 70.0),
            ("Open", "; ".join(self._work.open_items()[:20]), 80.0),
            ("Done of the plan", "; ".join(self._work.done_items()[-20:]), 40.0),
            ("Changed in this turn", ", ".join(self._work.changed()[:20]), 60.0),
            ("Last command", f"`{command.command[:200]}` {command.said()}" if command else "", 50.0),
            (
                "Not mended yet",
                "; ".join(item.error[:160] for item in self._commands.open_errors()[-3:]),
                65.0,
            ),
        ]
        return [NotesEntry(f"- {name}: {text}", weight=weight) for name, text, weight in lines if text]


def _shown_paths(action: ToolAction, outcome: CallOutcome) -> tuple[str, ...]:
    """Paths that a result brought up, for a later reader to follow."""
    if action.searches:
        return tuple(find_result_paths(outcome.text))
    if action.kind in ("run", "delegate", "wait"):
        return find_text_paths(outcome.text[:OUTPUT_SCANNED_CHARS])
    return ()


def _fit(
    name: SectionName, entries: list[NotesEntry], limit_tokens: float, count: EstimateTokens
) -> list[str]:
    rule = _RULES[name]
    return fit_entries(entries, limit_tokens, count, folded=rule.folded, brief_share=rule.brief_share)


def _shared(sizes: Mapping[SectionName, float], limit_tokens: float) -> dict[SectionName, float]:
    """How much each section may take: what it needs where that is less than its share, else its part of what
    the modest ones leave."""
    bounds: dict[SectionName, float] = dict(sizes)
    greedy: set[SectionName] = set(sizes)
    while greedy:
        left = limit_tokens - sum(size for name, size in sizes.items() if name not in greedy)
        total = sum(_RULES[name].share for name in greedy)
        modest = {name for name in greedy if sizes[name] <= left * _RULES[name].share / total}
        if not modest:
            bounds.update((name, left * _RULES[name].share / total) for name in greedy)
            return bounds
        greedy -= modest
    return bounds
