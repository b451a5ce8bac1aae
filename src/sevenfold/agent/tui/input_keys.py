"""Keys of the input beside those that edit text: menus, pasted text, the queue, an editor, and images of the
clipboard."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, get_args

from sevenfold.agent.tui.choice_menu import ChoiceMenu, MenuKey

if TYPE_CHECKING:
    from prompt_toolkit.filters import Filter
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent


class KeyDelegate(Protocol):
    """What the keys act on."""

    @property
    def menu(self) -> ChoiceMenu | None:
        """The menu that keys are for, while the input is empty; None: they are for the input."""
        ...

    def press(self, key: MenuKey) -> bool:
        """A key for the menu that is no character; False: it has no use for it."""
        ...

    def type(self, sign: str) -> str | None:
        """A character for the menu; the text to put into the input, where it has no use for it."""
        ...

    @property
    def has_just_answered(self) -> bool:
        """A key has answered a menu a moment ago, and Enter may follow it out of habit."""
        ...

    @property
    def has_queue(self) -> bool:
        """Something that was sent still waits."""
        ...

    def take_back(self) -> str:
        """What was sent last and waits: it is edited again."""
        ...

    async def paste_image(self) -> str:
        """The image of the clipboard, as what names it in a text; empty: there is none, which was said."""
        ...

    def escape(self) -> None:
        """Esc, with no menu to close."""
        ...

    @property
    def has_foreground(self) -> bool:
        """A command runs that is waited for."""
        ...

    def send_to_background(self) -> None:
        """Have it go on beside the turn."""
        ...


LINE_CONTINUATION = "\\"
"""Before Enter: the text goes on in a new line."""


MIN_FOLDED_LINES, MIN_FOLDED_CHARS = 6, 1_000
"""Pasted text from this size on is folded: it would push the conversation off the screen."""
BURST_SECONDS = 0.1
"""Between two parts of a text that comes at once, also over a slow line; nobody types two lines in it."""
_FOLDED = re.compile(r"\[pasted text (\d+): [^\]]*\]")


@dataclass(slots=True)
class PastedTexts:
    """Long pasted texts, each shown as a short token in the input and sent whole."""

    _texts: list[str] = field(default_factory=list[str])
    _burst_at: float = -math.inf

    def is_burst(self, following: int, now: float) -> bool:
        """Whether an Enter is part of a text that came at once, from a terminal that does not mark what is
        pasted: many more Enters have come with it, or the last ones of those."""
        if following < MIN_FOLDED_LINES - 1 and now - self._burst_at > BURST_SECONDS:
            return False
        self._burst_at = now
        return True

    def fold(self, text: str) -> str:
        """What is put into the input for a pasted text: itself, if it is short."""
        lines = text.count("\n") + 1
        if lines < MIN_FOLDED_LINES and len(text) < MIN_FOLDED_CHARS:
            return text
        self._texts.append(text)
        return self._name(len(self._texts))

    def fold_again(self, text: str) -> str:
        """The same of a text that was in the input before: what was pasted into it is its token again."""
        for number, pasted in enumerate(self._texts, 1):
            text = text.replace(pasted, self._name(number))
        return self.fold(text)

    def unfold(self, text: str) -> str:
        """The text with every token of ours replaced by what it stands for."""
        return _FOLDED.sub(self._find, text)

    def _name(self, number: int) -> str:
        text = self._texts[number - 1]
        lines = text.count("\n") + 1
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        return f"[pasted text {number}: {size}]"

    def _find(self, token: re.Match[str]) -> str:
        number = int(token[1])
        return self._texts[number - 1] if 1 <= number <= len(self._texts) else token[0]


def send_or_continue(event: KeyPressEvent, pastes: PastedTexts) -> None:
    """Send what was typed, or go on in the next line where it ends with the sign for that, or was pasted."""
    from prompt_toolkit.keys import Keys

    buffer = event.current_buffer
    following = sum(key.key == Keys.Enter for key in event.key_processor.input_queue)
    if pastes.is_burst(following, time.monotonic()):
        buffer.newline(copy_margin=False)
    elif buffer.document.text_before_cursor.endswith(LINE_CONTINUATION):
        buffer.delete_before_cursor(len(LINE_CONTINUATION))
        buffer.newline(copy_margin=False)
    else:
        buffer.validate_and_handle()


def add_paste_key(keys: KeyBindings, pastes: PastedTexts) -> None:
    """A long pasted text becomes a token."""

    @keys.add("<bracketed-paste>")
    def paste(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        event.current_buffer.insert_text(pastes.fold(text))

    _ = paste


def add_work_keys(
    keys: KeyBindings,
    delegate: KeyDelegate,
    typing: Filter,
    is_empty: Filter,
    unfold: Callable[[str], str],
) -> None:
    """Up with an empty input takes back what waits, Ctrl-G opens an editor, Ctrl-V pastes an image, and
    Ctrl-B sends a running command to the background; with none it moves the cursor."""
    from prompt_toolkit.filters import Condition

    @keys.add("up", filter=typing & is_empty & Condition(lambda: delegate.has_queue))
    def take_back(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(delegate.take_back())

    @keys.add("c-g", filter=typing)
    def edit(event: KeyPressEvent) -> None:
        event.current_buffer.text = unfold(event.current_buffer.text)
        event.current_buffer.open_in_editor()

    @keys.add("c-b", filter=typing & Condition(lambda: delegate.has_foreground))
    def send_to_background(_: KeyPressEvent) -> None:
        delegate.send_to_background()

    @keys.add("c-v", filter=typing)
    def paste_image(event: KeyPressEvent) -> None:
        buffer = event.current_buffer

        async def paste() -> None:
            buffer.insert_text(await delegate.paste_image())

        event.app.create_background_task(paste())

    _ = (take_back, edit, send_to_background, paste_image)


def add_menu_keys(keys: KeyBindings, delegate: KeyDelegate, typing: Filter, is_empty: Filter) -> None:
    """The keys of a menu, which they belong to while the input is empty, and Tab in one of names."""
    from prompt_toolkit.filters import Condition, has_completions

    from sevenfold.agent.tui.completion import take_first_completion

    in_menu = typing & is_empty & Condition(lambda: delegate.menu is not None)

    def bind(name: MenuKey) -> None:
        # Esc at once: what is typed after it is no chord.
        @keys.add(name, filter=in_menu, eager=name == "escape")
        def press(_: KeyPressEvent) -> None:
            if not delegate.press(name) and name == "escape":
                delegate.escape()

        _ = press

    for name in get_args(MenuKey):
        bind(name)

    @keys.add("enter", filter=typing & Condition(lambda: delegate.has_just_answered))
    def ignore(_: KeyPressEvent) -> None:
        """What was set aside for the question is back, and not to be sent."""

    @keys.add("<any>", filter=in_menu)
    def type_sign(event: KeyPressEvent) -> None:
        text = delegate.type(event.data) if event.data.isprintable() else None
        if text:
            event.current_buffer.insert_text(text)

    @keys.add("tab", filter=typing & has_completions)
    def take(event: KeyPressEvent) -> None:
        take_first_completion(event.current_buffer)

    _ = (ignore, type_sign, take)
