"""`sevenfold stats`: what a project's sessions cost over time, and what the layers did."""

from __future__ import annotations

import os
from argparse import Namespace
from datetime import date, timedelta
from pathlib import Path
from typing import cast

from sevenfold.agent.loop.local_settings import read_trusted_settings
from sevenfold.cli.inspect.stats_facts import read_project_facts
from sevenfold.cli.inspect.stats_view import describe_stats, show_stats
from sevenfold.cli.screen import Screen
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import InputError
from sevenfold.store.project.place_settings import PlaceSettings
from sevenfold.store.project.settings_files import find_user_home

DEFAULT_STATS_PERIOD = timedelta(days=30)


def run_stats(options: Namespace, screen: Screen) -> int:
    project, since = cast("Path", options.project), _read_since(cast("str | None", options.since))
    if not project.is_dir():
        raise InputError(f"--project {str(project)!r} is no folder; name the project's folder, or one in it")
    settings = read_trusted_settings(project, os.environ)
    home = settings.of(PlaceSettings).home_folder(find_user_home(os.environ))
    try:
        facts = read_project_facts(
            project,
            settings,
            home,
            since,
            with_fidelity=bool(options.fidelity),
            on_progress=lambda share: screen.show_progress("reading", share),
        )
    finally:
        screen.clear_progress()
    if options.json:
        screen.show_json(describe_stats(facts, since))
    else:
        show_stats(facts, since, screen, by_session=bool(options.sessions), fidelity=bool(options.fidelity))
    return 0


def _read_since(text: str | None) -> date:
    if text is None:
        return (SystemClock().now() - DEFAULT_STATS_PERIOD).date()
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"--since {text!r} is no day; write it as 2026-11-15") from error
