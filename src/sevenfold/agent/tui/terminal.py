"""The two terminals of a chat.

`Terminal` keeps the input at the bottom while a turn is printed above it. Input, unfinished output and status
line are one region, of which only changes are redrawn. Finished output is printed above it, in one write with
the region below, and never changed.

`PlainTerminal` only prints and reads lines: for TERM=dumb, an editor's shell, a screen reader or a pipe.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import signal
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

from sevenfold.agent.tui.input_keys import LINE_CONTINUATION, PastedTexts
from sevenfold.agent.tui.prompt_input import (
    MENU_ROWS,
    BufferedOutput,
    InputDelegate,
    InputHistory,
    make_prompt_session,
    may_complete,
)
from sevenfold.agent.tui.text_renderer import Signs, TextRenderer, is_light_terminal
from sevenfold.agent.tui.user_input import ImageChips
from sevenfold.core.settings.sections import ChatSettings
from sevenfold.core.text.safe_text import escape_controls, escape_painted

if TYPE_CHECKING:
    from prompt_toolkit import Application, PromptSession
    from prompt_toolkit.formatted_text import AnyFormattedText


ESCAPE_SECONDS = 0.1
"""After Esc, for the rest of a key that a terminal sends as several characters; a slow line needs less."""
CHORD_SECONDS = 0.4
"""After Esc, for the Enter of Alt-Enter."""
_PUSH_TITLE, _POP_TITLE = "\x1b[22;2t", "\x1b[23;2t"
"""Have the terminal keep its title, and take it back; those that cannot ignore both."""
REDRAW_SECONDS = 0.04
"""Twenty-five times a second looks like writing, and costs little even over a slow line."""


DEFAULT_LOOK = ChatSettings()


class Terminal:
    """The screen and the keyboard of one person."""

    is_typed = True
    has_echo = False

    def __init__(
        self,
        delegate: InputDelegate,
        past: InputHistory,
        cwd: Path,
        typed: str = "",
        look: ChatSettings = DEFAULT_LOOK,
        *,
        pastes: PastedTexts | None = None,
        has_vi_keys: bool = False,
    ) -> None:
        """`typed` stands in the first input: what was typed before there was one, with tokens of `pastes`."""
        self._typed_before = typed
        self._delegate = delegate
        self._pane, self._pastes = BufferedOutput(sys.stdout), pastes or PastedTexts()
        self._session: PromptSession[str] = make_prompt_session(
            self._pane, delegate, past, cwd, self._pastes, has_vi_keys=has_vi_keys
        )
        self._chips = ImageChips(cwd)
        app = self._session.app
        app.min_redraw_interval, app.ttimeoutlen, app.timeoutlen = (
            REDRAW_SECONDS,
            ESCAPE_SECONDS,
            CHORD_SECONDS,
        )
        app.key_processor.before_key_press += self._key_pressed
        app.before_render += self._shrink
        app.after_render += self._show_drawn
        self._last_key, self.keys_pressed = -math.inf, 0
        self._saved: list[str] = []
        """Texts that were set aside, the last one last: a question may come while a menu is open."""
        self._title, self._look = "", look
        self._is_light = is_light_terminal(look.theme, os.environ)
        self._raw = ExitStack()

    def __enter__(self) -> Self:
        """Take the keys as they come, also between two inputs: nothing that is typed is echoed or lost."""
        self._raw.enter_context(self._session.app.input.raw_mode())
        return self

    def __exit__(self, *_: object) -> None:
        if self._title:
            self._write_codes(_POP_TITLE)
        self._raw.close()

    def show_state(self, title: str) -> None:
        """Say in the terminal's title what the chat is doing."""
        if self._look.title and title != self._title:
            begin = "" if self._title else _PUSH_TITLE
            self._title = title
            self._write_codes(f"{begin}\x1b]2;{escape_controls(title)}\x07")

    def call_person(self, text: str) -> None:
        """A person is wanted, who may look elsewhere."""
        if self._look.notify == "bell":
            self._write_codes("\x07")
        elif self._look.notify == "osc9":
            self._write_codes(f"\x1b]9;{escape_controls(text)}\x07")

    def _write_codes(self, codes: str) -> None:
        self._pane.write(codes)
        self._pane.flush()

    def renderer(self) -> TextRenderer:
        columns = self._session.app.output.get_size().columns
        has_colour = not os.environ.get("NO_COLOR")
        return TextRenderer(columns, has_colour, find_signs(sys.stdout), self._is_light)

    def put(self, text: str) -> None:
        """Print above the input."""
        app = self._session.app
        with self._pane.batched():
            if not app.is_running:
                self._pane.write(f"{escape_painted(text)}\n")
                return
            app.renderer.erase()
            # Where a slow line hands on half of what follows, no cursor runs through it.
            app.output.hide_cursor()
            app.output.write_raw(f"{escape_painted(text)}\n".replace("\n", "\r\n"))
            self._draw()

    def refresh(self) -> None:
        self._session.app.invalidate()

    def settle(self) -> None:
        """Give back the lines that what was moving has taken."""
        app = self._session.app
        if app.is_running:
            with self._pane.batched():
                app.renderer.erase()
                self._draw()

    async def read(self) -> str:
        """The next line; EOFError when the person leaves."""
        before, self._typed_before = self._typed_before, ""
        typed = await self._session.prompt_async(self._prompt, bottom_toolbar=self._toolbar, default=before)
        return self._pastes.unfold(typed)

    def leave(self) -> None:
        """Have `read` end with EOFError, whatever is typed."""
        app = self._session.app
        if app.is_running and not app.is_done:
            app.exit(exception=EOFError)

    def seconds_since_key(self) -> float:
        return time.monotonic() - self._last_key

    def _key_pressed(self, _: object) -> None:
        self._last_key = time.monotonic()
        self.keys_pressed += 1

    def clear_input(self) -> None:
        self._session.default_buffer.reset()

    def offer_input(self, text: str) -> None:
        app, buffer = self._session.app, self._session.default_buffer
        if not app.is_running or app.is_done:
            self._typed_before = self._typed_before or self._pastes.fold_again(text)  # of the next input
        elif not buffer.text:
            buffer.insert_text(self._pastes.fold_again(text))

    def stash_input(self) -> None:
        """Empty the input for a question; `bring_back` restores what was typed."""
        self._saved.append(self._session.default_buffer.text)
        self.clear_input()

    def restore_input(self) -> None:
        if self._saved:
            self._session.default_buffer.insert_text(self._saved.pop())

    def _shrink(self, app: Application[str]) -> None:
        """Keep as many rows below the input as a menu needs, and give back those it had: the library would
        keep them."""
        completing = self._session.default_buffer.complete_state
        if completing is not None:
            self._session.reserve_space_for_menu = min(len(completing.completions) + 1, MENU_ROWS)
        elif not may_complete(self._session.default_buffer.document.text_before_cursor):
            self._session.reserve_space_for_menu = 0
        drawn, size = app.renderer.last_rendered_screen, app.output.get_size()
        if drawn and app.layout.container.preferred_height(size.columns, size.rows).preferred < drawn.height:
            self._pane.hold()
            app.renderer.erase()

    def _show_drawn(self, _: object) -> None:
        self._pane.release()

    def _draw(self) -> None:
        app = self._session.app
        # By this number the library knows that what it remembers of the last drawing is old.
        app.render_counter += 1
        app.renderer.render(app, app.layout)

    def _prompt(self) -> AnyFormattedText:
        from prompt_toolkit.formatted_text import ANSI

        renderer = self.renderer()
        chips = self._chips.render(self._session.default_buffer.text, renderer)
        above = [
            part for part in (self._delegate.live(renderer), self._delegate.question(renderer), chips) if part
        ]
        return ANSI("\n".join([*above, "", f"{renderer.line('›', 'accent')} "]))

    def _toolbar(self) -> AnyFormattedText:
        return self._delegate.status_line(self._session.app.output.get_size().columns)


def find_signs(stream: TextIO) -> Signs:
    """What a stream can show of the signs that we draw with."""
    try:
        "●○│…›".encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return "ascii"
    return "unicode"


_PROMPT = "> "
CONTINUATION_PROMPT = "... "


class PlainTerminal:
    """Line in, lines out. Nothing that was printed is ever changed."""

    is_typed = False
    keys_pressed = 0

    def __init__(self, delegate: InputDelegate, source: TextIO | None = None) -> None:
        self._delegate = delegate
        self._source = source or sys.stdin
        self._pane = BufferedOutput(sys.stdout)
        self.has_echo = self._source.isatty()
        self._is_prompted = self._is_reading = self._is_answering = False
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGINT, lambda: delegate.interrupt(is_typed=False))
        # A thread that waits for a line cannot be stopped, so nobody waits for it at the end.
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The terminal was not changed."""

    def renderer(self) -> TextRenderer:
        # At a terminal that could be drawn on, lines were asked for: a screen reader may read colours out.
        is_chosen = self._source.isatty()
        is_colourful = sys.stdout.isatty() and not is_chosen and os.environ.get("TERM") != "dumb"
        has_colour = is_colourful and not os.environ.get("NO_COLOR")
        signs: Signs = "words" if is_chosen else find_signs(sys.stdout)
        return TextRenderer(shutil.get_terminal_size().columns, has_colour, signs)

    def put(self, text: str) -> None:
        # A person's own line is ended by their Enter; one that is still open is ended here.
        is_open = self._is_prompted and self.has_echo and not text.startswith("\n")
        self._is_prompted = False
        before = "\n" if is_open else ""
        self._pane.write(f"{before}{escape_painted(text)}\n")
        self._pane.flush()

    def refresh(self) -> None:
        """What is still moving is not shown: it could not be taken back."""

    def settle(self) -> None:
        """Say again that a line can be typed: what was printed stands after the prompt."""
        self._is_answering = False
        if self._is_reading and not self._is_prompted and self.has_echo:
            self._prompt(_PROMPT)

    async def read(self) -> str:
        lines: list[str] = []
        while True:
            # What the line before began is printed first: a prompt now would stand above the answer.
            if lines or not self._is_answering:
                self._prompt(CONTINUATION_PROMPT if lines else _PROMPT)
            self._is_reading = True
            line = await self._lines.get()
            self._is_prompted = self._is_reading = False
            if line is None:
                raise EOFError
            if not line.endswith(LINE_CONTINUATION):
                self._is_answering = self.has_echo
                return "\n".join([*lines, line])
            lines.append(line.removesuffix(LINE_CONTINUATION))

    def leave(self) -> None:
        self._lines.put_nowait(None)

    def seconds_since_key(self) -> float:
        return math.inf  # lines are whole when they come

    def show_state(self, title: str) -> None:
        """Only lines are printed here."""

    def call_person(self, text: str) -> None:
        """The question itself is printed."""

    def clear_input(self) -> None:
        """What is typed here is the terminal's own."""

    def offer_input(self, text: str) -> None:
        """Here nothing can be put into it."""

    def stash_input(self) -> None:
        """Here a question has to be printed: there is no place that could be drawn again."""
        self.put(self._delegate.question(self.renderer()))

    def restore_input(self) -> None:
        """Nothing was taken away."""

    def _prompt(self, prompt: str) -> None:
        self._pane.write(prompt)
        self._pane.flush()
        self._is_prompted = True

    def _listen(self) -> None:
        with suppress(OSError):  # a terminal that was closed
            for line in self._source:
                self._hand_in(line.removesuffix("\n").removesuffix("\r"))
        self._hand_in(None)

    def _hand_in(self, line: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
