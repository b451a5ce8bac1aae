"""`sevenfold tour`: a real session through the real loop, offline, with a scripted model and its bill."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from sevenfold.cli.render import Screen
from sevenfold.core.errors import InputError

LIBRARIES = ("anthropic", "rich", "starlette", "uvicorn")
EXTRAS = "sevenfold[anthropic,chat,simulator]"


def run(options: Namespace, screen: Screen) -> int:
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise InputError(f"the tour needs {', '.join(missing)}; pip install '{EXTRAS}'")
    asyncio.run(_tour(screen, is_fast=options.fast))
    return 0


async def _tour(screen: Screen, *, is_fast: bool) -> None:
    from sevenfold.cli.tour_run import WITH, WITHOUT, Guide, run_tour, tour_environ
    from sevenfold.cli.tour_team import find_missing, play_team
    from sevenfold.cli.tour_view import TourView

    view = TourView(screen, is_fast=is_fast)
    view.begin()
    with TemporaryDirectory(prefix="sevenfold-tour-") as folder:
        here = await run_tour(Path(folder) / "with", WITH, view)
        office = Path(folder) / "office"
        if await view.open_team(find_missing()):
            async for done in play_team(office, tour_environ(office)):
                view.show_step(done)
        there = await run_tour(Path(folder) / "without", WITHOUT, Guide())
    view.show_bill(here, there)
    view.end()
