"""How `sevenfold stats` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

from sevenfold.cli.options.shared import add_json_option, add_project_option

STATS_HELP = "say what your sessions cost over time and what the layers did"

STATS_DESCRIPTION = """\
Adds up a project's sessions by day: rounds, tokens, the share that came out of
the cache, dollars with and without caching and by whose calls they were; how
often the view was cut and by which layer; what broke, was denied or refused.
Reads transcripts and events, and writes nothing.
"""

STATS_EXAMPLES = """\
examples:
  sevenfold stats
  sevenfold stats --since 2026-11-01 --json | jq .days
  sevenfold stats --sessions                  a line a session instead of a day
  sevenfold stats --fidelity                  how much of what was used after each cut was still there
"""


def add_stats_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since", metavar="DATE", help="count only sessions written to since this day (30 days)"
    )
    parser.add_argument("--sessions", action="store_true", help="a line a session instead of a day")
    parser.add_argument(
        "--fidelity", action="store_true", help="measure each cut; takes some seconds a long session"
    )
    add_json_option(parser)
    add_project_option(parser)
