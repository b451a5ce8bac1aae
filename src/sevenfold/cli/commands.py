"""The commands there are. A command's own module is imported only when it is called."""

from __future__ import annotations

from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    BooleanOptionalAction,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypeAlias, cast

from sevenfold.cli.render import Screen
from sevenfold.core.version import __version__

Command: TypeAlias = Callable[[Namespace, Screen], int]

MAX_PORT = 65_535

_EXAMPLES = """\
examples:
  sevenfold replay                          what your recorded sessions cost, and where the cache broke
  sevenfold replay ~/.claude/projects/-srv-app --reprice claude-sonnet-5-5
  sevenfold settings                        every setting, its value and where that came from
  sevenfold settings tool_results           one section
  sevenfold settings compact.enabled        one setting, with its reason and its name in the environment
  sevenfold settings --json | jq .refused   what a committed settings file tried to set and may not
  sevenfold context                         what fills your last session's window, and its next compaction
  sevenfold layers                          the seven layers: what each costs and when it acts
  sevenfold simulate --ledger bills.jsonl   a Messages API on this machine, to test against

Settings come from files and the environment; docs/settings.md lists them all.
"""

_SETTINGS = """\
Shows every setting, its value, and where that came from. The sources, weakest first:

  the defaults
  <project>/.sevenfold/settings.toml         committed: may switch layers off and lower limits, no more
  ~/.sevenfold/settings.toml                 yours, for every project
  <project>/.sevenfold/settings.local.toml   yours, for this project; keep it out of git
  the environment                            SEVENFOLD_TOOL_RESULTS_LIMIT_CHARS=30000
  keyword arguments                          from Python
  /etc/sevenfold/settings.toml               an operator's policy
"""

_SETTINGS_EXAMPLES = """\
examples:
  sevenfold settings
  sevenfold settings window compact.auto_compact_pct
  sevenfold settings --project ~/src/app --json
"""

_REPLAY = """\
Says what recorded sessions cost: tokens and dollars by kind and model, every
cache break with its cause, what filled the context, the most expensive tool
results. Offline, no key.

Reads Claude Code's transcripts, Codex rollouts and plain Messages JSONL,
whatever the files are called. Without a path it looks where Claude Code and
Codex keep theirs; if nothing is there, it shows a sample.
"""

_REPLAY_EXAMPLES = """\
examples:
  sevenfold replay
  sevenfold replay ~/.claude/projects --since 2026-11-01
  sevenfold replay session.jsonl --json | jq .breaks
  sevenfold replay --html replay.html            a page to look at, with plots
  sevenfold replay --reprice claude-sonnet-5-5   all of them at its prices
  sevenfold replay --policy sevenfold            what we would have saved
"""

_CONTEXT = """\
Says what fills the window of a session: tokens by kind and tool, files that
were read twice, where warning and compaction set in, what the next compaction
would do and keep, and what the session cost so far.

Reads the transcript that a session keeps on disk, and writes nothing: one that
is running can be looked at too. The system prompt and the tools are not in it;
their size is what was billed beyond what can be seen.
"""

_CONTEXT_EXAMPLES = """\
examples:
  sevenfold context
  sevenfold context 3f2a --project ~/src/app       by the beginning of its id
  sevenfold context --model claude-haiku-4-5       would it fit there?
  sevenfold context --json | jq .next_cut
"""

_SIMULATE = """\
Serves the Messages API on this machine, with a prompt cache and bills as
documented: point any agent at it and see what each request would cost, and
which block broke the cache. Offline, no key.

A brain answers: echo says back what it hears; a script.yaml lists requests and
answers, and ends with an error if one was unexpected or never came; a
session.jsonl (of Claude Code, Codex or plain Messages JSONL) gives a recorded
session's answers again. docs/simulator.md has the rest.
"""

_SIMULATE_EXAMPLES = """\
examples:
  sevenfold simulate
  sevenfold simulate --port 8100 --ledger bills.jsonl
  sevenfold simulate --brain talk.yaml
  sevenfold simulate --account-age old        as for accounts made before 2026-08-31
  curl -d '{"advance_seconds": 3600}' http://127.0.0.1:8100/_sevenfold/clock
"""


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(
        "sevenfold",
        description="A bounded context, a warm prompt cache and a memory that lasts, for LLM agents.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sevenfold {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    settings = commands.add_parser(
        "settings",
        help="show each setting, its value and where it came from",
        description=_SETTINGS,
        epilog=_SETTINGS_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    settings.add_argument("keys", nargs="*", metavar="KEY", help="a section, or section.name; all if none")
    settings.add_argument("--json", action="store_true", help="print JSON")
    settings.add_argument(
        "--project",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the project's folder, or one in it (here)",
    )
    replay = commands.add_parser(
        "replay",
        help="say what recorded sessions cost and where the cache broke",
        description=_REPLAY,
        epilog=_REPLAY_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_replay_options(replay)
    simulate = commands.add_parser(
        "simulate",
        help="serve the Messages API on this machine and bill it",
        description=_SIMULATE,
        epilog=_SIMULATE_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_simulate_options(simulate)
    context = commands.add_parser(
        "context",
        help="say what fills a session's window and what comes next",
        description=_CONTEXT,
        epilog=_CONTEXT_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_context_options(context)
    layers = commands.add_parser(
        "layers", help="show the seven layers", description="Shows the seven layers, cheapest first."
    )
    layers.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_replay_options(replay: ArgumentParser) -> None:
    replay.add_argument("paths", nargs="*", metavar="PATH", help="a transcript, or a folder that holds some")
    replay.add_argument("--json", action="store_true", help="print JSON (docs/replay.md describes it)")
    replay.add_argument("--html", metavar="FILE", help="write the report as one page, to open in a browser")
    replay.add_argument("--reprice", metavar="MODEL", help="count every call at this model's prices of today")
    replay.add_argument("--since", metavar="DATE", help="count only calls from this day on")
    replay.add_argument("--limit", type=int, metavar="N", help="read only the N files written to last")
    replay.add_argument("--jobs", type=int, metavar="N", help="processes to use (one a core)")
    under = replay.add_argument_group("what it would have cost under a policy")
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


def _add_context_options(context: ArgumentParser) -> None:
    context.add_argument(
        "session",
        nargs="?",
        default="latest",
        metavar="SESSION",
        help="its id, or how that begins (the one written to last)",
    )
    context.add_argument(
        "--project",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the project's folder, or one in it (here)",
    )
    context.add_argument("--model", metavar="NAME", help="as if it went on with this model (its last one)")
    context.add_argument("--json", action="store_true", help="print JSON")


def _add_simulate_options(simulate: ArgumentParser) -> None:
    simulate.add_argument(
        "--port", type=_port, default=0, metavar="N", help="where to listen (any free port)"
    )
    simulate.add_argument(
        "--brain", default="echo", metavar="BRAIN", help="echo, a script.yaml or a session.jsonl (echo)"
    )
    simulate.add_argument("--ledger", metavar="FILE", help="append every request and its bill, as JSON lines")
    simulate.add_argument("--quiet", action="store_true", help="do not print a line a request")
    simulate.add_argument(
        "--strict", action=BooleanOptionalAction, default=True, help="refuse fields the API does not know"
    )
    simulate.add_argument(
        "--account-age", choices=("new", "old"), default="new", help="old: thinking is checked on few models"
    )
    simulate.add_argument(
        "--keep-signatures", action="store_true", help="accept thinking that was signed elsewhere"
    )
    simulate.add_argument(
        "--cache-edits", action="store_true", help="allow an extension that no public provider offers"
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_PORT):
        raise ArgumentTypeError(f"{text!r} is no port; expected 0 (any free one) to {MAX_PORT}")
    return int(text)


def find_command(name: str) -> Command:
    """The function that carries out a command of that name."""
    return cast("Command", import_module(f"sevenfold.cli.{name}").run)
