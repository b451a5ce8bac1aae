"""`sevenfold memory`: what is remembered of a project, by hand."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn, TypeAlias, cast

from sevenfold.cli.memory_change import add, edit, export_all, import_all, remove
from sevenfold.cli.memory_check import check
from sevenfold.cli.memory_desk import Desk, open_desk
from sevenfold.cli.memory_look import list_all, search, show
from sevenfold.cli.memory_past import blame, diff, log, purge, restore, revert, undo
from sevenfold.cli.memory_review import review
from sevenfold.cli.render import Page, Screen
from sevenfold.cli.usages.memory import add_options
from sevenfold.core.errors import InputError

Doing: TypeAlias = Callable[[Namespace, Desk], int]

_DOING: dict[str, Doing] = {
    "list": list_all,
    "show": show,
    "add": add,
    "edit": edit,
    "rm": remove,
    "search": search,
    "check": check,
    "review": review,
    "log": log,
    "diff": diff,
    "blame": blame,
    "revert": revert,
    "undo": undo,
    "restore": restore,
    "purge": purge,
    "import": import_all,
    "export": export_all,
}


_NEEDS_TERMINAL = frozenset({"edit"})


def run(options: Namespace, screen: Screen) -> int:
    with open_desk(options, screen) as desk:
        return _DOING[cast("str", options.action)](options, desk)


class _Quiet(ArgumentParser):
    """Says what is wrong to whoever asked, and nothing to the terminal."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"/memory: {message}; `sevenfold memory --help` explains the actions")

    def print_help(self, file: object = None) -> None:  # noqa: ARG002 - there is one reader
        raise InputError(self.format_help())


def _refuse_unknown(said: Sequence[str]) -> None:
    """In words of a chat: the parser knows no near ones."""
    if not said or said[0].startswith("-") or said[0] in _DOING:
        return
    near = get_close_matches(said[0].lower(), _DOING, 1)
    hint = f"did you mean /memory {near[0]}?" if near else f"it takes {', '.join(_DOING)}"
    raise InputError(f"there is no /memory {said[0]}; {hint}")


def answer(project: Path, words: str) -> list[str]:
    """What an action prints, line by line, for a chat that has the terminal to itself."""
    parser, page = _Quiet("/memory", add_help=False), Page()
    add_options(parser)
    try:
        said = shlex.split(words)
    except ValueError as error:
        raise InputError(f"{words!r} cannot be read: {error}") from error
    _refuse_unknown(said)
    options = parser.parse_args(["--project", str(project), *said])
    if options.action in _NEEDS_TERMINAL:
        raise InputError(f"`sevenfold memory {options.action}` needs the terminal; run it beside the chat")
    run(options, page)
    return page.lines
