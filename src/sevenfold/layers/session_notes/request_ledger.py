"""What people said: their requests word for word, and the sentences that set a rule."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass

from sevenfold.layers.session_notes.entries import MAX_CONSIDERED, NotesEntry
from sevenfold.layers.session_notes.sections import EstimateTokens, render_code_block

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
