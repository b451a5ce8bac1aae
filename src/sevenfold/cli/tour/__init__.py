"""`sevenfold tour`: a real session, offline, against the simulator with a scripted model.

`run_tour` runs the command, with these parts:

- `run`: plays the scenes in a temporary repository.
- `script`: the scenes: prompts, and the replies of the scripted model.
- `team`: the last part: two users and a team server.
- `view`: prints the scenes, what the layers do, and the bill.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from sevenfold.cli.screen import Screen
from sevenfold.core.errors import InputError

_LIBRARIES = ("anthropic", "rich", "starlette", "uvicorn")
_EXTRAS = "sevenfold[anthropic,chat,simulator]"


def run_tour(options: Namespace, screen: Screen) -> int:
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise InputError(f"the tour needs {', '.join(missing)}; pip install '{_EXTRAS}'")
    asyncio.run(_tour(screen, is_fast=options.fast))
    return 0


async def _tour(screen: Screen, *, is_fast: bool) -> None:
    from sevenfold.cli.tour.run import (
        ALL_LAYERS_SETTINGS,
        NO_LAYERS_SETTINGS,
        TourGuide,
        build_tour_environ,
        play_tour,
    )
    from sevenfold.cli.tour.team import find_missing_libraries, play_team_steps
    from sevenfold.cli.tour.view import TourView

    view = TourView(screen, is_fast=is_fast)
    view.begin()
    with TemporaryDirectory(prefix="sevenfold-tour-") as folder:
        here = await play_tour(Path(folder) / "with", ALL_LAYERS_SETTINGS, view)
        office = Path(folder) / "office"
        if await view.open_team(find_missing_libraries()):
            async for done in play_team_steps(office, build_tour_environ(office)):
                view.show_step(done)
        there = await play_tour(Path(folder) / "without", NO_LAYERS_SETTINGS, TourGuide())
    view.show_bill(here, there)
    view.end()
