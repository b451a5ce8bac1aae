"""How `sevenfold context` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

from sevenfold.cli.options.shared import add_json_option, add_project_option

CONTEXT_HELP = "say what fills a session's window and what comes next"

CONTEXT_DESCRIPTION = """\
Says what fills the window of a session: tokens by kind and tool, files that
were read twice, where warning and compaction set in, what the next compaction
would do and keep, and what the session cost so far.

Reads the transcript that a session keeps on disk, and writes nothing: one that
is running can be looked at too. The system prompt and the tools are not in it;
their size is what was billed beyond what can be seen.
"""

CONTEXT_EXAMPLES = """\
examples:
  sevenfold context
  sevenfold context 3f2a --project ~/src/app       by the beginning of its id
  sevenfold context --model claude-haiku-4-5       would it fit there?
  sevenfold context --json | jq .next_cut
"""


def add_context_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "session",
        nargs="?",
        default="latest",
        metavar="SESSION",
        help="its id, or how that begins (the one written to last)",
    )
    add_project_option(parser)
    parser.add_argument("--model", metavar="NAME", help="as if it went on with this model (its last one)")
    add_json_option(parser)
