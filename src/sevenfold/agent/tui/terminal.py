"""A terminal that can do everything: the input stays at the bottom while a turn is printed above it.

What is typed, what is still growing and the status line are one region, of which only what changed is drawn.
Whatever is settled is printed above it, in one write with the region below, and never touched again.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

from sevenfold.agent.tui.buffered_output import BufferedOutput
from sevenfold.agent.tui.input_delegate import InputDelegate
from sevenfold.agent.tui.input_history import InputHistory
from sevenfold.agent.tui.prompt_input import make_prompt_session
from sevenfold.agent.tui.text_renderer import TextRenderer

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import AnyFormattedText

REDRAW_SECONDS = 0.04
"""Twenty-five times a second looks like writing, and costs little even over a slow line."""


class Terminal:
    """The screen and the keyboard of one person."""

    def __init__(self, scene: InputDelegate, past: InputHistory, cwd: Path) -> None:
        self._scene = scene
        self._pane = BufferedOutput(sys.stdout)
        self._session: PromptSession[str] = make_prompt_session(self._pane, scene, past, cwd)
        self._session.app.min_redraw_interval = REDRAW_SECONDS
        self._saved = ""
        self._raw = ExitStack()

    def __enter__(self) -> Self:
        """Take the keys as they come, also between two inputs: nothing that is typed is echoed or lost."""
        self._raw.enter_context(self._session.app.input.raw_mode())
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def brush(self) -> TextRenderer:
        columns = self._session.app.output.get_size().columns
        return TextRenderer(columns, not os.environ.get("NO_COLOR"), can_encode_signs(sys.stdout))

    def put(self, text: str) -> None:
        """Print above the input."""
        app = self._session.app
        with self._pane.held():
            if not app.is_running:
                self._pane.write(f"{text}\n")
                return
            app.renderer.erase()
            # Where a slow line hands on half of what follows, no cursor runs through it.
            app.output.hide_cursor()
            app.output.write_raw(f"{text}\n".replace("\n", "\r\n"))
            self._draw()

    def refresh(self) -> None:
        self._session.app.invalidate()

    def settle(self) -> None:
        """Give back the lines that what was moving has taken."""
        app = self._session.app
        if app.is_running:
            with self._pane.held():
                app.renderer.erase()
                self._draw()

    async def read(self) -> str:
        """The next line; EOFError when the person leaves."""
        return await self._session.prompt_async(self._prompt, bottom_toolbar=self._toolbar)

    def leave(self) -> None:
        """Have `read` end with EOFError, whatever is typed."""
        app = self._session.app
        if app.is_running and not app.is_done:
            app.exit(exception=EOFError)

    def empty(self) -> None:
        self._session.default_buffer.reset()

    def set_aside(self) -> None:
        """Empty the input for a question; `bring_back` restores what was typed."""
        self._saved = self._session.default_buffer.text
        self.empty()

    def bring_back(self) -> None:
        if self._saved:
            self._session.default_buffer.insert_text(self._saved)
            self._saved = ""

    def _draw(self) -> None:
        app = self._session.app
        # By this number the library knows that what it remembers of the last drawing is old.
        app.render_counter += 1
        app.renderer.render(app, app.layout)

    def _prompt(self) -> AnyFormattedText:
        from prompt_toolkit.formatted_text import ANSI

        brush = self.brush()
        above = [part for part in (self._scene.live(brush), self._scene.question(brush)) if part]
        return ANSI("\n".join([*above, "", f"{brush.line('›', 'accent')} "]))

    def _toolbar(self) -> AnyFormattedText:
        return self._scene.status_line(self._session.app.output.get_size().columns)


def can_encode_signs(stream: TextIO) -> bool:
    """Whether a stream can show the signs that we draw with."""
    try:
        "●○│…›".encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
