"""Help, examples and arguments of each command. `--help` loads all of them, so they import little.

Arguments that several commands have are declared here, once. The others:

- `running`: `chat`, `tour`, `simulate`, `mcp`, `team` and `serve`.
- `inspect`: `context`, `stats`, `spend`, `doctor`, `settings`, `layers`, `replay`,
  `search` and `ui`.
- `memory`: `memory`, `recall` and `dream`.
- `agents`: `install`, `hook`, `resident` and `completion`.
"""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

MAX_PORT = 65_535


def add_json_option(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_project_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--project",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the project's folder, or one in it (here)",
    )


def parse_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_PORT):
        raise ArgumentTypeError(f"{text!r} is not a port; expected 0 (any free one) to {MAX_PORT}")
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAction:
    """One of the things that a command does, with a help of its own."""

    name: str
    help: str
    more: str
    add: Callable[[ArgumentParser], None]
    examples: tuple[str, ...] = ()


def add_actions(parser: ArgumentParser, actions: Iterable[CommandAction]) -> None:
    """What a command does. `--project` and `--json` may stand before or behind one."""
    add_project_option(parser)
    add_json_option(parser)
    below = parser.add_subparsers(metavar="ACTION", title="actions")
    for action in actions:
        lines = (f"  {parser.prog} {line}" for line in action.examples)
        one = below.add_parser(
            action.name,
            help=action.help,
            description=action.more,
            epilog="\n".join(("examples:", *lines)) if action.examples else None,
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        one.set_defaults(action=action.name)
        action.add(one)
        # Without defaults: what was said before the action would be forgotten for them.
        one.add_argument("--project", type=Path, default=SUPPRESS, metavar="DIR", help=SUPPRESS)
        one.add_argument("--json", action="store_true", default=SUPPRESS, help="print JSON")


def add_no_options(_parser: ArgumentParser) -> None:
    """For an action that takes nothing."""
