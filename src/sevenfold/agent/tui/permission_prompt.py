"""Asking a person whether a tool may run: what is shown, and what an answer means."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable
from dataclasses import dataclass

from sevenfold.agent.permissions.command_patterns import preview_pattern
from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.permissions.rules import PermissionRule
from sevenfold.agent.tui.choice_menu import Choice, ChoiceMenu
from sevenfold.agent.tui.render.wrapped_text import LabelledText
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.core.messages import ToolUse
from sevenfold.store.project.settings_files import LOCAL_SETTINGS_FILE

YES_WORDS = frozenset({"y", "yes"})
NO_WORDS = frozenset({"n", "no"})
SESSION_WORDS = frozenset({"s", "session"})
ALWAYS_WORDS = frozenset({"a", "always"})
PATTERN_WORDS = frozenset({"p", "pattern"})
EDITS_WORDS = frozenset({"e", "edits"})
READ_ONLY_WORDS = frozenset({"r", "read-only"})
READ_ONLY_RESPONSE = PermissionResponse(
    False, words="run it with access read, where it can change nothing and has no network"
)

REQUEST_PREVIEW_LINES = 30
"""Of a change or a command, before it is allowed."""


def parse_permission_answer(line: str, question: PermissionRequest) -> PermissionResponse | None:
    """What a typed answer means; None when it says nothing, and the question stands.

    Whatever is no answer we know is a no in the person's own words: a yes must be meant.
    """
    said = line.strip()
    word = said.lower()
    if not said:
        return None
    if word in YES_WORDS:
        return PermissionResponse(True)
    if word in READ_ONLY_WORDS and question.need.kind == "run":
        return READ_ONLY_RESPONSE
    if word in PATTERN_WORDS and question.wider_rule is not None:
        return PermissionResponse(True, "pattern")
    if word in EDITS_WORDS and question.may_accept_edits:
        return PermissionResponse(True, "edits")
    if word in SESSION_WORDS | ALWAYS_WORDS:
        if question.rule is None:
            return PermissionResponse(True)
        return PermissionResponse(True, "always" if word in ALWAYS_WORDS else "session")
    return PermissionResponse(False) if word in NO_WORDS else PermissionResponse(False, words=said)


@dataclass(frozen=True, slots=True)
class PermissionChoice:
    """One answer that is offered; without a response, a text is typed instead."""

    row: Choice
    response: PermissionResponse | None


def list_permission_choices(question: PermissionRequest) -> tuple[PermissionChoice, ...]:
    """The answers to a question. Only `y` and `n` answer at once: other letters may begin a sentence."""
    found = [_offer("y", "yes", PermissionResponse(True), is_instant=True)]
    if question.may_accept_edits:
        remark = "switches to the mode accept-edits; Shift-Tab goes on to the next mode"
        found.append(
            _offer("e", "yes, and accept edits from now on", PermissionResponse(True, "edits"), remark=remark)
        )
    if question.rule is not None:
        rule = f": {question.rule}"
        if len(rule) > MAX_RULE_CHARS:
            rule = f", for {_THIS.get(question.need.kind, 'exactly this')}"
        found += [
            _offer(
                "s",
                f"yes, in this session{rule}",
                PermissionResponse(True, "session"),
                remark="forgotten when you leave",
            ),
            _offer("a", f"always{rule}", PermissionResponse(True, "always"), remark=_KEPT),
        ]
    if question.wider_rule is not None:
        remark = _preview(question.wider_rule)
        found.append(
            _offer("p", f"always: {question.wider_rule}", PermissionResponse(True, "pattern"), remark=remark)
        )
    if question.need.kind == "run" and question.need.profile != "read-only":
        remark = "the sandbox holds it: it can change nothing and has no network, so nobody is asked"
        label = "no, but it may run read-only and offline"
        found.append(_offer("r", label, READ_ONLY_RESPONSE, remark=remark))
    found.append(_offer("n", "no", PermissionResponse(False), is_instant=True))
    return (*found, PermissionChoice(Choice(label="no, and say why (Tab, or just type)"), None))


def _offer(
    letter: str, label: str, response: PermissionResponse, *, is_instant: bool = False, remark: str = ""
) -> PermissionChoice:
    return PermissionChoice(
        Choice(label=label, letter=letter, is_instant=is_instant, remark=remark), response
    )


_KEPT = f"kept in {LOCAL_SETTINGS_FILE}, which git does not list"
MAX_RULE_CHARS = 60
"""Of a rule for one call, which stands above the answers in full."""
_THIS = {"run": "exactly this command", "write": "exactly this file"}


def _preview(rule: PermissionRule) -> str:
    shown = preview_pattern(rule.pattern)
    return f"{_KEPT}; matches {shown.matched}; still asks for {shown.asked}"


QUESTION_TITLE = "allow it?"


def render_permission_question(question: PermissionRequest, renderer: TextRenderer) -> str:
    """The answers, where a line is one."""
    offers = [offer.row for offer in list_permission_choices(question) if offer.response is not None]
    rows = [
        LabelledText(row.letter, row.label + (f" ({row.remark})" if row.remark else "")) for row in offers
    ]
    hint = renderer.line("a letter, or say what to do instead", "faint")
    return "\n".join([renderer.line(QUESTION_TITLE, "warning"), renderer.rows(rows), hint])


@dataclass(frozen=True, slots=True)
class HiddenRequest:
    """What has no room in a question."""

    title: str
    text: str
    is_diff: bool


def find_hidden_request(question: PermissionRequest) -> HiddenRequest | None:
    """The whole of a change or a command of which the question shows a part."""
    need, change = question.need, question.need.diff or _change(question.use)
    text = change or need.command
    if text.count("\n") <= REQUEST_PREVIEW_LINES:
        return None
    return HiddenRequest(" ".join((need.said or question.use.name).split()), text, bool(change))


def render_permission_request(
    question: PermissionRequest, renderer: TextRenderer, root: str = "", unfolding: str = ""
) -> str:
    """What is asked for, and why it is asked: printed once, above. Paths begin at `root`; `unfolding` says
    how to see what has no room."""
    use, need = question.use, question.need
    title = need.said or use.name
    title = title.replace(f"{root}/", "") if root and need.kind != "run" else title
    parts = [renderer.line(f"{use.name} asks: {title}" if use.name not in title else title, "warning")]
    change = need.diff or _change(use)
    if need.command and need.command not in title:
        parts.append(renderer.line(_beginning(need.command, unfolding), indent=2))
    if change:
        parts.append(renderer.diff(change, REQUEST_PREVIEW_LINES, unfolding))
    if question.reason:
        parts.append(renderer.line(question.reason, "faint", indent=2))
    return "\n" + "\n".join(parts)


@dataclass(slots=True)
class _Open:
    question: PermissionRequest
    answered: asyncio.Future[PermissionResponse]
    offers: tuple[PermissionChoice, ...]
    menu: ChoiceMenu


class PermissionPrompt:
    """The question that is open, if one is. Whoever asks waits; whoever reads the keyboard answers."""

    def __init__(self) -> None:
        self._open: _Open | None = None
        self.on_change: Callable[[], None] = _nobody

    @property
    def question(self) -> PermissionRequest | None:
        return self._open.question if self._open else None

    async def ask(self, question: PermissionRequest) -> PermissionResponse:
        """Open a question and wait. One at a time: the guard sees to that."""
        offers = list_permission_choices(question)
        menu = ChoiceMenu(
            title=QUESTION_TITLE,
            choices=[offer.row for offer in offers],
            hint="y, n or a number answers at once; a letter selects, Enter confirms",
            wraps=True,
        )
        self._open = _Open(question, asyncio.get_running_loop().create_future(), offers, menu)
        self.on_change()
        try:
            return await self._open.answered
        finally:
            self._open = None
            self.on_change()

    @property
    def menu(self) -> ChoiceMenu | None:
        """The answers, where single keys choose one; None while a text is typed, or nothing is asked."""
        return self._open.menu if self._open and not self._open.menu.is_over else None

    def settle(self) -> None:
        """The menu may be over now: then the row is the answer, or a text is to be typed."""
        if self._open is None or self._open.menu.chosen is None or self._open.answered.done():
            return
        response = self._open.offers[self._open.menu.chosen].response
        if response is not None:
            self._open.answered.set_result(response)

    def reopen(self) -> None:
        """Choose from the answers again, in place of typing a text."""
        if self._open is not None:
            self._open.menu.chosen = None

    def answer(self, line: str) -> bool:
        """Take a line as the answer; False when nothing was asked."""
        if self._open is None:
            return False
        answer = parse_permission_answer(line, self._open.question)
        if answer is not None and not self._open.answered.done():
            self._open.answered.set_result(answer)
        return True


def _nobody() -> None:
    """Nobody watches yet."""


def _beginning(text: str, unfolding: str) -> str:
    lines = text.split("\n")
    hidden = len(lines) - REQUEST_PREVIEW_LINES
    hint = f"  ({unfolding})" if unfolding else ""
    return "\n".join(lines[:REQUEST_PREVIEW_LINES]) + (
        f"\n… {hidden:,} more lines{hint}" if hidden > 0 else ""
    )


def _change(use: ToolUse) -> str:
    """What an edit or a new file would change, where the file may not be looked at before it is allowed: the
    place in the file is not known."""
    old, new = use.input.get("old_string"), use.input.get("new_string")
    if use.name == "write":
        old, new = "", use.input.get("content")
    if not isinstance(old, str) or not isinstance(new, str):
        return ""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))
