"""How `sevenfold simulate` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction

from sevenfold.cli.options.shared import parse_port

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
