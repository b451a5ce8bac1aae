"""What is asked in a chat now, and whose keys are whose: a permission, or a choice that a command offers.

A person may be in the middle of a word when a permission is asked for, and one key would answer it. So the
question takes keys only after a pause in the typing; until then keys are text, as before.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Protocol

from sevenfold.agent.tui.choice_menu import ChoiceMenu, ChoicePrompt, MenuKey
from sevenfold.agent.tui.permission_prompt import (
    PermissionPrompt,
    render_permission_question,
    render_permission_request,
)
from sevenfold.agent.tui.text_renderer import TextRenderer

TYPING_PAUSE_SECONDS = 0.6
"""Without a key before a question takes one for its answer: slower than typing, faster than reading."""


class QuestionSurface(Protocol):
    """Where questions are shown."""

    is_typed: bool
    keys_pressed: int
    """All keys so far."""

    def renderer(self) -> TextRenderer: ...

    def put(self, text: str) -> None: ...

    def refresh(self) -> None: ...

    def stash_input(self) -> None: ...

    def restore_input(self) -> None: ...

    def seconds_since_key(self) -> float:
        """How long ago a key was pressed."""
        ...


class OpenQuestions:
    """The permission that is asked for, and the choice that is offered, if any."""

    def __init__(
        self, asking: PermissionPrompt, surface: QuestionSurface, on_asked: Callable[[], None], root: str = ""
    ) -> None:
        """`on_asked` is told when a person is wanted; `root` is left out of paths."""
        self._root = root
        self._asking, self._surface, self._on_asked = asking, surface, on_asked
        self.choosing = ChoicePrompt()
        self._is_listening = False
        """The permission question takes keys."""
        self._pause: asyncio.TimerHandle | None = None
        self._answered_at, self._answering_key = -math.inf, -1
        asking.on_change, self.choosing.on_change = self._permission_changed, self._choice_changed

    @property
    def menu(self) -> ChoiceMenu | None:
        """The menu that keys are for; None: they are for the input."""
        if self._asking.question is not None:
            return self._asking.menu if self._is_listening and self._surface.is_typed else None
        menu = self.choosing.menu
        return menu if self._surface.is_typed and menu is not None and not menu.is_over else None

    @property
    def is_asking(self) -> bool:
        """A permission is asked for."""
        return self._asking.question is not None

    @property
    def has_just_answered(self) -> bool:
        """A key has answered a moment ago: an Enter that follows it out of habit is for nothing else."""
        if self.menu is not None:
            return False
        is_next = self._surface.keys_pressed == self._answering_key + 1
        return is_next and time.monotonic() - self._answered_at < TYPING_PAUSE_SECONDS

    def render(self, renderer: TextRenderer) -> str:
        question, menu = self._asking.question, self.menu
        if menu is not None:
            return menu.render(renderer)
        if question is None:
            return ""
        if not self._surface.is_typed:
            return render_permission_question(question, renderer)
        if not self._is_listening:
            return renderer.line("a question waits until you pause; what you type is kept", "warning")
        return renderer.line("say why, or what to do instead; Enter sends it, alone it goes back", "warning")

    def press(self, key: MenuKey) -> bool:
        """A key that is no character; False: it is not for a menu."""
        menu, is_permission = self.menu, self._asking.question is not None
        if menu is None or (is_permission and key == "escape"):
            return False
        if key != "tab":
            menu.press(key)
        elif is_permission:
            menu.chosen = len(menu.choices) - 1
        self._settle()
        return True

    def type(self, sign: str) -> str | None:
        """A character; the text to put into the input, where the menu has no use for it."""
        menu = self.menu
        if menu is None:
            return sign
        text = menu.type(sign)
        if menu.is_over:
            self._answered_at, self._answering_key = time.monotonic(), self._surface.keys_pressed
        self._settle()
        return text if self._asking.question is not None else None

    def answer(self, line: str) -> bool:
        """Take a line for an answer; False: it is none."""
        if self._asking.question is None:
            return self.choosing.answer(line)
        if not self._is_listening:
            return False
        if not line.strip():
            self._asking.reopen()
            self._surface.refresh()
            return True
        return self._asking.answer(line)

    def close(self) -> None:
        """Nobody will choose any more."""
        if self.choosing.menu is not None:
            self.choosing.menu.is_left = True
            self.choosing.settle()

    def _settle(self) -> None:
        self._asking.settle()
        self.choosing.settle()
        self._surface.refresh()

    def _permission_changed(self) -> None:
        question = self._asking.question
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if question is None:
            if self._is_listening:
                self._surface.restore_input()
            self._is_listening = False
        else:
            unfolding = "ctrl-o" if self._surface.is_typed else ""  # a line would be the answer
            renderer = self._surface.renderer()
            self._surface.put(render_permission_request(question, renderer, self._root, unfolding))
            self._on_asked()
            self._start_listening()
        self._surface.refresh()

    def _start_listening(self) -> None:
        """Take keys from now on, or after the pause that a person at the keys has not made yet."""
        pause = TYPING_PAUSE_SECONDS - self._surface.seconds_since_key()
        if pause > 0:
            self._pause = asyncio.get_running_loop().call_later(pause, self._start_listening)
            return
        self._pause, self._is_listening = None, True
        self._surface.stash_input()
        self._surface.refresh()

    def _choice_changed(self) -> None:
        menu = self.choosing.menu
        if self._surface.is_typed:
            (self._surface.restore_input if menu is None else self._surface.stash_input)()
        elif menu is not None:
            renderer = self._surface.renderer()
            title = [renderer.line(menu.title, "warning")] if menu.title else []
            hint = renderer.line("a number, or Enter for none of them", "faint")
            self._surface.put("\n".join([*title, renderer.rows(menu.list_rows()), hint]))
        self._surface.refresh()
