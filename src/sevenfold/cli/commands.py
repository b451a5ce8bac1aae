"""The table of commands. `cli/options` declares their arguments; the module of a command is imported when it
runs.
"""

from __future__ import annotations

import sys
from argparse import Action, ArgumentError, ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, NoReturn, TypeAlias, cast

from sevenfold.cli.options import DeferredParser, HelpPage, choose_named
from sevenfold.cli.options.agents import (
    COMPLETION_DESCRIPTION,
    COMPLETION_EXAMPLES,
    COMPLETION_HELP,
    HOOK_DESCRIPTION,
    HOOK_EXAMPLES,
    HOOK_HELP,
    INSTALL_DESCRIPTION,
    INSTALL_EXAMPLES,
    INSTALL_HELP,
    RESIDENT_DESCRIPTION,
    RESIDENT_EXAMPLES,
    RESIDENT_HELP,
    add_completion_options,
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
    UI_DESCRIPTION,
    UI_EXAMPLES,
    UI_HELP,
    add_context_options,
    add_doctor_options,
    add_layers_options,
    add_replay_options,
    add_search_options,
    add_settings_options,
    add_spend_options,
    add_stats_options,
    add_ui_options,
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
from sevenfold.cli.screen import STDIO_SCREEN, Screen
from sevenfold.core import __version__
from sevenfold.core.text.safe_text import escape_controls

RunCommand: TypeAlias = Callable[[Namespace, Screen], int]
CommandGroup: TypeAlias = Literal["try", "run", "look", "team"]

COMMAND_GROUPS: dict[CommandGroup, str] = {
    "try": "offline, without a key",
    "run": "an agent: ours, or yours",
    "look": "at sessions, memories, spend and settings",
    "team": "share memories with a team",
}
"""In the order in which `--help` lists them."""

MAX_LISTED_CHOICES = 12
"""Of a value that is unknown; a longer list is in the help."""


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
    group: CommandGroup = "look"
    """Where the help lists it."""


COMMANDS = (
    Command(
        name="tour",
        group="try",
        help=TOUR_HELP,
        description=TOUR_DESCRIPTION,
        examples=TOUR_EXAMPLES,
        add_options=add_tour_options,
        target="sevenfold.cli.tour:run_tour",
    ),
    Command(
        name="chat",
        group="run",
        help=CHAT_HELP,
        description=CHAT_DESCRIPTION,
        examples=CHAT_EXAMPLES,
        add_options=add_chat_options,
        target="sevenfold.cli.chat_start:start_chat",
    ),
    Command(
        name="ui",
        help=UI_HELP,
        description=UI_DESCRIPTION,
        examples=UI_EXAMPLES,
        add_options=add_ui_options,
        target="sevenfold.cli.ui:run_ui",
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
        group="try",
        help=REPLAY_HELP,
        description=REPLAY_DESCRIPTION,
        examples=REPLAY_EXAMPLES,
        add_options=add_replay_options,
        target="sevenfold.cli.replay.command:run_replay",
    ),
    Command(
        name="simulate",
        group="try",
        help=SIMULATE_HELP,
        description=SIMULATE_DESCRIPTION,
        examples=SIMULATE_EXAMPLES,
        add_options=add_simulate_options,
        target="sevenfold.cli.simulate:run_simulate",
    ),
    Command(
        name="run",
        group="run",
        help=RUN_HELP,
        description=RUN_DESCRIPTION,
        examples=RUN_EXAMPLES,
        add_options=add_run_options,
        target="sevenfold.cli.proxy:run_agent",
    ),
    Command(
        name="proxy",
        group="run",
        help=PROXY_HELP,
        description=PROXY_DESCRIPTION,
        examples=PROXY_EXAMPLES,
        add_options=add_proxy_options,
        target="sevenfold.cli.proxy:run_proxy",
    ),
    Command(
        name="mcp",
        group="run",
        help=MCP_HELP,
        description=MCP_DESCRIPTION,
        examples=MCP_EXAMPLES,
        add_options=add_mcp_options,
        target="sevenfold.cli.mcp:run_mcp",
    ),
    Command(
        name="serve",
        group="team",
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
        group="team",
        help=TEAM_HELP,
        description=TEAM_DESCRIPTION,
        examples=TEAM_EXAMPLES,
        add_options=add_team_options,
        target="sevenfold.cli.team.command:run_team",
    ),
    Command(
        name="install",
        group="run",
        help=INSTALL_HELP,
        description=INSTALL_DESCRIPTION,
        examples=INSTALL_EXAMPLES,
        add_options=add_install_options,
        target="sevenfold.cli.install:run_install",
    ),
    Command(
        name="hook",
        group="run",
        help=HOOK_HELP,
        description=HOOK_DESCRIPTION,
        examples=HOOK_EXAMPLES,
        add_options=add_hook_options,
        target="sevenfold.cli.resident:run_hook_command",
    ),
    Command(
        name="resident",
        group="run",
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
        group="try",
        help=LAYERS_HELP,
        description=LAYERS_DESCRIPTION,
        examples=LAYERS_EXAMPLES,
        add_options=add_layers_options,
        target="sevenfold.cli.layers:run_layers",
    ),
    Command(
        name="completion",
        help=COMPLETION_HELP,
        description=COMPLETION_DESCRIPTION,
        examples=COMPLETION_EXAMPLES,
        add_options=add_completion_options,
        target="sevenfold.cli.completion:run_completion",
    ),
)
"""In the order in which `--help` lists them within their group."""

_EXAMPLES = """\
examples:
  sevenfold tour                            watch the layers at work: offline, no key
  sevenfold replay                          what your recorded sessions cost, and where the cache broke
  sevenfold run claude                      start Claude Code, and end with its bill
  sevenfold chat                            an agent in this repository, with all seven layers
  sevenfold ui                              sessions, memories and spend on a page of this machine
  sevenfold recall "how do we retry?"       which memories a prompt would bring, and why
  sevenfold settings compact.enabled        one setting, its value and where that came from

`sevenfold COMMAND --help` has more examples. docs/settings.md lists all settings.
"""


class _Parser(DeferredParser):
    """Argument parsing whose errors are one line, suggest what was meant, and escape control characters."""

    def error(self, message: str) -> NoReturn:
        STDIO_SCREEN.fail(f"{escape_controls(message)} (see `{self.prog} --help`)")
        self.exit(2)

    def _check_value(self, action: Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            raise ArgumentError(action, f"{value!r} is unknown{_suggest(str(value), known)}")

    def _match_argument(self, action: Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except ArgumentError as error:
            if action.choices is None or not action.option_strings:
                raise
            listed = ", ".join(map(str, action.choices))
            raise ArgumentError(action, f"{error.message}: {listed}") from None

    def option_names(self) -> list[str]:
        self.fill()
        return list(self._option_string_actions)


class _RootParser(_Parser):
    """The parser of `sevenfold` itself: lists the commands in groups, and knows the options of each."""

    def __init__(self) -> None:
        super().__init__(
            "sevenfold",
            description="A bounded context, a warm prompt cache and a memory that lasts, for LLM agents.",
            epilog=_EXAMPLES,
            formatter_class=HelpPage,
            allow_abbrev=False,
            usage="sevenfold COMMAND …",
        )
        self.commands: dict[str, _Parser] = {}
        self.add_argument("--version", action="version", version=f"sevenfold {__version__}")
        self.add_later(self._add_commands)

    def _add_commands(self, parser: ArgumentParser) -> None:
        below = parser.add_subparsers(
            dest="command", metavar="COMMAND", title="commands", prog="sevenfold", parser_class=_Parser
        )
        for command in choose_named(parser, COMMANDS):
            one = below.add_parser(
                command.name,
                help=command.help,
                description=command.description,
                epilog=command.examples,
                formatter_class=HelpPage,
                allow_abbrev=False,
            )
            self.commands[command.name] = one
            one.add_later(command.add_options)

    def format_help(self) -> str:
        width = max(len(command.name) for command in COMMANDS)
        listed = (
            f"{group}: {heading}\n"
            + "".join(
                f"    {command.name:{width}}  {command.help}\n"
                for command in COMMANDS
                if command.group == group
            )
            for group, heading in COMMAND_GROUPS.items()
        )
        options = "options:\n  -h, --help  show this help\n  --version   show the version\n"
        usage = f"usage: {self.usage}\n\n{self.description}\n"
        return "\n".join((usage, *listed, options, _EXAMPLES))

    def parse_args(  # pyright: ignore[reportIncompatibleMethodOverride] - the overloads differ in `namespace`
        self, args: Sequence[str] | None = None, namespace: None = None
    ) -> Namespace:
        given = list(sys.argv[1:] if args is None else args)
        if given[:1] == ["help"]:
            given = [*given[1:], "--help"]
        options, unknown = self.parse_known_args(given, namespace)
        if unknown:
            parser = self.commands.get(str(options.command), self)
            listed = " ".join(unknown)
            parser.error(f"unrecognized arguments: {listed}{_suggest(unknown[0], parser.option_names())}")
        return options


def _suggest(given: str, known: Iterable[str]) -> str:
    """What was probably meant; else, of a short list, all there is."""
    names = list(known)
    # Before `=` stands the name of an option.
    name = given.partition("=")[0]
    from difflib import get_close_matches

    close = get_close_matches(name, names, cutoff=0.6)
    if close:
        # Swapped letters are the likelier mistake: `--modle` is `--model` rather than `--mode`.
        meant = next((one for one in close if sorted(one) == sorted(name)), close[0])
        return f"; did you mean {meant!r}?"
    is_short = len(names) <= MAX_LISTED_CHOICES and not any(name.startswith("-") for name in names)
    return f"; expected {', '.join(names)}" if is_short else ""


def make_parser(*, is_whole: bool = True) -> ArgumentParser:
    """`is_whole`: with the options of all commands, for who looks at them all."""
    parser = _RootParser()
    if is_whole:
        parser.fill_all()
    return parser


def load_command(name: str) -> RunCommand:
    """The function that carries out a command of that name."""
    (command,) = (command for command in COMMANDS if command.name == name)
    module, _, function = command.target.partition(":")
    return cast("RunCommand", getattr(import_module(module), function))
