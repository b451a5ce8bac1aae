"""How `sevenfold recall` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from sevenfold.cli.options.shared import add_json_option, add_project_option

RECALL_HELP = "show which memories a prompt would bring, and why"

RECALL_DESCRIPTION = """\
Looks for the memories that a prompt is about, as a session does before each request:
by their words, and by meaning where `sevenfold search setup` was run. Shown is what
would stand behind the prompt; with --explain also what was found and is not certain
enough. It asks no model and changes nothing. 1 if nothing is recalled.
"""

RECALL_EXAMPLES = """\
examples:
  sevenfold recall "how do we retry?"
  sevenfold recall "deploy to staging" --explain    what counts for and against each
  sevenfold recall "deploy" --json --limit 50 | jq '.[].key'
"""


def add_recall_options(parser: ArgumentParser) -> None:
    parser.add_argument("prompt", metavar="PROMPT", help="what a user might say")
    parser.add_argument(
        "--limit",
        type=_read_limit,
        default=20,
        metavar="N",
        help="look at the N best (20); all are in --json",
    )
    parser.add_argument("--explain", action="store_true", help="say why, and show what is not certain enough")
    parser.add_argument("--words", action="store_true", help="leave meanings out")
    add_project_option(parser)
    add_json_option(parser)


def _read_limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1_000):
        raise ArgumentTypeError(f"{text!r} is no number of memories; expected 1 to 1000")
    return int(text)
