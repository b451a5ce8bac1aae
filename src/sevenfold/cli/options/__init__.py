"""Help, examples and arguments of each command. `--help` loads all of them, so they import little.

Arguments that several commands have are declared here, once. The others:

- `running`: `chat`, `tour`, `simulate`, `mcp`, `team` and `serve`.
- `inspect`: `context`, `stats`, `spend`, `doctor`, `settings`, `layers`, `replay`,
  `search` and `ui`.
- `memory`: `memory`, `recall` and `dream`.
- `agents`: `install`, `hook`, `resident` and `completion`.
"""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, cast

from sevenfold.cli.screen import count_columns

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


class HelpPage(RawDescriptionHelpFormatter):
    """The base class loads a module to count columns, and one page is made to check each argument."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=count_columns() - 2)


class DeferredParser(ArgumentParser):
    """A parser whose options are added when it is first used: a run uses those of one command, and making all
    of them takes longer than reading the arguments."""

    first_word = ""
    """Of the arguments that it reads. If it names what they ask for, the parsers beside that one are not
    made."""
    _waiting: tuple[Callable[[ArgumentParser], None], ...] = ()

    def add_later(self, add: Callable[[ArgumentParser], None]) -> None:
        self._waiting = (*self._waiting, add)

    def fill(self) -> None:
        """Add what waits."""
        waiting, self._waiting = self._waiting, ()
        for add in waiting:
            add(self)

    def fill_all(self) -> None:
        """Add what waits here and in the parsers below."""
        self.fill()
        for action in self._actions:
            below = cast("object", action.choices)
            for parser in cast("dict[str, object]", below).values() if isinstance(below, dict) else ():
                if isinstance(parser, DeferredParser):
                    parser.fill_all()

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - it has overloads
        self, args: Sequence[str] | None = None, namespace: None = None
    ) -> tuple[Namespace, list[str]]:
        self.first_word = args[0] if args else ""
        self.fill()
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        self.fill()
        return super().format_help()

    def format_usage(self) -> str:
        self.fill()
        return super().format_usage()


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Named)


def choose_named(parser: ArgumentParser, known: Iterable[_N]) -> Sequence[_N]:
    """The one that the parser's first word names; all where it names none, as for help or in a mistake."""
    listed = tuple(known)
    said = parser.first_word if isinstance(parser, DeferredParser) else ""
    return [one for one in listed if one.name == said] or listed


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
    below = parser.add_subparsers(metavar="ACTION", title="actions", prog=parser.prog)
    for action in choose_named(parser, actions):
        lines = (f"  {parser.prog} {line}" for line in action.examples)
        one = below.add_parser(
            action.name,
            help=action.help,
            description=action.more,
            epilog="\n".join(("examples:", *lines)) if action.examples else None,
            formatter_class=HelpPage,
            allow_abbrev=False,
        )
        one.set_defaults(action=action.name)
        for add in (action.add, _add_shared_options):
            if isinstance(one, DeferredParser):
                one.add_later(add)
            else:
                add(one)


def _add_shared_options(one: ArgumentParser) -> None:
    # Without defaults: what was said before the action would be forgotten for them.
    one.add_argument("--project", type=Path, default=SUPPRESS, metavar="DIR", help=SUPPRESS)
    one.add_argument("--json", action="store_true", default=SUPPRESS, help="print JSON")


def add_no_options(_parser: ArgumentParser) -> None:
    """For an action that takes nothing."""
