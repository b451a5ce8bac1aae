"""`sevenfold layers`: the table of the seven layers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict

from sevenfold.cli.screen import Screen, TableCell
from sevenfold.layers import LAYERS, Layer


def run_layers(options: Namespace, screen: Screen) -> int:
    if options.json:
        # `room` is the older name of `folder`, which scripts may read.
        screen.show_json([{**asdict(layer), "room": layer.folder} for layer in LAYERS])
        return 0
    # Two lines a layer: on one, its five columns are wider than a terminal.
    screen.show_table(row for layer in LAYERS for row in _rows(layer))
    return 0


def _rows(layer: Layer) -> Iterator[list[TableCell]]:
    yield [
        TableCell(str(layer.number)),
        TableCell(layer.name, "strong"),
        TableCell("costs", "faint"),
        TableCell(layer.cost),
    ]
    yield [
        TableCell(""),
        TableCell(layer.folder, "faint"),
        TableCell("acts on", "faint"),
        TableCell(layer.trigger),
    ]
