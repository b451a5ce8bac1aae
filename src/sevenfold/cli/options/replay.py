"""How `sevenfold replay` is asked for."""

from __future__ import annotations

from argparse import ArgumentParser

REPLAY_HELP = "say what recorded sessions cost and where the cache broke"

REPLAY_DESCRIPTION = """\
Says what recorded sessions cost: tokens and dollars by kind and model, every
cache break with its cause, what filled the context, the most expensive tool
results. Offline, no key.

Reads Claude Code's transcripts, Codex rollouts and plain Messages JSONL,
whatever the files are called. Without a path it looks where Claude Code and
Codex keep theirs; if nothing is there, it shows a sample.
"""

REPLAY_EXAMPLES = """\
examples:
  sevenfold replay
  sevenfold replay ~/.claude/projects --since 2026-11-01
  sevenfold replay session.jsonl --json | jq .breaks
  sevenfold replay --html replay.html            a page to look at, with plots
  sevenfold replay --reprice claude-sonnet-5-5   all of them at its prices
  sevenfold replay --policy sevenfold            what we would have saved
"""


def add_replay_options(parser: ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a transcript, or a folder that holds some")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/replay.md describes it)")
    parser.add_argument("--html", metavar="FILE", help="write the report as one page, to open in a browser")
    parser.add_argument("--reprice", metavar="MODEL", help="count every call at this model's prices of today")
    parser.add_argument("--since", metavar="DATE", help="count only calls from this day on")
    parser.add_argument("--limit", type=int, metavar="N", help="read only the N files written to last")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes to use (one a core)")
    under = parser.add_argument_group("what it would have cost under a policy")
    under.add_argument(
        "--policy",
        choices=("sevenfold", "balanced", "thrift", "ski", "fixed", "keep"),
        help="send the sessions again under this policy for clearing old results; sevenfold: our default",
    )
    under.add_argument("--ttl", choices=("5m", "1h"), help="how long the cache lives (5m)")
    under.add_argument(
        "--read-price",
        type=float,
        metavar="X",
        help="what a cached token costs, a fresh one being 1 (as the session's model has it, else 0.1)",
    )
