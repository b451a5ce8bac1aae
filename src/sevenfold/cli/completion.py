"""`sevenfold completion`: a script that completes commands, made from the parser itself."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator
from importlib.util import find_spec
from typing import cast

from sevenfold.cli.screen import Screen
from sevenfold.core.errors import InputError, describe_missing

_LIBRARY = "shtab"
_FILES = frozenset({"FILE", "PATH"})
_FOLDERS = frozenset({"DIR"})


def run_completion(options: Namespace, screen: Screen) -> int:
    if find_spec(_LIBRARY) is None:
        raise InputError(describe_missing("sevenfold completion", [_LIBRARY], "completion"))
    # Only here: no other command needs it.
    import shtab

    from sevenfold.cli.commands import make_parser

    parser = make_parser()
    for action in _walk(parser):
        if action.metavar in _FILES:
            action.complete = shtab.FILE  # pyright: ignore[reportAttributeAccessIssue] - how shtab is told
        elif action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # pyright: ignore[reportAttributeAccessIssue]
    screen.show_text(shtab.complete(parser, options.shell).rstrip("\n"))
    return 0


def _walk(parser: ArgumentParser) -> Iterator[Action]:
    for action in parser._actions:
        yield action
        choices = cast("object", action.choices)
        if isinstance(choices, dict):
            for below in cast("dict[str, object]", choices).values():
                if isinstance(below, ArgumentParser):
                    yield from _walk(below)
