"""`sevenfold tour`: a real session, offline, against the simulator with a scripted model.

`run_tour` runs the command, with these parts:

- `run`: plays the steps in a temporary repository.
- `script`: the steps: prompts, and the replies of the scripted model.
- `team`: the last part: two users and a team server.
- `view`: prints the steps, what the layers do, and the bill, at reading speed.
"""

from __future__ import annotations

import asyncio
import signal
from argparse import Namespace
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from sevenfold.cli.screen import Screen
from sevenfold.core.errors import InputError, describe_missing

_LIBRARIES = ("anthropic", "rich", "starlette", "uvicorn")


def run_tour(options: Namespace, screen: Screen) -> int:
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise InputError(describe_missing("sevenfold tour", missing, "chat", "simulator"))
    with _interrupting_at_once():
        asyncio.run(_tour(screen, is_fast=options.fast))
    return 0


@contextmanager
def _interrupting_at_once() -> Generator[None]:
    """Ctrl-C ends the tour now. The handler of asyncio waits for the next `await`: the end of all imports."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


async def _tour(screen: Screen, *, is_fast: bool) -> None:
    # First: what is imported below takes seconds on a busy machine.
    screen.show_line("Sevenfold in 90 seconds", "strong")
    screen.flush()
    screen.show_progress("loading", 0)
    from sevenfold.cli.tour.run import ALL_LAYERS_SETTINGS, BaselineRun, build_tour_environ, play_tour
    from sevenfold.cli.tour.team import TeamRun, find_missing_libraries
    from sevenfold.cli.tour.view import ReadingPace, TourView, reading_keys

    baseline = BaselineRun()
    with (
        TemporaryDirectory(prefix="sevenfold-tour-") as folder,
        reading_keys() as read_key,
        baseline.playing(Path(folder) / "without"),
    ):
        pace = ReadingPace(screen, is_fast=is_fast, read_key=None if is_fast else read_key)
        team = TeamRun(Path(folder) / "office", build_tour_environ(Path(folder) / "office"))
        missing = find_missing_libraries()
        with pace.showing_work(), ExitStack() as background:
            view = TourView(screen, pace, baseline)
            if not missing:
                view.after_first_bill = lambda: background.enter_context(team.playing())
            screen.clear_progress()
            view.begin()
            here = await play_tour(Path(folder) / "with", ALL_LAYERS_SETTINGS, view)
            if not view.is_over and await view.open_team(missing):
                for done in team.read_outputs():
                    view.show_step(done)
            view.show_bill(here)
        view.end()
