"""`sevenfold ui`: everything that Sevenfold knows on one page, on this machine only."""

from __future__ import annotations

import os
import select
import signal
import sys
import webbrowser
from argparse import Namespace
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import cast

from sevenfold.cli.screen import Screen
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.errors import FileMissing
from sevenfold.store.files.folder import Folder

UI_FOLDER = "ui"
_OPENER = "open.html"


def run_ui(options: Namespace, screen: Screen) -> int:
    """Serve the page until Ctrl-C."""
    # Not at the top: `--help` needs none of it.
    from sevenfold.ui.app import PageServer
    from sevenfold.ui.pages import open_pages

    with open_workspace(cast("Path", options.project)) as workspace, open_pages(workspace) as pages:
        server = PageServer(pages.make_app, cast("int | None", options.port))
        opens = not options.no_open and can_open_browser(os.environ, sys.platform)

        def show_link() -> None:
            link = server.access.make_link()
            screen.show_line(f"the page of {workspace.project_root} is at {link}", "strong")
            if opens:
                _open_browser(folder, server.access.make_link())
            screen.flush()

        with Folder.open(workspace.home / UI_FOLDER, create=True) as folder, _signals_in_main_thread():
            server.start()
            try:
                show_link()
                screen.show_line("the link works once; press Enter for another one, Ctrl-C to end", "faint")
                screen.flush()
                _wait(show_link)
            finally:
                server.stop()
                with suppress(FileMissing):
                    folder.remove(_OPENER, durable=False)
    return 0


def can_open_browser(environ: Mapping[str, str], platform: str) -> bool:
    """Whether there is a screen to open a browser on."""
    return platform == "darwin" or any(
        environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    )


def _open_browser(folder: Folder, link: str) -> None:
    """By a file that only the user can read: others on this machine see the arguments of a process."""
    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={escape(link)}">'
    folder.replace(_OPENER, page.encode(), durable=False)
    webbrowser.open((Path(folder.path) / _OPENER).as_uri())


class _Stopped(BaseException):
    """Ctrl-C, or SIGTERM."""


@contextmanager
def _signals_in_main_thread() -> Generator[None]:
    """Ctrl-C and SIGTERM end the wait. A second one while the server stops interrupts as usual."""

    def stop(*_: object) -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        raise _Stopped

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    except _Stopped:
        return
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(on_enter: Callable[[], None]) -> None:
    """Until a signal. A line that is typed asks for something."""
    terminal = sys.stdin if sys.stdin is not None and sys.stdin.isatty() else None
    while True:
        select.select([terminal] if terminal else [], [], [])
        if terminal is None or not terminal.readline():
            terminal = None
        else:
            on_enter()
