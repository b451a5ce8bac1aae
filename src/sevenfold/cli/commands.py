"""The commands there are. How one is asked for is in `usages`; its own module is imported when called."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias, cast

from sevenfold.cli.render import Screen
from sevenfold.cli.usages import (
    chat,
    context,
    doctor,
    dream,
    layers,
    memory,
    recall,
    replay,
    search,
    serve,
    settings,
    simulate,
    spend,
    stats,
    team,
    tour,
)
from sevenfold.core.version import __version__

Command: TypeAlias = Callable[[Namespace, Screen], int]

USAGES = (
    *(tour, chat, settings, replay, simulate, serve, context),
    *(memory, recall, search, dream, team, stats, spend, doctor, layers),
)
"""In the order in which `--help` lists them."""

_EXAMPLES = """\
examples:
  sevenfold tour                            watch the layers at work: offline, a minute, no key
  sevenfold chat                            an agent in this repository, with all seven layers
  sevenfold replay                          what your recorded sessions cost, and where the cache broke
  sevenfold replay ~/.claude/projects/-srv-app --reprice claude-sonnet-5-5
  sevenfold settings                        every setting, its value and where that came from
  sevenfold settings tool_results           one section
  sevenfold settings compact.enabled        one setting, with its reason and its name in the environment
  sevenfold settings --json | jq .refused   what a committed settings file tried to set and may not
  sevenfold context                         what fills your last session's window, and its next compaction
  sevenfold memory                          what is remembered of this project, and who said so
  sevenfold memory review                   what waits for you before it may be remembered
  sevenfold recall "how do we retry?"       which memories a prompt would bring, and why
  sevenfold search setup                    find memories by meaning too: fetches weights, once
  sevenfold dream --dry-run                 what merging and tidying the memories would change
  sevenfold team join https://memory.acme.io  share memories with everybody who joined
  sevenfold stats                           what your sessions cost over time, and what the layers did
  sevenfold spend                           what background work spent, and the switch over it
  sevenfold doctor                          is everything set up, and what to do if not
  sevenfold layers                          the seven layers: what each costs and when it acts
  sevenfold simulate --ledger bills.jsonl   a Messages API on this machine, to test against
  sevenfold serve init acme ada             a server with one memory for a team

Settings come from files and the environment; docs/settings.md lists them all.
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
    for usage in USAGES:
        usage.add_options(
            commands.add_parser(
                usage.__name__.rpartition(".")[2],
                help=usage.HELP,
                description=usage.DESCRIPTION,
                epilog=usage.EXAMPLES,
                formatter_class=RawDescriptionHelpFormatter,
                allow_abbrev=False,
            )
        )
    return parser


def find_command(name: str) -> Command:
    """The function that carries out a command of that name."""
    return cast("Command", import_module(f"sevenfold.cli.{name}").run)
