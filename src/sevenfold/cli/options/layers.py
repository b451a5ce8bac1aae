"""How `sevenfold layers` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

from sevenfold.cli.options.shared import add_json_option

LAYERS_HELP = "show the seven layers"

LAYERS_DESCRIPTION = """\
Shows the seven layers, cheapest first.
"""

LAYERS_EXAMPLES = """\
examples:
  sevenfold layers
  sevenfold layers --json | jq .
"""


def add_layers_options(parser: ArgumentParser) -> None:
    add_json_option(parser)
