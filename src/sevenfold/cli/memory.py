"""`sevenfold memory`: what is remembered of a project, by hand."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TypeAlias, cast

from sevenfold.cli.memory_change import add, edit, export_all, import_all, remove
from sevenfold.cli.memory_check import check
from sevenfold.cli.memory_desk import Desk, open_desk
from sevenfold.cli.memory_look import list_all, search, show
from sevenfold.cli.memory_past import blame, diff, log, purge, restore, revert, undo
from sevenfold.cli.memory_review import review
from sevenfold.cli.render import Screen

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


def run(options: Namespace, screen: Screen) -> int:
    with open_desk(options, screen) as desk:
        return _DOING[cast("str", options.action)](options, desk)
