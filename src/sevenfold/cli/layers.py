"""`sevenfold layers`: the table of the seven."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict

from sevenfold.cli.render import Cell, Screen
from sevenfold.layers import LAYERS, Layer


def run(options: Namespace, screen: Screen) -> int:
    if options.json:
        screen.show_json([asdict(layer) for layer in LAYERS])
        return 0
    # Two lines a layer: on one, its five columns are wider than a terminal.
    screen.show_table(row for layer in LAYERS for row in _rows(layer))
    return 0


def _rows(layer: Layer) -> Iterator[list[Cell]]:
    yield [
        Cell(str(layer.number)),
        Cell(layer.name, "strong"),
        Cell("costs", "faint"),
        Cell(layer.cost),
    ]
    yield [Cell(""), Cell(layer.room, "faint"), Cell("acts on", "faint"), Cell(layer.trigger)]
