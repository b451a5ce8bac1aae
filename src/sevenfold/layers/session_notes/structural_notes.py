"""Session notes without a model: keeps the ten sections current from what the messages of a session show.

Taking a message costs microseconds, however long the session is; the same messages always give the same
notes. What does not fit goes by weight: old and rarely used things become counts, and the newest stay whole.
`RequestLedger` keeps the user's requests word for word, and the sentences that set a rule.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.text.globs import find_text_paths
from sevenfold.core.text.safe_text import REMINDER_TAG
from sevenfold.core.tokens.estimation import estimate_text_tokens
from sevenfold.core.tokens.portions import TextOrigin
from sevenfold.layers.session_notes.file_ledger import (
    FileLedger,
    find_result_paths,
    render_pointer_entries,
    render_working_entries,
)
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.session_notes.sections import (
    MAX_CONSIDERED,
    SECTION_NAMES,
    EstimateTokens,
    NotesEntry,
    SectionName,
    fit_entries,
    render_code_block,
    render_notes,
    render_quote,
)
from sevenfold.layers.session_notes.tool_calls import (
    CallOutcome,
    ToolAction,
    classify_call,
    find_call_outcome,
)
from sevenfold.layers.session_notes.work_ledger import CommandLedger, WorkLedger

LONG_CHARS = 40_000
"""Longer is over any limit on tokens: it is not weighed, and only its beginning is kept."""
PREVIEW_CHARS = 1_200
_BRIEF_CHARS = 160
RULE_CHARS = 260
MAX_RULES = 60
MAX_REQUESTS = 2_000

_RULE = re.compile(
    r"\b(?:don'?t|do not|never|always|instead of|not that|stop|should(?:n'?t| not)|must(?:n'?t| not)?|"
    r"make sure|prefer|please use|wrong|actually|rather than|no need|remember|from now on|avoid)\b|^no\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]?")
_MACHINE = re.compile(
    r"\s*(?:<(?:command-|local-command-|task-notification|system-reminder|bash-|environment_context|"
    r"user_instructions|collaboration_mode)|\[Request interrupted|Caveat: |This session is being continued|"
    r"# AGENTS\.md)"
)


def _is_injected(block: Text) -> bool:
    """Whether the engine, a hook or another harness put it into the user's message."""
    return block.text.lstrip().startswith(f"<{REMINDER_TAG}>")


@dataclass(slots=True)
class UserRequestFacts:
    text: str
    at: int
    count: int = 1
    pointer: str = ""
    """Where the whole of a long one is kept."""

    @property
    def is_machine(self) -> bool:
        """Written by a program on the person's side: kept, and never taken for the task."""
        return bool(_MACHINE.match(self.text))


class RequestLedger:
    """User messages in order. One that comes again word for word is kept once, and counted."""

    __slots__ = ("_rules", "dropped", "requests")

    def __init__(self) -> None:
        self.requests: OrderedDict[str, UserRequestFacts] = OrderedDict()
        self._rules: OrderedDict[str, None] = OrderedDict()
        self.dropped = 0

    def take(self, text: str, at: int, pointer: str = "") -> UserRequestFacts | None:
        """What was said, as it is kept; None where nothing was."""
        if not text.strip():
            return None
        known = self.requests.pop(text, None)
        facts = known or UserRequestFacts(text, at)
        facts.at = at
        facts.count += known is not None
        facts.pointer = pointer or facts.pointer
        self.requests[text] = facts
        if len(self.requests) > MAX_REQUESTS:
            self.requests.popitem(last=False)
            self.dropped += 1
        if not facts.is_machine:
            self._learn(text)
        return facts

    def take_refusal(self, said: str, at: int) -> None:
        """What a person said on refusing a call is their word like any other, and always a rule."""
        self.take(said, at)
        self._rule(said)

    def long_requests(self, limit_tokens: float, count: EstimateTokens) -> list[UserRequestFacts]:
        """Those too long to be kept whole that no file holds yet. No token is shorter than a character."""
        return [
            item
            for item in self.requests.values()
            if not item.pointer and len(item.text) > limit_tokens and _is_long(item.text, limit_tokens, count)
        ]

    def first(self) -> str:
        return next((item.text for item in self.requests.values() if not item.is_machine), "")

    def latest(self) -> str:
        return next((item.text for item in reversed(self.requests.values()) if not item.is_machine), "")

    def rule_entries(self) -> list[NotesEntry]:
        size = len(self._rules)
        return [NotesEntry(f"- {rule}", weight=place / size) for place, rule in enumerate(self._rules)]

    def entries(self, limit_tokens: float, count: EstimateTokens) -> list[NotesEntry]:
        """Requests word for word, the newest weighing most; a very long one by how it begins."""
        size = len(self.requests)
        return [
            NotesEntry(
                # No section has room for more than the newest; weighing the rest would cost time for nothing.
                _whole(item, place + 1, limit_tokens, count)
                if size - place <= MAX_CONSIDERED
                else _brief(item, place + 1),
                brief=_brief(item, place + 1),
                weight=place + (0 if item.is_machine else size),
            )
            for place, item in enumerate(self.requests.values())
        ]

    def _learn(self, text: str) -> None:
        for sentence in _SENTENCE.findall(text[:4_000]):
            if len(sentence) <= RULE_CHARS and _RULE.search(sentence):
                self._rule(sentence)

    def _rule(self, sentence: str) -> None:
        rule = " ".join(sentence.split())[:RULE_CHARS]
        self._rules.pop(rule, None)
        if len(rule) > 8:
            self._rules[rule] = None
        if len(self._rules) > MAX_RULES:
            self._rules.popitem(last=False)


def _whole(item: UserRequestFacts, number: int, limit_tokens: float, count: EstimateTokens) -> str:
    again = f"(said {item.count}×) " if item.count > 1 else ""
    text = item.text
    if _is_long(text, limit_tokens, count):
        where = f"; the whole is in {item.pointer}" if item.pointer else ""
        shown = render_code_block(text[:PREVIEW_CHARS])
        return f"{number}. {again}begins so, of {len(text):,} characters{where}:\n{shown}"
    if "\n" in text or text.startswith("#"):
        return f"{number}. {again}\n{render_code_block(text)}"
    return f"{number}. {again}{text}"


def _is_long(text: str, limit_tokens: float, count: EstimateTokens) -> bool:
    return len(text) > LONG_CHARS or count(text) > limit_tokens


def _brief(item: UserRequestFacts, number: int) -> str:
    line = " ".join(item.text[: 2 * _BRIEF_CHARS].split())
    if len(line) <= _BRIEF_CHARS and "\n" not in item.text:
        return f"{number}. {item.text}"
    where = f" ({item.pointer})" if item.pointer else ""
    return f"{number}. {line[:_BRIEF_CHARS]}…{where}"


@dataclass(frozen=True, slots=True)
class SectionRule:
    """How a section is shortened when not everything fits."""

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
                case Text() if origin == "human" and message.role == "user" and not _is_injected(block):
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
            (
                "Last command",
                f"`{command.command[:200]}` {command.render_outcome()}" if command else "",
                50.0,
            ),
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
