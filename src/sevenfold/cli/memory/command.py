"""`sevenfold memory`: a project's memories, managed by hand. Dispatches to the actions, and `memory review`.

`capture_memory_output` runs an action for a chat and returns what it prints.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TypeAlias, cast

from sevenfold.cli.memory.change import (
    add_memory,
    blame_memory,
    edit_memory,
    export_memories,
    import_memories,
    purge_memory,
    redo_transaction,
    remove_memory,
    restore_memory,
    revert_memory,
    show_diff_text,
    show_memory_diff,
    show_memory_log,
    undo_transaction,
)
from sevenfold.cli.memory.context import MEMORY_SECTIONS, MemoryContext, open_memory_context
from sevenfold.cli.memory.listing import list_memories, search_memories, show_memory
from sevenfold.cli.options.memory import add_memory_options
from sevenfold.cli.screen import CapturedScreen, Screen, format_time
from sevenfold.core.errors import InputError, MemoryConflict
from sevenfold.core.settings import SettingsSection
from sevenfold.layers.memory.overview import describe_review, diff_proposal
from sevenfold.store.memory.changes import PendingReview, SettledReview, TransactionId

# `sevenfold memory review`: memories that wait for a person, one by one.

_KEYS = {"a": "accept", "r": "reject", "s": "skip", "": "skip", "q": "quit"}
_ALL_KEYS = {"A": "accept all", "R": "reject all"}


def review_memories(options: Namespace, context: MemoryContext) -> int:
    accepted, rejected = cast("list[str]", options.accept), cast("list[str]", options.reject)
    trusted = cast("list[str]", options.trust)
    if accepted or rejected or trusted:
        # Looked up before anything is done: a wrong id changes nothing.
        agreed, refused = _find_all(context, accepted), _find_all(context, rejected)
        if both := {*agreed} & {*refused}:
            raise InputError(f"{', '.join(sorted(both))}: accepted and rejected at once; choose one")
        keys = [context.find(name).memory.key for name in trusted]
        done = _settle(context, agreed, refused, keys)
        settled = _list_settled(done, keys)
        if context.is_json:
            context.screen.show_json(settled)
        for one in () if context.is_json else settled:
            context.screen.show_line(f"{one['kind']}: {one['of']}")
        return 1 if done.clashing else 0
    waiting = context.memory.waiting()
    if context.is_json:
        context.screen.show_json([describe_review(context.memory, one) for one in waiting])
        return 0
    if not waiting:
        context.screen.show_line("nothing waits", "faint")
    elif context.is_attended:
        _walk(context, waiting)
    else:
        _list(context, waiting)
    return 0


def _settle(
    context: MemoryContext, agreed: Sequence[str], refused: Sequence[str] = (), trusted: Sequence[str] = ()
) -> SettledReview:
    """All answers as one change. What has changed meanwhile waits on, and that is said."""
    done = context.memory.settle(agreed, refused, trusted)
    for id_, error in done.clashing.items():
        reason = str(error)
        if isinstance(error, MemoryConflict):
            reason = f"{', '.join(error.keys)} changed since it was proposed"
        context.screen.note(
            f"note: {id_} still waits: {reason}; `sevenfold memory review --reject {id_}` drops it, "
            "`edit` takes over what you want of it"
        )
    return done


def _list_settled(done: SettledReview, trusted: Sequence[str]) -> list[dict[str, str]]:
    """Each answer, with the one change that has all of them."""
    kinds = {"accept": done.accepted, "reject": done.rejected, "trust": trusted}
    return [
        {"id": done.transaction.id, "kind": kind, "of": of} for kind, names in kinds.items() for of in names
    ]


def _walk(context: MemoryContext, waiting: Sequence[PendingReview]) -> None:
    for number, one in enumerate(waiting, 1):
        _show(context, one, f"{number} of {len(waiting)}: ")
        answer = _ask(context)
        if answer == "quit":
            return
        verb = answer.split()[0]
        several = waiting[number - 1 :] if answer.endswith(" all") else (one,)
        ids = [settled.id for settled in several]
        if verb == "accept":
            ids = _settle(context, ids).accepted
        elif verb == "reject":
            ids = _settle(context, (), ids).rejected
        done = {"accept": "accepted", "reject": "rejected"}.get(verb, "left waiting")
        if ids:
            context.screen.show_line(done if len(several) == 1 else f"{done}: {len(ids)}", "faint")
        if answer.endswith(" all"):
            return


def _ask(context: MemoryContext) -> str:
    while True:
        context.screen.show_line(
            "[a]ccept, [r]eject, [s]kip, [q]uit; [A]ccept or [R]eject this and all after it?", "strong"
        )
        context.screen.flush()
        line = sys.stdin.readline()
        said = line.strip()
        answer = _ALL_KEYS.get(said) or _KEYS.get(said.lower()[:1], "") if line else "quit"
        if answer:
            return answer


def _list(context: MemoryContext, waiting: Sequence[PendingReview]) -> None:
    for one in waiting:
        _show(context, one)
    context.screen.show_line(
        "`sevenfold memory review --accept NAME…` or `--reject NAME…` settles them, by id or by memory; "
        "`all` means all",
        "faint",
    )


def _show(context: MemoryContext, waiting: PendingReview, number: str = "") -> None:
    origin = waiting.origin
    context.screen.show_line(f"{number}{waiting.id}, {format_time(waiting.at)}, by {origin.who}", "strong")
    sources = ", ".join(sorted(origin.taint - {"outside edit"}))
    through = f" It went through {sources}." if sources else ""
    context.screen.show_line(f"{waiting.reason or origin.why}.{through}", "warning")
    if origin.session:
        context.screen.show_line(f"from session {origin.session}", "faint")
    for proposed in waiting.changes:
        show_diff_text(context, diff_proposal(context.memory, proposed.key, proposed.text))


def _find_all(context: MemoryContext, starts: Sequence[str]) -> list[TransactionId]:
    if "all" in starts:
        return [one.id for one in context.memory.waiting()]
    return list(dict.fromkeys(_find(context, start).id for start in starts))


def _find(context: MemoryContext, said: str) -> PendingReview:
    """By the memory that it is about, or by the start of its id."""
    waiting = context.memory.waiting()
    named = [one for one in waiting if any(said in _forms(each.key) for each in one.changes)]
    found = named or [one for one in waiting if one.id.startswith(said)]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(one.id for one in found)
        raise InputError(f"{said!r} names {len(found)} of what waits: {ids}; give the start of one id")
    raise InputError(f"nothing of what waits is {said!r}, by id or by memory; see `sevenfold memory review`")


def _forms(key: str) -> tuple[str, str]:
    return key, key.removesuffix(".md")


def _check(options: Namespace, context: MemoryContext) -> int:
    # Not at the top: no other action looks into the project.
    from sevenfold.cli.memory.check import check_memory_claims

    return check_memory_claims(options, context)


MemoryHandler: TypeAlias = Callable[[Namespace, MemoryContext], int]

_DOING: dict[str, MemoryHandler] = {
    "list": list_memories,
    "show": show_memory,
    "add": add_memory,
    "edit": edit_memory,
    "rm": remove_memory,
    "search": search_memories,
    "check": _check,
    "review": review_memories,
    "log": show_memory_log,
    "diff": show_memory_diff,
    "blame": blame_memory,
    "revert": revert_memory,
    "undo": undo_transaction,
    "redo": redo_transaction,
    "restore": restore_memory,
    "purge": purge_memory,
    "import": import_memories,
    "export": export_memories,
}


_NEEDS_TERMINAL = frozenset({"edit"})


def run_memory(options: Namespace, screen: Screen) -> int:
    action = cast("str", options.action)
    with open_memory_context(options, screen, _list_sections(options)) as context:
        return _DOING[action](options, context)


def _list_sections(options: Namespace) -> tuple[type[SettingsSection], ...]:
    # Not at the top: no other action needs these modules.
    action = cast("str", options.action)
    if action == "check" and options.online:
        from sevenfold.core.settings.sections import WebSettings

        return (*MEMORY_SECTIONS, WebSettings)
    if action != "search":
        return MEMORY_SECTIONS
    from sevenfold.cli.memory.recall import RECALL_SECTIONS

    return RECALL_SECTIONS


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
    from difflib import get_close_matches  # not at the top: few actions are misspelt

    near = get_close_matches(said[0].lower(), _DOING, 1)
    hint = f"did you mean /memory {near[0]}?" if near else f"it takes {', '.join(_DOING)}"
    raise InputError(f"there is no /memory {said[0]}; {hint}")


def capture_memory_output(project: Path, words: str) -> list[str]:
    """What an action prints, line by line, for a chat that has the terminal to itself."""
    from shlex import split

    parser, page = _Quiet("/memory", add_help=False), CapturedScreen()
    add_memory_options(parser)
    try:
        said = split(words)
    except ValueError as error:
        raise InputError(f"{words!r} cannot be read: {error}") from error
    _refuse_unknown(said)
    options = parser.parse_args(["--project", str(project), *said])
    if options.action in _NEEDS_TERMINAL:
        raise InputError(f"`sevenfold memory {options.action}` needs the terminal; run it beside the chat")
    run_memory(options, page)
    return page.lines
