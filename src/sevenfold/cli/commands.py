"""The table of commands. `cli/options` declares their arguments; the module of a command is imported when it
runs.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn, TypeAlias, cast

from sevenfold.cli.options.agents import (
    HOOK_DESCRIPTION,
    HOOK_EXAMPLES,
    HOOK_HELP,
    INSTALL_DESCRIPTION,
    INSTALL_EXAMPLES,
    INSTALL_HELP,
    RESIDENT_DESCRIPTION,
    RESIDENT_EXAMPLES,
    RESIDENT_HELP,
    add_hook_options,
    add_install_options,
    add_resident_options,
)
from sevenfold.cli.options.inspect import (
    CONTEXT_DESCRIPTION,
    CONTEXT_EXAMPLES,
    CONTEXT_HELP,
    DOCTOR_DESCRIPTION,
    DOCTOR_EXAMPLES,
    DOCTOR_HELP,
    LAYERS_DESCRIPTION,
    LAYERS_EXAMPLES,
    LAYERS_HELP,
    REPLAY_DESCRIPTION,
    REPLAY_EXAMPLES,
    REPLAY_HELP,
    SEARCH_DESCRIPTION,
    SEARCH_EXAMPLES,
    SEARCH_HELP,
    SETTINGS_DESCRIPTION,
    SETTINGS_EXAMPLES,
    SETTINGS_HELP,
    SPEND_DESCRIPTION,
    SPEND_EXAMPLES,
    SPEND_HELP,
    STATS_DESCRIPTION,
    STATS_EXAMPLES,
    STATS_HELP,
    add_context_options,
    add_doctor_options,
    add_layers_options,
    add_replay_options,
    add_search_options,
    add_settings_options,
    add_spend_options,
    add_stats_options,
)
from sevenfold.cli.options.memory import (
    DREAM_DESCRIPTION,
    DREAM_EXAMPLES,
    DREAM_HELP,
    MEMORY_DESCRIPTION,
    MEMORY_EXAMPLES,
    MEMORY_HELP,
    RECALL_DESCRIPTION,
    RECALL_EXAMPLES,
    RECALL_HELP,
    add_dream_options,
    add_memory_options,
    add_recall_options,
)
from sevenfold.cli.options.running import (
    CHAT_DESCRIPTION,
    CHAT_EXAMPLES,
    CHAT_HELP,
    MCP_DESCRIPTION,
    MCP_EXAMPLES,
    MCP_HELP,
    PROXY_DESCRIPTION,
    PROXY_EXAMPLES,
    PROXY_HELP,
    RUN_DESCRIPTION,
    RUN_EXAMPLES,
    RUN_HELP,
    SERVE_DESCRIPTION,
    SERVE_EXAMPLES,
    SERVE_HELP,
    SIMULATE_DESCRIPTION,
    SIMULATE_EXAMPLES,
    SIMULATE_HELP,
    TEAM_DESCRIPTION,
    TEAM_EXAMPLES,
    TEAM_HELP,
    TOUR_DESCRIPTION,
    TOUR_EXAMPLES,
    TOUR_HELP,
    add_chat_options,
    add_mcp_options,
    add_proxy_options,
    add_run_options,
    add_serve_options,
    add_simulate_options,
    add_team_options,
    add_tour_options,
)
from sevenfold.cli.screen import Screen
from sevenfold.core import __version__
from sevenfold.core.text.safe_text import escape_controls

RunCommand: TypeAlias = Callable[[Namespace, Screen], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How a command is asked for, and what carries it out."""

    name: str
    help: str
    description: str
    examples: str
    add_options: Callable[[ArgumentParser], None]
    target: str
    """The function that carries it out, as `module:function`. It is imported when the command is called."""


COMMANDS = (
    Command(
        name="tour",
        help=TOUR_HELP,
        description=TOUR_DESCRIPTION,
        examples=TOUR_EXAMPLES,
        add_options=add_tour_options,
        target="sevenfold.cli.tour:run_tour",
    ),
    Command(
        name="chat",
        help=CHAT_HELP,
        description=CHAT_DESCRIPTION,
        examples=CHAT_EXAMPLES,
        add_options=add_chat_options,
        target="sevenfold.cli.chat_start:start_chat",
    ),
    Command(
        name="settings",
        help=SETTINGS_HELP,
        description=SETTINGS_DESCRIPTION,
        examples=SETTINGS_EXAMPLES,
        add_options=add_settings_options,
        target="sevenfold.cli.settings:run_settings",
    ),
    Command(
        name="replay",
        help=REPLAY_HELP,
        description=REPLAY_DESCRIPTION,
        examples=REPLAY_EXAMPLES,
        add_options=add_replay_options,
        target="sevenfold.cli.replay.command:run_replay",
    ),
    Command(
        name="simulate",
        help=SIMULATE_HELP,
        description=SIMULATE_DESCRIPTION,
        examples=SIMULATE_EXAMPLES,
        add_options=add_simulate_options,
        target="sevenfold.cli.simulate:run_simulate",
    ),
    Command(
        name="run",
        help=RUN_HELP,
        description=RUN_DESCRIPTION,
        examples=RUN_EXAMPLES,
        add_options=add_run_options,
        target="sevenfold.cli.proxy:run_agent",
    ),
    Command(
        name="proxy",
        help=PROXY_HELP,
        description=PROXY_DESCRIPTION,
        examples=PROXY_EXAMPLES,
        add_options=add_proxy_options,
        target="sevenfold.cli.proxy:run_proxy",
    ),
    Command(
        name="mcp",
        help=MCP_HELP,
        description=MCP_DESCRIPTION,
        examples=MCP_EXAMPLES,
        add_options=add_mcp_options,
        target="sevenfold.cli.mcp:run_mcp",
    ),
    Command(
        name="serve",
        help=SERVE_HELP,
        description=SERVE_DESCRIPTION,
        examples=SERVE_EXAMPLES,
        add_options=add_serve_options,
        target="sevenfold.cli.team.serve:run_serve",
    ),
    Command(
        name="context",
        help=CONTEXT_HELP,
        description=CONTEXT_DESCRIPTION,
        examples=CONTEXT_EXAMPLES,
        add_options=add_context_options,
        target="sevenfold.cli.inspect.context:run_context",
    ),
    Command(
        name="memory",
        help=MEMORY_HELP,
        description=MEMORY_DESCRIPTION,
        examples=MEMORY_EXAMPLES,
        add_options=add_memory_options,
        target="sevenfold.cli.memory.command:run_memory",
    ),
    Command(
        name="recall",
        help=RECALL_HELP,
        description=RECALL_DESCRIPTION,
        examples=RECALL_EXAMPLES,
        add_options=add_recall_options,
        target="sevenfold.cli.memory.recall:run_recall",
    ),
    Command(
        name="search",
        help=SEARCH_HELP,
        description=SEARCH_DESCRIPTION,
        examples=SEARCH_EXAMPLES,
        add_options=add_search_options,
        target="sevenfold.cli.inspect.search:run_search",
    ),
    Command(
        name="dream",
        help=DREAM_HELP,
        description=DREAM_DESCRIPTION,
        examples=DREAM_EXAMPLES,
        add_options=add_dream_options,
        target="sevenfold.cli.memory.dream:run_dream",
    ),
    Command(
        name="team",
        help=TEAM_HELP,
        description=TEAM_DESCRIPTION,
        examples=TEAM_EXAMPLES,
        add_options=add_team_options,
        target="sevenfold.cli.team.command:run_team",
    ),
    Command(
        name="install",
        help=INSTALL_HELP,
        description=INSTALL_DESCRIPTION,
        examples=INSTALL_EXAMPLES,
        add_options=add_install_options,
        target="sevenfold.cli.install:run_install",
    ),
    Command(
        name="hook",
        help=HOOK_HELP,
        description=HOOK_DESCRIPTION,
        examples=HOOK_EXAMPLES,
        add_options=add_hook_options,
        target="sevenfold.cli.resident:run_hook_command",
    ),
    Command(
        name="resident",
        help=RESIDENT_HELP,
        description=RESIDENT_DESCRIPTION,
        examples=RESIDENT_EXAMPLES,
        add_options=add_resident_options,
        target="sevenfold.cli.resident:run_resident_command",
    ),
    Command(
        name="stats",
        help=STATS_HELP,
        description=STATS_DESCRIPTION,
        examples=STATS_EXAMPLES,
        add_options=add_stats_options,
        target="sevenfold.cli.inspect.stats:run_stats",
    ),
    Command(
        name="spend",
        help=SPEND_HELP,
        description=SPEND_DESCRIPTION,
        examples=SPEND_EXAMPLES,
        add_options=add_spend_options,
        target="sevenfold.cli.inspect.spend:run_spend",
    ),
    Command(
        name="doctor",
        help=DOCTOR_HELP,
        description=DOCTOR_DESCRIPTION,
        examples=DOCTOR_EXAMPLES,
        add_options=add_doctor_options,
        target="sevenfold.cli.inspect.doctor:run_doctor",
    ),
    Command(
        name="layers",
        help=LAYERS_HELP,
        description=LAYERS_DESCRIPTION,
        examples=LAYERS_EXAMPLES,
        add_options=add_layers_options,
        target="sevenfold.cli.layers:run_layers",
    ),
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
  sevenfold search retry timeout            find turns in all past sessions: yours, Claude Code's, Codex's
  sevenfold dream --dry-run                 what merging and tidying the memories would change
  sevenfold team join https://memory.acme.io  share memories with everybody who joined
  sevenfold install claude-code             memory and rules in Claude Code; also codex, cursor, …
  sevenfold stats                           what your sessions cost over time, and what the layers did
  sevenfold spend                           what background work spent, and the switch over it
  sevenfold doctor                          is everything set up, and what to do if not
  sevenfold layers                          the seven layers: what each costs and when it acts
  sevenfold mcp                             memory and past sessions for other agents, over MCP
  sevenfold simulate --ledger bills.jsonl   a Messages API on this machine, to test against
  sevenfold serve init acme ada             a server with one memory for a team

Settings come from files and the environment; docs/settings.md lists them all.
"""


class _Parser(ArgumentParser):
    """Argument parsing whose errors repeat nothing that a terminal obeys."""

    def error(self, message: str) -> NoReturn:
        super().error(escape_controls(message))


def make_parser() -> ArgumentParser:
    parser = _Parser(
        "sevenfold",
        description="A bounded context, a warm prompt cache and a memory that lasts, for LLM agents.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sevenfold {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for command in COMMANDS:
        command.add_options(
            commands.add_parser(
                command.name,
                help=command.help,
                description=command.description,
                epilog=command.examples,
                formatter_class=RawDescriptionHelpFormatter,
                allow_abbrev=False,
            )
        )
    return parser


def load_command(name: str) -> RunCommand:
    """The function that carries out a command of that name."""
    (command,) = (command for command in COMMANDS if command.name == name)
    module, _, function = command.target.partition(":")
    return cast("RunCommand", getattr(import_module(module), function))
