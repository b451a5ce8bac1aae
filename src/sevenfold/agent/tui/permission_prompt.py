"""Asking a person whether a tool may run: what is shown, and what an answer means."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable
from dataclasses import dataclass

from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.core.messages import ToolUse

YES_WORDS = frozenset({"y", "yes"})
NO_WORDS = frozenset({"n", "no"})
SESSION_WORDS = frozenset({"s", "session"})
ALWAYS_WORDS = frozenset({"a", "always"})

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
    if word in SESSION_WORDS | ALWAYS_WORDS:
        if question.rule is None:
            return PermissionResponse(True)
        return PermissionResponse(True, "always" if word in ALWAYS_WORDS else "session")
    return PermissionResponse(False) if word in NO_WORDS else PermissionResponse(False, words=said)


def render_permission_question(question: PermissionRequest, brush: TextRenderer) -> str:
    """The line that is answered."""
    longer = ""
    if question.rule is not None:
        longer = f"  s yes, in this session  a always ({question.rule})"
    return brush.line(f"allow it?  y yes{longer}  n no  or say what to do instead", "warning")


def render_permission_request(question: PermissionRequest, brush: TextRenderer) -> str:
    """What is asked for, and why it is asked: printed once, above."""
    use, need = question.use, question.need
    title = need.said or use.name
    parts = [brush.line(f"{use.name} asks: {title}" if use.name not in title else title, "warning")]
    change = need.diff or _change(use)
    if need.command and need.command not in title:
        parts.append(brush.line(_beginning(need.command), indent=2))
    if change:
        parts.append(brush.diff(change, REQUEST_PREVIEW_LINES))
    if question.reason:
        parts.append(brush.line(question.reason, "faint", indent=2))
    return "\n" + "\n".join(parts)


@dataclass(slots=True)
class _Open:
    question: PermissionRequest
    answered: asyncio.Future[PermissionResponse]


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
        self._open = _Open(question, asyncio.get_running_loop().create_future())
        self.on_change()
        try:
            return await self._open.answered
        finally:
            self._open = None
            self.on_change()

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


def _beginning(text: str) -> str:
    lines = text.split("\n")
    hidden = len(lines) - REQUEST_PREVIEW_LINES
    return "\n".join(lines[:REQUEST_PREVIEW_LINES]) + (f"\n… {hidden} more lines" if hidden > 0 else "")


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
