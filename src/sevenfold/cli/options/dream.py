"""How `sevenfold dream` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

from sevenfold.cli.options.shared import add_json_option, add_project_option

DREAM_HELP = "merge and tidy what is remembered, and show the difference"

DREAM_ACTIONS = ("now", "log", "show", "undo", "stop")

DREAM_DESCRIPTION = """\
Brings the memories of a project in order: duplicates merged, dates made absolute,
contradictions settled, what is stale put aside. It works on a copy; what comes of
it is checked (no fact is dropped without a reason), published as one change, and
shown as a diff. What you edit meanwhile stays as you edited it.

Without a model, or with --mechanical, only what needs no judgement is done.
"""

DREAM_EXAMPLES = """\
examples:
  sevenfold dream                  dream now, whatever the gates of automatic dreams say
  sevenfold dream --dry-run        show what would change, and change nothing
  sevenfold dream --mechanical     ask no model, spend nothing
  sevenfold dream log              past dreams
  sevenfold dream show [ID]        what one did and why, with its diff (the last one)
  sevenfold dream undo [ID]        take it back, byte for byte (the last one)
  sevenfold dream stop             end the one that is under way in any process
"""


def add_dream_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=DREAM_ACTIONS,
        default="now",
        help="now (if none is named), log, show, undo or stop",
    )
    parser.add_argument("dream", nargs="?", metavar="ID", help="which dream; the beginning of an id will do")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_argument("--mechanical", action="store_true", help="ask no model")
    add_project_option(parser)
    add_json_option(parser)
