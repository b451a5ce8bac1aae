"""How `sevenfold chat` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from sevenfold.cli.options.shared import add_project_option

CHAT_HELP = "talk to an agent that works in this repository"

CHAT_DESCRIPTION = """\
Talks to an agent that reads, edits and runs things in this repository, and asks
before it changes any. All seven layers work under it: what they do is shown as
they do it.

With -p it answers one prompt and ends, for scripts; what is piped in is put
behind the prompt. Without a key it says what it looked for and how to begin.
"""

CHAT_EXAMPLES = """\
examples:
  sevenfold chat
  sevenfold chat --continue                            go on with the last session
  sevenfold chat --resume 3f2a --fork                  go on from one, and leave it as it is
  git diff | sevenfold chat -p "Review this"
  sevenfold chat -p "Fix the typo in README" --mode accept-edits
  sevenfold chat -p "Where is the parser?" --output json | jq -r .result
"""

CHAT_MODES = ("ask", "accept-edits", "plan", "read-only", "bypass")
CHAT_OUTPUT_FORMATS = ("text", "json", "stream-json")


def add_chat_options(parser: ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="what to say first")
    parser.add_argument(
        "-p", "--print", action="store_true", help="answer PROMPT, and what is piped in, and end"
    )
    parser.add_argument(
        "--output",
        choices=CHAT_OUTPUT_FORMATS,
        default="text",
        help="with -p: text, json, or stream-json as it happens",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--continue", action="store_true", help="go on with the session written to last")
    which.add_argument("--resume", metavar="ID", help="go on with that session; how its id begins will do")
    parser.add_argument("--fork", action="store_true", help="go on in a copy: that session stays as it is")
    parser.add_argument("--model", metavar="NAME", default="", help="ask this model (as settings say)")
    parser.add_argument("--mode", choices=CHAT_MODES, help="what may be done unasked (as settings say)")
    parser.add_argument(
        "--max-rounds",
        type=_count,
        metavar="N",
        help="end a turn after so many model calls (as settings say)",
    )
    parser.add_argument("--max-usd", type=_dollars, metavar="X", help="with -p: end when this much is spent")
    add_project_option(parser)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ArgumentTypeError(f"{text!r} is no number of rounds; expected 1 or more")
    return int(text)


def _dollars(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 < amount < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no amount of dollars; expected something like 0.50")
    return amount
