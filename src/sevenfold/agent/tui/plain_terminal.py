"""A terminal that can only print and read lines: TERM=dumb, an editor's shell, a screen reader, a pipe."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import threading
from typing import Self, TextIO

from sevenfold.agent.tui.buffered_output import BufferedOutput
from sevenfold.agent.tui.input_delegate import InputDelegate
from sevenfold.agent.tui.prompt_input import LINE_CONTINUATION
from sevenfold.agent.tui.terminal import can_encode_signs
from sevenfold.agent.tui.text_renderer import TextRenderer

_PROMPT = "> "
CONTINUATION_PROMPT = "... "


class PlainTerminal:
    """Line in, lines out. Nothing that was printed is ever changed."""

    def __init__(self, scene: InputDelegate, source: TextIO | None = None) -> None:
        self._scene = scene
        self._source = source or sys.stdin
        self._pane = BufferedOutput(sys.stdout)
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGINT, lambda: scene.interrupt(is_typed=False))
        # A thread that waits for a line cannot be stopped, so nobody waits for it at the end.
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The terminal was not changed."""

    def brush(self) -> TextRenderer:
        is_colourful = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        has_colour = is_colourful and not os.environ.get("NO_COLOR")
        return TextRenderer(shutil.get_terminal_size().columns, has_colour, can_encode_signs(sys.stdout))

    def put(self, text: str) -> None:
        self._pane.write(f"{text}\n")
        self._pane.flush()

    def refresh(self) -> None:
        """What is still moving is not shown: it could not be taken back."""

    def settle(self) -> None:
        """Nothing was drawn."""

    async def read(self) -> str:
        lines: list[str] = []
        while True:
            self._pane.write(CONTINUATION_PROMPT if lines else _PROMPT)
            self._pane.flush()
            line = await self._lines.get()
            if line is None:
                raise EOFError
            if not line.endswith(LINE_CONTINUATION):
                return "\n".join([*lines, line])
            lines.append(line.removesuffix(LINE_CONTINUATION))

    def leave(self) -> None:
        self._lines.put_nowait(None)

    def empty(self) -> None:
        """What is typed here is the terminal's own."""

    def set_aside(self) -> None:
        """Here a question has to be printed: there is no place that could be drawn again."""
        self.put(self._scene.question(self.brush()))

    def bring_back(self) -> None:
        """Nothing was taken away."""

    def _listen(self) -> None:
        for line in self._source:
            self._hand_in(line.removesuffix("\n").removesuffix("\r"))
        self._hand_in(None)

    def _hand_in(self, line: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
