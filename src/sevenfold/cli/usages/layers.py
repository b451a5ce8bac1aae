"""How `sevenfold layers` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

from sevenfold.cli.usages.shared import add_json

HELP = "show the seven layers"

DESCRIPTION = """\
Shows the seven layers, cheapest first.
"""

EXAMPLES = """\
examples:
  sevenfold layers
  sevenfold layers --json | jq .
"""


def add_options(parser: ArgumentParser) -> None:
    add_json(parser)
