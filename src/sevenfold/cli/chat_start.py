"""The start of `sevenfold chat`: draws the input line, then loads the rest of the program beside it.

At a full terminal a person can type before the agent's modules are imported. Everything else is in `chat`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from argparse import Namespace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sevenfold.agent.tui.early_input import EarlyInput, is_full_terminal
from sevenfold.core import __version__
from sevenfold.core.errors import InputError, describe_missing

if TYPE_CHECKING:
    from sevenfold.cli.screen import Screen

_LIBRARIES = ("prompt_toolkit", "rich")
"""Libraries of the terminal interface; a script needs neither."""
CHAT_MODULE = "sevenfold.cli.chat"


def start_chat(options: Namespace, screen: Screen) -> int:
    if not options.print:
        missing = [name for name in _LIBRARIES if find_spec(name) is None]
        if missing:
            raise InputError(
                f"{describe_missing('sevenfold chat', missing, 'chat')}; -p PROMPT works without"
            )
        if options.max_usd is not None or options.output != "text":
            raise InputError("--output and --max-usd are for one answer: add -p")
    try:
        if not (options.print or options.screen_reader) and is_full_terminal():
            return asyncio.run(_start(options, screen))
        from sevenfold.cli.chat import run_chat

        return run_chat(options, screen)
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM  # ended before there was a chat to close


async def _start(options: Namespace, screen: Screen) -> int:
    task, leaving = asyncio.current_task(), asyncio.Event()

    def leave() -> None:
        leaving.set()
        if task is not None:
            task.cancel()

    with EarlyInput(sys.stdin, is_full=True) as early:
        # Above the input from the start: what is erased with it must not begin in the first row, which some
        # terminals would keep in their history.
        screen.show_line(f"sevenfold {__version__}")
        screen.flush()
        early.start_prompt(leave)
        try:
            # In a thread: keys are taken meanwhile.
            await asyncio.to_thread(import_module, CHAT_MODULE)
            from sevenfold.cli.chat import chat_in_terminal

            return await chat_in_terminal(options, screen, early)
        except asyncio.CancelledError:
            if not leaving.is_set():
                raise
            return 130
        finally:
            await early.stop_prompt()
