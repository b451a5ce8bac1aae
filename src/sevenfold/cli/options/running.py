"""Arguments of `chat`, `tour` and `simulate`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction

from sevenfold.cli.options.shared import add_project_option, parse_port

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


TOUR_HELP = "watch the layers at work, offline, with the bill at the end"

TOUR_DESCRIPTION = """\
Plays a short session of the agent in a scratch repository, through the real
loop, and says what each layer does as it does it. Offline, no key: the model is
a script, served and billed by the simulator. At the end stands the bill, beside
that of the same session with the layers off.

Nothing of yours is read or written: repository, home and settings are made for
the tour and removed after it.
"""

TOUR_EXAMPLES = """\
examples:
  sevenfold tour
  sevenfold tour --fast     without the pauses for reading
"""


def add_tour_options(parser: ArgumentParser) -> None:
    parser.add_argument("--fast", action="store_true", help="do not pause for reading")


SIMULATE_HELP = "serve the Messages API on this machine and bill it"

SIMULATE_DESCRIPTION = """\
Serves the Messages API on this machine, with a prompt cache and bills as
documented: point any agent at it and see what each request would cost, and
which block broke the cache. Offline, no key.

A brain answers: echo says back what it hears; a script.yaml lists requests and
answers, and ends with an error if one was unexpected or never came; a
session.jsonl (of Claude Code, Codex or plain Messages JSONL) gives a recorded
session's answers again. docs/simulator.md has the rest.
"""

SIMULATE_EXAMPLES = """\
examples:
  sevenfold simulate
  sevenfold simulate --port 8100 --ledger bills.jsonl
  sevenfold simulate --brain talk.yaml
  sevenfold simulate --account-age old        as for accounts made before 2026-08-31
  curl -d '{"advance_seconds": 3600}' http://127.0.0.1:8100/_sevenfold/clock
"""


def add_simulate_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=parse_port, default=0, metavar="N", help="where to listen (any free port)"
    )
    parser.add_argument(
        "--brain", default="echo", metavar="BRAIN", help="echo, a script.yaml or a session.jsonl (echo)"
    )
    parser.add_argument("--ledger", metavar="FILE", help="append every request and its bill, as JSON lines")
    parser.add_argument("--quiet", action="store_true", help="do not print a line a request")
    parser.add_argument(
        "--strict", action=BooleanOptionalAction, default=True, help="refuse fields the API does not know"
    )
    parser.add_argument(
        "--account-age", choices=("new", "old"), default="new", help="old: thinking is checked on few models"
    )
    parser.add_argument(
        "--keep-signatures", action="store_true", help="accept thinking that was signed elsewhere"
    )
    parser.add_argument(
        "--cache-edits", action="store_true", help="allow an extension that no public provider offers"
    )
