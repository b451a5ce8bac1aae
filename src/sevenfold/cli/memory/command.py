"""`sevenfold memory`: what is remembered of a project, by hand."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn, TypeAlias, cast

from sevenfold.cli.memory.change import (
    add_memory,
    edit_memory,
    export_memories,
    import_memories,
    remove_memory,
)
from sevenfold.cli.memory.check import check_memory_claims
from sevenfold.cli.memory.context import MemoryContext, open_memory_context
from sevenfold.cli.memory.history import (
    blame_memory,
    purge_memory,
    restore_memory,
    revert_memory,
    show_memory_diff,
    show_memory_log,
    undo_transaction,
)
from sevenfold.cli.memory.listing import list_memories, search_memories, show_memory
from sevenfold.cli.memory.review import review_memories
from sevenfold.cli.options.memory import add_memory_options
from sevenfold.cli.screen import CapturedScreen, Screen
from sevenfold.core.errors import InputError

MemoryHandler: TypeAlias = Callable[[Namespace, MemoryContext], int]

_DOING: dict[str, MemoryHandler] = {
    "list": list_memories,
    "show": show_memory,
    "add": add_memory,
    "edit": edit_memory,
    "rm": remove_memory,
    "search": search_memories,
    "check": check_memory_claims,
    "review": review_memories,
    "log": show_memory_log,
    "diff": show_memory_diff,
    "blame": blame_memory,
    "revert": revert_memory,
    "undo": undo_transaction,
    "restore": restore_memory,
    "purge": purge_memory,
    "import": import_memories,
    "export": export_memories,
}


_NEEDS_TERMINAL = frozenset({"edit"})


def run_memory(options: Namespace, screen: Screen) -> int:
    with open_memory_context(options, screen) as desk:
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


def capture_memory_output(project: Path, words: str) -> list[str]:
    """What an action prints, line by line, for a chat that has the terminal to itself."""
    parser, page = _Quiet("/memory", add_help=False), CapturedScreen()
    add_memory_options(parser)
    try:
        said = shlex.split(words)
    except ValueError as error:
        raise InputError(f"{words!r} cannot be read: {error}") from error
    _refuse_unknown(said)
    options = parser.parse_args(["--project", str(project), *said])
    if options.action in _NEEDS_TERMINAL:
        raise InputError(f"`sevenfold memory {options.action}` needs the terminal; run it beside the chat")
    run_memory(options, page)
    return page.lines
