"""`sevenfold layers`: the table of the seven."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from sevenfold.cli.render import Cell, Screen
from sevenfold.layers import LAYERS

_HEADINGS = ("layer", "name", "costs", "acts on", "room")


def run(options: Namespace, screen: Screen) -> int:
    if options.json:
        screen.show_json([asdict(layer) for layer in LAYERS])
        return 0
    heading = [Cell(word, "faint") for word in _HEADINGS]
    rows = [
        [
            Cell(str(layer.number)),
            Cell(layer.name, "strong"),
            Cell(layer.cost),
            Cell(layer.trigger),
            Cell(layer.room, "faint"),
        ]
        for layer in LAYERS
    ]
    screen.show_table([heading, *rows])
    return 0
