"""How `sevenfold spend` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

from sevenfold.cli.options.shared import add_json_option

SPEND_HELP = "show what background work spent, stop it, let it go on"

SPEND_DESCRIPTION = """\
Says what background work spent against its caps, by kind, and which kinds rest
after failures: notes, summaries, progress lines, agents in the background. All
processes of yours share the caps. The conversation itself is not counted here
and never stopped; `sevenfold stats` shows it.
"""

SPEND_EXAMPLES = """\
examples:
  sevenfold spend
  sevenfold spend stop             no background work in any process from now on
  sevenfold spend resume
  sevenfold spend forgive notes    forget the failures of a kind, so that it tries again
  sevenfold spend --json | jq .hour
"""


def add_spend_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("show", "stop", "resume", "forgive"),
        default="show",
        help="show (if none is named), stop, resume, or forgive a KIND",
    )
    parser.add_argument("kind", nargs="?", metavar="KIND", help="what to forgive: notes, summary, …")
    add_json_option(parser)
