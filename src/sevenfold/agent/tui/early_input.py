"""The input line of a chat that still starts: it is drawn before most of the program is loaded.

What is entered meanwhile is kept, and sent when the agent is ready. This module imports nothing that takes
long: it decides how soon a person can type.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import termios
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TextIO

from sevenfold.agent.tui.input_keys import MIN_FOLDED_LINES, PastedTexts, add_paste_key, send_or_continue
from sevenfold.agent.tui.prompt_input import BufferedOutput, find_session_class, make_prompt_output

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.formatted_text import AnyFormattedText
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent


def is_full_terminal() -> bool:
    """Whether an input line can be drawn, and drawn again."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


_MARK_PASTES, _UNMARK_PASTES = "\x1b[?2004h", "\x1b[?2004l"
"""Have the terminal mark what is pasted, as the input line does when it is drawn."""
_CANCEL_AGAIN = 0.2
"""Seconds that a prompt may take to end: nobody notices them when a chat starts."""


class EarlyInput:
    """Keeps what a person types while the program starts: nothing is lost, and nothing is echoed twice.

    `start_prompt` draws an input line. Lines that were entered are in `lines`."""

    def __init__(self, source: TextIO, *, is_full: bool) -> None:
        """`is_full`: whether a `Terminal` will read the keys; a `PlainTerminal` reads lines, as they are."""
        self._source, self._is_full = source, is_full
        self._saved: list[Any] | None = None
        self._rest = ""
        self._leave: Callable[[], object] | None = None
        self._session: PromptSession[str] | None = None
        self._reading: asyncio.Task[None] | None = None
        self.lines: list[str] = []
        self.pastes = PastedTexts()
        """What tokens in the rest stand for."""

    @property
    def is_full(self) -> bool:
        return self._is_full

    def __enter__(self) -> Self:
        if self._is_full:
            self._saved = termios.tcgetattr(self._source)
            self.lines = self._read_lines()
            if len(self.lines) >= MIN_FOLDED_LINES:
                # Pasted before there was anybody to mark it: it is sent when the person says so.
                self._rest, self.lines = "".join(f"{line}\n" for line in self.lines), []
            self._hold()
            # Not before: the marks of a paste are for whoever reads keys.
            sys.stdout.write(_MARK_PASTES)
            sys.stdout.flush()
        return self

    def __exit__(self, *_: object) -> None:
        if self._saved is not None:
            sys.stdout.write(_UNMARK_PASTES)
            sys.stdout.flush()
        self._release()

    def start_prompt(self, leave: Callable[[], object]) -> None:
        """Draw an input line until `stop_prompt`; `leave` is called for Ctrl-C and Ctrl-D."""
        if self._saved is not None:
            self._leave = leave
            self._reading = asyncio.create_task(self._read_prompts())

    async def stop_prompt(self) -> None:
        """Take the input line away. What stands in it is kept for `take_keys`."""
        reading, self._reading = self._reading, None
        while reading is not None and not reading.done():
            # More than once: a prompt that starts or ends may take it for the end of a task of its own.
            reading.cancel()
            await asyncio.wait({reading}, timeout=_CANCEL_AGAIN)

    @asynccontextmanager
    async def paused(self) -> AsyncGenerator[None]:
        """For a question that is answered with a line: keys are echoed, and Enter ends the line.

        What was typed before the question is no answer to it, and is kept."""
        await self.stop_prompt()
        self._keep_keys()
        self._release()
        yield
        # Not where the question was left: then the program ends, and no other line is drawn.
        if self._saved is not None:
            self._hold()
            if self._leave is not None:
                self.start_prompt(self._leave)

    def take_keys(self) -> str:
        """What was typed without Enter."""
        rest, self._rest = self._rest, ""
        return rest

    async def _read_prompts(self) -> None:
        self._session = session = _make_session(self)
        try:
            while True:
                typed = await session.prompt_async(
                    _render_prompt, bottom_toolbar=self._toolbar, default=self.take_keys()
                )
                self.lines += [self.pastes.unfold(typed)] if typed.strip() else []
        except asyncio.CancelledError:
            self._rest = session.default_buffer.text
            raise
        except EOFError:
            self.leave()

    def leave(self) -> None:
        if self._leave is not None:
            self._leave()

    def _toolbar(self) -> str:
        waiting = f"  {len(self.lines)} queued" if self.lines else ""
        return f"starting{waiting}"

    def _hold(self) -> None:
        assert self._saved is not None
        changed = [*self._saved]
        changed[0] &= ~termios.ICRNL  # or Enter could not be told from Ctrl-J, which begins a new line
        changed[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self._source, termios.TCSANOW, changed)

    def _keep_keys(self) -> None:
        if self._saved is None:
            return
        waiting = b""
        while select.select([self._source], [], [], 0)[0] and (
            part := os.read(self._source.fileno(), 65_536)
        ):
            waiting += part
        typed = self._rest + waiting.decode(self._source.encoding or "utf-8", "replace")
        *lines, self._rest = typed.split("\r")
        self.lines += lines

    def _release(self) -> None:
        if self._saved is not None:
            with suppress(termios.error):  # a terminal that was closed
                termios.tcsetattr(self._source, termios.TCSANOW, self._saved)

    def _read_lines(self) -> list[str]:
        """Whole lines that wait in the terminal."""
        waiting = b""
        while select.select([self._source], [], [], 0)[0]:
            part = os.read(self._source.fileno(), 65_536)
            waiting += part
            if not part.endswith(b"\n"):
                break  # the terminal was closed, which the input line finds out
        return waiting.decode(self._source.encoding or "utf-8", "replace").split("\n")[:-1]


def _make_session(early: EarlyInput) -> PromptSession[str]:
    from prompt_toolkit.styles import Style

    return find_session_class()(
        multiline=True,
        erase_when_done=True,
        key_bindings=_make_keys(early),
        output=make_prompt_output(BufferedOutput(sys.stdout)),
        style=Style.from_dict({"bottom-toolbar": "noreverse"}),
        prompt_continuation="  ",
    )


def _make_keys(early: EarlyInput) -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        send_or_continue(event, early.pastes)

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def go_on(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-c")
    @keys.add("<sigint>")
    def interrupt(_: KeyPressEvent) -> None:
        early.leave()

    _ = (send, go_on, interrupt)
    add_paste_key(keys, early.pastes)
    return keys


def _render_prompt() -> AnyFormattedText:
    return [("", "\n"), ("" if os.environ.get("NO_COLOR") else "ansicyan", "›"), ("", " ")]
